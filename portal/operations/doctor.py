"""Checks a deployment, and says in plain words what is wrong and how to fix it.

Hides where each thing is looked up. A check that crashes becomes a finding, and the others still run.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import checks
from django.core.cache import cache
from django.core.mail import get_connection
from django.db import DatabaseError, connection
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone

import servicing
from portal.accounts import outbox
from portal.accounts.encryption import CannotDecrypt, decrypt
from portal.accounts.single_sign_on import PROVIDER_ID, discover
from portal.audit import guard, writes
from portal.audit.integrity import last_check
from portal.audit.models import Actor, Entry
from portal.audit.unsaved import answers_file
from portal.core import environment
from portal.core.database import find_connection_problem, find_folder_problem, sqlite_file
from portal.documents.pdf import NotRendered, render
from portal.gateway.client import build_client, client_for
from portal.jobs.models import Worker
from portal.jobs.status import jobs_status
from portal.operations.readiness import pending_migrations
from portal.records.models import Account, Kind
from servicing.masking import masked_text

Grade = Literal["ok", "warn", "bad"]
# The worker checks the trail once a day; one day late is no alarm.
MAX_CHECK_AGE = timedelta(days=2)
SECRETS = [
    "SECRET_KEY", "DATABASE_URL", "CACHE_URL", "EMAIL_URL", "OIDC_CLIENT_SECRET",
    "METRICS_TOKEN", "SERVICING_SECRET", "SERVICING_TOKEN", "SERVICING_FIELD_KEY",
]  # fmt: skip
# The settings to check if the service does not accept our credentials.
IDENTITY_SETTINGS = {
    "hmac": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_AUTH and this machine's clock",
    "bearer": "SERVICING_TOKEN and SERVICING_AUTH",
    "header": "SERVICING_TOKEN, SERVICING_AUTH_HEADERS and SERVICING_AUTH",
    "basic": "SERVICING_CLIENT_ID, SERVICING_SECRET and SERVICING_AUTH",
    "oauth2": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_TOKEN_URL, SERVICING_SCOPE and SERVICING_AUTH",
    "none": "SERVICING_AUTH",
}
OIDC_ENDPOINTS = ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"]
GRANT = "Check DATABASE_URL; a role of its own needs docker/audit-roles.sql, run as the owner."
MIN_FREE_BYTES = 500 * 2**20
CHECK_SECONDS = 5
MOUNTED_SECRETS = Path("/run/secrets")


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    grade: Grade
    words: str


Findings = Iterator[Finding]


ok, warn, bad = partial(Finding, "ok"), partial(Finding, "warn"), partial(Finding, "bad")


def findings() -> Findings:
    """Run all checks in the order in which to fix problems; some run only if the database is in order."""
    for check in (configuration, setting_names, files, static_files, documents, metrics):
        yield from run_check(check)
    found = list(run_check(database))
    yield from found
    if any(one.grade == "bad" for one in found):
        yield warn(
            "Keys, saved responses, service, worker, cache and audit trail were not checked. Fix the database first."
        )
        return
    for check in (keys, answers, disk, service, single_sign_on, mail, worker, shared_cache, trail):
        yield from run_check(check)


def run_check(check: Callable[[], Findings]) -> Findings:
    try:
        yield from check()
    except Exception as error:
        yield bad(f"The {check.__name__.replace('_', ' ')} check failed: {first_line(error)}")


def first_line(error: Exception) -> str:
    """The first line of an exception's text."""
    return masked_text(f"{type(error).__name__}: {error}".splitlines()[0][:300])


def configuration() -> Findings:
    """Run Django's own deployment checks."""
    if settings.DEBUG:
        yield bad("DEBUG is on: demo staff can sign in and nothing is secured. Turn DEBUG off.")
        return
    messages = checks.run_checks(include_deployment_checks=True)
    yield from (Finding("bad" if one.is_serious() else "warn", f"Settings: {one.msg}") for one in messages)
    if "*" in settings.ALLOWED_HOSTS:
        yield warn("ALLOWED_HOSTS accepts any host. List the host names that people use.")
    elif not messages:
        yield ok("The settings are ready for deployment.")


def setting_names() -> Findings:
    """Check that each setting is given once, under its own name."""
    yield from (bad(words) for words in environment.set_twice_or_empty())
    if settings.ENV_FILE.is_file():
        yield from (warn(words) for words in environment.unknown_names(settings.ENV_FILE))


def files() -> Findings:
    """Check who on this machine may read the database and the secrets."""
    named = [Path(given) for name in SECRETS if (given := os.environ.get(f"{name}_FILE"))]
    private = [path for path in (sqlite_file(), settings.ENV_FILE, *named) if path and path.is_file()]
    # In a container nobody else sees mounted secrets, and the platform sets their mode.
    others = [path for path in private if MOUNTED_SECRETS not in path.parents and path.stat().st_mode & 0o077]
    for path in others:
        yield bad(f"Other users on this machine can read {path}. Type: chmod 600 {path}")
    if not others:
        yield ok("Files with secrets and data are readable only by their owner.")


