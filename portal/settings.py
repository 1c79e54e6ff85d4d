"""All settings of the portal, read from the environment (or ``.env``), each with a safe default.

This module imports nothing of the portal except what reads settings.
"""

import os
import re
import secrets
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from environ import Env

from portal.core.environment import (
    EMPTY,
    HOST,
    MISSING,
    address,
    at_least,
    comma_separated,
    flag,
    one_of,
    pairs,
    pattern_text,
    read_file,
    readable_file,
    reject,
    rename,
    several_of,
    stop,
    stop_if_invalid,
    text,
    time_zone,
)
from servicing.answers import ERROR_MEMBERS
from servicing.crypto import FieldCipher, key_from_secret
from servicing.errors import ConfigurationError

BASE_DIR = Path(__file__).resolve().parent.parent


def make_private(database: str) -> None:
    """Create a new SQLite file that only its owner can read; SQLite gives its journals the same mode."""
    file = Path(database)
    if database == ":memory:" or not file.parent.is_dir():
        return  # If the folder is missing, the commands that need it say what to type.
    if file.exists():
        if not os.access(file.parent, os.W_OK):
            stop(f"{DATABASE_PLACED_BY} points to the folder {file.parent}, where this user can’t write.")
    else:
        try:
            file.touch(mode=0o600)
        except OSError:
            stop(f"{DATABASE_PLACED_BY} points to a place where no database can be created: {database}")


ENV_FILE = Path(os.environ.get("ENV_FILE") or BASE_DIR / ".env")
if "ENV_FILE" in os.environ and not ENV_FILE.exists():
    stop(f"ENV_FILE points to a file that doesn’t exist: {ENV_FILE}")
read_file(ENV_FILE)
# Spelled the British way before 0.10.
rename("ORGANISATION", "ORGANIZATION")

#: Local use only: demo defaults, detailed error pages. `make run` turns it on.
DEBUG = flag("DEBUG", False)
stop_if_invalid()  # It decides which settings are required.
#: Folder for the SQLite database, and for answers that the database couldn't take. Default: `.data` in the checkout.
DATA_DIR = Path(pattern_text("DATA_DIR", str(BASE_DIR / ".data"), ".+", EMPTY))


def is_logo(path: Path) -> bool:
    """Whether a file is readable, small enough, and a PNG or an SVG."""
    try:
        content = path.read_bytes() if path.stat().st_size <= 100_000 else b""
    except OSError:
        return False
    is_svg = path.suffix.lower() == ".svg" and b"<svg" in content
    return is_svg or (path.suffix.lower() == ".png" and content.startswith(b"\x89PNG\r\n"))


def outside_debug(default: str) -> str | None:
    """A default for local use only: without DEBUG the setting is required."""
    return default if DEBUG else None


# --- The lending service ---

