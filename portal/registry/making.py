"""Makes registries of any size: invented businesses with their people and accounts, as if the service had told of them.

Each answer is read as a live one is, then written as a bare row: many times faster than remembering one by one. Hides
how rows get into each database quickly, and that its indexes are made after them.
"""

import random
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

from django.db import connection, transaction

from portal.registry import rows, search_index
from portal.registry.lists import DECIDED, OPEN
from portal.registry.memory import Known, columns, known, text_of, unusual
from portal.registry.models import Kind, Record, Source
from portal.registry.planning import count_anew
from portal.registry.search import search_text
from servicing import Application, Borrower, Loan, Repayment, Statement, codec

BATCH: Final = 5_000
_words = str.split
FIRST: Final = _words(
    "Northwind Cedar Harbor Summit Prairie Granite River Copper Atlas Beacon Juniper Falcon"
)
TRADES: Final = _words("Baking Farms Logistics Plumbing Design Foods Motors Dental Printing Roofing Textiles")
FORMS: Final = [
    ("LLC", "LIMITED_LIABILITY_COMPANY"),
    ("Inc", "CORPORATION"),
    ("and Sons", "SOLE_PROPRIETORSHIP"),
    ("Partners", "GENERAL_PARTNERSHIP"),
]
GIVEN: Final = _words(
    "Ana Luis Maria John Priya Elena Omar Grace David Ivan Chloe Noah Aisha Peter Lena Marco Ruth Kofi "
    "Ingrid Tomas Yuki Sara Felix Nadia Hugo Mina Paul Vera Dylan Rosa"
)
FAMILY: Final = _words(
    "Ortiz Smith Nguyen Garcia Patel Kim Brown Lopez Chen Davis Silva Lindqvist Okafor Rossi Novak Haddad "
    "Fischer Moreau Tanaka Walsh Petrov Jensen Costa Ibrahim Kowalski Reyes Singh Berg Marino Dubois"
)
PLACES: Final = [
    *[
        ("Austin", "TX", "78701"),
        ("Denver", "CO", "80202"),
        ("Boston", "MA", "02108"),
        ("Miami", "FL", "33101"),
    ],
    *[("Seattle", "WA", "98101"), ("Chicago", "IL", "60601"), ("Eugene", "OR", "97401")],
]
# Only some columns follow from an answer, and the database has no defaults of its own.
UNTOLD: Final[dict[str, Any]] = (
    dict.fromkeys(["parent_uuid", "failure", "created_by", "label", "product", "status"], "")
    | dict.fromkeys(["entity", "state", "city", "phone", "email"], "")
    | dict.fromkeys(["amount", "past_due", "due_date", "rate"])
    | {"flagged": False, "source": Source.SERVICE.value}
)
Row = dict[str, Any]


def make(borrowers: int, tell: Callable[[int], object] = lambda made: None) -> None:
    """So many borrowers, each with two people and a loan, every second with a line; some payments and applications."""
    before = Record.objects.count()
    maker = Maker(random.Random(before))  # noqa: S311 - what is invented is no secret
    whole: AbstractContextManager[None] = nullcontext() if before else without_indexes()
    with whole:
        for start in range(0, borrowers, BATCH):
            numbers = range(start, min(start + BATCH, borrowers))
            _write(chain.from_iterable(map(maker.household, numbers)))
            tell(numbers.stop)
    count_anew()


