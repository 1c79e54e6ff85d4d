"""What the service does on its own: accounts, payments, statements, messages, and passing days.

Hides how data are stored. Tests, the seed and the command line use it; the interface has no endpoints for it.

Builders return the object of the interface (money as ``Decimal``) with its uuid. ``overrides`` replace fields of that
object, or add fields that the interface does not have. Amounts can be text, int or Decimal.
"""

import uuid as uuids
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from random import Random, SystemRandom
from typing import Any
from zoneinfo import ZoneInfo

from servicing.sandbox import amortization, daily, ledger, shapes
from servicing.sandbox.clock import SERVICE_ZONE, Clock, stamp
from servicing.sandbox.shapes import Wire
from servicing.sandbox.store import Record, Store

Amount = Decimal | int | str

ZONES: dict[str, tzinfo] = {
    "US/Pacific": SERVICE_ZONE,
    "PDT": timezone(timedelta(hours=-7)),
    "PST": timezone(timedelta(hours=-8)),
    "IST": ZoneInfo("Asia/Kolkata"),
    "": SERVICE_ZONE,
}
"""Zone names at the end of timestamps, with the zones they mean."""

PRIVATE_FIELDS = ("EIN", "ssn", "dob", "asset_report_json_gzip", "credit_report_xml_gzip")

ADDRESS = {
    "line_1": "418 Harbor Street",
    "zip": "97401",
    "city": "Eugene",
    "state": "OR",
    "country": "UNITED STATES",
}
PERSON = {
    "first_name": "Maya",
    "last_name": "Lindqvist",
    "title": "OWNER",
    "citizenship": "US",
    "email": "maya.lindqvist@example.com",
    "phone": "5415550142",
    "address": ADDRESS,
}
INDIVIDUAL = {name: value for name, value in PERSON.items() if name != "title"} | {"dob": "1984/03/17"}
BUSINESS = {
    "first_name": "Harbor Street Bakery LLC",
    "email": "office@harborstreetbakery.example",
    "entity": "LIMITED_LIABILITY_COMPANY",
    "phone": "5415550178",
    "address": shapes.address(**ADDRESS),
    "start_date": "2014-06-02",
    "EIN": "930184475",
}


