"""Printed documents: every kind has the same header and footer, a code, a content hash and an audit entry.

A document consists of its content (only what is printed) and its options. Time, person and code are added as a stamp.
The same content with the same stamp gives the same bytes, and the content hash does not depend on the stamp.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from html import unescape
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.text import slugify

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.core.business_date import business_date
from portal.documents.models import LongDocument, Printed
from portal.documents.options import Options
from portal.documents.pdf import NotRendered, find_unprintable, is_unusual
from portal.gateway.reading import LiveCopy, read_and_wait, saved_again
from portal.jobs.kinds import JobKind
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.records.models import Account, Application, Borrower, Kind, Repayment
from portal.ui.logo import logo
from servicing import RemoteTime, ServicingError
from servicing.codec import Model
from servicing.credit_lines import StatementDocument

# Errors that nonsensical saved answers raise during layout.
LAYOUT_ERRORS = (ServicingError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# With more rows than this in its long tables, a job creates a document.
MAX_REQUEST_ROWS = 400
# The characters of codes, without letters and digits that look alike.
CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
# From this amount on, columns are as wide as their content.
WIDE_AMOUNT = 1_000_000
# Removed for paper: tooltips, and the templates' indentation except between words, where it is the only space.
_HINT = re.compile(r'<(span|time) [^>]*title="[^"]*"[^>]*>([^<]*)</\1>')
_INDENTATION = re.compile(r">\s*\n\s*<(?!/?(?:a|b|small|span|time)\b)")
_TAG = re.compile("<[^>]*>")
_CANONICAL = msgspec.json.Encoder(order="sorted", decimal_format="string")


class Form(NamedTuple):
    """A kind of document: the prefix of its codes, its title, its template."""

    prefix: str
    title: str
    template: str
    is_internal: bool = False
    """Whether it is for staff alone, so that there is no copy for borrowers."""


@dataclass(frozen=True)
class Stamp:
    """What distinguishes two prints of the same content."""

    at: datetime
    by: str
    code: str = ""
    """Empty on a preview."""

    @property
    def name(self) -> str:
        """Who made it, without the sign-in name, which borrowers don't need."""
        return self.by.rpartition(" (")[0] or self.by

    @classmethod
    def new(cls, form: Form, *, at: datetime, by: str) -> "Stamp":
        chosen = "".join(secrets.choice(CODE_ALPHABET) for _ in range(6))
        return cls(at, by, f"{form.prefix}-{timezone.localtime(at):%Y%m%d}-{chosen}")


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document before it is printed."""

    form: Form
    subject: Account | Application | Borrower | Repayment
    about: str
    """The owner in words, shown below the title."""
    content: Mapping[str, Any]
    options: Options
    copies: Sequence[LiveCopy] = field(default=(), repr=False)
    """The saved copies that its figures come from."""
    is_landscape: bool = False
    rows: int = 0
    """The number of rows in its long tables, which decides how long it takes to create."""
    missing: Sequence[str] = ()
    """What a reader might look for and not find, in sentences."""

    @property
    def title(self) -> str:
        return f"{self.form.title}: {self.about}"

    @cached_property
    def content_hash(self) -> str:
        """The SHA-256 of its figures and words, without the times of the service's answers."""
        parts = [self.form.title, self.about, self.options.mode.value, self._canonical_content]
        return hashlib.sha256(_CANONICAL.encode(parts)).hexdigest()

    @cached_property
    def _canonical_content(self) -> Any:
        return canonical(self.content)

    @property
    def is_long(self) -> bool:
        """Whether a job creates it at once, because a request would wait too long."""
        return self.rows > MAX_REQUEST_ROWS

    @property
    def is_loose(self) -> bool:
        """Whether an amount is too long for fixed-width columns."""
        return any(abs(amount) >= WIDE_AMOUNT for amount in _amounts(self._canonical_content))

    @property
    def short_hash(self) -> str:
        """The beginning of the hash, as in the footer of each page."""
        return " ".join(self.content_hash[start : start + 4] for start in range(0, 12, 4))

    @property
    def reported_at(self) -> list[datetime]:
        """The times at which the service reported its figures, oldest first."""
        return sorted(one.at for one in self.copies if one.at)

    @property
    def file_name(self) -> str:
        """The file name: kind, owner, date, and whether it is for staff only."""
        internal = "-internal" if self.options.is_internal else ""
        return f"{slugify(self.title)[:80] or 'document'}{internal}-{business_date()}.pdf"

    def html(self, stamp: Stamp) -> str:
        """Render the document as HTML with few elements, each of which costs time in the PDF."""
        page = render_to_string("documents/print.html", self.context(stamp))
        return _INDENTATION.sub("><", _HINT.sub(r"\2", page))

    def context(self, stamp: Stamp) -> dict[str, Any]:
        context = self._context_without_notice(stamp)
        return context | {"unprintable": self._unprintable(context)}

    def _unprintable(self, context: dict[str, Any]) -> str | None:
        """The printed characters that print as boxes; ``None`` if the document engine can't say."""
        words = [
            self.about,
            context["organization"],
            context["stamp"].by,
            _CANONICAL.encode(self._canonical_content),
        ]
        if not any(map(is_unusual, "".join(w if isinstance(w, str) else w.decode() for w in words))):
            return ""
        page = render_to_string("documents/print.html", context)
        try:
            return find_unprintable(unescape(_TAG.sub(" ", page)))
        except NotRendered:
            return None

    def _context_without_notice(self, stamp: Stamp) -> dict[str, Any]:
        return {
            "document": self,
            "content": self.content,
            "options": self.options,
            "stamp": stamp,
            "organization": settings.ORGANIZATION,
            "logo": found.data_url if (found := logo()) else "",
            "host": settings.PORTAL_URL.partition("://")[2].lstrip(".*"),
            "environment": str(settings.SERVICING_ENVIRONMENT).upper(),
        }