#: Base URL of the lending service, without `/v1`. `https://` is required when the environment is `live`.
SERVICING_URL = pattern_text(
    "SERVICING_URL",
    outside_debug("http://127.0.0.1:8001"),
    rf"https?://{HOST}(/[^\s?#]*)?",
    "must look like https://lender.example (http:// for a sandbox).",
).rstrip("/")
#: Which environment every page shows in its banner.
SERVICING_ENVIRONMENT = one_of("SERVICING_ENVIRONMENT", ["sandbox", "live"], "sandbox" if DEBUG else "live")
#: How requests say who sends them: signed with the secret, a fixed token as `Authorization: Bearer` or in a header of
#: its own, client ID and secret as user and password, a token from `SERVICING_TOKEN_URL`, or not at all.
SERVICING_AUTH = one_of("SERVICING_AUTH", ["hmac", "bearer", "header", "basic", "oauth2", "none"], "hmac")
#: Client ID that the lender issued. Default: required for `hmac`, `basic` and `oauth2`.
SERVICING_CLIENT_ID = text("SERVICING_CLIENT_ID", "sandbox-client" if DEBUG else "")
#: Client secret that the lender issued. Also encrypts EIN and SSN in requests unless `SERVICING_FIELD_KEY` is set.
#: Default: required for `hmac`, `basic` and `oauth2`, and without `SERVICING_FIELD_KEY`.
SERVICING_SECRET = text("SERVICING_SECRET", "6f0d1a52-7c3e-4b98-a1d4-52e90b7c8f13" if DEBUG else "")
#: Key that encrypts EIN and SSN in requests. Default: `SERVICING_SECRET`.
SERVICING_FIELD_KEY = text("SERVICING_FIELD_KEY")
#: Token or API key for `bearer` and `header`.
SERVICING_TOKEN = text("SERVICING_TOKEN")
#: Where `oauth2` gets its tokens (client credentials), such as `https://lender.example/oauth/token`.
SERVICING_TOKEN_URL = pattern_text(
    "SERVICING_TOKEN_URL", "", rf"https?://{HOST}(/[^\s#]*)?", "must look like https://lender.example/token."
)
#: Scope to ask for with `oauth2`.
SERVICING_SCOPE = text("SERVICING_SCOPE")
#: Text form of encrypted values.
SERVICING_VALUE_ENCODING = one_of("SERVICING_VALUE_ENCODING", ["base64", "base64url", "hex"], "base64")
#: Where the IV of an encrypted value stands: `before` or `after` the ciphertext, or a separator between the two, such
#: as `:`.
SERVICING_VALUE_IV = text("SERVICING_VALUE_IV", "before") or "before"
#: How the secret spells the key: its characters without dashes, hex, base64, or the key is its SHA-256 digest.
SERVICING_VALUE_KEY = one_of("SERVICING_VALUE_KEY", ["text", "hex", "base64", "sha256"], "text")
#: Dotted path of a class with another cipher; it gets the key and has `encrypt`.
SERVICING_CIPHER = text("SERVICING_CIPHER")
#: Header names for client ID, signature, epoch and digest, in this order; for `header`, the name of its one header.
SERVICING_AUTH_HEADERS = comma_separated(
    "SERVICING_AUTH_HEADERS", "X-Client-Id,X-Signature,Epoch,Content-MD5"
)
#: Unit of the epoch header.
SERVICING_EPOCH_UNIT = one_of("SERVICING_EPOCH_UNIT", ["ms", "s"], "ms")
#: Name of the incorporation date in the request that creates a borrower.
SERVICING_INCORPORATION_FIELD = pattern_text(
    "SERVICING_INCORPORATION_FIELD", "start_date", r"\w+", "must be letters, digits and underscores."
)
#: How the service spells the country in addresses.
SERVICING_COUNTRY = pattern_text("SERVICING_COUNTRY", "UNITED STATES", ".+", EMPTY)
#: Name of the member that holds the object of an answer, such as `data`, if answers are wrapped.
SERVICING_ENVELOPE = text("SERVICING_ENVELOPE")
#: Name of the member that holds a list of repayments, if it isn't `data` or `items`.
SERVICING_LIST_ENVELOPE = text("SERVICING_LIST_ENVELOPE")
#: Messages to ask for at a time.
SERVICING_PAGE_SIZE = at_least("SERVICING_PAGE_SIZE", 1, 100)
#: Where the service reads message filters.
SERVICING_MESSAGE_FILTERS = one_of("SERVICING_MESSAGE_FILTERS", ["query", "body"], "query")
#: Whether filters in a body are sent with `Content-Type: application/json`.
SERVICING_MESSAGE_CONTENT_TYPE = flag("SERVICING_MESSAGE_CONTENT_TYPE", True)
#: What `offset` counts in the message list. Default: detected.
SERVICING_OFFSET_COUNTS = one_of("SERVICING_OFFSET_COUNTS", ["", "rows", "pages0", "pages1"], "") or None
#: The lender's time zone, for 18th birthdays and date filters.
SERVICING_TIME_ZONE = time_zone("SERVICING_TIME_ZONE", "America/Los_Angeles")
#: Seconds one call may take.
SERVICING_TIMEOUT = at_least("SERVICING_TIMEOUT", 1, 20)
#: Certificate file to trust instead of the public ones.
SERVICING_CA_BUNDLE = readable_file("SERVICING_CA_BUNDLE")
#: Client certificate file.
SERVICING_CLIENT_CERT = readable_file("SERVICING_CLIENT_CERT")
#: Its private key, if the key is in a separate file.
SERVICING_CLIENT_CERT_KEY = readable_file("SERVICING_CLIENT_CERT_KEY")
#: Proxy for all calls, such as `http://proxy.example:3128`.
SERVICING_PROXY = pattern_text(
    "SERVICING_PROXY", "", rf"https?://([^\s/@]+@)?{HOST}/?", "must look like http://proxy.example:3128."
)
#: Dotted path of a function that returns a `requests.Session`. Replaces the four settings above.
SERVICING_SESSION = text("SERVICING_SESSION")
# Seconds until an incomplete statement document is abandoned.
SERVICING_DOCUMENT_TIMEOUT = 30
#: Unit shown after rates.
SERVICING_RATE_UNIT = text("SERVICING_RATE_UNIT", "%")
#: Whether an offer's fee is deducted from its amount. Net proceeds are shown only when it is.
SERVICING_FEE_DEDUCTED = flag("SERVICING_FEE_DEDUCTED", True)
#: Extra hosts that statement documents may come from.
SERVICING_DOCUMENT_HOSTS = comma_separated("SERVICING_DOCUMENT_HOSTS")

has_secret = SERVICING_AUTH in ("hmac", "basic", "oauth2")
if has_secret and not SERVICING_CLIENT_ID:
    reject("SERVICING_CLIENT_ID", MISSING)
