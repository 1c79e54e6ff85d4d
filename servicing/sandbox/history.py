"""What has happened on a demo account until today: payments, draws, statements, returns, and their messages.

Hides how months are played through. All of it lies before today, so that nothing depends on the hour of the
run.
"""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random

from servicing.sandbox import ledger, passing
from servicing.sandbox.clock import SERVICE_ZONE
from servicing.sandbox.ledger import DAYS_TO_PAY
from servicing.sandbox.lending import add_months, money
from servicing.sandbox.names import LINE_NOTES
from servicing.sandbox.store import Record
from servicing.sandbox.world import World

YEAR = timedelta(days=365)
NOTICE = timedelta(days=2)
ZONES = ["US/Pacific"] * 12 + ["PDT", "PST"] * 3 + [""] * 2 + ["IST"]
OTHER_TYPES = ("REFUNDED", "DISPUTED", "MERCHANT_RETURN", None)
BUSY_MONTH = 75
DAYS_TO_BILL_PAID = 9


class History:
    """Plays the past of accounts, with one source of chance."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._today = world.clock.today()

    def of_loan(self, uuid: str, *, paid: int) -> None:
        """The first ``paid`` installments were paid, most of them without trouble."""
        for row in ledger.plan(self._world.account(uuid))[:paid]:
            self._pay(uuid, row.total, row.due, trouble=self._random.random())
        self._plan_next(uuid)

    def of_line(self, uuid: str, *, opened: date, statements: int, unpaid: int, busy: bool) -> None:
        """So many months were billed; the last ``unpaid`` bills still wait."""
        for month in range(1, statements + 1):
            start, end = add_months(opened, month - 1), add_months(opened, month)
            pays = month <= statements + 1 - unpaid
            self._pay_bill(uuid, start, pays=pays)
            for day in sorted(self._days_between(start, end)):
                self._line_day(uuid, day, pays=pays)
            if busy and month > statements - 3:
                self._spend_busily(uuid, start, end)
            self._bill(uuid, end)
        self._pay_bill(uuid, add_months(opened, statements), pays=not unpaid)
        self._plan_next(uuid)

    def overpay(self, uuid: str, amount: Decimal) -> None:
        """More came in than was owed."""
        self._pay(uuid, amount, self._today - timedelta(days=5), trouble=0.5)

    def moment(self, day: date) -> datetime:
        """Some time of a working day."""
        clock = time(self._random.randint(6, 19), self._random.randint(0, 59), self._random.randint(0, 59))
        return datetime.combine(day, clock, SERVICE_ZONE)

    def zone(self) -> str:
        """One of the ways the service writes a zone."""
        return self._random.choice(ZONES)

    # Payments

    def _pay(self, account: str, amount: Decimal, day: date, *, trouble: float) -> None:
        """Enter a payment and let it come in; some fail first, some are returned and sent again."""
        day = min(day, self._today - timedelta(days=1))
        again = day + timedelta(days=7)
        if trouble < 0.03 and again < self._today:
            passing.bounce(self._world, *self._entered(account, amount, day), zone=self._audible(day))
            day = again
        payment, moment = self._entered(account, amount, day)
        passing.settle(self._world, payment, moment, zone=self._audible(day))
        if trouble > 0.97 and again < self._today:
            moment = self.moment(day + timedelta(days=3))
            passing.bounce(self._world, payment, moment, zone=self._audible(day))
            self._pay(account, amount, again, trouble=0.5)

    def _entered(self, account: str, amount: Decimal, day: date) -> tuple[Record, datetime]:
        """A scheduled payment whose day has come, and the time of day."""
        odd = {"payment_type": self._random.choice(OTHER_TYPES)} if self._random.random() < 0.04 else {}
        blank = {"error_description": ""} if self._random.random() < 0.3 else {}
        body = self._world.repayment(
            account, amount=amount, status="SCHEDULED", effective_date=day, **odd, **blank
        )
        if self._audible(day):
            notice = self.moment(day - NOTICE)
            self._world.message("payment.scheduled", dict(body), at=notice, zone=self.zone())
        return self._world.store.require("repayment", body["uuid"]), self.moment(day)

    def _audible(self, day: date) -> str | None:
        """The zone of a message about this day; messages older than a year are gone."""
        return self.zone() if day - NOTICE > self._today - YEAR else None

    def _plan_next(self, uuid: str) -> None:
        account = self._world.account(uuid)
        ledger.age(account, self._today)
        passing.plan_payment(self._world, account, self.moment(self._today - timedelta(days=1)))
        self._world.store.update(account)

    # Lines

    def _days_between(self, start: date, end: date) -> Iterator[date]:
        """Days after the bill of this month was paid, and before the next."""
        for _ in range(self._random.randint(2, 6)):
            yield start + timedelta(days=self._random.randint(DAYS_TO_BILL_PAID, (end - start).days - 1))

    def _pay_bill(self, uuid: str, billed: date, *, pays: bool) -> None:
        due = self._world.account(uuid).body["payment_amount_due"]
        if pays and due > 0 and billed + timedelta(days=DAYS_TO_PAY) < self._today:
            day = billed + timedelta(days=self._random.randint(3, DAYS_TO_BILL_PAID))
            self._pay(uuid, due, day, trouble=self._random.random())

    def _line_day(self, uuid: str, day: date, *, pays: bool) -> None:
        """Money is drawn, or a payment made."""
        line = self._world.account(uuid)
        balance, limit = line.body["principal_balance"], line.body["credit_limit"]
        if balance < limit * Decimal("0.6") and self._random.random() < 0.5:
            self._draw(line, money(limit * self._random.randint(2, 12) / 100), day)
        elif pays and balance > 0:
            share = Decimal(self._random.randint(3, 15)) / 100
            self._pay(uuid, money(balance * share), day, trouble=self._random.random())

    def _draw(self, line: Record, amount: Decimal, day: date) -> None:
        ledger.draw(line, amount, day, self._random.choice(LINE_NOTES))
        self._world.store.update(line)

    def _spend_busily(self, uuid: str, start: date, end: date) -> None:
        """So many small purchases that a statement takes three pages."""
        line = self._world.account(uuid)
        step = Decimal((end - start).days - 1) / BUSY_MONTH
        for index in range(BUSY_MONTH):
            day = start + timedelta(days=1 + int(index * step))
            self._draw(line, money(Decimal(self._random.randint(450, 18_000)) / 100), day)

    def _bill(self, uuid: str, day: date) -> None:
        line = self._world.account(uuid)
        self._world.keep_statement(line, ledger.bill(line, day))