def account_document(
    form: Form, copies: Sequence[LiveCopy], owner: Borrower | None, content: Mapping[str, Any], **layout: Any
) -> Document:
    """Build the document of one loan, line or application, whose own copy is the first one."""
    own, record = copies[0], copies[0].record
    noun = {Kind.LOAN: "loan", Kind.LINE: "line", Kind.APPLICATION: "application"}[Kind(record.kind)]
    return Document(
        form=form,
        subject=record,
        about=f"{owner or record.borrower_uuid[:8]}, {noun} {record.uuid[:8]}",
        content={"record": record, "owner": owner, **content},
        copies=copies,
        missing=[] if own.answer else [f"The {noun} isn’t loaded yet: only the ID is on file."],
        **layout,
    )


def read_copies(actor: Actor, copies: Sequence[LiveCopy], options: Options) -> Sequence[LiveCopy]:
    """Read the copies for a PDF, after calling the service unless saved copies were chosen."""
    if options.is_from_copies:
        return copies
    read_and_wait(actor, copies)
    return saved_again(copies)


def open_document(actor: Actor, document: Document) -> LongDocument | None:
    """The same document that this person waits for already."""
    own = LongDocument.objects.filter(actor_id=actor.id, job__state__in=Job.OPEN).defer("html", "document")
    return own.filter(print_entry__detail__content_sha256=document.content_hash).first()


def start_long_document(
    job: JobKind, actor: Actor, document: Document, stamp: Stamp, html: str
) -> LongDocument:
    """Save the document's HTML, and start a job that creates the PDF."""
    with transaction.atomic():
        started = LongDocument.objects.create(
            title=document.title[:300],
            file_name=document.file_name,
            html=html,
            print_entry=print_entry(document, stamp),
            **LongDocument.columns_of(actor),
        )
        started.job = start_job(job, by=actor, document=str(started.pk))
        started.save(update_fields=["job"])
    return started


def print_entry(document: Document, stamp: Stamp) -> dict[str, Any]:
    """The audit entry of a print, without the hash of its bytes."""
    reported_at, subject = document.reported_at, document.subject
    return {
        "subject_kind": subject.kind,
        "subject_uuid": subject.uuid,
        "subject_label": document.title[:300],
        "borrower_uuid": subject.borrower_uuid,
        "detail": {
            "code": stamp.code,
            "title": document.form.title,
            "content_sha256": document.content_hash,
            "data_from": reported_at[0] if reported_at else None,
            "data_to": reported_at[-1] if reported_at else None,
            **document.options.as_detail(),
        },
    }


def record_print(actor: Actor, entry: Mapping[str, Any], file: bytes) -> Printed:
    """Save the audit entry, and the code that leads to it."""
    detail = entry["detail"] | {"sha256": hashlib.sha256(file).hexdigest(), "bytes": len(file)}
    with transaction.atomic():
        appended = append(actor, "summaries.print", **{**entry, "detail": detail})
        return Printed.objects.create(code=detail["code"], entry=appended)


def canonical(value: Any) -> Any:
    """Convert content to plain values, so that equal contents give equal JSON."""
    match value:
        case Account() | Application() | Borrower():
            return [value.kind, value.uuid, value.label]
        case LiveCopy():
            return canonical(value.record)
        case StatementDocument():
            return value.billing_date  # The link differs in every answer.
        case RemoteTime():
            return value.text
        case Model():
            return {name: canonical(getattr(value, name)) for name in value.__struct_fields__}
        case Mapping():
            return {str(key): canonical(one) for key, one in value.items()}
        case set() | frozenset():
            return sorted(map(str, value))
        case list() | tuple():
            return [canonical(one) for one in value]
        case SafeString():
            return _TAG.sub(" ", value)  # ready table rows: their words
        case None | str() | bool() | int() | date() | Decimal():
            return value
        case _ if is_dataclass(value):
            return {one.name: canonical(getattr(value, one.name)) for one in fields(value)}
    return "" if callable(value) else str(value)  # a function's text differs between processes


def _amounts(value: Any) -> Iterator[Decimal]:
    """Find every amount in a canonical content."""
    match value:
        case Decimal():
            yield value
        case Mapping():
            for one in value.values():
                yield from _amounts(one)
        case list():
            for one in value:
                yield from _amounts(one)