if not SERVICING_SECRET and (has_secret or not SERVICING_FIELD_KEY):
    reject(
        "SERVICING_SECRET",
        MISSING if has_secret else "is missing. Set it, or SERVICING_FIELD_KEY: it encrypts EIN and SSN.",
    )
if SERVICING_AUTH in ("bearer", "header") and not SERVICING_TOKEN:
    reject("SERVICING_TOKEN", f"is missing; SERVICING_AUTH={SERVICING_AUTH} needs it.")
if SERVICING_AUTH == "basic" and ":" in SERVICING_CLIENT_ID:
    reject("SERVICING_CLIENT_ID", "can’t contain “:” with SERVICING_AUTH=basic.")
if SERVICING_AUTH == "oauth2" and not SERVICING_TOKEN_URL:
    reject("SERVICING_TOKEN_URL", "is missing; SERVICING_AUTH=oauth2 needs it.")
for name in ("SERVICING_TOKEN_URL", "SERVICING_SCOPE"):
    if globals()[name] and SERVICING_AUTH != "oauth2":
        reject(name, f"belongs to SERVICING_AUTH=oauth2; SERVICING_AUTH is {SERVICING_AUTH}.")
header_names = {name.lower() for name in SERVICING_AUTH_HEADERS if re.fullmatch(r"[\w-]+", name, re.ASCII)}
if SERVICING_AUTH == "header":
    if not len(SERVICING_AUTH_HEADERS) == len(header_names) == 1:
        reject(
            "SERVICING_AUTH_HEADERS", "must be one header name for SERVICING_AUTH=header, such as X-Api-Key."
        )
elif not len(SERVICING_AUTH_HEADERS) == len(header_names) == 4:
    reject(
        "SERVICING_AUTH_HEADERS", "must be four different header names: client ID, signature, epoch, digest."
    )
for name in ("SERVICING_ENVELOPE", "SERVICING_LIST_ENVELOPE"):
    if globals()[name] in ERROR_MEMBERS:
        reject(name, f"can’t be {globals()[name]}, which means that the answer is an error.")
if SERVICING_URL.endswith("/v1"):
    reject("SERVICING_URL", "must end before /v1, which every call adds.")
if not DEBUG and SERVICING_ENVIRONMENT == "live" and not SERVICING_URL.startswith("https://"):
    reject("SERVICING_URL", "must begin with https:// when SERVICING_ENVIRONMENT is live.")
if not DEBUG and SERVICING_ENVIRONMENT == "live" and SERVICING_TOKEN_URL.startswith("http://"):
    reject("SERVICING_TOKEN_URL", "must begin with https:// when SERVICING_ENVIRONMENT is live.")
if SERVICING_SESSION and (SERVICING_CA_BUNDLE or SERVICING_CLIENT_CERT or SERVICING_PROXY):
    reject("SERVICING_SESSION", "has its own certificates and proxy; remove the other settings.")
for host in SERVICING_DOCUMENT_HOSTS:
    if not re.fullmatch(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]", host, re.IGNORECASE):
        reject("SERVICING_DOCUMENT_HOSTS", f"must be names without scheme, port or path; one is {host!r}.")
if SERVICING_CIPHER and (SERVICING_VALUE_ENCODING, SERVICING_VALUE_IV) != ("base64", "before"):
    reject("SERVICING_CIPHER", "replaces SERVICING_VALUE_ENCODING and SERVICING_VALUE_IV; remove them.")
elif not SERVICING_CIPHER:
    try:
        key = key_from_secret(SERVICING_FIELD_KEY or SERVICING_SECRET, SERVICING_VALUE_KEY)  # type: ignore[arg-type]
    except ConfigurationError:
        amount = "16, 24 or 32 characters, not counting dashes"
        if SERVICING_VALUE_KEY != "text":
            amount = f"16, 24 or 32 bytes in {SERVICING_VALUE_KEY} (SERVICING_VALUE_KEY)"
        needed, unless = "SERVICING_FIELD_KEY", ""
        if not SERVICING_FIELD_KEY:
            needed, unless = "SERVICING_SECRET", " unless SERVICING_FIELD_KEY is set"
        reject(needed, f"must have {amount}: it encrypts EIN and SSN{unless}.")
        key = bytes(16)
    try:
        FieldCipher(key, encoding=SERVICING_VALUE_ENCODING, iv=SERVICING_VALUE_IV)  # type: ignore[arg-type]
    except ConfigurationError:
        reject(
            "SERVICING_VALUE_IV",
            f"must be before, after, or a separator that {SERVICING_VALUE_ENCODING} never uses, such as “:”.",
        )

# --- The portal ---

