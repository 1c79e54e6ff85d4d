"""Tests that the portal refuses to start with missing or wrong settings, and names each of them."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docker import settings_reference
from portal.settings import BASE_DIR

pytestmark = pytest.mark.slow

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
# The settings that every deployment requires.
NEEDED = {
    "SECRET_KEY": "n" * 64,
    "ALLOWED_HOSTS": "desk.example",
    "SERVICING_URL": "https://lender.example/api",
    "SERVICING_CLIENT_ID": "desk",
    "SERVICING_SECRET": SECRET,
}
SHOW_SCRIPT = "from portal import settings; print(settings.{})"
BIN = Path(sys.executable).parent
CHECK = [sys.executable, "manage.py", "check"]


def start(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start the portal in a process with only these settings."""
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


def settings_errors(*command: str, **environment: str) -> list[str]:
    """Return the error messages of a start that fails."""
    process = start(*command, **environment)
    assert (process.returncode, process.stdout) == (4, "")
    lines = process.stderr.splitlines()
    assert all(line.startswith("Settings: ") for line in lines), process.stderr
    return [line.removeprefix("Settings: ") for line in lines]


def refusal(*command: str, **environment: str) -> str:
    """Return the only error message of a start that fails."""
    (error,) = settings_errors(*command, **environment)
    return error


def setting_value(name: str, **environment: str) -> str:
    """Return the value of a setting after the start."""
    process = start(sys.executable, "-c", SHOW_SCRIPT.format(name), **environment)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_a_deployment_starts_with_the_required_settings() -> None:
    process = start(**NEEDED)
    assert (process.returncode, process.stderr) == (0, "")


def test_a_deployment_passes_djangos_security_checks() -> None:
    longer_key = {"SECRET_KEY": "a-key-of-more-than-fifty-characters-0123456789-abcdefghijkl"}
    process = start(*CHECK, "--deploy", "--fail-level", "WARNING", **NEEDED | longer_key)
    assert (process.returncode, process.stderr) == (0, "")


def test_only_the_owner_can_read_a_new_database(tmp_path: Path) -> None:
    database = tmp_path / "portal.sqlite3"
    given = NEEDED | {"DATABASE_URL": f"sqlite:///{database}"}
    assert start(sys.executable, "manage.py", "migrate", "audit", **given).returncode == 0
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes["portal.sqlite3"] == 0o600
    assert set(modes.values()) == {0o600}


def test_session_cookies_are_bound_to_the_host() -> None:
    assert setting_value("SESSION_COOKIE_NAME", **NEEDED) == "__Host-sessionid"


def test_deployments_with_a_database_server_share_a_cache() -> None:
    on_server = NEEDED | {"DATABASE_URL": "postgres://desk@host/desk"}
    assert "operations_cache" in setting_value("CACHES", **on_server)
    named = setting_value("CACHES", **on_server, CACHE_URL="redis://cache:6379/0")
    assert ("redis://cache" in named, "RedisCache" in named) == (True, True)
    assert "LocMemCache" in setting_value("CACHES", **NEEDED)


