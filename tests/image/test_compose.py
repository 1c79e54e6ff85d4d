"""What the compose file promises about every container, read without a container engine."""

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
from tests.portal.jobs.test_worker import until
from tests.portal.operations.test_demo import answers, free_port

COMPOSE: dict[str, Any] = yaml.safe_load((BASE_DIR / "docker/compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PASSWORD = "4be1c07d5f"
# PostgreSQL's releases have two numbers, all others three.
FULL_VERSION = re.compile(r"(postgres:\d+\.\d+|[\w/-]+:(\$\{\w+:-)?\d+\.\d+\.\d+)(-[\w.]+)*\}?")


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_named_by_full_version(name: str) -> None:
    assert FULL_VERSION.fullmatch(SERVICES[name]["image"])


def test_the_base_image_is_named_by_full_version() -> None:
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
def test_servers_of_others_run_without_root(name: str) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", SERVICES[name]["user"])
    assert SERVICES[name]["networks"] == ["inside"]


def test_the_guides_commands_make_every_secret_that_a_service_is_given(tmp_path: Path) -> None:
    given = {secret for service in SERVICES.values() for secret in service["secrets"]}
    assert given == set(COMPOSE["secrets"])
    guide = (BASE_DIR / "docker/README.md").read_text()
    (block,) = (one for one in re.findall(r"```\n(.*?)```", guide, re.DOTALL) if "> secret_key" in one)
    subprocess.run(["bash", "-ec", block], stdin=subprocess.DEVNULL, cwd=tmp_path, check=True)
    assert {file.name for file in (tmp_path / "docker/secrets").iterdir()} == given


def test_every_setting_reaches_the_containers() -> None:
    """By the file, or as one of those that the compose file sets or hands over."""
    fixed = {name.removesuffix("_FILE") for name in SERVICES["web"]["environment"]}
    source = (BASE_DIR / "portal/settings.py").read_text()
    names = {str(ast.literal_eval(call.args[0])) for call, _ in setting_calls(source)}
    assert fixed <= names
    for name in ("web", "worker", "upgrade"):
        assert SERVICES[name]["env_file"] == [{"path": "./desk.env", "required": False}]


def test_every_alert_names_a_metric_and_a_row_of_the_runbook() -> None:
    rules = yaml.safe_load((BASE_DIR / "docker/alerts.yml").read_text())["groups"][0]["rules"]
    runbook = (BASE_DIR / "docker/README.md").read_text().partition("## Runbook")[2]
    source = (BASE_DIR / "portal/operations/metrics.py").read_text()
    for rule in rules:
        (metric,) = re.findall(r"desk_\w+", rule["expr"])
        assert f'"{metric}"' in source
        assert rule["annotations"]["runbook"] in runbook
    assert len(rules) > 8


@pytest.mark.parametrize("name", ["web", "worker"])
def test_a_unit_starts_what_the_container_starts(name: str) -> None:
    unit = (BASE_DIR / f"docker/systemd/servicing-desk-{name}.service").read_text()
    grace = SERVICES[name]["stop_grace_period"].removesuffix("s")
    assert f"TimeoutStopSec={grace}\n" in unit
    assert ("portal.wsgi" if name == "web" else "manage.py work") in unit


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The cache as its container starts it, on Debian's Redis."""
    if not (shutil.which("redis-server") and shutil.which("redis-cli")):
        pytest.skip("needs Redis")
    for ours, debians in (("valkey-server", "redis-server"), ("valkey-cli", "redis-cli")):
        (tmp_path / ours).symlink_to(shutil.which(debians) or "")
    port, file = free_port(), tmp_path / "cache_url"
    file.write_text(f"redis://:{PASSWORD}@cache:6379/0\n")
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "CACHE_URL_FILE": str(file),
    }
    words = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    words += [str(word) for word in SERVICES["cache"]["command"]]
    server = subprocess.Popen(
        ["sh", "docker/cache.sh", *words], cwd=BASE_DIR, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        until(lambda: answers(port))
        command_line = Path(f"/proc/{server.pid}/cmdline").read_text()
        assert PASSWORD not in command_line
        yield port, environment
    finally:
        server.kill()
        server.wait(10)


def test_the_cache_wants_its_password(cache: tuple[int, dict[str, str]]) -> None:
    port, environment = cache
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b"PING\r\n")
        assert stranger.recv(100).startswith(b"-NOAUTH")
    ping = ["sh", "docker/cache.sh", "ping", "-p", str(port)]
    assert subprocess.run(ping, cwd=BASE_DIR, env=environment, check=False).returncode == 0
    Path(environment["CACHE_URL_FILE"]).write_text("redis://:another@cache:6379/0")
    assert subprocess.run(ping, cwd=BASE_DIR, env=environment, check=False, capture_output=True).returncode


def test_a_cache_without_a_password_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "cache_url").write_text("redis://cache:6379/0")
    environment = os.environ | {"CACHE_URL_FILE": str(tmp_path / "cache_url")}
    ended = subprocess.run(
        ["sh", "docker/cache.sh"], cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "has no password" in ended.stderr
