"""The operations of the lending service: what each answer is saved as, and how to request it again.

Everything that depends on an operation reads this table: the store, live pages, refreshes, the status page, and tests.
"""

import logging
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

from django.conf import settings
from django.db import models

from servicing import AnswerNotSaved, Application, Borrower, Client, KeyPerson, Loan, Repayment, Statement
from servicing.codec import Model

logger = logging.getLogger(__name__)


class Kind(models.TextChoices):
    BORROWER = "borrower", "Borrower"
    KEY_PERSON = "key_person", "Key person"
    APPLICATION = "application", "Application"
    LOAN = "loan", "Loan"
    LINE = "line", "Line of credit"
    REPAYMENT = "repayment", "Repayment"
    # All repayments of an account in one answer; its uuid is the account's.
    LOAN_REPAYMENTS = "loan_repayments", "Repayments of a loan"
    LINE_REPAYMENTS = "line_repayments", "Repayments of a line"


@dataclass(frozen=True)
class Operation:
    """One operation of the client and what its answer contains."""

    name: str
    label: str
    group: str = ""
    """Its row on the status page, if it has one."""
    kind: Kind | None = None
    """What the answer is saved as; ``None`` if other tables hold it."""
    model: type[Model] | None = None
    ids: tuple[str, ...] = ()
    """The arguments to request it again, the record's ID last; empty if that is impossible."""
    contains: Kind | None = None
    """The kind of what is inside the answer: a borrower's key people, the repayments of a list."""
    parent: Kind | None = None
    """The kind of account that the answer belongs to: a list, or one object, which is no record of its own."""

    def read(self, client: Client, borrower_uuid: str, uuid: str) -> object:
        arguments = (borrower_uuid if name == "borrower_id" else uuid for name in self.ids)
        return attrgetter(self.name)(client)(*arguments)


OF_LOAN, OF_LINE = ("borrower_id", "loan_id"), ("borrower_id", "line_id")
# fmt: off
OPERATIONS = (
    Operation("borrowers.create_commercial", "Create borrower", "Borrowers", Kind.BORROWER, Borrower,
              contains=Kind.KEY_PERSON),
    Operation("borrowers.update", "Change borrower", "Borrowers", Kind.BORROWER, Borrower, contains=Kind.KEY_PERSON),
    Operation("borrowers.update_key_person", "Change key person", "Borrowers", Kind.KEY_PERSON, KeyPerson),
    Operation("applications.submit", "Submit application", "Applications", Kind.APPLICATION, Application),
    Operation("applications.get_for_line", "Read line application", "Applications", Kind.APPLICATION, Application,
              ("borrower_id", "application_id")),
    Operation("loans.get", "Read loan", "Loans", Kind.LOAN, Loan, OF_LOAN),
    Operation("credit_lines.statement", "Read line of credit", "Statements", Kind.LINE, Statement, OF_LINE),
    Operation("repayments.of_loan", "List repayments of a loan", "Repayments", Kind.LOAN_REPAYMENTS, Repayment,
              OF_LOAN, contains=Kind.REPAYMENT, parent=Kind.LOAN),
    Operation("repayments.of_line", "List repayments of a line", "Repayments", Kind.LINE_REPAYMENTS, Repayment,
              OF_LINE, contains=Kind.REPAYMENT, parent=Kind.LINE),
    Operation("messages.list", "List messages", "Messages"),
    Operation("documents.fetch", "Fetch statement document"),
)
# fmt: on
BY_NAME = {operation.name: operation for operation in OPERATIONS}
GROUPS = list(dict.fromkeys(operation.group for operation in OPERATIONS if operation.group))
KIND_OF_MODEL: dict[type, Kind] = {
    operation.model: operation.kind
    for operation in OPERATIONS
    if operation.model and operation.kind and not operation.parent
}
# The operation that requests a record of each kind again.
READS = {operation.kind.value: operation.read for operation in OPERATIONS if operation.kind and operation.ids}
# The kind of account that each list belongs to.
LISTS: dict[str, Kind] = {
    operation.kind: operation.parent for operation in OPERATIONS if operation.kind and operation.parent
}
# The lists of each kind of account, in the order of the table; its repayments come first.
LISTS_OF: dict[str, list[Kind]] = {
    parent: [kind for kind in map(Kind, LISTS) if LISTS[kind] == parent] for parent in LISTS.values()
}
# What the answer of each kind is, or each item of its list.
MODELS: dict[str, type[Model]] = {
    operation.kind: operation.model for operation in OPERATIONS if operation.kind and operation.model
}
# The kind of the list of repayments for each kind of account.
REPAYMENTS_OF: dict[str, Kind] = {
    operation.parent: operation.kind
    for operation in OPERATIONS
    if operation.kind and operation.parent and operation.contains == Kind.REPAYMENT
}


class UnknownOperation(AnswerNotSaved):
    """An operation is missing in this table."""


def operation_named(name: str) -> Operation | None:
    """The row of an operation. An unknown one is logged, and under DEBUG an error."""
    if found := BY_NAME.get(name):
        return found
    logger.error("%s has no row in %s; its answer is recorded as a call, but not saved", name, __name__)
    if settings.DEBUG:
        raise UnknownOperation(name)
    return None


@cache
def operations_in_words(kind: Kind, *, can_be_read: bool = True) -> str:
    """The operations whose answers contain a kind: those that request it again if possible, else the others."""
    found = [operation for operation in OPERATIONS if kind in (operation.kind, operation.contains)]
    asked = [operation for operation in found if bool(operation.ids) == can_be_read]
    *others, last = [operation.name for operation in asked or found]
    return f"{', '.join(others)} or {last}" if others else last
