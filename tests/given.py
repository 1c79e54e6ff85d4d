"""Arrangements that read like a sentence: the service has something, and this desk knows it."""

from typing import Any

from portal.registry import memory
from portal.registry.models import Kind, Record, Source
from servicing import Borrower, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps


def borrower(sandbox: Sandbox, *, source: str = Source.SERVICE, **overrides: Any) -> Record:
    """A business that the service has and this desk knows, with its key people."""
    return told(sandbox.world.borrower(**overrides), source=source)


def individual(sandbox: Sandbox, **overrides: Any) -> Record:
    """A person who borrows, known here."""
    return told(sandbox.world.individual(**overrides))


def told(user: dict[str, Any], *, source: str = Source.SERVICE) -> Record:
    """Remember a user object as if the service had just answered with it."""
    return memory.remember(memory.known(codec.decode(Borrower, dumps(user))), source=source)[0]


def account(kind: Kind, owner: Record, uuid: str, label: str = "") -> Record:
    """A loan, line or application of which only the uuid is known."""
    item = memory.Known(kind=kind, uuid=uuid, borrower_uuid=owner.uuid, label=label)
    return memory.remember([item], source=Source.FILE)[0]


def loan(sandbox: Sandbox, owner: Record, **terms: Any) -> Record:
    """A loan that the service has; this desk knows its identifier."""
    return account(Kind.LOAN, owner, sandbox.world.loan(owner.uuid, **terms)["uuid"])


def line(sandbox: Sandbox, owner: Record, **terms: Any) -> Record:
    """A line of credit that the service has; this desk knows its identifier."""
    return account(Kind.LINE, owner, sandbox.world.line(owner.uuid, **terms)["uuid"])
