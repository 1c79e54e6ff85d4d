"""The IDs in a sandbox, as a lender's own records would list them. Hides how labels are written."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from servicing.sandbox.shapes import Wire
from servicing.sandbox.world import World

COLUMNS = ("kind", "uuid", "borrower_uuid", "label")
IdRow = tuple[str, str, str, str]


def list_ids(world: World) -> Iterator[IdRow]:
    """One row for each record that the interface can read; loan applications are not among them.

    The newest loan comes first: lists begin with what was added last, so they end with the long names of new loans.
    """
    for user in world.users():
        yield "borrower", user["uuid"], user["uuid"], _name(user)
        for person in user.get("key_people", ()):
            yield "key_person", person["uuid"], user["uuid"], f"{_name(person)}, {person['title'].lower()}"
    for record in world.store.all("line_application"):
        label = f"Application for {_dollars(record.body['amount'])}, {_day(record.body['created_at'][:10])}"
        yield "application", record.uuid, record.owner, label
    for record in sorted(world.store.all("loan"), key=lambda loan: loan.body["opening_date"], reverse=True):
        label = f"Loan of {_dollars(record.body['amount'])}, opened {_day(record.body['opening_date'])}"
        yield "loan", record.uuid, record.owner, label
    for record in world.store.all("line"):
        label = f"Line of {_dollars(record.body['credit_limit'])}"
        yield "line", record.uuid, record.owner, label


def _name(person: Wire) -> str:
    parts = (person["first_name"], person["middle_name"], person["last_name"])
    return " ".join(part for part in parts if part)


def _day(text: str) -> str:
    return f"{date.fromisoformat(text):%b %-d, %Y}"


def _dollars(amount: Decimal) -> str:
    return f"${amount:,.2f}"