#: Signs sessions and encrypts second factors, pending changes, drafts and expired forms. At least 50 random characters.
SECRET_KEY = text("SECRET_KEY", outside_debug("for-local-use-only-" + "0" * 40))
#: Previous keys during a key change; see SECURITY.md.
SECRET_KEY_FALLBACKS = comma_separated("SECRET_KEY_FALLBACKS")
#: Host names this portal answers to.
ALLOWED_HOSTS = comma_separated("ALLOWED_HOSTS", outside_debug("127.0.0.1,localhost"))
#: Origins that forms may be posted from, such as `https://desk.example.com`.
CSRF_TRUSTED_ORIGINS = comma_separated("CSRF_TRUSTED_ORIGINS")
for host in ALLOWED_HOSTS:
    if not re.fullmatch(r"\*|\.?[\w-]+(\.[\w-]+)*\.?|\[[0-9a-f:]+\]", host, re.IGNORECASE):
        reject("ALLOWED_HOSTS", f"must be host names without scheme, port or path; one is {host!r}.")
for origin in CSRF_TRUSTED_ORIGINS:
    if not re.fullmatch(rf"https?://{HOST}", origin):
        reject("CSRF_TRUSTED_ORIGINS", f"must look like https://desk.example.com; one is {origin!r}.")
#: Time zone for displayed times, ages and "today".
BUSINESS_TIME_ZONE = time_zone("BUSINESS_TIME_ZONE", "America/New_York")
#: Where "today" comes from: `clock`, or in a demo (`DEBUG` only) the date of the `sandbox`.
BUSINESS_DATE_FROM = one_of("BUSINESS_DATE_FROM", ["clock", "sandbox"], "clock")
if BUSINESS_DATE_FROM == "sandbox" and not DEBUG:
    reject("BUSINESS_DATE_FROM", "can be sandbox only with DEBUG.")
#: Statuses of accounts that are closed: totals leave them out, and say so.
#: After a change run `manage.py rebuild_records`.
CLOSED_STATUSES = frozenset(
    status.upper()
    for status in comma_separated("CLOSED_STATUSES", "CLOSED,PAID_OFF,CHARGED_OFF,CANCELED,CANCELLED")
)
#: Business days after its due date in which a payment keeps a promise; then run `manage.py decide_promises`.
PROMISE_GRACE_DAYS = at_least("PROMISE_GRACE_DAYS", 0, 1)
#: What the portal is called on screens and at sign-in.
PRODUCT_NAME = pattern_text("PRODUCT_NAME", "Servicing Desk", ".+", EMPTY)
#: Your organization's name at sign-in, in everyone's menu, on printed documents and in authenticator apps.
#: Default: `PRODUCT_NAME`.
ORGANIZATION = pattern_text("ORGANIZATION", PRODUCT_NAME, ".+", EMPTY)
#: Your logo on screens, at sign-in and on printed documents: path of a PNG or SVG file of up to 100 KB.
LOGO = text("LOGO", "")
#: Password of the demo staff (`DEBUG` only).
DEMO_PASSWORD = text("DEMO_PASSWORD", "servicing-demo")
#: Days an unfinished onboarding is kept.
DRAFT_DAYS = at_least("DRAFT_DAYS", 1, 30)
#: Days a batch of printed documents stays available.
BATCH_DAYS = at_least("BATCH_DAYS", 1, 7)
BATCH_REMOVAL_MINUTES = 60
#: Documents that each web process and worker creates at the same time.
DOCUMENT_PROCESSES = at_least("DOCUMENT_PROCESSES", 1, 2)
#: Days an earlier answer is kept. The newest answer for each record is always kept.
SNAPSHOT_DAYS = at_least("SNAPSHOT_DAYS", 1, 730)
#: Changes that need a second person's approval.
APPROVAL_ACTS = several_of(
    "APPROVAL_ACTS",
    ["legal_name", "ssn", "dob", "address", "email", "phone", "title", "credit_report", "asset_report"],
    "legal_name,ssn,dob",
)
#: Hours until an unanswered request for approval, or an unused approval, expires.
APPROVAL_HOURS = at_least("APPROVAL_HOURS", 1, 72)
#: Largest upload, in MB.
UPLOAD_LIMIT_MB = at_least("UPLOAD_LIMIT_MB", 1, 20)

if LOGO and not is_logo(Path(LOGO)):
    reject("LOGO", f"must be a readable PNG or SVG file of up to 100 KB; it is {LOGO!r}.")

if not DEBUG and len(SECRET_KEY) < 50:
    reject(
        "SECRET_KEY",
        "must have at least 50 random characters: it signs sessions and encrypts stored secrets.",
    )

INSTALLED_APPS = [
    "portal.jobs",
    "portal.accounts",
    "portal.audit",
    "portal.records",
    "portal.notes",
    "portal.approvals",
    "portal.tables",
    "portal.ui",
    "portal.lookup",
    "portal.borrowers",
    "portal.applications",
    "portal.loans",
    "portal.credit_lines",
    "portal.repayments",
    "portal.messaging",
    "portal.collections",
    "portal.portfolio",
    "portal.operations",
    "portal.home",
    "portal.documents",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.forms",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "csp",
    "django_htmx",
    "template_partials",
]