def static_files() -> Findings:
    if not settings.DEBUG and not staticfiles_storage.exists("staticfiles.json"):
        yield bad("Styles and scripts aren’t collected, so pages will fail. Run manage.py collectstatic.")


def database() -> Findings:
    """Check that the database answers, is migrated, and lets this role read and write."""
    if problem := find_folder_problem() or find_connection_problem():
        yield bad(problem)
        return
    try:
        pending = pending_migrations()
    except DatabaseError as error:
        yield bad(f"The database can’t be read. {GRANT} {first_line(error)}")
        return
    if pending:
        yield bad(f"The database is missing {pending} migration{pluralize(pending)}. Run manage.py upgrade.")
        return
    try:
        Worker.objects.filter(pk="").update(stopped_at=None)
    except DatabaseError as error:  # The role lacks permission, or the server is a replica.
        yield bad(f"The database can’t be written to. {GRANT} {first_line(error)}")
        return
    yield ok("The database responds and matches this version.")


def keys() -> Findings:
    """Check that second factors can be decrypted; with another SECRET_KEY none works."""
    factors = Authenticator.objects.filter(type=Authenticator.Type.TOTP).order_by("-pk")[:20]
    if closed := sum(not can_decrypt(one.data["secret"]) for one in factors):
        yield bad(
            f"{closed} of the last {len(factors)} second factors can’t be decrypted: SECRET_KEY has changed. "
            "Add the previous key to SECRET_KEY_FALLBACKS.",
        )


def can_decrypt(encrypted: str) -> bool:
    try:
        decrypt(encrypted)
    except CannotDecrypt:
        return False
    return True


def answers() -> Findings:
    """Check that no answer of a write waits in the file of unsaved answers."""
    if left := writes.unsaved_results():
        ids = ", ".join(one.uuid or one.intent_id for one in left[:3])
        number = len(left)
        yield bad(
            f"{number} answer{pluralize(number)} of changes {pluralize(number, 'is,are')} only in "
            f"{answers_file()}, first {ids}. Run manage.py save_answer."
        )


def disk() -> Findings:
    """Check that the disk of the data folder has room."""
    usage = shutil.disk_usage(settings.DATA_DIR)
    if usage.free < MIN_FREE_BYTES:
        yield bad(f"The disk of {settings.DATA_DIR} is nearly full: {usage.free // 2**20:,} MB are left.")


def service() -> Findings:
    """Check that the service answers, accepts our credentials and agrees on the time, which signatures depend on."""
    try:
        client_for(Actor.system("doctor"), ignore_breaker=True).messages.list(limit=1)
    except servicing.ServicingError as error:
        words = "; ".join(dict.fromkeys([error.message, *error.reasons])).rstrip(".")
        refused = isinstance(error, servicing.Unauthenticated | servicing.Forbidden)
        look = IDENTITY_SETTINGS[settings.SERVICING_AUTH] if refused else "SERVICING_URL"
        where = f"The lending service at {settings.SERVICING_URL}"
        yield bad(f"{where} can’t be used: {words}. Check {look}.")
    else:
        yield ok("The lending service responds, accepts these credentials and agrees on the time.")
        yield from interface()


def interface() -> Findings:
    """Check the settings for the points that the interface leaves open.

    These calls are not recorded: several may fail and would count as failures of the service.
    """
    report = build_client(None).with_time_limit(CHECK_SECONDS).first_day(**known_ids())
    for found in report.findings:
        yield Finding(found.grade, found.words)
        for name, value in found.settings.items():
            setting = f"SERVICING_{name.upper()}"
            if getattr(settings, setting) not in (None, value):
                wanted = {False: "off", True: "on"}.get(value, value)
                yield bad(f"{setting} doesn’t match this service. Set it to {wanted}.")


def known_ids() -> dict[str, str]:
    """Find the most recently read line and loan of one borrower."""
    ids: dict[str, str] = {}
    known = Account.objects.filter(archived_at=None, checked_at__isnull=False).order_by("-checked_at")
    for kind in (Kind.LINE, Kind.LOAN):
        records = known.filter(kind=kind, **{"borrower_uuid": ids["borrower_id"]} if ids else {})
        if record := records.first():
            ids |= {"borrower_id": record.borrower_uuid, f"{kind.value}_id": record.uuid}
    return ids