class Maker:
    """Invents households, the same ones for the same chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.now = datetime.now(UTC)

    def household(self, number: int) -> Iterator[Row]:
        """The rows of a borrower and of what belongs to it."""
        at = (self.now - timedelta(seconds=number * 20)).strftime("%Y-%m-%d %H:%M:%S")
        times = dict.fromkeys(["answer_at", "checked_at", "created_at", "updated_at"], at)
        owner = self._uuid()
        people = [_row(item) for item in known(codec.decode(Borrower, self._borrower(number, owner)))]
        accounts = [_row(item) for item in self._accounts(number, owner)]
        people[0] |= _standing(accounts)
        for row in people + accounts:
            yield row | times | {"borrower_uuid": owner}

    def _accounts(self, number: int, owner: str) -> Iterator[Known]:
        is_late = number % 40 == 0
        loan = known(codec.decode(Loan, self._loan(owner, is_late)))[0]
        yield loan
        if number % 2 == 0:
            yield known(codec.decode(Statement, self._line(is_late)), uuid=self._uuid())[0]
        if number % 5 == 0:
            yield known(codec.decode(Repayment, self._repayment(number)), parent_uuid=loan.uuid)[0]
        if number % 10 == 0:
            yield known(codec.decode(Application, self._application(number)))[0]

    def _borrower(self, number: int, owner: str) -> str:
        pick = self.chance.choice
        first, (form, entity) = pick(FIRST), pick(FORMS)
        return (
            f'{{"uuid":"{owner}","user_type":"BUSINESS","entity":"{entity}","start_date":"2014-06-02",'
            f'"first_name":"{first} {pick(TRADES)} {number % 9973} {form}",{self._contact(first, number)},'
            f'"key_people":[{self._person(number)},{self._person(number)}]}}'
        )

    def _person(self, number: int) -> str:
        given, family = self.chance.choice(GIVEN), self.chance.choice(FAMILY)
        return (
            f'{{"uuid":"{self._uuid()}","first_name":"{given}","last_name":"{family}","title":"OWNER",'
            f"{self._contact(family, number)}}}"
        )

    def _contact(self, name: str, number: int) -> str:
        city, state, zip_code = self.chance.choice(PLACES)
        phone = f"{self.chance.randrange(201, 989)}{self.chance.randrange(2_000_000, 9_999_999)}"
        return (
            f'"email":"{name.lower()}{number}@{city.lower()}.example","phone":"{phone}","address":'
            f'{{"line_1":"{number % 900 + 100} Main Street","zip":"{zip_code}","city":"{city}",'
            f'"state":"{state}","country":"UNITED STATES"}}'
        )

    def _loan(self, owner: str, is_late: bool) -> str:
        status = self.chance.choice(["ACTIVE"] * 8 + ["CLOSED", "CHARGED_OFF"])
        return (
            f'{{"uuid":"{self._uuid()}","user_uuid":"{owner}","product":"LOAN","status":"{status}",'
            f'"amount":{self._amount()},"interest_rate":{self.chance.randrange(16, 96) / 4},'
            f'"delinquent":{"true" if is_late else "false"},"installments":[{{"number":1,'
            f'"due_date":"{self._day()}","status":"SCHEDULED","total":1052.20}}]}}'
        )

    def _line(self, is_late: bool) -> str:
        late = self.chance.randrange(50, 900) if is_late else 0
        return (
            f'{{"credit_limit":{self._amount()},"past_due_balance":{late}.00,'
            f'"payment_due_date":"{self._day()}","statements":[]}}'
        )

    def _repayment(self, number: int) -> str:
        status = self.chance.choice(["SUCCEEDED"] * 8 + ["SCHEDULED", "FAILED"])
        return (
            f'{{"uuid":"{self._uuid()}","ach_id":"ach-{number}","product":"LOAN","status":"{status}",'
            f'"payment_type":"DEBIT","amount":{self._amount()},"effective_date":"{self._day()}"}}'
        )

    def _application(self, number: int) -> str:
        decision = "APPROVED" if number % 50 else "PENDING"
        product = self.chance.choice(["LOAN", "LINE_OF_CREDIT"])
        return (
            f'{{"uuid":"{self._uuid()}","product":"{product}","amount":{self._amount()},'
            f'"status":{{"decision":"{decision}"}}}}'
        )

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def _amount(self) -> str:
        return f"{self.chance.randrange(1_000, 90_000)}.00"

    def _day(self) -> str:
        return f"{self.now + timedelta(days=self.chance.randrange(-300, 300)):%Y-%m-%d}"


def _row(item: Known) -> Row:
    assert item.answer is not None  # noqa: S101 - every one was just decoded
    told = UNTOLD | columns(item.answer)
    due = told["due_date"] and str(told["due_date"])
    text = told.get("search_text") or search_text(unusual(item.uuid))
    return (
        told
        | {"kind": item.kind.value, "uuid": item.uuid, "parent_uuid": item.parent_uuid}
        | {"answer": text_of(item.answer)}
        | {"due_date": due, "search_text": text}
    )


def _standing(accounts: list[Row]) -> Row:
    """What the accounts add up to on their borrower's row, as :func:`portal.registry.lists.roll_up` has it."""
    decisions = [row["status"] for row in accounts if row["kind"] == Kind.APPLICATION]
    return {
        "past_due": next((row["past_due"] for row in accounts if row["kind"] == Kind.LINE), None),
        "flagged": any(row["flagged"] for row in accounts if row["kind"] != Kind.REPAYMENT),
        "status": "".join(one if one in DECIDED else OPEN for one in decisions),
    }


def _write(found: Iterable[Row]) -> None:
    """A batch of rows in one transaction."""
    first = next(found := iter(found))
    with transaction.atomic():
        rows.write(list(first), ([row[name] for name in first] for row in chain([first], found)))


@contextmanager
def without_indexes() -> Iterator[None]:
    """The table's indexes are made anew when all rows are there: at once, instead of row by row."""
    with connection.schema_editor() as editor:
        search_index.drop(None, editor)
        made = _indexes()
        for name, _ in made:
            editor.execute(f"DROP INDEX {name}")
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for _, statement in made:
                editor.execute(statement)
            search_index.create(None, editor)


def _indexes() -> list[tuple[str, str]]:
    """Name and statement of each index that no constraint needs."""
    found = {
        "sqlite": "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'registry_record' AND type = 'index'"
        " AND sql IS NOT NULL",
        "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'registry_record'"
        " AND indexname NOT IN (SELECT conname FROM pg_constraint)",
    }
    with connection.cursor() as cursor:
        cursor.execute(found[connection.vendor])
        return list(cursor.fetchall())