MIDDLEWARE = [
    "portal.operations.middleware.RequestMiddleware",
    "portal.accounts.middleware.AddressMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "portal.operations.middleware.CompressionMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "portal.operations.middleware.UploadMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.accounts.middleware.SessionMiddleware",
    "portal.gateway.client.GatewayMiddleware",
    "portal.gateway.failures.FailureMiddleware",
    "portal.records.middleware.FiguresMiddleware",
    "portal.home.middleware.FrameMiddleware",
    "portal.accounts.middleware.SignInMiddleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATE_LOADERS = ["portal.ui.loaders.Loader", "django.template.loaders.app_directories.Loader"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    [("django.template.loaders.cached.Loader", TEMPLATE_LOADERS)],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.ui.frame.frame",
            ],
            "builtins": [
                "portal.ui.templatetags.ui",
                "portal.ui.templatetags.panels",
                "portal.accounts.templatetags.acts",
                "template_partials.templatetags.partials",
            ],
            "libraries": {"entries": "portal.audit.tags", "repayments": "portal.repayments.tags"},
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

# --- Databases and cache ---

#: Database for staff, audit trail and records: `sqlite:///…` or `postgres://…`. Default: SQLite in `DATA_DIR`.
DATABASES = {
    "default": address(
        "DATABASE_URL",
        Env.db_url_config,
        f"sqlite:///{DATA_DIR / 'portal.sqlite3'}",
        ["sqlite", "postgres", "postgresql"],
    )
}
#: Maximum number of PostgreSQL connections per process.
pool_size = at_least("DATABASE_POOL", 2, 20)
if DATABASES["default"]["NAME"] in ("", ":memory:") and ":memory:" not in text("DATABASE_URL"):
    reject("DATABASE_URL", "has no database name. Use postgres://host:5432/name, or sqlite:/// and the file.")
# The setting to name if there is no database.
DATABASE_PLACED_BY = "DATABASE_URL" if text("DATABASE_URL") else "DATA_DIR"
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # IMMEDIATE: read-then-write transactions fail with "database is locked" under load otherwise.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA mmap_size=134217728;"
        # A checkpoint copies a page once, however many transactions changed it. 6,000 pages are about the WAL's usual
        # length.
        "PRAGMA journal_size_limit=27103364;PRAGMA wal_autocheckpoint=6000;"
        "PRAGMA cache_size=-20000;PRAGMA recursive_triggers=ON;",
    }
    # Opening a connection costs as much as a small page. After a minute its memory is released.
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    cache_url = "locmemcache://?MAX_ENTRIES=10000"
else:
    # One pool for all threads of a process, because threads that read in parallel come and go. While the server is
    # down, the pool pauses longer after each try; starting over every few seconds, it soon finds a server that is
    # back. Nobody waits longer than three seconds for a connection, whether the server is down or the pool is busy.
    DATABASE_POOL = {
        "pool": {
            "min_size": 1,
            "max_size": pool_size,
            "timeout": 3,
            "reconnect_timeout": 5,
        }
    }
    # PostgreSQL's cost defaults are for spinning disks; on SSDs and in memory an index pays off sooner. Compiling a
    # query takes longer than a page may. A page waits for few locks, so it arrives within seconds.
    PLANNED = {"options": "-c random_page_cost=1.1 -c jit=off -c lock_timeout=2000"}
    NAMED = {"application_name": f"servicing-{secrets.token_hex(4)}"}
    DATABASES["default"]["OPTIONS"] = (
        PLANNED | DATABASES["default"].get("OPTIONS", {}) | NAMED | DATABASE_POOL
    )
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    # Processes that share a database server share a cache table in it, unless a faster cache is configured.
    cache_url = "dbcache://operations_cache?MAX_ENTRIES=10000"
# An audit row committed before a remote write must survive a later exception, so requests are no transactions.
DATABASES["default"]["ATOMIC_REQUESTS"] = False
#: Cache for sign-in throttling and short-lived counts: `redis://…` (Valkey too), `rediss://…`,
#: `dbcache://operations_cache` or `locmemcache://`. Default: memory of each process, or a table in PostgreSQL.
CACHES = {
    "default": address(
        "CACHE_URL", Env.cache_url_config, cache_url, ["locmemcache", "dbcache", "redis", "rediss"]
    )
}
if not re.fullmatch(rf"rediss?://([^/\s?#]*@)?{HOST}(/\d*)?(\?\S*)?|(?!redis).*", text("CACHE_URL")):
    reject("CACHE_URL", "must look like redis://cache.example:6379/0.")

# --- Background work ---

