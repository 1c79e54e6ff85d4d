"""A book of five accounts, read at the end of each day, so that each day of it is known by hand."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from portal.core.business_date import business_date
from portal.gateway import reading
from portal.jobs.queue import start_job
from portal.portfolio.tasks import write_days
from portal.records.models import Account
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.collections.conftest import ACTOR, advance
from tests.portal.collections.conftest import sandbox as sandbox
from tests.portal.jobs.scripted import run_taken

Installment = dict[str, Any]


def installment(due: date, *, paid_on: date | None = None, total: str = "100.00") -> Installment:
    return {
        "number": 1,
        "due_date": str(due),
        "total": total,
        "balance": "900.00",
        "status": "PAID" if paid_on else "SCHEDULED",
        "paid_on": paid_on and str(paid_on),
    }


class Book:
    """Loans whose answers are set by hand each day, and read at its end."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.first = business_date()
        self.borrower = given.borrower(sandbox)
        self.loans: dict[str, Account] = {}
        self.answers: dict[str, dict[str, Any]] = {}

    def day(self, number: int) -> date:
        """A day of the story, whose first is 1."""
        return self.first + timedelta(days=number - 1)

    def add(self, name: str, *rows: Installment, **terms: Any) -> None:
        self.loans[name] = given.loan(self.sandbox, self.borrower, amount="1000.00", interest_rate="0")
        self.say(name, *rows, **terms)

    def say(self, name: str, *rows: Installment, **terms: Any) -> None:
        """Let the service say this about a loan from now on."""
        said = {"delinquent": False, "status": "ACTIVE", **terms}
        self.answers[name] = said | ({"installments": list(rows)} if rows else {})
        if not rows:
            self.answers[name]["installments"] = []

    def read(self, *, unreadable: str = "") -> None:
        """Read every account, but not this one, which the service doesn't answer for."""
        for name, loan in self.loans.items():
            self.sandbox.world.amend(loan.uuid, **self.answers[name])
            for copy in reading.account_copies(loan):
                if name == unreadable:
                    self.sandbox.fail_next("*", status=500)
                reading.read_live(ACTOR, copy)
            loan.refresh_from_db()

    def end_day(self, *, unreadable: str = "") -> None:
        """Read the accounts, let the day end, and write it."""
        self.read(unreadable=unreadable)
        self.pass_days(1)

    def pass_days(self, days: int) -> None:
        advance(self.sandbox, days)
        run_job()


def run_job() -> Any:
    """Run the nightly job."""
    job = start_job(write_days)
    run_taken(job)
    job.refresh_from_db()
    return job


@pytest.fixture
def book(sandbox: Sandbox) -> Book:
    return Book(sandbox)


Story = Callable[[Book], None]


def five_accounts(book: Book) -> None:
    """Ten days: one account is paid late, one closed, one not read on a day, one opened, and one payment returned."""
    paid, returned = installment(book.day(2)), installment(book.day(2))
    book.add("paid later", paid)
    book.add("closed later", installment(book.day(60)))
    book.add("not read", installment(book.day(5)))
    book.add("returned", returned)
    for number in range(1, 11):
        if number == 6:
            book.say("paid later", installment(book.day(2), paid_on=book.day(6)))
        if number == 4:
            book.say("closed later", installment(book.day(60)), status="CLOSED")
            book.say("returned", installment(book.day(2), paid_on=book.day(4)))
        if number == 8:
            book.say("returned", returned)
        if number == 7:
            book.say("not read", installment(book.day(5), paid_on=book.day(7)))
        if number == 3:
            book.add("opened", installment(book.day(40)))
        book.end_day(unreadable="not read" if number == 6 else "")
