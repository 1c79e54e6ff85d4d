"""Fetches one statement as a whole, or says why not. Hides the fetcher, the temporary file and the fingerprint.

A document is passed on only once all of it has come: until then it may still turn out too large, too slow or cut, and
then there is a sentence instead of half a document.
"""

import tempfile
import time
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import IO
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal import gateway
from portal.audit.models import Actor, RemoteCall
from portal.credit_lines.models import Fingerprint
from portal.gateway import StaffRequest
from servicing import Client, ServicingError, Statement, StatementDocument
from servicing.documents import DocumentFetcher

IN_MEMORY = 1024 * 1024


class NotListed(Exception):
    """The service lists no document for this day."""


def document(request: StaffRequest, borrower_uuid: str, line_uuid: str, day: date) -> IO[bytes]:
    """The statement's bytes from their beginning, by the link that the service gives now.

    Raises :class:`NotListed`, or what the service and the fetcher raise.
    """
    statement = request.servicing.credit_lines.statement(borrower_uuid, line_uuid)
    url = link_of(statement, day)
    started, failure = time.monotonic(), None
    try:
        return _fetched(url, line_uuid, day)
    except ServicingError as error:
        failure = error
        raise
    finally:
        _record(Actor.of(request), url, failure, time.monotonic() - started)


def link_of(statement: Statement, day: date) -> str:
    """The link of the statement of a day; of two of one day the one listed last."""
    links = [paper.url for paper in statement.statements if paper.billing_date == day and paper.url]
    if not links:
        raise NotListed
    return links[-1]


def prints_of(line_uuid: str, papers: Sequence[StatementDocument]) -> dict[date, list[Fingerprint]]:
    """What is known of the contents of these statements, the oldest first."""
    days = [paper.billing_date for paper in papers if paper.billing_date]
    found: dict[date, list[Fingerprint]] = {}
    for one in Fingerprint.objects.filter(line_uuid=line_uuid, billing_date__in=days):
        found.setdefault(one.billing_date, []).append(one)
    return found


def _fetched(url: str, line_uuid: str, day: date) -> IO[bytes]:
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the response closes it
    try:
        with _fetcher(
            gateway.client(),
            tuple(settings.SERVICING_DOCUMENT_HOSTS),
            settings.DEBUG,
            settings.SERVICING_DOCUMENT_TIMEOUT,
        ).fetch(url) as paper:
            file.writelines(paper)
        _remember(line_uuid, day, paper.sha256 or "", paper.size or 0)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


@lru_cache(maxsize=4)
def _fetcher(
    client: Client, hosts: tuple[str, ...], allow_loopback: bool, time_limit: float
) -> DocumentFetcher:
    """One fetcher for the settings as they are: reading the certificates takes its time."""
    return client.documents(hosts=hosts, allow_loopback_http=allow_loopback, time_limit=time_limit)


def _remember(line_uuid: str, day: date, sha256: str, size: int) -> None:
    now = timezone.now()
    with transaction.atomic():
        seen, is_new = Fingerprint.objects.get_or_create(
            line_uuid=line_uuid,
            billing_date=day,
            sha256=sha256,
            defaults={"size": size, "first_at": now, "last_at": now},
        )
        if not is_new:
            Fingerprint.objects.filter(pk=seen.pk).update(last_at=now)


def _record(actor: Actor, url: str, error: ServicingError | None, seconds: float) -> None:
    """The row of this call. The query of a link may be all that is needed to read the document: it is left out."""
    parts = urlsplit(url)
    RemoteCall.objects.create(
        operation="documents.fetch",
        method="GET",
        path=f"{parts.hostname or ''}{parts.path}"[:500],
        outcome=gateway.ending(error),
        status=error.status if error else 200,
        duration_ms=round(seconds * 1000),
        request_id=actor.request_id,
        actor_id=actor.id,
        actor_name=actor.name,
        error=error.message if error else "",
    )
