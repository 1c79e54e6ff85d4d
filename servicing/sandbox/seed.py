"""A believable demo portfolio, deterministic for each start date. Hides its contents.

Dates count back from the service's date, so that the portfolio always looks current.
"""

import unicodedata
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from servicing.sandbox import amortization, daily, ledger, names, shapes
from servicing.sandbox.checks import ENTITIES, TITLES
from servicing.sandbox.clock import stamp
from servicing.sandbox.daily import PaymentOutcome
from servicing.sandbox.history import History
from servicing.sandbox.shapes import Wire
from servicing.sandbox.store import Record
from servicing.sandbox.world import ZONES, World

SEED = 20_240_229
BUSINESSES = 68
INDIVIDUALS = 12
MESSAGES = 3_000

# Installments, months since opening, installments missed, shape.
LOANS = (
    (12, 0, 0, "snake"),
    (360, 0, 0, "pascal"),
    (0, 0, 0, "snake"),
    (12, 5, 0, "pascal"),
    (360, 40, 0, "snake"),
    (0, 9, 0, "snake"),
    (12, 8, 2, "snake"),
    (360, 31, 1, "pascal"),
    (36, 14, 0, "snake"),
    (60, 22, 0, "pascal"),
    (24, 7, 3, "snake"),
    (12, 11, 0, "snake"),
)
LOAN_COUNT = 46
# Statements, unpaid bills, busy months.
LINES = (
    (0, 0, False),
    (1, 0, False),
    (30, 0, False),
    (3, 0, True),
    (12, 1, False),
    (24, 0, False),
    (6, 2, False),
    (18, 4, False),
    (9, 0, False),
    (14, 0, False),
)
LINE_COUNT = 44
OVERPAID_LINE = 20

# Unusual accounts, by their number in order of creation.
FROZEN_LINE = 5
PARTLY_PAID_LOAN = 6
CURED_LOAN = 18
LOAN_TO_BE_CURED = 19
UNDATED_LOAN = 8
PAID_OFF_LOAN = 11
RETURNED_LOAN = 20
UNKNOWN_LATE_LOAN = 42
CONTRADICTORY_LOAN = 43
LOAN_STATUSES = {PAID_OFF_LOAN: "PAID_OFF", 22: "CHARGED_OFF", 30: "FORBEARANCE", 34: "CLOSED"}

# Payments around the last day of the seeded past: kind and number of the account, days before the last one, and the
# payment's outcome. A past due loan pays a day after it, so a promise for tomorrow can be kept.
LAST_PAYMENTS: tuple[tuple[str, int, int, PaymentOutcome], ...] = (
    ("line", 39, 5, "return"),
    ("line", 15, 0, "succeed"),
    ("line", 28, 0, "succeed"),
    ("loan", 33, 0, "fail"),
    ("loan", 10, -1, "succeed"),
)
# Profile changes: the number of a business, and days before the last one.
LAST_CHANGES = ((23, 6), (40, 4), (12, 2), (31, 1))


def seed(world: World, *, days_ago: int = 0) -> None:
    """Fill an empty store with the demo portfolio as of this many days ago; a store with data stays unchanged.

    Once the days have passed, the last one has at least two successful payments and a failed one.
    """
    if not world.store.is_empty():
        return
    random = Random(SEED)
    with world.store.write_transaction():
        world.clock.pass_days(-days_ago)
        Portfolio(World(world.store, world.clock, random=random), random, days_ago).fill()


