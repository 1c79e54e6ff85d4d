"""Looks a deployment over, and says in plain words what is wrong with it and what would mend it.

Hides where each thing can be looked up; a check that itself fails is a finding, and the others still run.
"""

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Literal

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import checks
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.template.defaultfilters import pluralize

import servicing
from portal import environment, tracing
from portal.accounts.seal import Broken, unseal
from portal.audit import checkpoints, guard, outcomes, spool
from portal.audit.models import Actor, Entry
from portal.audit.verification import LOST_LINE
from portal.clocks import is_recent
from portal.gateway import made, reading
from portal.jobs.state import state
from portal.operations import rights
from portal.operations.models import Tally
from portal.operations.readiness import chain, pending_migrations
from portal.registry.models import Kind, Record
from servicing.masking import masked_text

Grade = Literal["ok", "warn", "bad"]
# The worker checks the trail once a day; a day more is no alarm.
CHECKED_LATELY = timedelta(days=2)
SECRETS = [
    "SECRET_KEY", "DATABASE_URL", "CACHE_URL", "OIDC_CLIENT_SECRET", "AUDIT_CHECKPOINT_KEY", "METRICS_TOKEN",
    "OTEL_EXPORTER_OTLP_HEADERS", "SERVICING_SECRET", "SERVICING_TOKEN", "SERVICING_FIELD_KEY",
]  # fmt: skip
# Who we say we are, as the service knows it: what to look at when it does not believe us.
IDENTITY = {
    "hmac": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_AUTH and this machine's clock",
    "bearer": "SERVICING_TOKEN and SERVICING_AUTH",
    "none": "SERVICING_AUTH",
}
DRAWING = "from weasyprint import HTML; HTML(string='<p>Drawn</p>').write_pdf()"
GRANT = "Run docker/audit-roles.sql as the owner."
CHECK_SECONDS = 5
MOUNTED_SECRETS = Path("/run/secrets")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    grade: Grade
    words: str


Findings = Iterator[Finding]


def findings() -> Findings:
    """Everything, in the order in which one would mend it; what needs the database only where that is in order."""
    for check in (configuration, given, files, static_files, documents, metrics, traces):
        yield from tried(check)
    found = list(tried(database))
    yield from found
    if any(one.grade == "bad" for one in found):
        yield Finding(
            "warn",
            "Keys, answers, service, worker, cache and trail were not looked at: the database comes first.",
        )
        return
    for check in (keys, answers, service, worker, shared_cache, trail):
        yield from tried(check)


def tried(check: Callable[[], Findings]) -> Findings:
    """What it finds; that it fails is a finding too."""
    try:
        yield from check()
    except Exception as error:
        yield Finding("bad", f"The check of {check.__name__.replace('_', ' ')} failed: {in_a_line(error)}")


def in_a_line(error: Exception) -> str:
    """What an exception says, without what follows on further lines."""
    return masked_text(f"{type(error).__name__}: {error}".splitlines()[0][:300])


def configuration() -> Findings:
    """What Django's own checks of a deployment say."""
    if settings.DEBUG:
        yield Finding("bad", "DEBUG is on: demo staff can sign in and nothing is secured. Turn it off.")
        return
    told = checks.run_checks(include_deployment_checks=True)
    yield from (Finding("bad" if one.is_serious() else "warn", f"Settings: {one.msg}") for one in told)
    if "*" in settings.ALLOWED_HOSTS:
        yield Finding("warn", "ALLOWED_HOSTS takes any name. Name the hosts that people type.")
    elif not told:
        yield Finding("ok", "The settings fit a deployment.")


def given() -> Findings:
    """Whether each setting was given once, under its own name."""
    yield from (Finding("bad", words) for words in environment.misgiven())
    if settings.ENV_FILE.is_file():
        yield from (Finding("warn", words) for words in environment.unread(settings.ENV_FILE))


def files() -> Findings:
    """Who on this machine may read the database and the secrets."""
    database = Path(settings.DATABASES["default"]["NAME"]) if connection.vendor == "sqlite" else None
    named = [Path(given) for name in SECRETS if (given := os.environ.get(f"{name}_FILE"))]
    private = [path for path in (database, settings.ENV_FILE, *named) if path and path.is_file()]
    # What a container is given is seen by nobody else there, and its mode is the platform's.
    others = [path for path in private if MOUNTED_SECRETS not in path.parents and path.stat().st_mode & 0o077]
    for path in others:
        yield Finding("bad", f"Others on this machine may read {path}. Type: chmod 600 {path}")
    if not others:
        yield Finding("ok", "Files with secrets and data are their owner's alone.")


