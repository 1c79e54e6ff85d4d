"""What the page counts is what the service has, whichever filters are on together and whatever offsets count."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.core.management import call_command

from portal.accounts.roles import Role
from portal.messaging import query
from portal.messaging.models import BankAccount
from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from servicing.sandbox.world import SERVICE_ZONE
from tests import given
from tests.conftest import browser_of, htmx

NEWEST = datetime(2026, 11, 20, 18, tzinfo=UTC)
DAYS = [date(2026, 11, 5) + timedelta(days=number) for number in range(17)]
EVENTS = ["payment.succeeded", "payment.failed", "payment.scheduled", "user.updated"]
STATUSES = ["SUCCESS", "FAILED", "PENDING"]
PRODUCTS = ["LOAN", "LOC", "BUILD_CREDIT"]
PAYMENTS = ["SUCCEEDED", "FAILED", "SCHEDULED"]
NOTES = ["Ångström Bridge", "plain paper", 'a "b" <c> & paper']
WORDS = {"angstrom": NOTES[:1], "PAPER": NOTES[1:], '"plain paper"': NOTES[1:2], "bridge ström": NOTES[:1]}
MILLION = {"FEW": 8, "MANY": 30, "PROBED": 10, "COMMON_FOR_PAGES": 3, "COMMON_FOR_COUNTS": 6}
"""Eighty messages are asked for as a million are."""
ZONES = ["US/Pacific", "PST", ""]


@dataclass(frozen=True)
class SentMessage:
    """A message as the service has it."""

    at: datetime
    event: str
    status: str
    product: str
    payment: str
    amount: int
    note: str
    number: int

    @property
    def day(self) -> date:
        return self.at.astimezone(SERVICE_ZONE).date()

    @property
    def bank(self) -> str:
        return f"bank-{self.number % 4}"

    @property
    def is_linked(self) -> bool:
        """By its payment, or by what staff said of its bank account."""
        return self.number == 5 or self.bank == "bank-1"

    @property
    def payload(self) -> dict[str, Any]:
        told = {"uuid": f"p-{self.number}", "product": self.product, "status": self.payment}
        nested = {"note": self.note, "sums": [self.amount]}
        return told | {"amount": self.amount, "borrower_bank_account_uuid": self.bank, "nested": nested}


class Filter(NamedTuple):
    """What is asked for, and which messages it leaves."""

    asked: dict[str, Any]
    leaves: Callable[[SentMessage], bool]


def any_message(chance: Random, number: int) -> SentMessage:
    return SentMessage(
        at=NEWEST - timedelta(minutes=chance.randrange(15 * 24 * 60)),
        event=chance.choice(EVENTS),
        status=chance.choice(STATUSES),
        product=chance.choice(PRODUCTS),
        payment=chance.choice(PAYMENTS),
        amount=chance.randrange(100),
        note=chance.choice(NOTES),
        number=number,
    )


def filters(chance: Random, borrower: str, sample: SentMessage) -> list[Filter]:
    """One of each kind: three that the service applies, and all that are applied here."""
    first, last = sorted(chance.choices(DAYS, k=2))
    event = chance.choice(EVENTS)
    events, statuses, products, payments = (
        chance.sample(values, 2) for values in (EVENTS, STATUSES, PRODUCTS, PAYMENTS)
    )
    least, most = sorted(chance.choices(range(100), k=2))
    word = chance.choice(list(WORDS))
    json = f'{{"payload": {{"amount": {sample.amount}.0, "nested": {{"note": "PLAIN paper"}}}}}}'
    return [
        Filter({"start_date": first}, lambda told: told.day >= first),
        Filter({"end_date": last}, lambda told: told.day <= last),
        Filter({"event": event}, lambda told: told.event == event),
        moments(chance),
        Filter({"event": events}, lambda told: told.event in events),
        Filter({"status": statuses}, lambda told: told.status in statuses),
        Filter({"product": products}, lambda told: told.product in products),
        Filter({"payment": payments}, lambda told: told.payment in payments),
        Filter({"least": f"${least}", "most": most}, lambda told: least <= told.amount <= most),
        Filter({"q": word}, lambda told: told.note in WORDS[word]),
        Filter({"q": json}, lambda told: (told.amount, told.note) == (sample.amount, NOTES[1])),
        Filter({"id": sample.bank}, lambda told: told.bank == sample.bank),
        Filter({"borrower": borrower}, lambda told: told.is_linked),
        Filter({"link": "unlinked"}, lambda told: not told.is_linked),
    ]


def moments(chance: Random) -> Filter:
    """From one time of day until another, that minute included."""
    minutes = sorted(chance.choices(range(15 * 24 * 60), k=2))
    start, end = ((NEWEST - timedelta(minutes=ago)).astimezone(SERVICE_ZONE) for ago in reversed(minutes))
    asked = {f"{name}_date": at.date() for name, at in (("start", start), ("end", end))}
    times = {f"{name}_time": f"{at:%H:%M}" for name, at in (("start", start), ("end", end))}
    return Filter(asked | times, lambda told: start <= told.at < end + timedelta(minutes=1))


def drawn(chance: Random, kinds: list[Filter]) -> list[Filter]:
    """One to three of them that can be on together."""
    chosen: list[Filter] = []
    for one in chance.sample(kinds, chance.randint(1, 3)):
        if not any(one.asked.keys() & other.asked.keys() for other in chosen):
            chosen.append(one)
    return chosen


def known_borrower(service: Sandbox) -> str:
    """One of whom this desk knows a payment, and staff a bank account."""
    borrower = given.borrower(service)
    given.account(Kind.REPAYMENT, borrower, "p-5")
    BankAccount.objects.create(uuid="bank-1", borrower_uuid=borrower.uuid, linked_by="Ana")
    return borrower.uuid


@pytest.mark.parametrize(("service", "sizes"), [("pages", {}), ("rows", MILLION)], indirect=["service"])
def test_fifty_sets_of_filters_count_what_the_service_has(
    service: Sandbox, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in sizes.items():
        monkeypatch.setattr(query, name, size)
    chance = Random(20261121)
    told = [any_message(chance, number) for number in range(80)]
    for one in told:
        zone = chance.choice(ZONES)
        service.world.message(one.event, one.payload, status=one.status, at=one.at, zone=zone)
    borrower = known_borrower(service)
    call_command("sync_messages", verbosity=0)
    browser, counts = browser_of(Role.VIEWER), []
    for _ in range(50):
        chosen = drawn(chance, filters(chance, borrower, chance.choice(told)))
        asked = {name: value for one in chosen for name, value in one.asked.items()}
        counts.append(sum(all(one.leaves(message) for one in chosen) for message in told))
        address = urlencode(asked | {"source": chance.choice(["", "copy"])}, doseq=True)
        page = browser.get(f"/messages/?{address}", headers=htmx("messages")).content.decode()
        assert f'data-announce="{counts[-1]} message' in page, asked
    assert len(set(counts)) > 20
