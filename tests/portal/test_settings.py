"""What is missing or wrong among the settings ends a real start, with a sentence for each that names it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docker import settings_reference
from portal.settings import BASE_DIR

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
# All that a real deployment must give.
NEEDED = {
    "SECRET_KEY": "n" * 64,
    "ALLOWED_HOSTS": "desk.example",
    "SERVICING_URL": "https://lender.example/api",
    "SERVICING_CLIENT_ID": "desk",
    "SERVICING_SECRET": SECRET,
}
SHOW = "from portal import settings; print(settings.{})"
BIN = Path(sys.executable).parent
CHECK = [sys.executable, "manage.py", "check"]


def start(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start the portal in a process that knows only these settings."""
    system = {
        name: text for name, text in os.environ.items() if name in ("PATH", "HOME") or "COVERAGE" in name
    }
    settings = {"ENV_FILE": os.devnull, "DJANGO_SETTINGS_MODULE": "portal.settings"} | environment
    return subprocess.run(
        command or CHECK,
        env=system | settings,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusals(*command: str, **environment: str) -> list[str]:
    """The lines with which the start ends."""
    done = start(*command, **environment)
    assert (done.returncode, done.stdout) == (4, "")
    lines = done.stderr.splitlines()
    assert all(line.startswith("Settings: ") for line in lines), done.stderr
    return [line.removeprefix("Settings: ") for line in lines]


def refusal(*command: str, **environment: str) -> str:
    """The one line with which the start ends."""
    (sentence,) = refusals(*command, **environment)
    return sentence


def shown(name: str, **environment: str) -> str:
    """What a setting is once it was read."""
    done = start(sys.executable, "-c", SHOW.format(name), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_deployment_starts_with_what_is_needed() -> None:
    done = start(**NEEDED)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_deployment_passes_every_check_of_its_security() -> None:
    key = {"SECRET_KEY": "a-key-of-more-than-fifty-characters-0123456789-abcdefghijkl"}
    done = start(*CHECK, "--deploy", "--fail-level", "WARNING", **NEEDED | key)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_new_database_is_its_owners_alone(tmp_path: Path) -> None:
    database = tmp_path / "portal.sqlite3"
    given = NEEDED | {"DATABASE_URL": f"sqlite:///{database}"}
    assert start(sys.executable, "manage.py", "migrate", "audit", **given).returncode == 0
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes["portal.sqlite3"] == 0o600
    assert set(modes.values()) == {0o600}


def test_cookies_are_this_hosts_alone() -> None:
    assert shown("SESSION_COOKIE_NAME", **NEEDED) == "__Host-sessionid"


def test_processes_that_share_a_server_share_its_cache() -> None:
    on_server = NEEDED | {"DATABASE_URL": "postgres://desk@host/desk"}
    assert "operations_cache" in shown("CACHES", **on_server)
    named = shown("CACHES", **on_server, CACHE_URL="redis://cache:6379/0")
    assert ("redis://cache" in named, "portal.runtime.cache.ForgivingCache" in named) == (True, True)
    assert "LocMemCache" in shown("CACHES", **NEEDED)


def test_local_use_needs_nothing(tmp_path: Path) -> None:
    done = start(DEBUG="on", DATA_DIR=str(tmp_path / "new" / "data"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "new" / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_missing_is_named(name: str) -> None:
    rest = {key: value for key, value in NEEDED.items() if key != name}
    assert refusal(**rest).startswith(f"{name} is missing.")
    assert refusal(**rest, **{name: ""}).startswith(f"{name} is missing.")


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_all_that_is_missing_is_named_at_once(command: str) -> None:
    sentences = refusals(sys.executable, "manage.py", command)
    assert sorted(sentence.partition(" is missing.")[0] for sentence in sentences) == sorted(NEEDED)


def test_a_web_process_names_all_that_is_missing() -> None:
    done = start(sys.executable, "-m", "gunicorn", "portal.wsgi", "--bind", "127.0.0.1:0")
    assert done.returncode == 4
    named = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("Settings: ")]
    assert sorted(named) == sorted(NEEDED)


def test_what_is_wrong_is_named_beside_what_is_missing_and_nothing_is_made(tmp_path: Path) -> None:
    wrong = {
        "SERVICING_SECRET": "swordfish",
        "SERVICING_AUTH": "basic",
        "SERVICING_OFFSET_COUNTS": "pages",
        "SERVICING_COUNTRY": "",
        "SERVICING_TIME_ZONE": "Mars/Olympus",
        "SERVICING_TIMEOUT": "soon",
        "SECRET_KEY_FILE": str(tmp_path / "nothing"),
        "UTILIZATION_WARN": "full",
        "APPROVAL_ACTS": "legal_name,everything",
        "CACHE_URL": "memcached",
        "SECURE_SSL_REDIRECT": "yse",
        "LOG_FORMAT": "xml",
        "OTEL_TRACES_SAMPLER_ARG": "abc",
        "OTEL_BSP_SCHEDULE_DELAY": "0",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "abc",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "bzip2",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem",
    }
    given = {"ALLOWED_HOSTS": "desk.example", "SERVICING_CLIENT_ID": "desk"} | wrong
    database = tmp_path / "portal.sqlite3"
    sentences = refusals(**given, DATABASE_URL=f"sqlite:///{database}")
    named = [sentence.split()[0] for sentence in sentences]
    assert sorted(named) == sorted(name.removesuffix("_FILE") for name in [*wrong, "SERVICING_URL"])
    assert not database.exists()
    assert "swordfish" not in "".join(sentences)


def test_addresses_that_lead_nowhere_and_empty_values_are_named_at_once() -> None:
    wrong = {
        "SERVICING_URL": "https://lender.example:https",
        "SERVICING_PROXY": "http://proxy.example:99999",
        "SERVICING_CA_BUNDLE": "/tmp",
        "CSRF_TRUSTED_ORIGINS": "https://desk.example/",
        "PRODUCT_NAME": "",
        "APPROVAL_ACTS": "",
        "DATABASE_URL": "postgres://host",
        "AUDIT_CHECKPOINT_KEY": SECRET,
        "AUDIT_CHECKPOINT_FORMER_KEYS": SECRET,
        "CACHE_URL": "redis://cache:port/0",
        "EMAIL_URL": "smtp://mail.example:25/path",
        "PORTAL_URL": "https://desk.example:port",
        "MAIL_FROM": "Servicing Desk desk@example.com",
        "SECOND_FACTOR_REQUIRED": "none,admin",
        "OIDC_NAME": "",
        "OIDC_URL": "https://id.example:port/realms/staff",
        "OIDC_ORIGINS": "https://login.example:port",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:otlp",
    }
    sentences = refusals(**NEEDED | wrong)
    assert sorted(sentence.split()[0] for sentence in sentences) == sorted(wrong)
    assert SECRET not in "".join(sentences)
    assert (
        refusal(**NEEDED, DATA_DIR="") == "DATA_DIR must not be empty. Remove the setting to use its default."
    )
    assert refusal(**NEEDED, DATABASE_URL="sqlite:///").startswith("DATABASE_URL has no database name.")


@pytest.mark.parametrize("name", ["DATA_DIR", "DATABASE_URL"])
def test_where_nothing_can_be_made_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    value = str(tmp_path / "file" / "data")
    given = (
        {"DATA_DIR": value} if name == "DATA_DIR" else {"DATABASE_URL": f"sqlite:////proc/{os.getpid()}/x"}
    )
    assert refusal(DEBUG="on", **{"DATA_DIR": str(tmp_path)} | given).startswith(f"{name} points to a ")
    # The database lies in there unless it is said to lie elsewhere.
    inside = refusal(**NEEDED, DATA_DIR=f"/proc/{os.getpid()}")
    assert inside.startswith("DATA_DIR points to a place where no database can be created")


WRONG_VALUES = [
    ("DEBUG", "maybe"),
    ("BEHIND_TLS_PROXY", "2"),
    ("SECURE_SSL_REDIRECT", "yse"),
    ("SECURE_HSTS_SECONDS", "-1"),
    ("SERVICING_URL", "lender.example"),
    ("SERVICING_URL", "https://"),
    ("SERVICING_URL", "https://me:pw@lender.example"),
    ("SERVICING_URL", "http://lender.example"),
    ("SERVICING_URL", "https://lender.example/v1/"),
    ("SERVICING_AUTH_HEADERS", "X-Client-Id,X Signature,Epoch,Content-MD5"),
    ("SERVICING_AUTH_HEADERS", "X-Client-Id,Epoch,Epoch,Content-MD5"),
    ("SERVICING_ENVIRONMENT", "production"),
    ("SERVICING_AUTH", "basic"),
    ("SERVICING_AUTH_HEADERS", "X-Client-Id,X-Signature"),
    ("SERVICING_EPOCH_UNIT", "us"),
    ("SERVICING_MESSAGE_FILTERS", "path"),
    ("SERVICING_OFFSET_COUNTS", "pages"),
    ("SERVICING_TIME_ZONE", "Mars/Olympus"),
    ("SERVICING_TIMEOUT", "0"),
    ("SERVICING_TIMEOUT", "soon"),
    ("BUSINESS_TIME_ZONE", "../../etc/passwd"),
    ("DRAFT_DAYS", "1.5"),
    ("UPLOAD_LIMIT_MB", "9" * 5000),
    ("DATABASE_URL", "garbage"),
    ("DATABASE_URL", "mysql://desk:{}@host/desk"),
    ("DATABASE_URL", "postgres://desk:{}@host:port/desk"),
    ("CACHE_URL", "memcached"),
    ("LOG_LEVEL", "loud"),
    ("LOG_FORMAT", "xml"),
    ("METRICS_TOKEN", "short"),
    ("SECRET_KEY", "short"),
    ("SERVICING_COUNTRY", ""),
    ("SERVICING_CA_BUNDLE", "/nowhere.pem"),
    ("SERVICING_CLIENT_CERT", "/nowhere.pem"),
    ("SERVICING_PROXY", "proxy.example"),
    ("SERVICING_MAX_VALUES", "0"),
    ("SERVICING_MAX_RECORDS", "many"),
    ("SERVICING_INCORPORATION_FIELD", "start date"),
    ("SERVICING_DOCUMENT_HOSTS", "papers.example, https://papers.example/"),
    ("APPROVAL_ACTS", "legal_name,everything"),
    ("SECOND_FACTOR_REQUIRED", "everybody"),
    ("OIDC_URL", "https://id.example"),
    ("ALLOWED_HOSTS", "https://desk.example"),
    ("ALLOWED_HOSTS", ","),
    ("ALLOWED_HOSTS", "desk.example,desk.example:8000"),
    ("CSRF_TRUSTED_ORIGINS", "desk.example"),
    ("UTILIZATION_BAD", "900"),
    ("UTILIZATION_WARN", "101"),
    ("TASK_BACKEND", "nowhere.Backend"),
    ("TASK_BACKEND", "django_tasks_db.Nothing"),
    ("TASK_BACKEND", "os.path"),
    ("OTEL_TRACES_SAMPLER", "sometimes"),
    ("OIDC_MATCH", "name"),
    ("OIDC_ROLES", "Loan Servicing"),
    ("OIDC_ROLES", "Loan Servicing=owner"),
    ("OIDC_CREATE", "on"),
    ("OIDC_SCOPES", "profile,email"),
    ("OIDC_ORIGINS", "https://login.example/oauth2"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:{}@collector.example"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer {}"),
]
# Read before all others, or only if others are right.
ALONE = {"DEBUG", "OIDC_CREATE", "TASK_BACKEND", "UTILIZATION_BAD"}


def wrong_at_once() -> list[dict[str, str]]:
    """The wrong values, in as few starts as possible."""
    starts: list[dict[str, str]] = []
    for name, value in WRONG_VALUES:
        start = next((one for one in starts if name not in one and not ALONE & {name, *one}), None)
        if start is None:
            starts.append(start := {})
        start[name] = value.format(SECRET)
    return starts


@pytest.mark.parametrize("wrong", wrong_at_once(), ids=lambda wrong: ",".join(wrong)[:60])
def test_what_is_wrong_is_named(wrong: dict[str, str]) -> None:
    sentences = refusals(**NEEDED | wrong)
    assert sorted(sentence.split()[0] for sentence in sentences) == sorted(wrong)
    assert SECRET not in "".join(sentences)


@pytest.mark.parametrize("name", ["SERVICING_SECRET", "SERVICING_FIELD_KEY"])
def test_a_key_of_the_wrong_length_is_not_repeated(name: str) -> None:
    sentence = refusal(**NEEDED | {name: "swordfish"})
    assert sentence.startswith(f"{name} must have 16, 24 or 32 characters")
    assert "swordfish" not in sentence


def test_a_bearer_token_is_needed_where_it_is_used() -> None:
    assert refusal(**NEEDED, SERVICING_AUTH="bearer").startswith("SERVICING_TOKEN is missing")
    assert start(**NEEDED, SERVICING_AUTH="bearer", SERVICING_TOKEN="t").returncode == 0


@pytest.mark.parametrize("command", ["-c", "-m"])
def test_what_only_the_client_can_refuse_stops_the_server_too(command: str) -> None:
    server = (
        ["gunicorn", "portal.wsgi", "--bind", "127.0.0.1:0"] if command == "-m" else ["import portal.wsgi"]
    )
    for name, value, reason in (
        ("SERVICING_CLIENT_ID", "two\tparts", "The client id can contain only printable ASCII"),
        ("SERVICING_SESSION", "os.path", "SERVICING_SESSION doesn’t name a function"),
    ):
        done = start(sys.executable, command, *server, **NEEDED | {name: value})
        assert done.returncode == 4
        sentences = [line for line in done.stderr.splitlines() if line.startswith("Settings: ")]
        assert len(sentences) == 1
        assert "SERVICING_" in sentences[0]
        assert reason in sentences[0]
        assert "Traceback" not in done.stderr


class TestFiles:
    def test_a_secret_comes_from_the_file_that_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text(f"{SECRET}\n")
        rest = {key: value for key, value in NEEDED.items() if key != "SERVICING_SECRET"}
        given = rest | {"SERVICING_SECRET_FILE": str(tmp_path / "secret")}
        assert shown("SERVICING_SECRET", **given) == SECRET

    def test_the_share_of_traces_is_read_like_any_setting(self, tmp_path: Path) -> None:
        (tmp_path / "sampler").write_text("parentbased_traceidratio\n")
        given = {"OTEL_TRACES_SAMPLER_FILE": str(tmp_path / "sampler"), "OTEL_TRACES_SAMPLER_ARG": "0.25"}
        script = (
            "from portal.runtime.opentelemetry_sdk import tracer; print(tracer().sampler.get_description())"
        )
        done = start(sys.executable, "-c", script, **NEEDED, **given)
        assert "root:TraceIdRatioBased{0.25}" in done.stdout, done.stderr

    def test_settings_that_were_renamed_keep_their_old_names(self) -> None:
        given = NEEDED | {"ORGANISATION": "Acme Lending", "UTILISATION_WARN": "60"}
        assert (shown("ORGANIZATION", **given), shown("UTILIZATION_WARN", **given)) == ("Acme Lending", "60")
        bad = refusals(**NEEDED, UTILISATION_BAD="900", ORGANISATION_FILE="/nowhere")
        assert [one.split()[0] for one in bad] == ["ORGANISATION", "UTILISATION_BAD"]
        assert "the file in ORGANISATION_FILE" in bad[0]

    def test_a_file_that_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        sentence = refusal(**NEEDED, SECRET_KEY_FILE=str(tmp_path / "nothing"))
        assert sentence.startswith("SECRET_KEY can’t be read from the file in SECRET_KEY_FILE")

    def test_an_empty_file_holds_no_secret(self, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        assert refusal(**NEEDED, SECRET_KEY_FILE=str(tmp_path / "empty")).startswith("SECRET_KEY is missing")

    def test_settings_come_from_the_env_file_and_the_environment_wins(self, tmp_path: Path) -> None:
        lines = [f"{name}={value}" for name, value in NEEDED.items()]
        (tmp_path / "env").write_text("\n".join([*lines, "DRAFT_DAYS=5", "ORGANIZATION=Acme Lending"]))
        given = {"ENV_FILE": str(tmp_path / "env"), "DRAFT_DAYS": "7"}
        assert (shown("ORGANIZATION", **given), shown("DRAFT_DAYS", **given)) == ("Acme Lending", "7")

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"# Ours\n\nexport DEBUG=on\nLOG_LEVEL = INFO\n", "line 4 of {} must be NAME=value"),
            (b"\xff\xfeD\x00", "{} can’t be read: it is not UTF-8 text."),
            (None, "{} can’t be read: Is a directory."),
        ],
    )
    def test_an_env_file_that_cannot_be_read_is_named(
        self, content: bytes | None, sentence: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "env" if content else tmp_path
        if content:
            file.write_bytes(content)
        assert refusal(**NEEDED, ENV_FILE=str(file)).startswith(sentence.format(file))

    def test_an_env_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        assert refusal(**NEEDED, ENV_FILE=str(tmp_path / "env")).startswith("ENV_FILE")


def test_a_choice_is_read_in_any_case() -> None:
    assert shown("LOG_LEVEL", **NEEDED, LOG_LEVEL="info") == "INFO"


@pytest.mark.parametrize("command", [["upgrade"], ["restore", "copy", "--replace"], ["doctor"]])
def test_a_folder_that_is_not_there_is_named_with_what_makes_it(command: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "none"
    done = start(sys.executable, "manage.py", *command, **NEEDED, DATA_DIR=str(folder))
    assert done.returncode == 1
    words = done.stdout + done.stderr
    assert f"DATA_DIR points to the folder {folder}, where this user can’t write. Type: sudo install" in words
    assert "Traceback" not in words


def test_groups_are_read_in_their_order() -> None:
    given = shown("OIDC_ROLES", **NEEDED, OIDC_ROLES="5f1c=supervisor, Loan Servicing = servicer,a=b=viewer")
    assert ast.literal_eval(given) == [
        ("5f1c", "supervisor"),
        ("Loan Servicing", "servicer"),
        ("a=b", "viewer"),
    ]


def test_a_secret_is_taken_as_it_is() -> None:
    assert shown("SECRET_KEY", **NEEDED | {"SECRET_KEY": "$HOME#is 'here'" * 5}) == "$HOME#is 'here'" * 5


def test_the_operators_guide_holds_the_settings_reference() -> None:
    guide = (BASE_DIR / "docker/README.md").read_text()
    assert settings_reference.reference() in guide, "Run: python3 docker/settings_reference.py"


def test_every_setting_is_in_the_reference_and_in_the_example() -> None:
    source = (BASE_DIR / "portal/settings.py").read_text()
    names = {str(ast.literal_eval(call.args[0])) for call, _ in settings_reference.setting_calls(source)}
    assert len(names) > 70
    reference, example = settings_reference.reference(), (BASE_DIR / ".env.example").read_text()
    assert sorted(name for name in names if f"| `{name}` |" not in reference) == []
    assert sorted(name for name in names if not re.search(rf"^{name}(_FILE)?=", example, re.MULTILINE)) == []


@pytest.mark.parametrize(
    ("command", "folder", "fix"),
    [
        (["manage.py", "work"], "none", "Type: sudo install "),
        (["manage.py", "work"], "", "manage.py upgrade\n"),
        (["manage.py", "createsuperuser", "--noinput"], "none", "Type: sudo install "),
        (["manage.py", "createsuperuser", "--noinput"], "", "manage.py upgrade\n"),
        (["manage.py", "backup", "/tmp/none.copy"], "", "manage.py upgrade\n"),
        (["-m", "gunicorn", "portal.wsgi", "--bind", "127.0.0.1:0"], "none", "Type: sudo install "),
        (["-m", "gunicorn", "portal.wsgi", "--bind", "127.0.0.1:0"], "", "manage.py upgrade\n"),
    ],
)
def test_a_database_that_nobody_prepared_is_one_sentence(
    command: list[str], folder: str, fix: str, tmp_path: Path
) -> None:
    person = {"DJANGO_SUPERUSER_USERNAME": "a", "DJANGO_SUPERUSER_EMAIL": "a@desk.example"}
    given = NEEDED | person | {"DATA_DIR": str(tmp_path / folder)}
    done = start(sys.executable, *command, **given)
    assert (done.returncode, fix in done.stderr, "Traceback" in done.stderr) == (
        4 if "gunicorn" in command else 1, True, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command", [["upgrade"], ["restore", "manage.py", "--check"], ["backup", "/tmp/none.copy"]]
)
def test_a_server_that_is_away_is_one_sentence(command: list[str]) -> None:
    given = NEEDED | {"DATABASE_URL": "postgres://desk:pass-word-1@127.0.0.1:1/desk"}
    done = start(sys.executable, "manage.py", *command, **given)
    assert done.returncode == 1
    assert "The database isn’t responding. Check DATABASE_URL. connection failed: " in done.stderr
    assert ("Traceback" in done.stderr, "pass-word-1" in done.stderr) == (False, False)


@pytest.mark.parametrize(
    "command",
    [
        CHECK,
        [sys.executable, "manage.py", "work"],
        [BIN / "gunicorn", "--config", "python:portal.gunicorn", "portal.wsgi"],
    ],
    ids=["check", "worker", "web"],
)
def test_a_folder_that_cannot_be_written_to_is_one_sentence(command: list[str], tmp_path: Path) -> None:
    """As in a read-only checkout, where the default folder is."""
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    inside = ["unshare", "--mount", "sh", "-c", script, str(tmp_path)]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no mounts here")
    (tmp_path / "portal.sqlite3").touch()
    words = start(*inside, *map(str, command), **NEEDED, DATA_DIR=str(tmp_path)).stderr
    assert f"Settings: DATA_DIR points to the folder {tmp_path}, where this user can’t write." in words
    assert "Traceback" not in words
