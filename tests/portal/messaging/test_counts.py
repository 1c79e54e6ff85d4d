"""The number of messages that the page shows, for random filters and different offset units."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.core.management import call_command

from portal.accounts.roles import Role
from portal.messaging.models import BankAccount
from portal.records.models import Repayment
from servicing.sandbox import Sandbox
from servicing.sandbox.world import SERVICE_ZONE
from tests import given
from tests.conftest import browser_of, htmx

pytestmark = pytest.mark.postgres

NEWEST = datetime(2026, 11, 20, 18, tzinfo=UTC)
DAYS = [date(2026, 11, 5) + timedelta(days=number) for number in range(17)]
EVENTS = ["payment.succeeded", "payment.failed", "payment.scheduled", "user.updated"]
STATUSES = ["SUCCESS", "FAILED", "PENDING"]
PRODUCTS = ["LOAN", "LOC", "BUILD_CREDIT"]
PAYMENTS = ["SUCCEEDED", "FAILED", "SCHEDULED"]
NOTES = ["Ångström Bridge", "plain paper", 'a "b" <c> & paper']
WORDS = {"angstrom": NOTES[:1], "PAPER": NOTES[1:], '"plain paper"': NOTES[1:2], "bridge ström": NOTES[:1]}
ZONES = ["US/Pacific", "PST", ""]


@dataclass(frozen=True)
class SentMessage:
    """A message at the service."""

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
        """Return whether its payment or its bank account is linked to the borrower."""
        return self.number == 5 or self.bank == "bank-1"

    @property
    def payload(self) -> dict[str, Any]:
        fields = {"uuid": f"p-{self.number}", "product": self.product, "status": self.payment}
        nested = {"note": self.note, "sums": [self.amount]}
        return fields | {"amount": self.amount, "borrower_bank_account_uuid": self.bank, "nested": nested}


class Filter(NamedTuple):
    """Query parameters, and the messages that match them."""

    params: dict[str, Any]
    matches: Callable[[SentMessage], bool]


def random_message(rng: Random, number: int) -> SentMessage:
    return SentMessage(
        at=NEWEST - timedelta(minutes=rng.randrange(15 * 24 * 60)),
        event=rng.choice(EVENTS),
        status=rng.choice(STATUSES),
        product=rng.choice(PRODUCTS),
        payment=rng.choice(PAYMENTS),
        amount=rng.randrange(100),
        note=rng.choice(NOTES),
        number=number,
    )


def filters(rng: Random, borrower: str, sample: SentMessage) -> list[Filter]:
    """Return one filter of each kind: the service applies the first three, the portal the others."""
    first, last = sorted(rng.choices(DAYS, k=2))
    event = rng.choice(EVENTS)
    events, statuses, products, payments = (
        rng.sample(values, 2) for values in (EVENTS, STATUSES, PRODUCTS, PAYMENTS)
    )
    least, most = sorted(rng.choices(range(100), k=2))
    word = rng.choice(list(WORDS))
    json = f'{{"payload": {{"amount": {sample.amount}.0, "nested": {{"note": "PLAIN paper"}}}}}}'
    return [
        Filter({"start_date": first}, lambda message: message.day >= first),
        Filter({"end_date": last}, lambda message: message.day <= last),
        Filter({"event": event}, lambda message: message.event == event),
        time_filter(rng),
        Filter({"event": events}, lambda message: message.event in events),
        Filter({"status": statuses}, lambda message: message.status in statuses),
        Filter({"product": products}, lambda message: message.product in products),
        Filter({"payment": payments}, lambda message: message.payment in payments),
        Filter({"least": f"${least}", "most": most}, lambda message: least <= message.amount <= most),
        Filter({"q": word, "start_date": DAYS[0]}, lambda message: message.note in WORDS[word]),
        Filter({"q": f"${sample.amount}.00"}, lambda message: message.amount == sample.amount),
        Filter(
            {"q": json, "start_date": DAYS[0]},
            lambda message: (message.amount, message.note) == (sample.amount, NOTES[1]),
        ),
        Filter({"id": sample.bank}, lambda message: message.bank == sample.bank),
        Filter({"borrower": borrower}, lambda message: message.is_linked),
        Filter({"link": "unlinked"}, lambda message: not message.is_linked),
    ]


def time_filter(rng: Random) -> Filter:
    """Return a filter from one minute to another, including both."""
    minutes = sorted(rng.choices(range(15 * 24 * 60), k=2))
    start, end = ((NEWEST - timedelta(minutes=ago)).astimezone(SERVICE_ZONE) for ago in reversed(minutes))
    params = {f"{name}_date": at.date() for name, at in (("start", start), ("end", end))}
    times = {f"{name}_time": f"{at:%H:%M}" for name, at in (("start", start), ("end", end))}
    return Filter(params | times, lambda message: start <= message.at < end + timedelta(minutes=1))


def pick_filters(rng: Random, kinds: list[Filter]) -> list[Filter]:
    """Pick one to three filters that can be combined."""
    chosen: list[Filter] = []
    for one in rng.sample(kinds, rng.randint(1, 3)):
        if not any(one.params.keys() & other.params.keys() for other in chosen):
            chosen.append(one)
    return chosen


def linked_borrower(service: Sandbox) -> str:
    """Return a borrower with a payment on file and a linked bank account."""
    borrower = given.borrower(service)
    Repayment.objects.create(uuid="p-5", borrower_uuid=borrower.uuid)
    BankAccount.objects.create(uuid="bank-1", borrower_uuid=borrower.uuid, linked_by="Ana")
    return borrower.uuid


@pytest.mark.slow
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
def test_filtered_counts_match_the_service(service: Sandbox) -> None:
    rng = Random(20261121)
    messages = [random_message(rng, number) for number in range(80)]
    for one in messages:
        zone = rng.choice(ZONES)
        service.world.message(one.event, one.payload, status=one.status, at=one.at, zone=zone)
    borrower = linked_borrower(service)
    call_command("sync_messages", verbosity=0)
    browser, counts = browser_of(Role.VIEWER), []
    for _ in range(50):
        chosen = pick_filters(rng, filters(rng, borrower, rng.choice(messages)))
        params = {name: value for one in chosen for name, value in one.params.items()}
        counts.append(sum(all(one.matches(message) for one in chosen) for message in messages))
        address = urlencode(params | {"source": rng.choice(["", "copy"])}, doseq=True)
        page = browser.get(f"/messages/?{address}", headers=htmx("messages")).content.decode()
        assert f'data-announce="{counts[-1]} message' in page, params
    assert len(set(counts)) > 20