#: Seconds a worker may be silent before another one takes over its job.
JOB_LEASE_SECONDS = at_least("JOB_LEASE_SECONDS", 1, 30)
#: Seconds a stopping worker has to finish its current step.
JOB_GRACE_SECONDS = at_least("JOB_GRACE_SECONDS", 1, 8)
#: How often the worker refreshes accounts whose copy is a day old. 0 turns it off.
REFRESH_MINUTES = at_least("REFRESH_MINUTES", 0, 24 * 60)
#: The most calls a minute in the background: for accounts with new messages, and to refresh all accounts.
READS_PER_MINUTE = at_least("READS_PER_MINUTE", 1, 300)
#: How often the worker fetches new messages. 0 turns this and the nightly comparison off.
MESSAGE_SYNC_MINUTES = at_least("MESSAGE_SYNC_MINUTES", 0, 5)
# The messages of the last 30 days are compared each night.
MESSAGE_COMPARE_MINUTES = 24 * 60 if MESSAGE_SYNC_MINUTES else 0
#: Days recorded calls to the service are kept.
CALL_DAYS = at_least("CALL_DAYS", 1, 90)
#: Days page views are kept.
PAGE_VIEW_DAYS = at_least("PAGE_VIEW_DAYS", 1, 730)

# --- Mail ---

