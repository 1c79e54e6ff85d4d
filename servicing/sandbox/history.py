"""The history of a demo account: payments, draws, statements, returns, and their messages.

Hides how months are simulated. All events are before today, so that the result does not depend on the hour.
"""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random

from servicing.sandbox import daily, ledger
from servicing.sandbox.amortization import add_months, money
from servicing.sandbox.clock import SERVICE_ZONE
from servicing.sandbox.ledger import DAYS_TO_PAY
from servicing.sandbox.names import LINE_NOTES
from servicing.sandbox.store import Record
from servicing.sandbox.world import World

YEAR = timedelta(days=365)
NOTICE_PERIOD = timedelta(days=2)
ZONES = ["US/Pacific"] * 12 + ["PDT", "PST"] * 3 + [""] * 2 + ["IST"]
OTHER_TYPES = ("REFUNDED", "DISPUTED", "MERCHANT_RETURN", None)
BUSY_MONTH_DRAWS = 75
DAYS_TO_BILL_PAID = 9


class History:
    """Simulates the past of accounts, with one source of randomness."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._today = world.clock.today()

    def of_loan(self, uuid: str, *, paid: int) -> None:
        """Pay the first ``paid`` installments of a loan, most of them without a failure."""
        for row in ledger.loan_schedule(self._world.account(uuid))[:paid]:
            self._pay(uuid, row.total, row.due, chance=self._random.random())
        self._plan_next(uuid)

    def of_line(self, uuid: str, *, opened: date, statements: int, unpaid: int, busy: bool) -> None:
        """Bill a line for a number of months; the last ``unpaid`` bills stay open."""
        for month in range(1, statements + 1):
            start, end = add_months(opened, month - 1), add_months(opened, month)
            pays = month <= statements + 1 - unpaid
            self._pay_bill(uuid, start, pays=pays)
            for day in sorted(self._days_between(start, end)):
                self._use_line(uuid, day, pays=pays)
            if busy and month > statements - 3:
                self._make_busy_month(uuid, start, end)
            self._bill_line(uuid, end)
        self._pay_bill(uuid, add_months(opened, statements), pays=not unpaid)
        self._plan_next(uuid)

    def overpay(self, uuid: str, amount: Decimal) -> None:
        """Pay an amount that is not owed."""
        self._pay(uuid, amount, self._today - timedelta(days=5), chance=0.5)

    def moment(self, day: date) -> datetime:
        """A random time during the day."""
        clock = time(self._random.randint(6, 19), self._random.randint(0, 59), self._random.randint(0, 59))
        return datetime.combine(day, clock, SERVICE_ZONE)

    def zone(self) -> str:
        """A random zone name as the service writes it."""
        return self._random.choice(ZONES)

    # Payments

    def _pay(self, account: str, amount: Decimal, day: date, *, chance: float) -> None:
        """Schedule and complete a payment; some fail first, some are returned and paid again."""
        day = min(day, self._today - timedelta(days=1))
        retry_day = day + timedelta(days=7)
        if chance < 0.03 and retry_day < self._today:
            daily.bounce_payment(
                self._world, *self._enter_payment(account, amount, day), zone=self._message_zone(day)
            )
            day = retry_day
        payment, moment = self._enter_payment(account, amount, day)
        daily.settle_payment(self._world, payment, moment, zone=self._message_zone(day))
        if chance > 0.97 and retry_day < self._today:
            moment = self.moment(day + timedelta(days=3))
            daily.bounce_payment(self._world, payment, moment, zone=self._message_zone(day))
            self._pay(account, amount, retry_day, chance=0.5)

    def _enter_payment(self, account: str, amount: Decimal, day: date) -> tuple[Record, datetime]:
        """Schedule a payment for a day; return it with the time at which it is processed."""
        unusual_type = (
            {"payment_type": self._random.choice(OTHER_TYPES)} if self._random.random() < 0.04 else {}
        )
        empty_error = {"error_description": ""} if self._random.random() < 0.3 else {}
        body = self._world.repayment(
            account, amount=amount, status="SCHEDULED", effective_date=day, **unusual_type, **empty_error
        )
        if self._message_zone(day):
            notice = self.moment(day - NOTICE_PERIOD)
            self._world.message("payment.scheduled", dict(body), at=notice, zone=self.zone())
        return self._world.store.require("repayment", body["uuid"]), self.moment(day)

    def _message_zone(self, day: date) -> str | None:
        """The zone of a message about this day, or None: messages are only kept for a year."""
        return self.zone() if day - NOTICE_PERIOD > self._today - YEAR else None

    def _plan_next(self, uuid: str) -> None:
        account = self._world.account(uuid)
        ledger.update_account(account, self._today)
        daily.plan_payment(self._world, account, self.moment(self._today - timedelta(days=1)))
        self._world.store.update(account)

    # Lines

    def _days_between(self, start: date, end: date) -> Iterator[date]:
        """Random days between the payment of this month's bill and the next bill."""
        for _ in range(self._random.randint(2, 6)):
            yield start + timedelta(days=self._random.randint(DAYS_TO_BILL_PAID, (end - start).days - 1))

    def _pay_bill(self, uuid: str, billed: date, *, pays: bool) -> None:
        due = self._world.account(uuid).body["payment_amount_due"]
        if pays and due > 0 and billed + timedelta(days=DAYS_TO_PAY) < self._today:
            day = billed + timedelta(days=self._random.randint(3, DAYS_TO_BILL_PAID))
            self._pay(uuid, due, day, chance=self._random.random())

    def _use_line(self, uuid: str, day: date, *, pays: bool) -> None:
        """Draw money, make a payment, or do nothing."""
        line = self._world.account(uuid)
        balance, limit = line.body["principal_balance"], line.body["credit_limit"]
        if balance < limit * Decimal("0.6") and self._random.random() < 0.5:
            self._draw_on_line(line, money(limit * self._random.randint(2, 12) / 100), day)
        elif pays and balance > 0:
            share = Decimal(self._random.randint(3, 15)) / 100
            self._pay(uuid, money(balance * share), day, chance=self._random.random())

    def _draw_on_line(self, line: Record, amount: Decimal, day: date) -> None:
        ledger.draw_on_line(line, amount, day, self._random.choice(LINE_NOTES))
        self._world.store.update(line)

    def _make_busy_month(self, uuid: str, start: date, end: date) -> None:
        """Make enough small purchases to fill a three-page statement."""
        line = self._world.account(uuid)
        step = Decimal((end - start).days - 1) / BUSY_MONTH_DRAWS
        for index in range(BUSY_MONTH_DRAWS):
            day = start + timedelta(days=1 + int(index * step))
            self._draw_on_line(line, money(Decimal(self._random.randint(450, 18_000)) / 100), day)

    def _bill_line(self, uuid: str, day: date) -> None:
        line = self._world.account(uuid)
        self._world.keep_statement(line, ledger.bill_line(line, day))
