"""Whatever the service answers within its interface, every screen of loans, lines and repayments renders.

Any nullable field may be null, any enumeration unknown, any list empty or long, and what is only known as null may be
of any type.
"""

from datetime import date
from decimal import Decimal
from typing import Any, get_args

import pytest
from django.test import Client as Browser
from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from portal.registry import store
from portal.registry.models import Kind, Record, Source
from portal.registry.sources import OPERATIONS
from servicing import Loan, RemoteTime, Repayment, Statement, codec
from servicing.sandbox.wire import dumps
from tests.portal.pages import page, panel

OWNER = "0f0e0d0c-0000-4000-8000-000000000001"
ACCOUNT = "0f0e0d0c-0000-4000-8000-000000000002"
ANY = settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate],  # Each example is several pages: making it smaller would take minutes.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
ENUM = (
    st.none()
    | st.sampled_from(["LOAN", "LOC", "ACTIVE", "SCHEDULED", "FAILED_AFTER_SUCCESS", "RETURNED"])
    | WORDS
)
MONEY = st.none() | st.decimals(-(10**12), 10**15, places=2)
DAY = st.none() | st.dates().map(str) | st.just("2026-03-08 00:00:00 PST")
MOMENT = st.none() | st.sampled_from(["2026-03-08 09:00:00 IST", "2026-03-08 09:00:00 US/Pacific"]) | WORDS
FLAG = st.none() | st.booleans()
OPEN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | WORDS | MONEY | DAY,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
INSTALLMENT = (
    st.fixed_dictionaries(
        {"number": st.integers(), "due_date": DAY, "total": MONEY, "status": ENUM, "paid_on": DAY},
        optional={"principal": MONEY, "interest": MONEY, "fees": MONEY, "balance": MONEY, "odd": OPEN},
    )
    | st.fixed_dictionaries(
        {"PaymentDate": DAY, "PaymentAmount": MONEY, "IsHistory": FLAG}, optional={"LoanAmount": MONEY}
    )
    | OPEN
)
DOCUMENT = st.fixed_dictionaries({"billing_date": DAY, "url": st.none() | WORDS})
BY_TYPE = {
    Decimal: MONEY,
    int: st.none() | st.integers(-(10**6), 10**6),
    date: DAY,
    bool: FLAG,
    str: ENUM,
    RemoteTime: MOMENT,
    Any: OPEN,
}


def many(element: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """A list: empty, short, or of two thousand."""
    return st.lists(element, max_size=4) | st.lists(element, min_size=1, max_size=2).map(
        lambda few: (few * 2000)[:2000]
    )


def any_of(model: type, **own: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of a model with each field of its type or null, and now and then an unknown one."""
    fields = {
        name: BY_TYPE[(get_args(kind) or (kind,))[0]]
        for name, kind in model.__annotations__.items()
        if name not in own
    }
    return st.fixed_dictionaries(fields | own, optional={"of_tomorrow": OPEN})


READ_BY = {operation.kind: operation.name for operation in OPERATIONS if operation.kind}


def remember(model: Any, answer: dict[str, Any] | list[dict[str, Any]], kind: Kind) -> Record:
    text = dumps(answer)
    read = codec.decode_list(model, text) if isinstance(answer, list) else codec.decode(model, text)
    ids = {"borrower_id": OWNER, "loan_id" if "loan" in kind else "line_id": ACCOUNT}
    store.save(store.records_in_answer(READ_BY[kind], read, ids), source=Source.SERVICE)
    return Record.objects.get(kind=kind, uuid=ACCOUNT)


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
class TestAnyAnswer:
    @ANY
    @drawn(
        any_of(
            Loan,
            uuid=st.just(ACCOUNT),
            user_uuid=st.sampled_from([OWNER.upper(), None, ""]),
            installments=many(INSTALLMENT),
        )
    )
    def test_every_loan_has_a_page(self, viewer: Browser, answer: dict[str, Any]) -> None:
        loan = remember(Loan, answer, Kind.LOAN)
        address = loan.get_absolute_url()
        assert "Terms" in page(viewer, address)
        assert "loan-schedule" in panel(viewer, f"{address}?rows=all&subtotals=off", "loan-schedule")
        for file in (f"{address}schedule.csv", "/loans/export.csv"):
            assert len(b"".join(viewer.get(file).streaming_content)) > 0  # type: ignore[attr-defined]
        assert address in page(viewer, "/loans/")

    @ANY
    @drawn(any_of(Statement, statements=many(DOCUMENT)), any_of(Statement, statements=many(DOCUMENT)))
    def test_every_line_has_a_page(
        self, viewer: Browser, before: dict[str, Any], answer: dict[str, Any]
    ) -> None:
        Record.objects.all().delete()
        remember(Statement, before, Kind.LINE)
        line = remember(Statement, answer, Kind.LINE)
        address = line.get_absolute_url()
        assert "Payoff balance" in page(viewer, address)
        assert address in page(viewer, "/lines/")
        assert len(b"".join(viewer.get("/lines/export.csv").streaming_content)) > 0  # type: ignore[attr-defined]
        days = [paper["billing_date"] for paper in answer["statements"]]
        chosen = str(days[0])[:10] if days else ""
        assert "line-statements" in panel(viewer, f"{address}?statement={chosen}", "line-statements")

    @ANY
    @drawn(
        st.sampled_from([Kind.LOAN_REPAYMENTS, Kind.LINE_REPAYMENTS]),
        many(any_of(Repayment)).map(
            lambda found: [one | {"uuid": f"r-{number}"} for number, one in enumerate(found)]
        ),
    )
    def test_every_repayment_is_shown(
        self, viewer: Browser, kind: Kind, answer: list[dict[str, Any]]
    ) -> None:
        Record.objects.all().delete()
        account = Kind.LOAN if kind == Kind.LOAN_REPAYMENTS else Kind.LINE
        Record.objects.create(kind=account, uuid=ACCOUNT, borrower_uuid=OWNER)
        remember(Repayment, answer[:60], kind)
        address = f"/borrowers/{OWNER}/{'loans' if account == Kind.LOAN else 'lines'}/{ACCOUNT}/"
        assert "Repayments" in page(viewer, address)
        assert "Repayments" in page(viewer, "/repayments/")
        for one in answer[:2]:
            assert "Payment history" in page(viewer, f"/repayments/{one['uuid']}/")


def test_the_longest_values_are_shown_whole(viewer: Browser) -> None:
    longest = Decimal("999999999999999999.99")
    answer = {"uuid": ACCOUNT, "amount": longest, "status": "S" * 300, "external_id": "x" * 2000}
    shown = page(viewer, remember(Loan, answer, Kind.LOAN).get_absolute_url())
    assert "$999,999,999,999,999,999.99" in shown
    assert "x" * 2000 in shown