#: Mail server: `smtp://user:password@host:port`, `smtp+tls://…` (STARTTLS) or `smtp+ssl://…`. Default: no mail is
#: sent.
mail_server = address("EMAIL_URL", Env.email_url_config, "smtp://localhost", ["smtp", "smtp+tls", "smtp+ssl"])
HAS_MAIL = bool(text("EMAIL_URL"))
EMAIL_HOST, EMAIL_PORT = mail_server["EMAIL_HOST"], mail_server["EMAIL_PORT"]
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = mail_server["EMAIL_HOST_USER"], mail_server["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS, EMAIL_USE_SSL = "EMAIL_USE_TLS" in mail_server, "EMAIL_USE_SSL" in mail_server
EMAIL_TIMEOUT = 60
#: Sender of mail, such as `Servicing Desk <desk@example.com>`. Required with `EMAIL_URL`.
DEFAULT_FROM_EMAIL = text("MAIL_FROM")
#: Address of the portal in mail and on documents. Default: `https://` and the first of `ALLOWED_HOSTS`.
PORTAL_URL = (
    pattern_text(
        "PORTAL_URL", "", rf"https?://{HOST}", "must look like https://desk.example.com, without a path."
    )
    or f"{'http' if DEBUG else 'https'}://{ALLOWED_HOSTS[0] if ALLOWED_HOSTS else ''}"
)
#: Whether mail may name borrowers.
MAIL_NAMES = flag("MAIL_NAMES", False)
#: Addresses that get mail about outages, workers that died, a failed audit check, and messages that are behind.
OPERATOR_EMAILS = comma_separated("OPERATOR_EMAILS")
MAIL_MINUTES = 5 if HAS_MAIL else 0
if HAS_MAIL and (not EMAIL_HOST or mail_server["EMAIL_FILE_PATH"]):
    reject("EMAIL_URL", "must look like smtp+tls://user:password@mail.example:587, without a path.")
ADDRESS = r"[^@\s<>]+@[^@\s<>]+"
if HAS_MAIL and not re.fullmatch(rf"{ADDRESS}|[^<>@]*<{ADDRESS}>", DEFAULT_FROM_EMAIL):
    reject("MAIL_FROM", "must be desk@example.com or Name <desk@example.com>; EMAIL_URL needs it.")
if HAS_MAIL and not re.fullmatch(r"https?://[\w\[]\S*", PORTAL_URL):
    reject("PORTAL_URL", "is missing; mail needs it where ALLOWED_HOSTS begins with a pattern.")
for recipient in OPERATOR_EMAILS:
    if not re.fullmatch(ADDRESS, recipient):
        reject("OPERATOR_EMAILS", f"must be email addresses, separated by commas; one is {recipient!r}.")
if OPERATOR_EMAILS and not HAS_MAIL:
    reject("OPERATOR_EMAILS", "needs EMAIL_URL.")

# --- Signing in ---

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
# Scrypt makes guessing cost memory as well as time, without another package. The others are listed for upgrades.
PASSWORD_HASHERS = [
    f"django.contrib.auth.hashers.{name}PasswordHasher" for name in ("Scrypt", "PBKDF2", "PBKDF2SHA1")
]
AUTH_PASSWORD_VALIDATORS: list[dict[str, Any]] = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
AUTH_PASSWORD_VALIDATORS[1]["OPTIONS"] = {"min_length": 12}
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home:index"
ACCOUNT_ADAPTER = "portal.accounts.adapter.StaffAdapter"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "http" if DEBUG else "https"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = False
# "login_failed" counts by name and address, or by person for second-factor codes. At an address each name that failed
# counts once, so that one person's wrong passwords don't keep the others out.
ACCOUNT_RATE_LIMITS = {
    "login": "300/m/ip",
    "login_failed": "5/5m/key",
    "name_failed_at_address": "1/10m/key",
    "names_failed_at_address": "20/10m/ip",
    "login_failed_by_name": "100/h/key",
    "reset_password": "10/m/ip",
}
PASSWORD_RESET_TIMEOUT = 24 * 60 * 60
ACCOUNT_FORMS = {"login": "portal.accounts.forms.SignInForm"}

#: Who must set up a second factor: everyone, or these roles.
SECOND_FACTOR_REQUIRED = several_of(
    "SECOND_FACTOR_REQUIRED",
    ["all", "viewer", "servicer", "supervisor", "auditor", "admin"],
    "none" if DEBUG else "all",
)
MFA_ADAPTER = "portal.accounts.adapter.SecondFactorAdapter"
MFA_FORMS = {
    "authenticate": "portal.accounts.forms.CodeForm",
    "reauthenticate": "portal.accounts.forms.ConfirmCodeForm",
    "activate_totp": "portal.accounts.forms.SetUpAppForm",
    "add_webauthn": "portal.accounts.forms.AddPasskeyForm",
    "edit_webauthn": "portal.accounts.forms.EditPasskeyForm",
    "authenticate_webauthn": "portal.accounts.forms.AuthenticatePasskeyForm",
    "login_webauthn": "portal.accounts.forms.LoginPasskeyForm",
    "reauthenticate_webauthn": "portal.accounts.forms.ReauthenticatePasskeyForm",
}
# A passkey can't be guessed, and many people may share an address.
MFA_RATE_LIMITS = {"webauthn_login": ACCOUNT_RATE_LIMITS["login"]}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_ISSUER = ORGANIZATION
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = DEBUG

#: Issuer URL of your OpenID Connect provider. The redirect URI to register is `/sign-in/with/sso/back/`.
OIDC_URL = text("OIDC_URL").rstrip("/")
#: Label of the single sign-on button.
OIDC_NAME = pattern_text("OIDC_NAME", "Single sign-on", ".+", EMPTY)
#: Client ID at the provider.
OIDC_CLIENT_ID = text("OIDC_CLIENT_ID")
#: Client secret at the provider.
OIDC_CLIENT_SECRET = text("OIDC_CLIENT_SECRET")
#: Claim that finds a person's account at their first sign-in: `email` is compared with the account's email, the others
#: with its sign-in name. Choose only a claim that people can't change at the provider.
OIDC_MATCH = one_of("OIDC_MATCH", ["email", "sub", "preferred_username", "upn"], "email")
#: Accept an email if the provider doesn't say whether it is verified. Turn it on only if people can't choose their own
#: address there. An email reported as unverified is never accepted.
OIDC_TRUST_EMAIL = flag("OIDC_TRUST_EMAIL", False)
#: Role of each group, by the group's name or ID, such as `Loan Servicing=servicer`. The first that fits counts, at each
#: sign-in; without one nobody gets in. Default: roles are assigned under Administration.
OIDC_ROLES = pairs("OIDC_ROLES", ["viewer", "servicer", "supervisor", "auditor", "admin"])
#: Claim that lists a person's groups.
OIDC_GROUPS_CLAIM = pattern_text("OIDC_GROUPS_CLAIM", "groups", ".+", EMPTY)
#: Create missing accounts at the first sign-in. Needs `OIDC_ROLES`.
OIDC_CREATE = flag("OIDC_CREATE", False)
#: Scopes to ask for. Some providers list groups only if `groups` is among them.
OIDC_SCOPES = comma_separated("OIDC_SCOPES", "openid,profile,email")
#: Sign out at the provider too, if it supports that. The address to return to, which some want registered, is
#: `/sign-in/`.
OIDC_SIGN_OUT = flag("OIDC_SIGN_OUT", True)
#: Origins of the provider's pages if they differ from the one in `OIDC_URL`; `doctor` names them.
OIDC_ORIGINS = comma_separated("OIDC_ORIGINS")
ORIGIN = rf"https{'?' if DEBUG else ''}://{HOST}"
oidc_origin = re.fullmatch(rf"({ORIGIN})(/[^\s?#]*)?", OIDC_URL)
if OIDC_URL and not oidc_origin:
    reject("OIDC_URL", "must look like https://id.example.com/realms/staff; the path differs by provider.")
elif OIDC_URL and not (OIDC_CLIENT_ID and OIDC_CLIENT_SECRET):
    reject("OIDC_URL", "needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET.")
if OIDC_CREATE and not OIDC_ROLES:
    reject("OIDC_CREATE", "needs OIDC_ROLES: a new account gets its role from a group.")
if "openid" not in OIDC_SCOPES:
    reject("OIDC_SCOPES", "must contain openid.")
if not all(re.fullmatch(ORIGIN, origin) for origin in OIDC_ORIGINS):
    reject("OIDC_ORIGINS", "must be origins such as https://login.example.com, without a path.")
SOCIALACCOUNT_ADAPTER = "portal.accounts.single_sign_on.SingleSignOnAdapter"
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": []}}
if OIDC_URL:
    SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"] = [
        {
            "provider_id": "sso",
            "name": OIDC_NAME,
            "client_id": OIDC_CLIENT_ID,
            "secret": OIDC_CLIENT_SECRET,
            "settings": {"server_url": OIDC_URL, "scope": OIDC_SCOPES},
        }
    ]