def static_files() -> Findings:
    """Whether styles and scripts were collected."""
    if not settings.DEBUG and not staticfiles_storage.exists("staticfiles.json"):
        yield Finding(
            "bad", "Styles and scripts were not collected: pages will fail. Run manage.py collectstatic."
        )


def database() -> Findings:
    """Whether it answers, is of this version, lets this role work, and guards the trail."""
    try:
        connected_anew()
        closed = rights.unreadable()
        pending = pending_migrations() if not closed else 0
    except DatabaseError as error:
        where = settings.DATABASE_PLACED_BY
        yield Finding("bad", f"The database does not answer. Look at {where}. {in_a_line(error)}")
        return
    if closed:
        others = f" and {len(closed) - 3} other tables" if len(closed) > 3 else ""
        yield Finding(
            "bad",
            f"The database answers, but this role may not read {', '.join(closed[:3])}{others}. {GRANT}",
        )
        return
    if pending:
        lacking = f"{pending} migration{pluralize(pending)}"
        yield Finding("bad", f"The database lacks {lacking}. Run manage.py upgrade.")
        return
    try:
        Tally.objects.filter(pk=0).update(count=0)
    except DatabaseError as error:  # The role may not, or the server is a replica.
        mend = GRANT if rights.is_lack_of_rights(error) else "Look at DATABASE_URL."
        yield Finding("bad", f"The database cannot be written to. {mend} {in_a_line(error)}")
        return
    yield Finding("ok", "The database answers and is of this version.")


def connected_anew() -> None:
    """A pool would ask again and again for a while, and then not say why."""
    alone = connection.copy()
    if alone.settings_dict["OPTIONS"].pop("pool", None):
        alone.settings_dict["OPTIONS"]["connect_timeout"] = 5
    alone.ensure_connection()
    alone.close()


def keys() -> Findings:
    """Whether what was sealed opens: under another SECRET_KEY nobody's second factor works any more."""
    factors = Authenticator.objects.filter(type=Authenticator.Type.TOTP).order_by("-pk")[:20]
    if closed := sum(not opens(one.data["secret"]) for one in factors):
        yield Finding(
            "bad",
            f"{closed} of the last {len(factors)} second factors do not open: SECRET_KEY was changed. "
            "Put the key before it into SECRET_KEY_FALLBACKS.",
        )


def opens(sealed: str) -> bool:
    try:
        unseal(sealed)
    except Broken:
        return False
    return True


def answers() -> Findings:
    """Whether answers of writes could be kept while the database is away, and whether any still wait to be saved."""
    try:
        spool.allocate()
        left = outcomes.replay()
    except OSError as error:
        yield Finding("bad", f"{spool.path()} can't be written: answers could get lost. {in_a_line(error)}")
        return
    if left:
        ids = ", ".join(str(entry["uuid"] or entry["intent_id"]) for _, entry in spool.entries()[:3])
        yield Finding(
            "bad", f"{left} answer{pluralize(left)} of writes can't be saved (see the log), first {ids}."
        )
    else:
        yield Finding("ok", "No answer of a write waits to be saved.")


def service() -> Findings:
    """Whether the lending service answers, knows us, and has our time: a signature is good for a minute."""
    try:
        reading(Actor.system("doctor"), in_any_case=True).messages.list(limit=1)
    except servicing.ServicingError as error:
        words = "; ".join(dict.fromkeys([error.message, *error.reasons])).rstrip(".")
        refused = isinstance(error, servicing.Unauthenticated | servicing.Forbidden)
        look = IDENTITY[settings.SERVICING_AUTH] if refused else "SERVICING_URL"
        where = f"The lending service at {settings.SERVICING_URL}"
        yield Finding("bad", f"{where} cannot be used: {words}. Look at {look}.")
    else:
        yield Finding("ok", "The lending service answers, knows these credentials and has the same time.")
        yield from interface()


def interface() -> Findings:
    """Whether the settings suit what this service makes of the points that its interface leaves open.

    Its calls are not recorded: several are meant to fail, and would count as faults of the service.
    """
    for found in islice(made(None).within(CHECK_SECONDS).check(**known_ids()), 1, None):
        yield Finding(found.grade, found.words)
        for name, value in found.settings.items():
            setting = f"SERVICING_{name.upper()}"
            if getattr(settings, setting) not in (None, value):
                wanted = {False: "off", True: "on"}.get(value, value)
                yield Finding("bad", f"{setting} doesn't suit this service. Set it to {wanted}.")


def known_ids() -> dict[str, str]:
    """The line and the loan of one borrower that were read last."""
    ids: dict[str, str] = {}
    known = Record.objects.filter(archived_at=None, checked_at__isnull=False).order_by("-checked_at")
    for kind in (Kind.LINE, Kind.LOAN):
        records = known.filter(kind=kind, **{"borrower_uuid": ids["borrower_id"]} if ids else {})
        if record := records.first():
            ids |= {"borrower_id": record.borrower_uuid, f"{kind.value}_id": record.uuid}
    return ids


