"""Invents borrowers, each with two people and a loan, some also with a line, a repayment or an application.

The rows are those that the portal would store, but built directly: decoding and saving each answer takes ten times as
long. A test compares every column with what the portal stores.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from portal.core.business_date import business_date_at
from portal.core.folding import folded_key
from portal.records.figures import FIGURE_COLUMNS
from portal.records.models import Source
from portal.records.rollup import DECIDED, OPEN
from servicing import rules
from servicing.figures import FOREVER

split_words = str.split
FIRST: Final = split_words(
    "Northwind Cedar Harbor Summit Prairie Granite River Copper Atlas Beacon Juniper Falcon"
)
TRADES: Final = split_words(
    "Baking Farms Logistics Plumbing Design Foods Motors Dental Printing Roofing Textiles"
)
FORMS: Final = [
    ("LLC", "LIMITED_LIABILITY_COMPANY"),
    ("Inc", "CORPORATION"),
    ("and Sons", "SOLE_PROPRIETORSHIP"),
    ("Partners", "GENERAL_PARTNERSHIP"),
]
GIVEN_NAMES: Final = split_words(
    "Ana Luis Maria John Priya Elena Omar Grace David Ivan Chloe Noah Aisha Peter Lena Marco Ruth Kofi "
    "Ingrid Tomas Yuki Sara Felix Nadia Hugo Mina Paul Vera Dylan Rosa"
)
FAMILY_NAMES: Final = split_words(
    "Ortiz Smith Nguyen Garcia Patel Kim Brown Lopez Chen Davis Silva Lindqvist Okafor Rossi Novak Haddad "
    "Fischer Moreau Tanaka Walsh Petrov Jensen Costa Ibrahim Kowalski Reyes Singh Berg Marino Dubois"
)
PLACES: Final = [
    ("Austin", "TX", "78701"),
    ("Denver", "CO", "80202"),
    ("Boston", "MA", "02108"),
    ("Miami", "FL", "33101"),
    ("Seattle", "WA", "98101"),
    ("Chicago", "IL", "60601"),
    ("Eugene", "OR", "97401"),
]
LOAN_STATUSES: Final = ["ACTIVE"] * 8 + ["CLOSED", "CHARGED_OFF"]
REPAYMENT_STATUSES: Final = ["SUCCEEDED"] * 8 + ["SCHEDULED", "FAILED"]
INSTALLMENT: Final = "1052.20"
PRODUCTS: Final = ["LOAN", "LINE_OF_CREDIT"]
DEFAULTS: Final[dict[str, Any]] = {
    **dict.fromkeys(["kind", "uuid", "borrower_uuid", "label", "search_text"], ""),
    **dict.fromkeys(["answer_at", "answer_day", "checked_at", "created_at", "updated_at"]),
    "created_by": "",
    **dict.fromkeys(["product", "status", "state"], ""),
    **dict.fromkeys(["amount", "rate", *FIGURE_COLUMNS]),
    "is_past_due": False,
    "needs_check": False,
}
"""The columns that get a value; the others have database defaults."""
COLUMNS: Final = list(DEFAULTS)
NAMED_COLUMNS: Final = [
    *("uuid", "answer_at", "answer_day", "checked_at", "created_at", "updated_at", "created_by"),
    *("name", "state", "city", "phone", "email", "folded_name", "search_text"),
]
BORROWER_COLUMNS: Final = [
    *NAMED_COLUMNS,
    *("type", "legal_form", "past_due", "past_due_rank", "is_past_due"),
    *("oldest_unpaid_on", "days_past_due", "decision"),
]
PERSON_COLUMNS: Final = [*NAMED_COLUMNS, "borrower_uuid", "title"]
APPLICATION_COLUMNS: Final = [
    *("uuid", "answer_at", "answer_day", "checked_at", "created_at", "updated_at", "created_by"),
    *(
        "borrower_uuid",
        "owner_confirmed",
        "label",
        "product",
        "decision",
        "amount",
        "submitted_at",
        "search_text",
    ),
]
ANSWER_COLUMNS: Final = (
    *("kind", "uuid", "operation", "source", "failure"),
    *("body", "first_at", "first_on", "last_at", "last_on"),
)
REPAYMENT_COLUMNS: Final = (
    *("uuid", "borrower_uuid", "product", "status", "payment_type", "amount", "effective_on", "has_failed"),
    *("ach_id", "ach_batch_id", "bank_account", "code"),
    *("first_seen_at", "last_listed_at", "last_listed_on", "updated_at", "body"),
)
Row = dict[str, Any]


class Households:
    """Invents borrowers with their people and accounts, always the same ones for a seed."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self._random, self._random_bits = chance.random, chance.getrandbits
        self._now = datetime.now(UTC)
        today = self._now.date()
        self._today = today
        self.repayments: list[list[Any]] = []
        """The values of :data:`REPAYMENT_COLUMNS` for the repayments of all borrowers so far."""
        self._days = [(today + timedelta(days=number)).isoformat() for number in range(-300, 300)]

    def rows(self, number: int) -> Iterator[tuple[Row, list[Any]]]:
        """Yield the row, and the values of :data:`ANSWER_COLUMNS`, of a borrower, its people and accounts."""
        moment = self._now - timedelta(seconds=number * 20)
        at = f"{moment:%Y-%m-%d %H:%M:%S}"
        owner, loan = self._uuid(), self._uuid()
        is_late = number % 40 == 0
        people = [self._person(number), self._person(number)]
        accounts = [self._loan(loan, owner, is_late)]
        loan_row = accounts[0]
        position: Row = {
            "past_due_rank": loan_row["past_due_rank"],
            "oldest_unpaid_on": loan_row["oldest_unpaid_due"],
            "is_past_due": loan_row["is_past_due"],
            "days_past_due": None,
            "decision": "",
        }
        is_open = accounts[0]["status"] == "ACTIVE"
        position["past_due"] = accounts[0]["past_due"] if is_open else None
        if number % 2 == 0:
            accounts.append(line := self._line(is_late))
            both = f"{Decimal(line['past_due']) + Decimal(position['past_due'] or 0)}"
            position |= {"past_due": both, "past_due_rank": both if is_late else None}
            position["days_past_due"] = line["days_past_due"] if is_late else None
        if number % 5 == 0:
            self.repayments.append(self._repayment(number, owner, moment))
        if number % 10 == 0:
            accounts.append(application := self._application(number, at))
            position["decision"] = decision if (decision := application["decision"]) in DECIDED else OPEN
        borrower = self._borrower(number, owner, people) | position
        common = DEFAULTS | dict.fromkeys(["answer_at", "checked_at", "created_at", "updated_at"], at)
        common |= {"borrower_uuid": owner, "answer_day": business_date_at(moment).isoformat()}
        for row in (borrower, *people, *accounts):
            is_account = row["kind"] in ("loan", "line")
            figures = {"has_no_schedule_yet": False} if is_account else {}
            times = [at, common["answer_day"], at, common["answer_day"]]
            told = [row["kind"], row["uuid"], "", Source.SERVICE.value, "", row.pop("answer"), *times]
            yield common | row | figures, told

    def _borrower(self, number: int, owner: str, people: list[Row]) -> Row:
        first = self._choose(FIRST)
        form, entity = self._choose(FORMS)
        name = f"{first} {self._choose(TRADES)} {number % 9973} {form}"
        contact, lines, address = self._contact(first, number)
        return contact | {
            "kind": "borrower",
            "uuid": owner,
            "name": name,
            "folded_name": folded_key(name),
            "type": "BUSINESS",
            "legal_form": entity,
            "search_text": _lines(name, *lines, *(person["name"] for person in people)),
            "answer": f'{{"address":{address},"email":"{contact["email"]}","entity":"{entity}","first_name":"{name}",'
            f'"key_people":[{people[0]["answer"]},{people[1]["answer"]}],"phone":"{contact["phone"]}",'
            f'"start_date":"2014-06-02","user_type":"BUSINESS","uuid":"{owner}"}}',
        }

    def _person(self, number: int) -> Row:
        given, family, uuid = self._choose(GIVEN_NAMES), self._choose(FAMILY_NAMES), self._uuid()
        name = f"{given} {family}"
        contact, lines, address = self._contact(family, number)
        return contact | {
            "kind": "key_person",
            "uuid": uuid,
            "name": name,
            "folded_name": folded_key(name),
            "title": "OWNER",
            "search_text": _lines(name, *lines),
            "answer": f'{{"address":{address},"email":"{contact["email"]}","first_name":"{given}",'
            f'"last_name":"{family}","phone":"{contact["phone"]}","title":"OWNER","uuid":"{uuid}"}}',
        }

    def _contact(self, name: str, number: int) -> tuple[Row, list[str], str]:
        """Return the columns of a contact, its lines in the search text, and its address as JSON."""
        city, state, zip_code = self._choose(PLACES)
        email = f"{name}{number}@{city}.example".lower()
        phone = f"{self._between(201, 989)}{self._between(2_000_000, 9_999_999)}"
        address = (
            f'{{"city":"{city}","country":"UNITED STATES","line_1":"{number % 900 + 100} Main Street",'
            f'"state":"{state}","zip":"{zip_code}"}}'
        )
        columns = {"state": state, "city": city, "phone": phone, "email": email}
        return columns, [email, phone, city, zip_code, state, rules.US_STATES[state]], address

    def _loan(self, uuid: str, owner: str, is_late: bool) -> Row:
        status, amount, day = self._choose(LOAN_STATUSES), self._amount(), self._day()
        status, due = (
            ("ACTIVE", self._days[self._between(0, 250)]) if is_late else (status, max(day, str(self._today)))
        )
        rate = self._between(16, 96) / 4
        return {
            "kind": "loan",
            "uuid": uuid,
            "product": "LOAN",
            "status": status,
            "amount": amount,
            "rate": f"{rate}",
            "past_due": INSTALLMENT if is_late else "0.00",
            "past_due_rank": INSTALLMENT if is_late else None,
            "oldest_unpaid_due": due if is_late else None,
            "next_due_on": None if is_late else due,
            "due_amount": None if is_late else INSTALLMENT,
            "remaining": INSTALLMENT,
            "principal": amount,
            "figures_good_through": str(FOREVER) if is_late else due,
            "is_partly_paid": False,
            "is_past_due": is_late,
            "answer": f'{{"amount":{amount},"delinquent":{"true" if is_late else "false"},"installments":['
            f'{{"due_date":"{due}","number":1,"status":"SCHEDULED","total":{INSTALLMENT}}}],"interest_rate":{rate},'
            f'"product":"LOAN","status":"{status}","user_uuid":"{owner}","uuid":"{uuid}"}}',
        }

    def _line(self, is_late: bool) -> Row:
        limit, due = self._amount(), max(self._day(), str(self._today))
        past_due = f"{self._between(50, 900) if is_late else 0}.00"
        return {
            "kind": "line",
            "uuid": self._uuid(),
            "amount": limit,
            "past_due": past_due,
            "past_due_rank": past_due if is_late else None,
            "days_past_due": 12 if is_late else 0,
            "next_due_on": due,
            "due_amount": INSTALLMENT,
            "figures_good_through": due,
            "is_partly_paid": False,
            "is_past_due": is_late,
            "answer": f'{{"credit_limit":{limit},"days_past_due":{12 if is_late else 0},"past_due_balance":{past_due},'
            f'"payment_amount_due":{INSTALLMENT},"payment_due_date":"{due}","statements":[]}}',
        }

    def _repayment(self, number: int, owner: str, moment: datetime) -> list[Any]:
        status, amount, day = self._choose(REPAYMENT_STATUSES), self._amount(), self._day()
        uuid, at = self._uuid(), f"{moment:%Y-%m-%d %H:%M:%S}"
        body = (
            f'{{"ach_id":"ach-{number}","amount":{amount},"effective_date":"{day}","payment_type":"DEBIT",'
            f'"product":"LOAN","status":"{status}","uuid":"{uuid}"}}'
        )
        own = [uuid, owner, "LOAN", status, "DEBIT", amount, day, status == "FAILED", f"ach{number}"]
        return [*own, "", "", "", at, at, business_date_at(moment).isoformat(), at, body]

    def _application(self, number: int, at: str) -> Row:
        decision = "APPROVED" if number % 50 else "PENDING"
        product, amount, uuid = self._choose(PRODUCTS), self._amount(), self._uuid()
        return {
            "kind": "application",
            "uuid": uuid,
            "owner_confirmed": False,
            "product": product,
            "decision": decision,
            "amount": amount,
            "submitted_at": at,
            "answer": f'{{"amount":{amount},"created_at":"{at} UTC","product":"{product}",'
            f'"status":{{"decision":"{decision}"}},"uuid":"{uuid}"}}',
        }

    def _choose(self, values: list[Any]) -> Any:
        return values[int(self._random() * len(values))]

    def _between(self, least: int, end: int) -> int:
        return least + int(self._random() * (end - least))

    def _amount(self) -> str:
        return f"{self._between(1_000, 90_000)}.00"

    def _day(self) -> str:
        return str(self._choose(self._days))

    def _uuid(self) -> str:
        digits = f"{self._random_bits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def _lines(*lines: str) -> str:
    """Return what :func:`search_text` returns for plain texts, starting with the name."""
    return "".join([f"\n{line}" for line in lines]).lower() + "\n"