#: Minutes without activity until a session ends.
SESSION_IDLE_MINUTES = at_least("SESSION_IDLE_MINUTES", 5, 30)
#: Hours until a session ends even with activity.
SESSION_HOURS = at_least("SESSION_HOURS", 1, 12)
SESSION_COOKIE_AGE = (SESSION_HOURS + 24) * 60 * 60  # To tell an expired session from none.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_HTTPONLY = True
if not DEBUG:  # Browsers accept such names only from this host over TLS.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
CSRF_FAILURE_VIEW = "portal.gateway.failures.csrf_failure"

# --- Language, time, files ---

USE_I18N = False
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False
# Browsers request files without a fingerprint in their name again after this long, not with every page.
WHITENOISE_MAX_AGE = 60
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000
# Uploads stay in memory, because reports must never touch the disk. Each view limits its whole body to less than this.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_MAX_MEMORY_SIZE = (4 * UPLOAD_LIMIT_MB + 4) * 1024 * 1024

# --- Security headers ---

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "frame-src": [SELF],
        # Browsers also check this when a form's response redirects to the identity provider.
        "form-action": [SELF, oidc_origin[1], *OIDC_ORIGINS] if oidc_origin else [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
# Django sets the other headers. Browser features that pages may use: the clipboard to copy an ID, passkeys to sign in.
NO_PAGE_MAY_USE = """
    accelerometer autoplay camera clipboard-read display-capture encrypted-media geolocation gyroscope hid
    idle-detection magnetometer microphone midi payment picture-in-picture screen-wake-lock serial usb
    xr-spatial-tracking
"""
OUR_PAGES_MAY_USE = "clipboard-write fullscreen publickey-credentials-create publickey-credentials-get"
PERMISSIONS_POLICY = ", ".join(
    [f"{name}=()" for name in NO_PAGE_MAY_USE.split()]
    + [f"{name}=(self)" for name in OUR_PAGES_MAY_USE.split()]
)
#: Trust `X-Forwarded-Proto` from a TLS proxy in front.
BEHIND_TLS_PROXY = flag("BEHIND_TLS_PROXY", False)
#: Number of proxies in front whose `X-Forwarded-For` is trusted. Default: `1` with `BEHIND_TLS_PROXY`, otherwise `0`.
TRUSTED_PROXIES = at_least("TRUSTED_PROXIES", 0, 1 if BEHIND_TLS_PROXY else 0)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS_PROXY else None
#: Redirect plain HTTP to HTTPS. Default: `on`.
SECURE_SSL_REDIRECT = flag("SECURE_SSL_REDIRECT", not DEBUG)
# Platforms check processes directly, over plain HTTP.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
#: Lifetime of HSTS in seconds.
hsts_seconds = at_least("SECURE_HSTS_SECONDS", 0, 31_536_000)
SECURE_HSTS_SECONDS = 0 if DEBUG else hsts_seconds
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not DEBUG

DEFAULT_EXCEPTION_REPORTER = "portal.core.redaction.Reporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "portal.core.redaction.ReporterFilter"

# --- Logs, metrics ---

#: Token that monitoring sends as `Authorization: Bearer …` to read `/metrics`; at least 16 characters. Without
#: it there are no metrics.
METRICS_TOKEN = pattern_text(
    "METRICS_TOKEN", "", ".{16,}", "must have at least 16 random characters: it protects the metrics."
)
#: Lowest level that is logged. `INFO` logs each request.
LOG_LEVEL = one_of("LOG_LEVEL", ["DEBUG", "INFO", "WARNING", "ERROR"], "WARNING")
#: `json` writes one object per line with the request's reference and without personal data.
LOG_FORMAT = one_of("LOG_FORMAT", ["line", "json"], "line")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
        "json": {"()": "portal.operations.logs.JsonFormatter"},
    },
    "filters": {"redaction": {"()": "portal.core.redaction.LogFilter"}},
    "handlers": {
        "terminal": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["redaction"]},
    },
    "root": {"handlers": ["terminal"], "level": LOG_LEVEL},
    # Django's own handlers would bypass the redaction.
    "loggers": {
        "django": {"handlers": [], "level": LOG_LEVEL},
        "django.server": {"handlers": []},
    },
}

# --- All settings are read: report invalid ones, else create what they name ---

stop_if_invalid()
if DEBUG:
    try:
        DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        stop(f"DATA_DIR points to a folder that can’t be created: {DATA_DIR}. Choose one you can write to.")
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    make_private(str(DATABASES["default"]["NAME"]))