class World:
    """Everything the service does on its own, with one store."""

    def __init__(self, store: Store, clock: Clock, *, random: Random | None = None) -> None:
        self.store = store
        self.clock = clock
        self._random = random or SystemRandom()

    # Borrowers

    def borrower(self, **overrides: Any) -> Wire:
        """Add a business. ``key_people`` is a list of overrides, one per person; ``EIN`` is nine digits."""
        people = overrides.pop("key_people", [{}])
        return self.add_business(BUSINESS | {"key_people": [PERSON | person for person in people]}, overrides)

    def individual(self, **overrides: Any) -> Wire:
        """Add an individual borrower. ``ssn`` is optional; ``user_type=None`` omits that field."""
        values, private = _split_private(INDIVIDUAL | overrides)
        body = shapes.individual_user(self.new_uuid(), **values) | values
        if body["user_type"] is None:
            del body["user_type"]
        self._add("user", body, private=private)
        return body

    def add_business(self, values: Wire, overrides: Wire | None = None) -> Wire:
        """Add a business and its key people from the body of a creation request."""
        values, private = _split_private(values | (overrides or {}))
        people = values.pop("key_people")
        body = shapes.business_user(self.new_uuid(), **values)
        if overrides:
            body |= _split_private(overrides)[0]
        with self.store.write_transaction():
            self._add("user", body, private=private)
            for person in people:
                shown, hidden = _split_private(person)
                shown = shapes.key_person(self.new_uuid(), **shown) | shown
                self._add("key_person", shown, owner=body["uuid"], private=hidden)
        return self.user(body["uuid"])

    def change(self, record: Record, values: Wire) -> None:
        """Apply the body of an update request to a record."""
        shown, hidden = _split_private(values)
        record.body |= shown
        record.private |= hidden
        self.store.update(record)

    def amend(self, uuid: str, **fields: Any) -> None:
        """Replace or add fields in the body of any record."""
        with self.store.write_transaction():
            record = self.store.require_any(uuid)
            record.body |= fields
            self.store.update(record)

    def users(self) -> list[Wire]:
        """Every user, oldest first."""
        return [self._with_people(record) for record in self.store.all("user")]

    def user(self, uuid: str) -> Wire:
        """A user with its key people."""
        return self._with_people(self.store.require("user", uuid))

    def received_ein(self, uuid: str) -> str | None:
        """The decrypted EIN of a user."""
        return self._private(uuid).get("EIN")

    def received_ssn(self, uuid: str) -> str | None:
        """The decrypted SSN of a user or key person."""
        return self._private(uuid).get("ssn")

    def received_dob(self, uuid: str) -> str | None:
        """The date of birth of a user or key person, as sent."""
        return self._private(uuid).get("dob")

    def received_report(self, uuid: str, field: str) -> str | None:
        """A report of a user, as sent: ``asset_report_json_gzip`` or ``credit_report_xml_gzip``."""
        return self._private(uuid).get(field)

    # Applications

    def loan_application(self, borrower_uuid: str, *, amount: Amount, **overrides: Any) -> Wire:
        """Add a loan application, which is decided at once."""
        return self._application("LOAN", borrower_uuid, amount, amortization.MAX_LOAN_DOLLARS, overrides)

    def line_application(self, borrower_uuid: str, *, amount: Amount = "10000.00", **overrides: Any) -> Wire:
        """Add an application for a line of credit, which is decided at once and can be read later."""
        return self._application(
            "BUILD_CREDIT", borrower_uuid, amount, amortization.MAX_LINE_DOLLARS, overrides
        )

    def application(self, uuid: str) -> Wire:
        """A loan or line application."""
        return self._application_record(uuid).body

    def accept_offer(self, application_uuid: str, offer_uuid: str) -> Wire:
        """Turn an offer into a loan or a line with the offer's uuid."""
        record = self._application_record(application_uuid)
        (offer,) = [offer for offer in record.body["offers"] if offer["uuid"] == offer_uuid]
        if record.kind == "line_application":
            return self.line(
                record.owner, uuid=offer_uuid, limit=offer["amount"], rate=offer["interest_rate"]
            )
        fields = ("amount", "interest_rate", "origination_fee", "apr")
        return self.loan(
            record.owner,
            uuid=offer_uuid,
            installments=offer["term"] or 0,
            **{name: offer[name] for name in fields},
        )

    # Loans and lines of credit

    def loan(
        self,
        borrower_uuid: str,
        *,
        amount: Amount = "12000.00",
        interest_rate: Amount = "9.5",
        installments: int = 12,
        shape: str = "snake",
        opened: date | None = None,
        paid: int = 0,
        **overrides: Any,
    ) -> Wire:
        """Add a loan with ``paid`` installments paid; ``opened`` defaults to that many months ago.

        ``shape`` is the shape of the installments, ``snake`` or ``pascal``. ``installments=0`` means an empty list.
        """
        opened = opened or amortization.add_months(self.clock.today(), -paid)
        values = {
            "amount": amortization.money(Decimal(amount)),
            "interest_rate": Decimal(interest_rate),
            "apr": Decimal(interest_rate),
            "term": installments or 12,
            "origination_fee": amortization.ZERO,
            "opening_date": opened.isoformat(),
            "state": self.user(borrower_uuid)["address"]["state"],
            "servicing_committed_at": stamp(self.clock.now()),
        }
        body = shapes.loan(self.new_uuid(), borrower_uuid, **values)
        private = ledger.account_terms(product="LOAN", installments=installments, shape=shape, paid_on=[])
        record = Record(kind="loan", uuid=body["uuid"], owner=borrower_uuid, body=body, private=private)
        rows = ledger.loan_schedule(record)
        private["paid_on"] += [row.due.isoformat() for row in rows[:paid]]
        if rows:
            end_dates = {
                "repayments_end_date": rows[-1].due.isoformat(),
                "maturity_date": rows[-1].due.isoformat(),
            }
            body |= {"repayments_start_date": rows[0].due.isoformat()} | end_dates
        ledger.update_loan(record, self.clock.today())
        return self._add("loan", body | overrides, owner=borrower_uuid, private=private)

    def line(
        self,
        borrower_uuid: str,
        *,
        limit: Amount = "10000.00",
        drawn: Amount = 0,
        rate: Amount = "18.99",
        opened: date | None = None,
        autopay: bool = True,
        product: str = "LOC",
        **overrides: Any,
    ) -> Wire:
        """Add a line of credit; return its statement object (section 2.8) together with its ``uuid``.

        ``product`` is the product of its repayments, ``LOC`` or ``BUILD_CREDIT``.
        """
        self.store.require("user", borrower_uuid)
        today = self.clock.today()
        opened = opened or today
        limit = amortization.money(Decimal(limit))
        body = shapes.line(limit=limit, next_billing_date=amortization.add_months(opened, 1))
        private = ledger.account_terms(
            product=product,
            rate=Decimal(rate),
            autopay=autopay,
            billed_on=opened.isoformat(),
            opening_balance=amortization.ZERO,
            dues=[],
            activity=[],
            **ledger.due_on_field(amortization.add_months(opened, 1)),
        )
        uuid = overrides.pop("uuid", None) or self.new_uuid()
        record = Record(kind="line", uuid=uuid, owner=borrower_uuid, body=body, private=private)
        if Decimal(drawn):
            ledger.draw_on_line(record, amortization.money(Decimal(drawn)), opened)
        body |= overrides
        self.store.insert(record)
        return {"uuid": uuid} | body

    def draw(self, line_uuid: str, amount: Amount) -> None:
        """Draw money from a line."""
        with self.store.write_transaction():
            line = self.store.require("line", line_uuid)
            ledger.draw_on_line(line, amortization.money(Decimal(amount)), self.clock.today())
            self.store.update(line)

    def freeze(self, line_uuid: str) -> None:
        """Freeze a line: nothing is available, whatever is owed."""
        with self.store.write_transaction():
            line = self.store.require("line", line_uuid)
            line.private["is_frozen"] = True
            ledger.update_line(line, self.clock.today())
            self.store.update(line)

    def hide_due_dates(self, loan_uuid: str, *, start: int) -> None:
        """Remove the due dates of a loan's installments from this number on, as for a payment plan under review."""
        with self.store.write_transaction():
            loan = self.store.require("loan", loan_uuid)
            loan.private["undated_from"] = start - 1
            ledger.update_loan(loan, self.clock.today())
            self.store.update(loan)

    def statement(self, line_uuid: str, billing_date: date | str) -> Wire:
        """Add a statement of the activity since the last one, without changing balances. ``url`` is its path."""
        with self.store.write_transaction():
            line = self.store.require("line", line_uuid)
            return self.keep_statement(line, ledger.close_month(line, date.fromisoformat(str(billing_date))))

    def keep_statement(self, line: Record, contents: Wire) -> Wire:
        """Save a billed line and add a statement with these contents."""
        self.store.update(line)
        uuid = self.new_uuid()
        body = {"uuid": uuid, "billing_date": contents["billing_date"], "url": f"/documents/{uuid}.pdf"}
        return self._add("statement", body, owner=line.uuid, private=contents)

    def account(self, uuid: str) -> Record:
        """A loan or a line."""
        return self.store.find("loan", uuid) or self.store.require("line", uuid)

    # Repayments

    def repayment(
        self,
        account_uuid: str,
        *,
        amount: Amount = "250.00",
        status: str = "SUCCEEDED",
        effective_date: date | str | None = None,
        **overrides: Any,
    ) -> Wire:
        """Add a repayment to a loan or a line, without changing balances or recording a message."""
        account = self.account(account_uuid)
        body = shapes.repayment(
            self.new_uuid(),
            product=account.private["product"],
            amount=amortization.money(Decimal(amount)),
            effective_date=effective_date or self.clock.today(),
            status=status,
            borrower_bank_account_uuid=self._bank_account(account.owner),
        )
        waiting = date.fromisoformat(body["effective_date"][:10]) if status == "SCHEDULED" else None
        return self._add(
            "repayment", body | overrides, owner=account_uuid, private=ledger.due_on_field(waiting)
        )

    def settle_payment(self, repayment_uuid: str, *, at: datetime | None = None) -> Wire:
        """Complete a scheduled repayment: credit its account and record ``payment.succeeded``."""
        with self.store.write_transaction():
            payment = self.store.require("repayment", repayment_uuid)
            daily.settle_payment(self, payment, at or self.clock.now())
            return payment.body

    def bounce_payment(self, repayment_uuid: str, reason: str | None = None) -> Wire:
        """Fail a scheduled repayment (``payment.failed``), or return a completed one.

        A return reverses the credit and records ``payment.failed_after_success``.
        """
        with self.store.write_transaction():
            payment = self.store.require("repayment", repayment_uuid)
            daily.bounce_payment(self, payment, self.clock.now(), reason=reason)
            return payment.body

    def advance(self, days: int) -> None:
        """Let days pass: payments succeed or bounce, lines are billed, debt ages."""
        with self.store.write_transaction():
            for _ in range(days):
                daily.pass_day(self)

    # Messages

    def message(
        self,
        event: str,
        payload: Wire,
        *,
        status: str = "SUCCESS",
        at: datetime | None = None,
        zone: str = "US/Pacific",
        uuid: str = "",
    ) -> Wire:
        """Add a webhook message with the time ``at`` (aware; default now), written in one of ``ZONES``."""
        at = at or self.clock.now()
        created_at = stamp(at.astimezone(ZONES[zone]), zone)
        body = shapes.message(
            uuid or self.new_uuid(), event=event, payload=payload, created_at=created_at, status=status
        )
        day = at.astimezone(SERVICE_ZONE).date()
        self.store.add_message(body, at=at.astimezone(UTC).isoformat(), day=day.isoformat())
        return body

    def report_user(
        self, user: Wire, *, at: datetime, status: str = "SUCCESS", zone: str = "US/Pacific"
    ) -> None:
        """Add the message that a user has changed."""
        payload = {name: user[name] for name in ("uuid", "email", "phone")}
        self.message("user.updated", payload, at=at, status=status, zone=zone)

    def messages(self) -> list[Wire]:
        """Every message, newest first."""
        return self.store.messages(start=None, end=None, event=None, skip=0, limit=10**9)[1]

    def replace_message(self, uuid: str, body: Any) -> None:
        """List something else in the place of a message, as a service with a defect does."""
        self.store.replace_message(uuid, body)

    def remove_message(self, uuid: str) -> None:
        """Remove a message from the list."""
        self.store.remove_message(uuid)

    # Internals

    def new_uuid(self) -> str:
        """A random uuid from this world's source of randomness."""
        return str(uuids.UUID(int=self._random.getrandbits(128), version=4))

    def _add(self, kind: str, body: Wire, *, owner: str = "", private: Wire | None = None) -> Wire:
        self.store.insert(Record(kind=kind, uuid=body["uuid"], owner=owner, body=body, private=private or {}))
        return body

    def _with_people(self, record: Record) -> Wire:
        if "key_people" not in record.body:
            return record.body
        people = self.store.all("key_person", owner=record.uuid)
        return record.body | {"key_people": [person.body for person in people]}

    def _private(self, uuid: str) -> Wire:
        return (self.store.find("user", uuid) or self.store.require("key_person", uuid)).private

    def _application_record(self, uuid: str) -> Record:
        return self.store.find("loan_application", uuid) or self.store.require("line_application", uuid)

    def _bank_account(self, borrower_uuid: str) -> str:
        """The uuid of the borrower's bank account."""
        return str(uuids.uuid5(uuids.NAMESPACE_OID, borrower_uuid))

    def _application(
        self, product: str, borrower_uuid: str, amount: Amount, max_amount: Decimal, overrides: Wire
    ) -> Wire:
        self.store.require("user", borrower_uuid)
        amount = Decimal(amount)
        body = shapes.application(
            self.new_uuid(), product=product, amount=amount, created_at=stamp(self.clock.now())
        )
        reasons = amortization.rejection_reasons(amount, max_amount)
        if reasons:
            body["status"] = {"decision": "REJECTED", "details": reasons}
        else:
            body["status"] = {"decision": "APPROVED", "details": None}
            body["offers"] = [self._offer(product, terms) for terms in amortization.offers(amount)]
        kind = "loan_application" if product == "LOAN" else "line_application"
        return self._add(kind, body | overrides, owner=borrower_uuid)

    def _offer(self, product: str, terms: amortization.Terms) -> Wire:
        values = {name: getattr(terms, name) for name in terms.__dataclass_fields__}
        return shapes.offer(self.new_uuid(), product=product, start_date=self.clock.today(), **values)


def _split_private(values: Wire) -> tuple[Wire, Wire]:
    """Split values into those that answers contain and private ones."""
    shown = {name: value for name, value in values.items() if name not in PRIVATE_FIELDS}
    hidden = {name: value for name, value in values.items() if name in PRIVATE_FIELDS}
    return shown, hidden
