"""A believable portfolio, the same whenever it is sown on the same day. Hides who is in it.

Dates are counted back from the service's today, so that the portfolio always looks alive.
"""

import unicodedata
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from servicing.sandbox import lending, names, shapes
from servicing.sandbox.checks import ENTITIES, TITLES
from servicing.sandbox.clock import stamp
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


def seed(world: World) -> None:
    """Fill an empty store with the demo portfolio; leave any other alone."""
    if not world.store.is_empty():
        return
    random = Random(SEED)
    with world.store.writing():
        Portfolio(World(world.store, world.clock, random=random), random).sow()


class Portfolio:
    """The demo's borrowers and what they have, from one source of chance."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._today = world.clock.today()
        self._history = History(world, random)
        self._phones: set[str] = set()

    def sow(self) -> None:
        """Borrowers first, then what they asked for, what they owe, and what else was reported."""
        businesses = [self._business(number) for number in range(BUSINESSES)]
        individuals = [self._individual(number) for number in range(INDIVIDUALS)]
        everyone = businesses + individuals
        for number in range(LOAN_COUNT):
            self._loan(self._random.choice(everyone), *LOANS[number % len(LOANS)], number=number)
        for number in range(LINE_COUNT):
            self._line(businesses[number], *LINES[number % len(LINES)], number=number)
        self._applications(businesses)
        self._updates(everyone)

    # Borrowers

    def _business(self, number: int) -> Wire:
        name, entity = self._business_name(number)
        place = self._place(number)
        founded = self._today - timedelta(days=self._random.randint(200, 14_000))
        people = [self._person(place) for _ in range(self._random.choice((1, 1, 2, 2, 3, 4)))]
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
        if number < len(names.NOTED_BUSINESSES):
            return names.NOTED_BUSINESSES[number]
        entity = ENTITIES[number % len(ENTITIES)]
        trade = names.TRADES[number % len(names.TRADES)]
        owner, partner = self._random.sample(names.LAST_NAMES, 2)
        place = names.PLACES_OF_BUSINESS[number % len(names.PLACES_OF_BUSINESS)]
        return {
            "SOLE_PROPRIETORSHIP": f"{owner} {trade}",
            "GENERAL_PARTNERSHIP": f"{owner} & {partner} {trade}",
            "LIMITED_PARTNERSHIP": f"{place} {trade} LP",
            "CORPORATION": f"{place} {trade} Inc.",
            "LIMITED_LIABILITY_COMPANY": f"{owner} {trade} LLC",
            "LIMITED_LIABILITY_PARTNERSHIP": f"{owner} and {partner} LLP",
        }[entity], entity

    def _individual(self, number: int) -> Wire:
        place = self._place(number * 5)
        person = self._person(place)
        del person["title"]
        person["provider_customer_url"] = self._provider_url() if number % 3 == 0 else None
        return self._world.individual(**person, user_type=None if number % 4 == 3 else "PERSON")

    def _person(self, place: tuple[str, ...]) -> dict[str, Any]:
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

    def _place(self, number: int) -> tuple[str, ...]:
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
        """A number from the range that is kept for fiction, given to nobody else here."""
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

    def _loan(
        self, borrower: Wire, installments: int, months: int, missed: int, shape: str, *, number: int
    ) -> None:
        opened = lending.add_months(self._today - timedelta(days=self._random.randint(2, 26)), -months)
        amount = Decimal(self._random.randint(8, 400) * 500)
        rate = Decimal(self._random.randint(20, 60)) / 4
        known = {} if number % 3 else self._known_figures(amount, rate, installments)
        loan = self._world.loan(
            borrower["uuid"],
            amount=amount,
            interest_rate=rate,
            installments=installments,
            shape=shape,
            opened=opened,
            origination_fee=lending.money(amount / 100),
            apr=rate + Decimal("0.625"),
            autopay_enabled=missed == 0,
            servicing_committed_at=self._stamp(opened),
            **known,
        )
        self._history.of_loan(loan["uuid"], paid=max(months - missed, 0))

    def _known_figures(self, amount: Decimal, rate: Decimal, installments: int) -> Wire:
        """What the service sometimes answers and mostly leaves null."""
        rows = lending.schedule(amount, rate, installments, opened=self._today)
        interest = sum((row.interest for row in rows), lending.ZERO)
        return {
            "external_id": f"LN-{self._random.randint(10_000, 99_999)}",
            "risk_grade": self._random.choice("ABC"),
            "finance_charge": lending.money(interest + amount / 100),
            "total_repayment_amount": lending.money(amount + interest),
            "interest_amount": lending.money(interest),
        }

    def _line(self, borrower: Wire, statements: int, unpaid: int, busy: bool, *, number: int) -> None:
        opened = lending.add_months(self._today - timedelta(days=self._random.randint(2, 26)), -statements)
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

    # Applications

    def _applications(self, businesses: list[Wire]) -> None:
        """Every kind of answer: rejected, one to four offers, and details of any shape."""
        self._apply(businesses[1], "750000.00", purpose="Expansion")
        self._compared_offers(businesses[2])
        for number, borrower in enumerate(businesses[3:16]):
            amount = self._random.choice((800, 2_500, 7_500, 12_000, 18_000, 30_000))
            known = {"purpose": self._random.choice(names.PURPOSES), "credit_report_id": 88_000 + number}
            self._apply(borrower, amount, **(known if number % 2 else {}))
        self._apply(businesses[16], 5_000, details=["Statements of two banks were read.", "No liens."])
        self._apply(
            businesses[17], 9_000, details={"reviewed": True, "score": 712}, credit_score_consent=False
        )
        for borrower, amount in zip(
            businesses[20:25], (25_000, 1_500, 6_000_000, 140_000, 40_000), strict=True
        ):
            day = self._some_day()
            self._world.loan_application(borrower["uuid"], amount=amount, created_at=self._stamp(day))

    def _apply(self, borrower: Wire, amount: int | str, **overrides: Any) -> Record:
        """An application for a line some time ago; its offers start the same week."""
        day = self._some_day()
        application = self._world.line_application(
            borrower["uuid"], amount=amount, created_at=self._stamp(day), **overrides
        )
        record = self._world.store.require("line_application", application["uuid"])
        for offer in record.body["offers"]:
            offer["start_date"] = (day + timedelta(days=3)).isoformat()
        self._world.store.update(record)
        return record

    def _compared_offers(self, borrower: Wire) -> None:
        """Four offers, two of them with the figures that are otherwise null."""
        record = self._apply(borrower, 25_000, term=36, purpose="Equipment")
        for offer in record.body["offers"][1:3]:
            months, start = offer["term"], date.fromisoformat(offer["start_date"])
            payment = lending.level_payment(offer["amount"], offer["interest_rate"], months)
            offer["installment"] = payment
            offer["interest_amount"] = payment * months - offer["amount"]
            offer["maturity_date"] = lending.add_months(start, months).isoformat()
            offer["explanation"] = "Priced for twelve months of steady deposits."
        self._world.store.update(record)

    # Messages and times

    def _updates(self, users: list[Wire]) -> None:
        """Other events than payments, until there are as many messages as promised."""
        total, _ = self._world.store.messages(start=None, end=None, event=None, skip=0, limit=0)
        for _ in range(MESSAGES - total):
            user = self._random.choice(users)
            payload = {name: user[name] for name in ("uuid", "email", "phone")}
            status = "FAILED" if self._random.random() < 0.1 else "SUCCESS"
            at = self._history.moment(self._some_day())
            self._world.message("user.updated", payload, at=at, status=status, zone=self._history.zone())

    def _some_day(self) -> date:
        return self._today - timedelta(days=self._random.randint(1, 360))

    def _stamp(self, day: date) -> str:
        zone = self._history.zone()
        return stamp(self._history.moment(day).astimezone(ZONES[zone]), zone)


def _slug(name: str) -> str:
    """The letters and figures of a name, without their accents, for an address."""
    plain = unicodedata.normalize("NFKD", name.lower())
    return "".join(sign for sign in plain if sign.isascii() and sign.isalnum())[:40]