def single_sign_on() -> Findings:
    """Compare the identity provider's OpenID configuration with the settings."""
    if not settings.OIDC_URL:
        yield ok("Single sign-on is off: OIDC_URL is not set.")
        return
    at = f"The identity provider at {settings.OIDC_URL}"
    try:
        config = discover()
        issuer = str(config.get("issuer", "")).rstrip("/")
    except (OSError, ValueError, AttributeError) as error:
        yield bad(f"{at} isn’t responding as an OpenID provider. Check OIDC_URL. {first_line(error)}")
        return
    problems = []
    if issuer != settings.OIDC_URL.partition("/.well-known/")[0].rstrip("/"):
        problems.append(f"{at} names {issuer or 'nothing'} as its issuer. Set OIDC_URL to that address.")
    if lacking := [name for name in OIDC_ENDPOINTS if not config.get(name)]:
        problems.append(f"{at} doesn’t publish {' or '.join(lacking)}, which sign-in needs.")
    pages = ["authorization_endpoint", *(["end_session_endpoint"] if settings.OIDC_SIGN_OUT else [])]
    origins = {origin(str(config[name])) for name in pages if config.get(name)}
    if other := sorted(origins - {origin(settings.OIDC_URL), *settings.OIDC_ORIGINS}):
        problems.append(f"{at} has pages on other hosts. Set OIDC_ORIGINS to {','.join(other)}.")
    yield from map(bad, problems)
    known = config.get("scopes_supported") or settings.OIDC_SCOPES
    if unknown := [scope for scope in settings.OIDC_SCOPES if scope not in known]:
        yield warn(f"{at} doesn’t list the scope {' and '.join(unknown)}. Check OIDC_SCOPES.")
    if not problems:
        back = reverse("openid_connect_callback", args=[PROVIDER_ID])
        yield ok(
            f"{at} responds. Register https://{settings.ALLOWED_HOSTS[0]}{back} there as the redirect URI."
        )


def mail() -> Findings:
    """Check that we can sign in to the mail server, and that mail is delivered."""
    if not settings.HAS_MAIL:
        yield ok("Mail is off: EMAIL_URL is not set.")
        return
    server = get_connection(timeout=CHECK_SECONDS)
    found = ok("The mail server responds and accepts these credentials.")
    try:
        server.open()
    except OSError as error:
        found = bad(f"Can’t sign in to the mail server. Check EMAIL_URL: {outbox.describe_error(error)}.")
    with suppress(OSError):
        server.close()
    yield found
    yield from (warn(f"Mail: {words}") for words in outbox.problems())


def origin(url: str) -> str:
    """Scheme, host and port of a URL."""
    return "/".join(url.split("/", 3)[:3])


def worker() -> Findings:
    work = jobs_status()
    if work.is_working:
        yield ok(f"Workers running: {len(work.workers)}.")
    else:
        yield bad("No worker is running, so background jobs wait. Start manage.py work.")


def documents() -> Findings:
    """Check that PDFs can be created, in a process of its own because a missing font ends it."""
    try:
        render("<!doctype html><title>Doctor</title><p>A line of text")
    except NotRendered as reason:
        yield bad(f"PDFs can’t be created. {reason} See docker/system-packages.txt.")
    else:
        yield ok("PDFs can be created.")


def shared_cache() -> Findings:
    """Check that several processes share one cache, which failed sign-ins are counted in."""
    word = secrets.token_hex(8)
    try:
        is_stored = cache.add(f"doctor.{word}", word, 10) and cache.get(f"doctor.{word}") == word
    except Exception as error:  # Each kind of cache has its own errors.
        yield bad(f"The cache isn’t responding. Check CACHE_URL. {first_line(error)}")
        return
    if not is_stored:
        yield bad("The cache doesn’t keep its values. Check CACHE_URL.")
    elif settings.CACHES["default"]["BACKEND"].endswith("LocMemCache") and has_several_processes():
        yield warn("Each process throttles sign-ins on its own. Set CACHE_URL to a shared Valkey or Redis.")
    else:
        yield ok("The cache works.")


def has_several_processes() -> bool:
    """Whether this deployment has more than one web process."""
    return not sqlite_file() or os.environ.get("WEB_CONCURRENCY", "1") not in ("", "1")


def metrics() -> Findings:
    is_on = bool(settings.METRICS_TOKEN)
    yield ok(f"Metrics are {'available with METRICS_TOKEN' if is_on else 'off: METRICS_TOKEN is not set'}.")


def trail() -> Findings:
    """Check that the audit trail is protected, intact and was recently checked."""
    for name in guard.missing_triggers(connection):
        yield bad(f"The audit trail isn’t protected: the trigger {name} is missing. Run manage.py upgrade.")
    checked = last_check()
    if checked and checked.result == "broken":
        problem = checked.detail.get("problem", "")
        yield bad(
            f"The audit trail is broken. {problem} "
            "Compare with an earlier backup and find out who had write access since."
        )
    elif checked is None:
        yield warn("The audit trail has never been checked. Run manage.py verify_audit.")
    elif timezone.now() - checked.at > MAX_CHECK_AGE:
        yield warn("The audit trail hasn’t been checked for two days. Run manage.py verify_audit.")
    else:
        last = Entry.objects.first() or checked  # Entries are numbered without gaps.
        counts = f"{checked.detail.get('entries', 0):,} entries; {last.pk:,} now"
        yield ok(f"The audit trail was intact at its last full check ({counts}).")
