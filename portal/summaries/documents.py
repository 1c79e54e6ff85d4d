"""Documents to hand out: every kind has the same head and foot, a code, a content hash, and an entry in the audit.

A document is its content (a frozen object in which nothing stands that is not to be printed) and its options. Time,
person and code come from outside as a stamp: the same content with the same stamp gives the same bytes, and the content
hash is the same whoever prints it, whenever.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.text import slugify

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.jobs.kinds import Kind as JobKind
from portal.jobs.queue import start
from portal.readings import Reading
from portal.registry.models import Record
from portal.summaries.models import LongDocument, Printed
from portal.summaries.options import Options
from portal.summaries.pdf import render
from servicing import RemoteTime, ServicingError
from servicing.codec import Model
from servicing.credit_lines import StatementDocument

# How stored answers that make no sense come out while a document is laid out.
BROKEN = (ServicingError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# Without letters and digits that are taken for each other.
ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
# From this amount on columns take the width of what stands in them.
LONG = 1_000_000
# What only a screen can use: what is told under the pointer, and the indentation of templates.
_HINT = re.compile(r'<(span|time) [^>]*title="[^"]*"[^>]*>([^<]*)</\1>')
_INDENTATION = re.compile(r">\s*\n\s*<")
_CANONICAL = msgspec.json.Encoder(order="sorted", decimal_format="string")


class Form(NamedTuple):
    """A kind of document: the first letters of its codes, what it is called, its body."""

    prefix: str
    title: str
    template: str
    inline_rows: int = 400
    """With more rows than this in its long tables a job creates the document."""


@dataclass(frozen=True)
class Stamp:
    """What makes two prints of the same content differ."""

    at: datetime
    by: str
    code: str = ""
    """Empty on the preview, which is no document yet."""

    @classmethod
    def new(cls, form: Form, *, at: datetime, by: str) -> "Stamp":
        """A stamp with a code that was never given before."""
        chosen = "".join(secrets.choice(ALPHABET) for _ in range(6))
        return cls(at, by, f"{form.prefix}-{timezone.localtime(at):%Y%m%d}-{chosen}")


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document before anybody prints it."""

    form: Form
    subject: Record
    about: str
    """Whose it is, in words, below the title."""
    content: Any
    options: Options
    readings: Sequence[Reading] = field(default=(), repr=False)
    """The copies that its figures come from."""
    is_landscape: bool = False
    rows: int = 0
    """How many rows its long tables have, which is what creating it takes its time for."""
    missing: Sequence[str] = ()
    """What a reader might look for and not find, in sentences."""

    @property
    def title(self) -> str:
        return f"{self.form.title}: {self.about}"

    @cached_property
    def content_hash(self) -> str:
        """The SHA-256 of the canonical content: its figures and words, without the times at which they were told."""
        told = [self.form.title, self.about, self.options.mode.value, self._told]
        return hashlib.sha256(_CANONICAL.encode(told)).hexdigest()

    @cached_property
    def _told(self) -> Any:
        return canonical(self.content)

    @property
    def is_long(self) -> bool:
        """Whether creating it takes longer than others can wait for a drawing process."""
        return self.rows > self.form.inline_rows

    @property
    def is_loose(self) -> bool:
        """Whether an amount is too long for columns of a set width."""
        return any(abs(amount) >= LONG for amount in _amounts(self._told))

    @property
    def short_hash(self) -> str:
        """As the foot of each page shows it."""
        return " ".join(self.content_hash[start : start + 4] for start in range(0, 12, 4))

    @property
    def told_at(self) -> list[datetime]:
        """When its figures were told, the oldest first."""
        return sorted(one.at for one in self.readings if one.at)

    @property
    def file_name(self) -> str:
        """Says what it is and of whom."""
        return f"{slugify(self.title)[:80] or 'document'}-{timezone.localdate()}.pdf"

    def html(self, stamp: Stamp) -> str:
        """The whole document as HTML, ready to be drawn: each element that is left out is drawn sooner."""
        page = render_to_string("summaries/print.html", self.context(stamp))
        return _INDENTATION.sub("><", _HINT.sub(r"\2", page))

    def context(self, stamp: Stamp) -> dict[str, Any]:
        """What its templates read."""
        return {
            "document": self,
            "content": self.content,
            "options": self.options,
            "stamp": stamp,
            "organisation": settings.ORGANISATION,
            "environment": str(settings.SERVICING_ENVIRONMENT).upper(),
        }


def issue(actor: Actor, document: Document) -> tuple[str, bytes]:
    """Draw the document and record that it was handed out: its code and its bytes, or :class:`pdf.NotDrawn`."""
    stamp = Stamp.new(document.form, at=timezone.now(), by=actor.name)
    drawn = render(document.html(stamp))
    record_print(actor, print_entry(document, stamp), drawn)
    return stamp.code, drawn


def issue_in_background(job: JobKind, actor: Actor, document: Document) -> LongDocument:
    """Lay the document out as it is now, and let a job draw it."""
    stamp = Stamp.new(document.form, at=timezone.now(), by=actor.name)
    with transaction.atomic():
        started = LongDocument.objects.create(
            title=document.title[:300],
            file_name=document.file_name,
            html=document.html(stamp),
            print_entry=print_entry(document, stamp),
            actor_id=actor.id,
            actor_name=actor.name,
            actor_role=actor.role,
            actor_ip=actor.ip,
        )
        started.job = start(job, by=actor, document=str(started.pk))
        started.save(update_fields=["job"])
    return started


def print_entry(document: Document, stamp: Stamp) -> dict[str, Any]:
    """What the audit says about a print, but for its bytes."""
    told_at, subject = document.told_at, document.subject
    return {
        "subject_kind": subject.kind,
        "subject_uuid": subject.uuid,
        "subject_label": document.title[:300],
        "borrower_uuid": subject.borrower_uuid,
        "detail": {
            "code": stamp.code,
            "title": document.form.title,
            "content_sha256": document.content_hash,
            "data_from": told_at[0] if told_at else None,
            "data_to": told_at[-1] if told_at else None,
            **document.options.told(),
        },
    }


def record_print(actor: Actor, entry: Mapping[str, Any], drawn: bytes) -> Printed:
    """One audit entry, and the code that leads to it."""
    detail = entry["detail"] | {"sha256": hashlib.sha256(drawn).hexdigest(), "bytes": len(drawn)}
    with transaction.atomic():
        appended = append(actor, "summaries.print", **{**entry, "detail": detail})
        return Printed.objects.create(code=detail["code"], entry=appended)


def canonical(value: Any) -> Any:
    """A content as plain values, in one way: equal contents give equal texts."""
    match value:
        case Record():
            return [value.kind, value.uuid, value.label]
        case Reading():
            return canonical(value.record)
        case StatementDocument():
            return value.billing_date  # its link is another on every answer
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
        case None | str() | bool() | int() | date() | Decimal():
            return value
        case _ if is_dataclass(value):
            return {one.name: canonical(getattr(value, one.name)) for one in fields(value)}
    return str(value)


def _amounts(value: Any) -> Iterator[Decimal]:
    """Every amount in a canonical content."""
    match value:
        case Decimal():
            yield value
        case Mapping():
            for one in value.values():
                yield from _amounts(one)
        case list():
            for one in value:
                yield from _amounts(one)
