"""Every screen of loans, lines and repayments renders for any answer that the service's interface allows.

Nullable fields may be null, enumerations unknown, lists empty or long, and untyped fields anything.
"""

from datetime import date
from decimal import Decimal
from typing import Any, get_args

import pytest
from django.test import Client as Browser
from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as for_any
from hypothesis import strategies as st

from portal.records import store
from portal.records.models import Account, Kind, Source
from portal.records.models import Repayment as SavedRepayment
from portal.records.sources import LISTS, OPERATIONS
from servicing import Loan, RemoteTime, Repayment, Statement, codec
from servicing.sandbox.wire import dumps
from tests.portal.pages import page, panel

pytestmark = pytest.mark.slow

OWNER = "0f0e0d0c-0000-4000-8000-000000000001"
ACCOUNT = "0f0e0d0c-0000-4000-8000-000000000002"
EXAMPLES = settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate],  # No shrinking: each example loads several pages, so it would take minutes.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
ENUM_VALUE = (
    st.none()
    | st.sampled_from(["LOAN", "LOC", "ACTIVE", "SCHEDULED", "FAILED_AFTER_SUCCESS", "RETURNED"])
    | WORDS
)
MONEY = st.none() | st.decimals(-(10**12), 10**15, places=2)
DAY = st.none() | st.dates().map(str) | st.just("2026-03-08 00:00:00 PST")
MOMENT = st.none() | st.sampled_from(["2026-03-08 09:00:00 IST", "2026-03-08 09:00:00 US/Pacific"]) | WORDS
FLAG = st.none() | st.booleans()
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | WORDS | MONEY | DAY,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
INSTALLMENT = (
    st.fixed_dictionaries(
        {"number": st.integers(), "due_date": DAY, "total": MONEY, "status": ENUM_VALUE, "paid_on": DAY},
        optional={"principal": MONEY, "interest": MONEY, "fees": MONEY, "balance": MONEY, "odd": ANY_JSON},
    )
    | st.fixed_dictionaries(
        {"PaymentDate": DAY, "PaymentAmount": MONEY, "IsHistory": FLAG}, optional={"LoanAmount": MONEY}
    )
    | ANY_JSON
)
DOCUMENT = st.fixed_dictionaries({"billing_date": DAY, "url": st.none() | WORDS})
BY_TYPE = {
    Decimal: MONEY,
    int: st.none() | st.integers(-(10**6), 10**6),
    date: DAY,
    bool: FLAG,
    str: ENUM_VALUE,
    RemoteTime: MOMENT,
    Any: ANY_JSON,
}


def lists_of(element: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Return a strategy for lists that are empty, short or 2,000 items long."""
    return st.lists(element, max_size=4) | st.lists(element, min_size=1, max_size=2).map(
        lambda items: (items * 2000)[:2000]
    )


def objects_of(model: type, **special_fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for a model's objects with fields that may be null, and sometimes an unknown field."""
    fields = {
        name: BY_TYPE[(get_args(kind) or (kind,))[0]]
        for name, kind in model.__annotations__.items()
        if name not in special_fields
    }
    return st.fixed_dictionaries(fields | special_fields, optional={"of_tomorrow": ANY_JSON})


READ_BY = {operation.kind: operation.name for operation in OPERATIONS if operation.kind}


def save_answer(model: Any, answer: dict[str, Any] | list[dict[str, Any]], kind: Kind) -> Account:
    text = dumps(answer)
    read = codec.decode_list(model, text) if isinstance(answer, list) else codec.decode(model, text)
    ids = {"borrower_id": OWNER, "loan_id" if "loan" in kind else "line_id": ACCOUNT}
    store.save(store.records_in_answer(READ_BY[kind], read, ids), source=Source.SERVICE)
    return Account.objects.get(kind=LISTS.get(kind, kind), uuid=ACCOUNT)


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
class TestAnyAnswer:
    @EXAMPLES
    @for_any(
        objects_of(
            Loan,
            uuid=st.just(ACCOUNT),
            user_uuid=st.sampled_from([OWNER.upper(), None, ""]),
            installments=lists_of(INSTALLMENT),
        )
    )
    def test_any_loan_renders(self, viewer: Browser, answer: dict[str, Any]) -> None:
        loan = save_answer(Loan, answer, Kind.LOAN)
        address = loan.get_absolute_url()
        assert "Terms" in page(viewer, address)
        assert "loan-schedule" in panel(viewer, f"{address}?rows=all&subtotals=off", "loan-schedule")
        for file in (f"{address}schedule.csv", "/loans/export.csv"):
            assert len(b"".join(viewer.get(file).streaming_content)) > 0  # type: ignore[attr-defined]
        assert address in page(viewer, "/loans/")

    @EXAMPLES
    @for_any(
        objects_of(Statement, statements=lists_of(DOCUMENT)),
        objects_of(Statement, statements=lists_of(DOCUMENT)),
    )
    def test_any_line_renders(
        self, viewer: Browser, first_answer: dict[str, Any], answer: dict[str, Any]
    ) -> None:
        Account.objects.all().delete()
        save_answer(Statement, first_answer, Kind.LINE)
        line = save_answer(Statement, answer, Kind.LINE)
        address = line.get_absolute_url()
        assert "Payoff balance" in page(viewer, address)
        assert address in page(viewer, "/lines/")
        assert len(b"".join(viewer.get("/lines/export.csv").streaming_content)) > 0  # type: ignore[attr-defined]
        days = [paper["billing_date"] for paper in answer["statements"]]
        chosen = str(days[0])[:10] if days else ""
        assert "line-statements" in panel(viewer, f"{address}?statement={chosen}", "line-statements")

    @EXAMPLES
    @for_any(
        st.sampled_from([Kind.LOAN_REPAYMENTS, Kind.LINE_REPAYMENTS]),
        lists_of(objects_of(Repayment)).map(
            lambda repayments: [one | {"uuid": f"r-{number}"} for number, one in enumerate(repayments)]
        ),
    )
    def test_any_repayment_renders(self, viewer: Browser, kind: Kind, answer: list[dict[str, Any]]) -> None:
        SavedRepayment.objects.all().delete()
        Account.objects.all().delete()
        account = Kind.LOAN if kind == Kind.LOAN_REPAYMENTS else Kind.LINE
        Account.objects.create(kind=account, uuid=ACCOUNT, borrower_uuid=OWNER)
        save_answer(Repayment, answer[:60], kind)
        address = f"/borrowers/{OWNER}/{'loans' if account == Kind.LOAN else 'lines'}/{ACCOUNT}/"
        assert "Repayments" in page(viewer, address)
        assert "Repayments" in page(viewer, "/repayments/")
        for one in answer[:2]:
            assert "Payment history" in page(viewer, f"/repayments/{one['uuid']}/")


def test_the_longest_values_are_shown_in_full(viewer: Browser) -> None:
    longest = Decimal("999999999999999999.99")
    answer = {"uuid": ACCOUNT, "amount": longest, "status": "S" * 300, "external_id": "x" * 2000}
    shown = page(viewer, save_answer(Loan, answer, Kind.LOAN).get_absolute_url())
    assert "$999,999,999,999,999,999.99" in shown
    assert "x" * 2000 in shown
