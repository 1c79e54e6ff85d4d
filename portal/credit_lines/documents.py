"""Downloads one statement completely, or says why not.

Hides the fetcher, the fingerprint, and how links that failed are remembered. A document is passed on only once it is
complete. If it is too large, too slow or cut off, the reader gets a message instead of half a document.
"""

import hashlib
import time
from functools import lru_cache
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from portal.audit.models import Actor, RemoteCall
from portal.credit_lines.models import Fingerprint
from portal.credit_lines.statements import StatementKey, statements_by_key
from portal.gateway import client as gateway
from portal.gateway.client import StaffRequest
from servicing import Client, DocumentRefused, ServicingError, Statement
from servicing.documents import DocumentFetcher

FAILURE_KNOWN_SECONDS = 60 * 60


class NotListed(Exception):
    """The service lists no such document."""


class LinkProblem(NamedTuple):
    """Why a statement can't be opened, and whether it is worth another try."""

    words: str
    can_retry: bool


def link_problems(line_uuid: str, statement: Statement) -> dict[StatementKey, LinkProblem]:
    """The statements whose links aren't allowed, or failed when they were last tried. Nothing is called."""
    fetcher, links = _current_fetcher(), statements_by_key(statement)
    names = {key: _failure_name(line_uuid, key, url) for key, url in links.items()}
    failures = cache.get_many(names.values())
    found = {
        key: LinkProblem(failures[name], can_retry=True) for key, name in names.items() if name in failures
    }
    for key, url in links.items():
        try:
            fetcher.check(url)
        except DocumentRefused as refusal:
            found[key] = LinkProblem(refusal.message, can_retry=False)
    return found


def _failure_name(line_uuid: str, key: StatementKey, url: str) -> str:
    """Where the cache has the last failure of a link. Its query is left out, which may differ in every answer."""
    text = f"{line_uuid} {key} {url.partition('?')[0]}"
    return f"statement.failure:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def download(
    request: StaffRequest, borrower_uuid: str, line_uuid: str, key: StatementKey, file: IO[bytes]
) -> None:
    """Download the statement into ``file`` by the service's current link.

    Raises :class:`NotListed`, or what the service and the fetcher raise.
    """
    statement = request.servicing.credit_lines.statement(borrower_uuid, line_uuid)
    url = link_of(statement, key)
    started, failure = time.monotonic(), None
    try:
        _fetch(url, line_uuid, key, file)
        cache.delete(_failure_name(line_uuid, key, url))
    except ServicingError as error:
        failure = error
        cache.set(_failure_name(line_uuid, key, url), error.message, FAILURE_KNOWN_SECONDS)
        raise
    finally:
        _record_call(Actor.of(request), url, failure, time.monotonic() - started)


def link_of(statement: Statement, key: StatementKey) -> str:
    try:
        return statements_by_key(statement)[key]
    except KeyError:
        raise NotListed from None


def _fetch(url: str, line_uuid: str, key: StatementKey, file: IO[bytes]) -> None:
    with _current_fetcher().fetch(url) as paper:
        file.writelines(paper)
    _save_fingerprint(line_uuid, key, paper.sha256 or "", paper.size or 0)
    file.seek(0)


def _current_fetcher() -> DocumentFetcher:
    return _fetcher(
        gateway.client(),
        tuple(settings.SERVICING_DOCUMENT_HOSTS),
        settings.DEBUG,
        settings.SERVICING_DOCUMENT_TIMEOUT,
    )


@lru_cache(maxsize=4)
def _fetcher(
    client: Client, hosts: tuple[str, ...], allow_loopback: bool, time_limit: float
) -> DocumentFetcher:
    """Cache one fetcher per combination of settings, because reading certificates is slow."""
    return client.documents(hosts=hosts, allow_loopback_http=allow_loopback, time_limit=time_limit)


def _save_fingerprint(line_uuid: str, key: StatementKey, sha256: str, size: int) -> None:
    now = timezone.now()
    Fingerprint.objects.update_or_create(
        line_uuid=line_uuid,
        billing_date=key.day,
        position=key.position,
        sha256=sha256,
        defaults={"last_at": now},
        create_defaults={"size": size, "first_at": now, "last_at": now},
    )


def _record_call(actor: Actor, url: str, error: ServicingError | None, seconds: float) -> None:
    """Record the call without the link's query, which may be enough to read the document."""
    parts = urlsplit(url)
    RemoteCall.objects.create(
        operation="documents.fetch",
        method="GET",
        path=f"{parts.hostname or ''}{parts.path}"[:500],
        outcome=gateway.call_outcome(error),
        status=error.status if error else 200,
        duration_ms=round(seconds * 1000),
        request_id=actor.request_id,
        actor_id=actor.id,
        actor_name=actor.name,
        error=error.message if error else "",
    )
