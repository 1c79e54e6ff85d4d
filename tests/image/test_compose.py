"""The compose file, its alerts, systemd units and cache script, checked without a container engine."""

import ast
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from docker.settings_reference import setting_calls
from portal.settings import BASE_DIR
from tests.portal.jobs.test_worker import wait_until
from tests.portal.operations.test_demo import free_port, is_listening

pytestmark = pytest.mark.slow

COMPOSE: dict[str, Any] = yaml.safe_load((BASE_DIR / "docker/compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PASSWORD = "4be1c07d5f"
# PostgreSQL's versions have two numbers, all others three.
FULL_VERSION = re.compile(r"(postgres:\d+\.\d+|[\w/-]+:(\$\{\w+:-)?\d+\.\d+\.\d+)(-[\w.]+)*\}?")


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_full_version(name: str) -> None:
    assert FULL_VERSION.fullmatch(SERVICES[name]["image"])


def test_the_base_image_has_a_full_version() -> None:
    (base,) = re.findall(r"^ARG BASE=(.+)$", (BASE_DIR / "docker/Dockerfile").read_text(), re.MULTILINE)
    assert FULL_VERSION.fullmatch(base)


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"]
    assert not {"privileged", "cap_add"} & set(service)


@pytest.mark.parametrize("name", ["database", "cache"])
def test_the_database_and_cache_run_without_root(name: str) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", SERVICES[name]["user"])
    assert SERVICES[name]["networks"] == ["inside"]


def test_the_guides_commands_create_every_secret_of_the_services(tmp_path: Path) -> None:
    secrets = {secret for service in SERVICES.values() for secret in service["secrets"]}
    assert secrets == set(COMPOSE["secrets"])
    guide = (BASE_DIR / "docker/README.md").read_text()
    (block,) = (one for one in re.findall(r"```\n(.*?)```", guide, re.DOTALL) if "> secret_key" in one)
    subprocess.run(["bash", "-ec", block], stdin=subprocess.DEVNULL, cwd=tmp_path, check=True)
    assert {file.name for file in (tmp_path / "docker/secrets").iterdir()} == secrets


def test_every_setting_reaches_the_containers() -> None:
    """Through the environment file, or as a setting or secret of the compose file."""
    fixed = {name.removesuffix("_FILE") for name in SERVICES["web"]["environment"]}
    source = (BASE_DIR / "portal/settings.py").read_text()
    names = {str(ast.literal_eval(call.args[0])) for call, _ in setting_calls(source)}
    assert fixed <= names
    for name in ("web", "worker", "upgrade"):
        assert SERVICES[name]["env_file"] == [{"path": "./desk.env", "required": False}]


def test_every_alert_names_a_metric_and_a_runbook_row() -> None:
    rules = yaml.safe_load((BASE_DIR / "docker/alerts.yml").read_text())["groups"][0]["rules"]
    runbook = (BASE_DIR / "docker/README.md").read_text().partition("## Runbook")[2]
    source = (BASE_DIR / "portal/operations/metrics.py").read_text()
    for rule in rules:
        (metric,) = re.findall(r"desk_\w+", rule["expr"])
        assert f'"{metric}"' in source
        assert rule["annotations"]["runbook"] in runbook
    assert len(rules) > 8


@pytest.mark.parametrize("name", ["web", "worker"])
def test_each_systemd_unit_runs_its_containers_program(name: str) -> None:
    unit = (BASE_DIR / f"docker/systemd/servicing-desk-{name}.service").read_text()
    grace = SERVICES[name]["stop_grace_period"].removesuffix("s")
    assert f"TimeoutStopSec={grace}\n" in unit
    assert ("portal.wsgi" if name == "web" else "manage.py work") in unit


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The cache, started on Debian's Redis by the script of its container."""
    if not (shutil.which("redis-server") and shutil.which("redis-cli")):
        pytest.skip("needs Redis")
    for valkey_name, redis_name in (("valkey-server", "redis-server"), ("valkey-cli", "redis-cli")):
        (tmp_path / valkey_name).symlink_to(shutil.which(redis_name) or "")
    port, file = free_port(), tmp_path / "cache_url"
    file.write_text(f"redis://:{PASSWORD}@cache:6379/0\n")
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "CACHE_URL_FILE": str(file),
    }
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    arguments += [str(word) for word in SERVICES["cache"]["command"]]
    server = subprocess.Popen(
        ["sh", "docker/cache.sh", *arguments], cwd=BASE_DIR, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: is_listening(port))
        command_line = Path(f"/proc/{server.pid}/cmdline").read_text()
        assert PASSWORD not in command_line
        yield port, environment
    finally:
        server.kill()
        server.wait(10)


def test_the_cache_requires_its_password(cache: tuple[int, dict[str, str]]) -> None:
    port, environment = cache
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(100).startswith(b"-NOAUTH")
    ping = ["sh", "docker/cache.sh", "ping", "-p", str(port)]
    assert subprocess.run(ping, cwd=BASE_DIR, env=environment, check=False).returncode == 0
    Path(environment["CACHE_URL_FILE"]).write_text("redis://:another@cache:6379/0")
    assert subprocess.run(ping, cwd=BASE_DIR, env=environment, check=False, capture_output=True).returncode


def test_a_cache_without_a_password_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "cache_url").write_text("redis://cache:6379/0")
    environment = os.environ | {"CACHE_URL_FILE": str(tmp_path / "cache_url")}
    result = subprocess.run(
        ["sh", "docker/cache.sh"], cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "has no password" in result.stderr