def worker() -> Findings:
    """Whether anybody works in the background."""
    work = state()
    if work.is_working:
        yield Finding("ok", f"Workers in the background: {len(work.workers)}.")
    else:
        yield Finding("bad", "No worker is running: nothing happens in the background. Start manage.py work.")


def documents() -> Findings:
    """Whether documents can be drawn; tried in a process of its own, as when they are: a missing font ends it."""
    command = [sys.executable, "-c", DRAWING]
    if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603 - our own words
        yield Finding("bad", "No document can be drawn: install what docker/system-packages.txt names.")
    else:
        yield Finding("ok", "Documents can be drawn.")


def shared_cache() -> Findings:
    """Several processes must count failed sign-ins together."""
    word = secrets.token_hex(8)
    try:
        is_kept = cache.add(f"doctor.{word}", word, 10) and cache.get(f"doctor.{word}") == word
    except Exception as error:  # Each kind of cache has errors of its own.
        yield Finding("bad", f"The cache does not answer. Look at CACHE_URL. {in_a_line(error)}")
        return
    if not is_kept:
        yield Finding("bad", "The cache does not keep what it is told. Look at CACHE_URL.")
    elif settings.CACHES["default"]["BACKEND"].endswith("LocMemCache") and several_processes():
        yield Finding(
            "warn",
            "Each process throttles sign-ins by itself. Point CACHE_URL at a Valkey or Redis that all share.",
        )
    else:
        yield Finding("ok", "The cache works, and is shared where it must be.")


def several_processes() -> bool:
    """Whether this deployment is meant for more than one web process."""
    return connection.vendor == "postgresql" or os.environ.get("WEB_CONCURRENCY", "1") not in ("", "1")


def metrics() -> Findings:
    """Whether monitoring can read anything."""
    if settings.METRICS_TOKEN:
        yield Finding("ok", "The metrics are told to whoever has METRICS_TOKEN.")
    else:
        yield Finding("ok", "No metrics are told: METRICS_TOKEN is not set.")


def traces() -> Findings:
    """Whether anybody wants traces, and takes them."""
    if not tracing.is_on():
        yield Finding("ok", "No traces are sent: OTEL_EXPORTER_OTLP_ENDPOINT is not set.")
    elif tracing.is_heard():
        yield Finding("ok", "The collector of traces takes them.")
    else:
        yield Finding(
            "bad",
            f"The collector at {settings.OTEL_EXPORTER_OTLP_ENDPOINT} takes no traces. "
            "Look at OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS.",
        )


def trail() -> Findings:
    """Whether the audit trail was checked lately, held, and could not be rewritten unnoticed."""
    yield from (Finding("bad", words) for words in guard.differences(connection))
    if guard.is_owned(connection):
        yield Finding("warn", guard.OWNED)
    found = chain()
    if found.checked and found.checked.result == "broken":
        problem = found.checked.detail.get("problem", "")
        yield Finding(
            "bad",
            f"The audit trail is broken. {problem} Look at a copy from before, and who could write since.",
        )
    elif found.checked is None:
        yield Finding("warn", "The audit trail was never checked. Run manage.py verify_audit.")
    elif not is_recent(found.checked.at, CHECKED_LATELY):
        yield Finding("warn", "The audit trail was not checked for two days. Run manage.py verify_audit.")
    else:
        held = found.checked.detail.get("entries", 0)
        yield Finding("ok", f"The audit trail held when it was last checked: {held:,} entries.")
    if not (found.signed and is_recent(found.signed.at, CHECKED_LATELY)):
        yield Finding(
            "warn", "The worker has not signed the audit trail for two days. Look at CHECKPOINT_MINUTES."
        )
    if settings.AUDIT_CHECKPOINT_DIR:
        yield from checkpoint_files(found.signed)


def checkpoint_files(signed: Entry | None) -> Findings:
    """Whether the process that signs can use its key and its file, and the file holds what was signed last."""
    try:
        kept = checkpoints.read(checkpoints.default_file())
    except checkpoints.Unusable as problem:
        yield Finding("bad", f"The checkpoints cannot be used: {problem}")
        return
    if signed and not kept.has_line_of(signed.pk, signed.detail["entry"]):
        yield Finding("bad", f"The trail was signed, but {LOST_LINE}. Look at AUDIT_CHECKPOINT_DIR.")
    else:
        yield Finding("ok", f"The checkpoints of the audit trail can be read: {len(kept.by_entry):,}.")