class Portfolio:
    """The borrowers of the demo and their accounts, from one source of randomness."""

    def __init__(self, world: World, random: Random, days_left: int) -> None:
        self._world = world
        self._random = random
        self._today = world.clock.today()
        self._days_left = days_left
        self._history = History(world, random)
        self._phones: set[str] = set()

    def fill(self) -> None:
        """Create borrowers, loans, lines, applications and messages."""
        businesses = [self._add_business(number) for number in range(BUSINESSES)]
        individuals = [self._add_individual(number) for number in range(INDIVIDUALS)]
        borrowers = businesses + individuals
        loans = [
            self._add_loan(self._random.choice(borrowers), *LOANS[number % len(LOANS)], number=number)
            for number in range(LOAN_COUNT)
        ]
        lines = [
            self._add_line(businesses[number], *LINES[number % len(LINES)], number=number)
            for number in range(LINE_COUNT)
        ]
        self._add_applications(businesses)
        self._add_exceptions(loans, lines)
        for number in names.LONG_NAMES:
            self._add_new_loan(businesses[number])
        if self._days_left:
            self._arrange_last_days({"loan": loans, "line": lines}, businesses)
        self._add_user_messages(borrowers)

    # Borrowers

    def _add_business(self, number: int) -> Wire:
        name, entity = self._business_name(number)
        place = self._choose_place(number)
        founded = self._today - timedelta(days=self._random.randint(200, 14_000))
        people = [self._person_fields(place) for _ in range(self._random.choice((1, 1, 2, 2, 3, 4)))]
        return self._world.borrower(
            first_name=name,
            entity=entity,
            email=f"office@{_slug(name)}.example",
            phone=self._phone(place),
            address=self._address(place),
            start_date=founded.isoformat(),
            EIN=self._digits(),
            website=f"https://www.{_slug(name)}.example" if number % 4 == 0 else None,
            industry=self._random.choice(names.INDUSTRIES) if number % 3 == 0 else None,
            provider_customer_url=self._provider_url() if number % 5 == 0 else None,
            key_people=people,
        )

    def _business_name(self, number: int) -> tuple[str, str]:
        if number < len(names.UNUSUAL_BUSINESSES):
            return names.UNUSUAL_BUSINESSES[number]
        entity = ENTITIES[number % len(ENTITIES)]
        trade = names.TRADES[number % len(names.TRADES)]
        owner, partner = self._random.sample(names.LAST_NAMES, 2)
        place = names.BUSINESS_PLACES[number % len(names.BUSINESS_PLACES)]
        usual_name = {
            "SOLE_PROPRIETORSHIP": f"{owner} {trade}",
            "GENERAL_PARTNERSHIP": f"{owner} & {partner} {trade}",
            "LIMITED_PARTNERSHIP": f"{place} {trade} LP",
            "CORPORATION": f"{place} {trade} Inc.",
            "LIMITED_LIABILITY_COMPANY": f"{owner} {trade} LLC",
            "LIMITED_LIABILITY_PARTNERSHIP": f"{owner} and {partner} LLP",
        }[entity]
        return names.LONG_NAMES.get(number, usual_name), entity

    def _add_individual(self, number: int) -> Wire:
        place = self._choose_place(number * 5)
        person = self._person_fields(place)
        del person["title"]
        person["provider_customer_url"] = self._provider_url() if number % 3 == 0 else None
        return self._world.individual(**person, user_type=None if number % 4 == 3 else "PERSON")

    def _person_fields(self, place: tuple[str, ...]) -> dict[str, Any]:
        first, middle = self._random.sample(names.FIRST_NAMES, 2)
        last = self._random.choice(names.LAST_NAMES)
        birthday = self._today - timedelta(days=self._random.randint(8_000, 27_000))
        address = {name: text for name, text in self._address(place).items() if text is not None}
        return {
            "first_name": first,
            "middle_name": self._random.choice((None, None, middle, middle[0])),
            "last_name": last,
            "title": self._random.choice(TITLES),
            "citizenship": self._random.choice(("US",) * 12 + ("CA", "MX", "IN", "DE")),
            "email": f"{_slug(first)}.{_slug(last)}@example.com",
            "phone": self._phone(place),
            "address": address,
            "dob": f"{birthday:%Y/%m/%d}",
            "ssn": self._digits(),
        }

    def _choose_place(self, number: int) -> tuple[str, ...]:
        return names.CITIES[number % len(names.CITIES)]

    def _address(self, place: tuple[str, ...]) -> Wire:
        city, state, zip_code, _ = place
        return shapes.address(
            line_1=f"{self._random.randint(1, 9900)} {self._random.choice(names.STREETS)}",
            line_2=self._random.choice((None, None, f"Suite {self._random.randint(100, 990)}")),
            zip=zip_code + self._random.choice(("", "", f"-{self._random.randint(1000, 9999)}")),
            city=city,
            state=state,
            country="UNITED STATES",
        )

    def _phone(self, place: tuple[str, ...]) -> str:
        """An unused phone number from the range reserved for fiction."""
        while True:
            phone = f"{place[3]}55501{self._random.randint(0, 99):02}"
            if phone not in self._phones:
                self._phones.add(phone)
                return phone

    def _digits(self) -> str:
        return f"{self._random.randint(100_000_000, 999_999_999)}"

    def _provider_url(self) -> str:
        return f"https://payments.example/customers/{self._random.getrandbits(48):012x}"

    # Loans and lines

    def _add_loan(
        self, borrower: Wire, installments: int, months: int, missed: int, shape: str, *, number: int
    ) -> str:
        """Create a loan with its payments, and return its uuid."""
        opened = amortization.add_months(self._today - timedelta(days=self._days_into_month()), -months)
        amount = Decimal(self._random.randint(8, 400) * 500)
        rate = Decimal(self._random.randint(20, 60)) / 4
        extra_fields = {} if number % 3 else self._usually_null_fields(amount, rate, installments)
        loan = self._world.loan(
            borrower["uuid"],
            amount=amount,
            interest_rate=rate,
            installments=installments,
            shape=shape,
            opened=opened,
            origination_fee=amortization.money(amount / 100),
            apr=rate + Decimal("0.625"),
            autopay_enabled=missed == 0,
            servicing_committed_at=self._stamp(opened),
            **extra_fields,
        )
        self._history.of_loan(loan["uuid"], paid=max(months - missed, 0))
        return str(loan["uuid"])

    def _days_into_month(self) -> int:
        """How many days ago an account's month began. No month ends on the last day, which has its own payments."""
        days = self._random.randint(2, 26)
        return days - 4 if self._days_left and days + self._days_left in range(28, 32) else days

    def _usually_null_fields(self, amount: Decimal, rate: Decimal, installments: int) -> Wire:
        """Fields that the service usually leaves null."""
        rows = amortization.schedule(amount, rate, installments, opened=self._today)
        interest = sum((row.interest for row in rows), amortization.ZERO)
        return {
            "external_id": f"LN-{self._random.randint(10_000, 99_999)}",
            "risk_grade": self._random.choice("ABC"),
            "finance_charge": amortization.money(interest + amount / 100),
            "total_repayment_amount": amortization.money(amount + interest),
            "interest_amount": amortization.money(interest),
        }

    def _add_line(self, borrower: Wire, statements: int, unpaid: int, busy: bool, *, number: int) -> str:
        """Create a line with its statements and payments, and return its uuid."""
        opened = amortization.add_months(self._today - timedelta(days=self._days_into_month()), -statements)
        line = self._world.line(
            borrower["uuid"],
            limit=self._random.randint(4, 100) * 1_000,
            rate=Decimal(self._random.randint(899, 2499)) / 100,
            opened=opened,
            autopay=unpaid == 0,
            product="LOC" if number % 4 else "BUILD_CREDIT",
        )
        self._history.of_line(line["uuid"], opened=opened, statements=statements, unpaid=unpaid, busy=busy)
        if number == OVERPAID_LINE:
            self._history.overpay(line["uuid"], Decimal("40.00"))
        return str(line["uuid"])

    def _add_exceptions(self, loans: list[str], lines: list[str]) -> None:
        """Make some accounts unusual: frozen, partly paid, cured, returned, without due dates, or of another status."""
        self._world.freeze(lines[FROZEN_LINE])
        self._pay_installment(loans[PARTLY_PAID_LOAN], part=Decimal("0.4"), days_ago=5)
        for days in (4, 3):
            self._pay_installment(loans[CURED_LOAN], days_ago=days)
        self._pay_installment(loans[LOAN_TO_BE_CURED], days_ago=-1)
        self._world.hide_due_dates(loans[UNDATED_LOAN], start=20)
        self._world.hide_due_dates(loans[UNKNOWN_LATE_LOAN], start=7)
        missed = ledger.next_installment(self._world.account(loans[CONTRADICTORY_LOAN]))
        if missed:  # Part of it was paid on its due date, so the schedule and the repayments disagree.
            days_ago = (self._today - missed.due).days
            self._pay_installment(loans[CONTRADICTORY_LOAN], part=Decimal("0.5"), days_ago=days_ago)
        payment = self._pay_installment(loans[RETURNED_LOAN], days_ago=4)
        yesterday = self._history.moment(self._today - timedelta(days=1))
        daily.bounce_payment(
            self._world, self._world.store.require("repayment", payment), yesterday, reason="R01"
        )
        self._pay_installment(loans[PAID_OFF_LOAN], days_ago=2)
        for number, status in LOAN_STATUSES.items():
            self._world.amend(loans[number], status=status)

    def _add_new_loan(self, borrower: Wire) -> None:
        """Create a loan that was boarded in an unusual time zone and is due in a month."""
        day = self._today - timedelta(days=3)
        boarded = stamp(self._history.moment(day).astimezone(ZONES["IST"]), "IST")
        loan = self._world.loan(
            borrower["uuid"], amount=18_000, installments=36, opened=day, servicing_committed_at=boarded
        )
        self._history.of_loan(loan["uuid"], paid=0)

    def _arrange_last_days(self, accounts: dict[str, list[str]], businesses: list[Wire]) -> None:
        """Schedule the events of the last days."""
        last_day = self._today + timedelta(days=self._days_left)
        for kind, number, days_before, outcome in LAST_PAYMENTS:
            account = self._world.account(accounts[kind][number])
            row = ledger.next_installment(account) if kind == "loan" else None
            amount = row.total if row else amortization.money(account.body["credit_limit"] / 50)
            day = last_day - timedelta(days=days_before)
            payment = self._world.repayment(
                account.uuid, amount=amount, status="SCHEDULED", effective_date=day
            )
            record = self._world.store.require("repayment", payment["uuid"])
            record.private["outcome"] = outcome
            self._world.store.update(record)
        for number, days_before in LAST_CHANGES:
            user = self._world.store.require("user", businesses[number]["uuid"])
            user.private |= ledger.due_on_field(last_day - timedelta(days=days_before))
            self._world.store.update(user)

    def _pay_installment(self, loan: str, *, part: Decimal = Decimal(1), days_ago: int) -> str:
        """Pay the oldest unpaid installment of a loan or a part of it; return the payment's uuid.

        A future payment is scheduled.
        """
        account, day = self._world.account(loan), self._today - timedelta(days=days_ago)
        row = ledger.next_installment(account)
        if row is None:
            raise ValueError(f"Loan {loan} has no unpaid installment.")
        payment = (
            account.private["planned"]
            or self._world.repayment(loan, amount=row.total * part, status="SCHEDULED", effective_date=day)[
                "uuid"
            ]
        )
        self._world.amend(payment, effective_date=day.isoformat(), payment_type="SINGLE_PAYMENT")
        if days_ago >= 0:
            self._world.settle_payment(payment, at=self._history.moment(day))
            account = self._world.account(loan)  # As of the payment's day; lateness is as of today.
            ledger.update_account(account, self._today)
            self._world.store.update(account)
        return str(payment)

    # Applications

    def _add_applications(self, businesses: list[Wire]) -> None:
        """Create applications with every kind of answer: rejected, one to four offers, details of various shapes."""
        self._add_line_application(businesses[1], "750000.00", purpose="Expansion")
        self._add_comparable_offers(businesses[2])
        for number, borrower in enumerate(businesses[3:16]):
            amount = self._random.choice((800, 2_500, 7_500, 12_000, 18_000, 30_000))
            extra_fields = {
                "purpose": self._random.choice(names.PURPOSES),
                "credit_report_id": 88_000 + number,
            }
            self._add_line_application(borrower, amount, **(extra_fields if number % 2 else {}))
        self._add_line_application(
            businesses[16], 5_000, details=["Statements of two banks were read.", "No liens."]
        )
        self._add_line_application(
            businesses[17], 9_000, details={"reviewed": True, "score": 712}, credit_score_consent=False
        )
        for borrower, amount in zip(
            businesses[20:25], (25_000, 1_500, 6_000_000, 140_000, 40_000), strict=True
        ):
            created_at = stamp(self._history.moment(self._random_day()))
            self._world.loan_application(borrower["uuid"], amount=amount, created_at=created_at)

    def _add_line_application(self, borrower: Wire, amount: int | str, **overrides: Any) -> Record:
        """Create a past application for a line, whose offers start in the same week."""
        day = self._random_day()
        created_at = stamp(self._history.moment(day))
        application = self._world.line_application(
            borrower["uuid"], amount=amount, created_at=created_at, **overrides
        )
        record = self._world.store.require("line_application", application["uuid"])
        for offer in record.body["offers"]:
            offer["start_date"] = (day + timedelta(days=3)).isoformat()
        self._world.store.update(record)
        return record

    def _add_comparable_offers(self, borrower: Wire) -> None:
        """Create four offers, two of them with figures that are usually null."""
        record = self._add_line_application(borrower, 25_000, term=36, purpose="Equipment")
        for offer in record.body["offers"][1:3]:
            months, start = offer["term"], date.fromisoformat(offer["start_date"])
            payment = amortization.level_payment(offer["amount"], offer["interest_rate"], months)
            offer["installment"] = payment
            offer["interest_amount"] = payment * months - offer["amount"]
            offer["maturity_date"] = amortization.add_months(start, months).isoformat()
            offer["explanation"] = "Priced for twelve months of steady deposits."
        self._world.store.update(record)

    # Messages and times

    def _add_user_messages(self, users: list[Wire]) -> None:
        """Create messages about users until there are ``MESSAGES`` in all."""
        total, _ = self._world.store.messages(start=None, end=None, event=None, skip=0, limit=0)
        for _ in range(MESSAGES - total):
            user = self._random.choice(users)
            status = "FAILED" if self._random.random() < 0.1 else "SUCCESS"
            at = self._history.moment(self._random_day())
            self._world.report_user(user, at=at, status=status, zone=self._history.zone())

    def _random_day(self) -> date:
        return self._today - timedelta(days=self._random.randint(1, 360))

    def _stamp(self, day: date) -> str:
        """A time on this day, in a random zone."""
        zone = self._history.zone()
        return stamp(self._history.moment(day).astimezone(ZONES[zone]), zone)


def _slug(name: str) -> str:
    """The letters and digits of a name without accents, for a domain name."""
    plain = unicodedata.normalize("NFKD", name.lower())
    return "".join(sign for sign in plain if sign.isascii() and sign.isalnum())[:40]