def test_local_use_requires_no_settings(tmp_path: Path) -> None:
    process = start(DEBUG="on", DATA_DIR=str(tmp_path / "new" / "data"))
    assert (process.returncode, process.stderr) == (0, "")
    assert (tmp_path / "new" / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_setting_is_reported(name: str) -> None:
    others = {longer_key: value for longer_key, value in NEEDED.items() if longer_key != name}
    assert refusal(**others).startswith(f"{name} is missing.")
    assert refusal(**others, **{name: ""}).startswith(f"{name} is missing.")


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_all_missing_settings_are_reported_together(command: str) -> None:
    errors = settings_errors(sys.executable, "manage.py", command)
    assert sorted(error.partition(" is missing.")[0] for error in errors) == sorted(NEEDED)


def test_a_web_process_reports_all_missing_settings() -> None:
    process = start(sys.executable, "-m", "gunicorn", "portal.wsgi", "--bind", "127.0.0.1:0")
    assert process.returncode == 4
    named = [line.split()[1] for line in process.stderr.splitlines() if line.startswith("Settings: ")]
    assert sorted(named) == sorted(NEEDED)


def test_missing_and_wrong_settings_are_reported_together(tmp_path: Path) -> None:
    wrong = {
        "SERVICING_SECRET": "swordfish",
        "SERVICING_AUTH": "kerberos",
        "SERVICING_OFFSET_COUNTS": "pages",
        "SERVICING_COUNTRY": "",
        "SERVICING_TIME_ZONE": "Mars/Olympus",
        "SERVICING_TIMEOUT": "soon",
        "SECRET_KEY_FILE": str(tmp_path / "nothing"),
        "APPROVAL_HOURS": "full",
        "APPROVAL_ACTS": "legal_name,everything",
        "CACHE_URL": "memcached",
        "SECURE_SSL_REDIRECT": "yse",
        "LOG_FORMAT": "xml",
    }
    given = {"ALLOWED_HOSTS": "desk.example", "SERVICING_CLIENT_ID": "desk"} | wrong
    database = tmp_path / "portal.sqlite3"
    errors = settings_errors(**given, DATABASE_URL=f"sqlite:///{database}")
    named = [error.split()[0] for error in errors]
    assert sorted(named) == sorted(name.removesuffix("_FILE") for name in [*wrong, "SERVICING_URL"])
    assert not database.exists()
    assert "swordfish" not in "".join(errors)


def test_bad_urls_and_empty_values_are_reported_together() -> None:
    wrong = {
        "SERVICING_URL": "https://lender.example:https",
        "SERVICING_PROXY": "http://proxy.example:99999",
        "SERVICING_CA_BUNDLE": "/tmp",
        "CSRF_TRUSTED_ORIGINS": "https://desk.example/",
        "PRODUCT_NAME": "",
        "APPROVAL_ACTS": "",
        "DATABASE_URL": "postgres://host",
        "CACHE_URL": "redis://cache:port/0",
        "EMAIL_URL": "smtp://mail.example:25/path",
        "PORTAL_URL": "https://desk.example:port",
        "MAIL_FROM": "Servicing Desk desk@example.com",
        "SECOND_FACTOR_REQUIRED": "none,admin",
        "OIDC_NAME": "",
        "OIDC_URL": "https://id.example:port/realms/staff",
        "OIDC_ORIGINS": "https://login.example:port",
    }
    errors = settings_errors(**NEEDED | wrong)
    assert sorted(error.split()[0] for error in errors) == sorted(wrong)
    assert SECRET not in "".join(errors)
    assert (
        refusal(**NEEDED, DATA_DIR="") == "DATA_DIR must not be empty. Remove the setting to use its default."
    )
    assert refusal(**NEEDED, DATABASE_URL="sqlite:///").startswith("DATABASE_URL has no database name.")


@pytest.mark.parametrize("name", ["DATA_DIR", "DATABASE_URL"])
def test_an_unwritable_location_is_reported(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    value = str(tmp_path / "file" / "data")
    given = (
        {"DATA_DIR": value} if name == "DATA_DIR" else {"DATABASE_URL": f"sqlite:////proc/{os.getpid()}/x"}
    )
    assert refusal(DEBUG="on", **{"DATA_DIR": str(tmp_path)} | given).startswith(f"{name} points to a ")
    # The default database is inside the data folder.
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
    ("SERVICING_AUTH", "kerberos"),
    ("SERVICING_TOKEN_URL", "lender.example/token"),
    ("SERVICING_VALUE_ENCODING", "base32"),
    ("SERVICING_VALUE_IV", "a"),
    ("SERVICING_VALUE_KEY", "md5"),
    ("SERVICING_PAGE_SIZE", "0"),
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
    ("SERVICING_PAGE_SIZE", "0"),
    ("READS_PER_MINUTE", "many"),
    ("SERVICING_INCORPORATION_FIELD", "start date"),
    ("SERVICING_DOCUMENT_HOSTS", "papers.example, https://papers.example/"),
    ("APPROVAL_ACTS", "legal_name,everything"),
    ("SECOND_FACTOR_REQUIRED", "everybody"),
    ("OIDC_URL", "https://id.example"),
    ("ALLOWED_HOSTS", "https://desk.example"),
    ("ALLOWED_HOSTS", ","),
    ("ALLOWED_HOSTS", "desk.example,desk.example:8000"),
    ("CSRF_TRUSTED_ORIGINS", "desk.example"),
    ("OIDC_MATCH", "name"),
    ("OIDC_ROLES", "Loan Servicing"),
    ("OIDC_ROLES", "Loan Servicing=owner"),
    ("OIDC_CREATE", "on"),
    ("OIDC_SCOPES", "profile,email"),
    ("OIDC_ORIGINS", "https://login.example/oauth2"),
]
# These are read before the others, or only if others are right.
SEPARATE = {"DEBUG", "OIDC_CREATE"}


def wrong_value_groups() -> list[dict[str, str]]:
    """Group the wrong values into as few starts as possible."""
    starts: list[dict[str, str]] = []
    for name, value in WRONG_VALUES:
        start = next((one for one in starts if name not in one and not SEPARATE & {name, *one}), None)
        if start is None:
            starts.append(start := {})
        start[name] = value.format(SECRET)
    return starts


@pytest.mark.parametrize("wrong", wrong_value_groups(), ids=lambda wrong: ",".join(wrong)[:60])
def test_wrong_values_are_reported(wrong: dict[str, str]) -> None:
    errors = settings_errors(**NEEDED | wrong)
    assert sorted(error.split()[0] for error in errors) == sorted(wrong)
    assert SECRET not in "".join(errors)


@pytest.mark.parametrize("name", ["SERVICING_SECRET", "SERVICING_FIELD_KEY"])
def test_a_key_of_the_wrong_length_is_reported_without_its_value(name: str) -> None:
    error = refusal(**NEEDED | {name: "swordfish"})
    assert error.startswith(f"{name} must have 16, 24 or 32 characters")
    assert "swordfish" not in error


WRONG_COMBINATIONS = [
    ({"SERVICING_AUTH": "bearer"}, "SERVICING_TOKEN is missing; SERVICING_AUTH=bearer needs it."),
    (
        {"SERVICING_AUTH": "header", "SERVICING_TOKEN": "t"},
        "SERVICING_AUTH_HEADERS must be one header name for SERVICING_AUTH=header",
    ),
    (
        {"SERVICING_AUTH": "header", "SERVICING_AUTH_HEADERS": "X-Api-Key"},
        "SERVICING_TOKEN is missing; SERVICING_AUTH=header needs it.",
    ),
    ({"SERVICING_AUTH_HEADERS": "X-Api-Key"}, "SERVICING_AUTH_HEADERS must be four different header names"),
    ({"SERVICING_AUTH": "oauth2"}, "SERVICING_TOKEN_URL is missing; SERVICING_AUTH=oauth2 needs it."),
    (
        {"SERVICING_TOKEN_URL": "https://lender.example/token"},
        "SERVICING_TOKEN_URL belongs to SERVICING_AUTH=oauth2; SERVICING_AUTH is hmac.",
    ),
    ({"SERVICING_SCOPE": "read"}, "SERVICING_SCOPE belongs to SERVICING_AUTH=oauth2"),
    (
        {"SERVICING_AUTH": "oauth2", "SERVICING_TOKEN_URL": "http://lender.example/token"},
        "SERVICING_TOKEN_URL must begin with https://",
    ),
    ({"SERVICING_AUTH": "basic", "SERVICING_CLIENT_ID": "a:b"}, "SERVICING_CLIENT_ID can’t contain “:”"),
    (
        {"SERVICING_AUTH": "none", "SERVICING_SECRET": ""},
        "SERVICING_SECRET is missing. Set it, or SERVICING_FIELD_KEY: it encrypts EIN and SSN.",
    ),
    (
        {"SERVICING_SECRET": "of a length of its own"},
        "SERVICING_SECRET must have 16, 24 or 32 characters, not counting dashes: it encrypts EIN and SSN unless "
        "SERVICING_FIELD_KEY is set.",
    ),
    (
        {"SERVICING_ENVELOPE": "message"},
        "SERVICING_ENVELOPE can’t be message, which means that the answer is",
    ),
    ({"SERVICING_LIST_ENVELOPE": "errors"}, "SERVICING_LIST_ENVELOPE can’t be errors, which means"),
    ({"SERVICING_SECRET": "", "SERVICING_FIELD_KEY": "0" * 32}, "SERVICING_SECRET is missing."),
    ({"SERVICING_AUTH": "basic", "SERVICING_CLIENT_ID": ""}, "SERVICING_CLIENT_ID is missing."),
    (
        {"SERVICING_VALUE_KEY": "hex", "SERVICING_FIELD_KEY": "00" * 15},
        "SERVICING_FIELD_KEY must have 16, 24 or 32 bytes in hex (SERVICING_VALUE_KEY): it encrypts EIN and SSN.",
    ),
    (
        {"SERVICING_VALUE_ENCODING": "base64url", "SERVICING_VALUE_IV": "-"},
        "SERVICING_VALUE_IV must be before, after, or a separator that base64url never uses, such as “:”.",
    ),
    (
        {"SERVICING_CIPHER": "lender.Cipher", "SERVICING_VALUE_IV": ":"},
        "SERVICING_CIPHER replaces SERVICING_VALUE_ENCODING and SERVICING_VALUE_IV; remove them.",
    ),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG_COMBINATIONS)
def test_settings_that_contradict_each_other_are_one_sentence(given: dict[str, str], sentence: str) -> None:
    (error,) = settings_errors(**NEEDED | given)
    assert error.startswith(sentence)


@pytest.mark.parametrize(
    "given",
    [
        {"SERVICING_AUTH": "bearer", "SERVICING_TOKEN": "t"},
        {
            "SERVICING_AUTH": "header",
            "SERVICING_TOKEN": "t",
            "SERVICING_AUTH_HEADERS": "X-Api-Key",
            "SERVICING_CLIENT_ID": "",
            "SERVICING_SECRET": "",
            "SERVICING_FIELD_KEY": "0" * 32,
        },
        {
            "SERVICING_AUTH": "oauth2",
            "SERVICING_TOKEN_URL": "https://lender.example/token",
            "SERVICING_SCOPE": "a b",
        },
        {"SERVICING_VALUE_KEY": "sha256", "SERVICING_SECRET": "any length", "SERVICING_VALUE_IV": ":"},
    ],
)
def test_a_lender_that_differs_starts(given: dict[str, str]) -> None:
    build = "import django; django.setup(); from portal.gateway import client as gateway; gateway.client()"
    process = start(sys.executable, "-c", build, **NEEDED | given)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("command", ["-c", "-m"])
def test_settings_the_client_rejects_stop_the_server(command: str) -> None:
    server = (
        ["gunicorn", "portal.wsgi", "--bind", "127.0.0.1:0"] if command == "-m" else ["import portal.wsgi"]
    )
    for name, value, reason in (
        ("SERVICING_CLIENT_ID", "two\tparts", "The client id can contain only printable ASCII"),
        ("SERVICING_SESSION", "os.path", "SERVICING_SESSION doesn’t name a function"),
    ):
        process = start(sys.executable, command, *server, **NEEDED | {name: value})
        assert process.returncode == 4
        errors = [line for line in process.stderr.splitlines() if line.startswith("Settings: ")]
        assert len(errors) == 1
        assert "SERVICING_" in errors[0]
        assert reason in errors[0]
        assert "Traceback" not in process.stderr


class TestFiles:
    def test_a_secret_can_be_read_from_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text(f"{SECRET}\n")
        others = {
            longer_key: value for longer_key, value in NEEDED.items() if longer_key != "SERVICING_SECRET"
        }
        given = others | {"SERVICING_SECRET_FILE": str(tmp_path / "secret")}
        assert setting_value("SERVICING_SECRET", **given) == SECRET

    def test_the_old_name_of_a_setting_still_works(self) -> None:
        assert setting_value("ORGANIZATION", **NEEDED, ORGANISATION="Acme Lending") == "Acme Lending"
        (error,) = settings_errors(**NEEDED, ORGANISATION_FILE="/nowhere")
        assert error.startswith("ORGANISATION can’t be read from the file in ORGANISATION_FILE")

    def test_an_unreadable_secret_file_is_reported(self, tmp_path: Path) -> None:
        error = refusal(**NEEDED, SECRET_KEY_FILE=str(tmp_path / "nothing"))
        assert error.startswith("SECRET_KEY can’t be read from the file in SECRET_KEY_FILE")

    def test_an_empty_secret_file_counts_as_missing(self, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        assert refusal(**NEEDED, SECRET_KEY_FILE=str(tmp_path / "empty")).startswith("SECRET_KEY is missing")

    def test_the_environment_overrides_the_env_file(self, tmp_path: Path) -> None:
        lines = [f"{name}={value}" for name, value in NEEDED.items()]
        (tmp_path / "env").write_text("\n".join([*lines, "DRAFT_DAYS=5", "ORGANIZATION=Acme Lending"]))
        given = {"ENV_FILE": str(tmp_path / "env"), "DRAFT_DAYS": "7"}
        assert (setting_value("ORGANIZATION", **given), setting_value("DRAFT_DAYS", **given)) == (
            "Acme Lending",
            "7",
        )

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"# Ours\n\nexport DEBUG=on\nLOG_LEVEL = INFO\n", "line 4 of {} must be NAME=value"),
            (b"\xff\xfeD\x00", "{} can’t be read: it is not UTF-8 text."),
            (None, "{} can’t be read: Is a directory."),
        ],
    )
    def test_an_unreadable_env_file_is_reported(
        self, content: bytes | None, sentence: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "env" if content else tmp_path
        if content:
            file.write_bytes(content)
        assert refusal(**NEEDED, ENV_FILE=str(file)).startswith(sentence.format(file))

    def test_a_missing_env_file_is_reported(self, tmp_path: Path) -> None:
        assert refusal(**NEEDED, ENV_FILE=str(tmp_path / "env")).startswith("ENV_FILE")


def test_choices_ignore_case() -> None:
    assert setting_value("LOG_LEVEL", **NEEDED, LOG_LEVEL="info") == "INFO"


@pytest.mark.parametrize("command", [["upgrade"], ["restore", "copy", "--replace"], ["doctor"]])
def test_a_missing_data_folder_is_reported_with_the_fix(command: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "none"
    process = start(sys.executable, "manage.py", *command, **NEEDED, DATA_DIR=str(folder))
    assert process.returncode == 1
    words = process.stdout + process.stderr
    assert f"DATA_DIR points to the folder {folder}, where this user can’t write. Type: sudo install" in words
    assert "Traceback" not in words


def test_oidc_roles_keep_their_order() -> None:
    given = setting_value(
        "OIDC_ROLES", **NEEDED, OIDC_ROLES="5f1c=supervisor, Loan Servicing = servicer,a=b=viewer"
    )
    assert ast.literal_eval(given) == [
        ("5f1c", "supervisor"),
        ("Loan Servicing", "servicer"),
        ("a=b", "viewer"),
    ]


def test_a_secret_is_read_literally() -> None:
    assert (
        setting_value("SECRET_KEY", **NEEDED | {"SECRET_KEY": "$HOME#is 'here'" * 5}) == "$HOME#is 'here'" * 5
    )


def test_the_page_of_settings_is_up_to_date() -> None:
    shown = (BASE_DIR / "docker/settings.md").read_text()
    assert shown == settings_reference.page(), "Run: python3 docker/settings_reference.py"


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
def test_an_unprepared_database_is_reported_with_the_fix(
    command: list[str], folder: str, fix: str, tmp_path: Path
) -> None:
    superuser = {"DJANGO_SUPERUSER_USERNAME": "a", "DJANGO_SUPERUSER_EMAIL": "a@desk.example"}
    given = NEEDED | superuser | {"DATA_DIR": str(tmp_path / folder)}
    process = start(sys.executable, *command, **given)
    assert (process.returncode, fix in process.stderr, "Traceback" in process.stderr) == (
        4 if "gunicorn" in command else 1, True, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command", [["upgrade"], ["restore", "manage.py", "--check"], ["backup", "/tmp/none.copy"]]
)
def test_an_unreachable_database_server_is_reported(command: list[str]) -> None:
    given = NEEDED | {"DATABASE_URL": "postgres://desk:pass-word-1@127.0.0.1:1/desk"}
    process = start(sys.executable, "manage.py", *command, **given)
    assert process.returncode == 1
    assert "The database isn’t responding. Check DATABASE_URL. connection failed: " in process.stderr
    assert ("Traceback" in process.stderr, "pass-word-1" in process.stderr) == (False, False)


@pytest.mark.parametrize(
    "command",
    [
        CHECK,
        [sys.executable, "manage.py", "work"],
        [BIN / "gunicorn", "--config", "python:portal.gunicorn", "portal.wsgi"],
    ],
    ids=["check", "worker", "web"],
)
def test_a_read_only_data_folder_is_reported(command: list[str], tmp_path: Path) -> None:
    """For example, the default folder in a read-only checkout."""
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    inside = ["unshare", "--mount", "sh", "-c", script, str(tmp_path)]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no mounts here")
    (tmp_path / "portal.sqlite3").touch()
    words = start(*inside, *map(str, command), **NEEDED, DATA_DIR=str(tmp_path)).stderr
    assert f"Settings: DATA_DIR points to the folder {tmp_path}, where this user can’t write." in words
    assert "Traceback" not in words
