"""Offers side by side: order, marks, gaps, what is calculated, and how they are sorted and chosen."""

from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from portal.applications.offers import Comparison, OfferView, compare, letter
from tests.portal.applications.answers import decoded, offer

DISCLOSED = [
    "Amount",
    "Difference from requested",
    "Origination fee",
    "APR",
    "Interest rate",
    "Term",
    "Installment",
    "Interest amount",
    "Interest-only period",
    "Interest-only installment",
    "Start",
    "Maturity",
    "Explanation",
]


def compared(*offers: dict[str, Any], query: str = "", **fields: Any) -> Comparison:
    return compare(decoded(*offers, **fields), OfferView.of(QueryDict(query)))


def cells(table: Comparison, name: str) -> list[Any]:
    rows = [*table.reported, *table.calculated]
    return [cell for row in rows if row.line.name == name for cell in row.cells]


def texts(table: Comparison, name: str) -> list[str | None]:
    return [cell.figure.text for cell in cells(table, name)]


def marks(table: Comparison, name: str) -> list[str]:
    return [cell.best for cell in cells(table, name)]


def shown(table: Comparison) -> str:
    return "".join(column.letter for column in table.columns)


class TestRows:
    def test_they_stand_in_the_order_of_disclosures(self) -> None:
        table = compared(offer(), query="empty=1")
        assert [row.line.name for row in table.reported] == DISCLOSED
        assert [row.line.name for row in table.calculated] == [
            "Net proceeds",
            "Total of payments",
            "Cost over principal",
        ]

    def test_an_offer_reads_as_the_service_told_it(self) -> None:
        table = compared(offer(amount=35000.5, apr=13.0400, interest_only_period=6, explanation="Limited"))
        assert texts(table, "Amount") == ["$35,000.50"]
        assert texts(table, "Difference from requested") == ["−$4,999.50"]
        assert texts(table, "APR") == ["13.04%"]
        assert texts(table, "Term") == ["24, monthly"]
        assert texts(table, "Interest-only period") == ["6"]
        assert texts(table, "Maturity") == ["Dec 1, 2028"]
        assert texts(table, "Explanation") == ["Limited"]

    @pytest.mark.parametrize(
        ("field", "name"),
        [
            ("amount", "Amount"),
            ("origination_fee", "Origination fee"),
            ("installment", "Installment"),
            ("start_date", "Start"),
            ("maturity_date", "Maturity"),
            ("explanation", "Explanation"),
        ],
    )
    def test_nothing_and_zero_are_two_things(self, field: str, name: str) -> None:
        assert texts(compared(offer(**{field: None})), name) == []
        assert texts(compared(offer(**{field: None}), query="empty=1"), name) == [None]
        if field in ("amount", "origination_fee", "installment"):
            assert texts(compared(offer(**{field: 0})), name) == ["$0.00"]

    @pytest.mark.parametrize(
        ("field", "value", "name", "text"),
        [
            ("apr", "soon", "APR", "soon"),
            ("amount", {"from": 100, "to": 200}, "Amount", "from: 100; to: 200"),
            ("term", "two years", "Term", "two years, monthly"),
            ("term_frequency", "FORTNIGHTLY", "Term", "24, FORTNIGHTLY"),
            ("start_date", "1st of May", "Start", "1st of May"),
            ("maturity_date", ["2028-12-01"], "Maturity", "2028-12-01"),
            ("explanation", ["One.", "Two."], "Explanation", "One.; Two."),
        ],
    )
    def test_what_cannot_be_read_is_shown_as_it_came(
        self, field: str, value: Any, name: str, text: str
    ) -> None:
        assert texts(compared(offer(**{field: value})), name) == [text]

    def test_a_term_without_its_parts_says_which_is_missing(self) -> None:
        assert texts(compared(offer(term=None)), "Term") == ["—, monthly"]
        assert texts(compared(offer(term_frequency=None)), "Term") == ["24, —"]
        assert texts(compared(offer(term=None, term_frequency=None)), "Term") == []


class TestCalculated:
    def test_figures_are_exact(self) -> None:
        table = compared(offer(amount="0.10", origination_fee="0.03", installment="0.07", term=3))
        assert texts(table, "Net proceeds") == ["$0.07"]
        assert texts(table, "Total of payments") == ["$0.21"]
        assert texts(table, "Cost over principal") == ["$0.11"]

    @pytest.mark.parametrize(
        ("missing", "name", "needs"),
        [
            (["origination_fee"], "Net proceeds", "Needs origination fee"),
            (["amount", "origination_fee"], "Net proceeds", "Needs amount and origination fee"),
            (["installment", "term"], "Total of payments", "Needs installment and term"),
            (["installment", "term", "amount"], "Cost over principal", "Needs installment, term and amount"),
            (["amount"], "Difference from requested", "Needs amount"),
        ],
    )
    def test_without_an_input_there_is_no_figure_but_its_name(
        self, missing: list[str], name: str, needs: str
    ) -> None:
        (cell,) = cells(compared(offer(**dict.fromkeys(missing)), query="empty=1"), name)
        assert (cell.figure.value, cell.figure.text, cell.figure.missing) == (None, None, needs)

    def test_an_interest_only_period_leaves_no_simple_total(self) -> None:
        table = compared(offer(interest_only_period=6), query="empty=1")
        assert cells(table, "Total of payments")[0].figure.value is None
        assert cells(table, "Cost over principal")[0].figure.value is None
        assert texts(compared(offer(interest_only_period=0)), "Total of payments") == ["$45,594.96"]

    def test_net_proceeds_need_a_fee_that_is_deducted(self, settings: LazySettings) -> None:
        settings.SERVICING_FEE_DEDUCTED = False
        table = compared(offer())
        assert [row.line.name for row in table.calculated] == ["Total of payments", "Cost over principal"]
        assert not table.is_fee_deducted


class TestBest:
    def test_it_is_said_in_words(self) -> None:
        table = compared(offer(0), offer(1, apr=13.04, origination_fee=525))
        assert marks(table, "APR") == ["", "lowest APR"]
        assert marks(table, "Origination fee") == ["", "lowest"]
        assert marks(table, "Net proceeds") == ["", "highest"]

    def test_ties_are_marked_for_all_of_them_with_their_number(self) -> None:
        table = compared(offer(0, apr=13.04), offer(1, apr="13.0400"), offer(2))
        assert marks(table, "APR") == ["lowest APR (2 offers)", "lowest APR (2 offers)", ""]

    def test_where_all_are_equal_the_row_says_so_once(self) -> None:
        table = compared(offer(0), offer(1, apr=13.04))
        row = next(row for row in table.reported if row.line.key == "rate")
        assert (row.remark, marks(table, "Interest rate")) == ("Same for all", ["", ""])

    def test_a_row_with_a_missing_value_has_no_winner(self) -> None:
        table = compared(offer(0), offer(1, installment=None), offer(2, installment=1))
        row = next(row for row in table.reported if row.line.key == "installment")
        assert ([cell.best for cell in row.cells], row.remark) == (["", "", ""], "Not marked: value missing")

    def test_neither_has_one_with_a_value_that_is_no_number(self) -> None:
        assert marks(compared(offer(0), offer(1, apr="low")), "APR") == ["", ""]

    def test_where_everything_is_missing_nothing_is_said(self) -> None:
        table = compared(offer(0, installment=None), offer(1, installment=None), query="empty=1")
        assert next(row for row in table.reported if row.line.key == "installment").remark == ""

    def test_a_single_offer_is_compared_with_nothing(self) -> None:
        table = compared(offer())
        assert {cell.best for row in [*table.reported, *table.calculated] for cell in row.cells} == {""}

    def test_a_hidden_offer_counts(self) -> None:
        offers = [offer(n, apr=20 - n) for n in range(6)]
        assert marks(compared(*offers), "APR") == [""] * 4
        assert marks(compared(*offers, query="offer=F&offer=A"), "APR") == ["", "lowest APR"]

    @given(st.lists(st.none() | st.decimals("0", "99", places=2), min_size=2, max_size=6))
    def test_a_mark_is_true_or_absent(self, rates: list[Decimal | None]) -> None:
        offers = [offer(n, apr=None if rate is None else str(rate)) for n, rate in enumerate(rates)]
        table = compared(*offers)
        marked = [rate for rate, mark in zip(rates, marks(table, "APR"), strict=False) if mark]
        told = [rate for rate in rates if rate is not None]
        assert set(marked) <= ({min(told)} if len(told) == len(rates) else set())


class TestView:
    def test_at_most_four_stand_side_by_side(self) -> None:
        assert shown(compared(*[offer(n) for n in range(6)])) == "ABCD"
        assert shown(compared(*[offer(n) for n in range(6)], query="offer=B&offer=F")) == "BF"
        assert shown(compared(*[offer(n) for n in range(6)], query="offer=Z")) == "ABCD"

    @pytest.mark.parametrize(
        ("query", "order"),
        [
            ("sort=apr", "CABD"),
            ("sort=-apr", "BACD"),
            ("sort=start", "CABD"),
            ("sort=explanation", "BACD"),
            ("sort=evil", "ABCD"),
            ("sort=-", "ABCD"),
        ],
    )
    def test_any_row_sorts_and_gaps_come_last(self, query: str, order: str) -> None:
        offers = [
            offer(0, apr=15, explanation="b", start_date="2026-12-02"),
            offer(1, apr=16, explanation="a", start_date="2026-12-03"),
            offer(2, apr=14, start_date="2026-12-01"),
            offer(3, apr=None, start_date="later"),
        ]
        assert shown(compared(*offers, query=query)) == order

    def test_sorting_reaches_offers_that_were_not_shown(self) -> None:
        offers = [offer(n, apr=20 - n) for n in range(6)]
        assert shown(compared(*offers, query="sort=apr")) == "FEDC"

    def test_a_row_sorts_the_other_way_when_it_is_pressed_again(self) -> None:
        rows = compared(offer(0), offer(1), query="sort=apr").reported
        apr = next(row for row in rows if row.line.key == "apr")
        assert (apr.sorted, apr.next_sort) == ("ascending", "-apr")
        assert OfferView.of(QueryDict("sort=-apr")).reversed == "APR"

    @pytest.mark.parametrize(
        ("count", "query", "is_differing"),
        [
            (2, "", False),
            (3, "", True),
            (2, "rows=differing", True),
            (3, "rows=all", False),
            (3, "rows=x", True),
        ],
    )
    def test_from_three_offers_on_only_what_differs_is_shown_unless_all_rows_are_wanted(
        self, count: int, query: str, *, is_differing: bool
    ) -> None:
        table = compared(offer(0, apr=13), *[offer(n) for n in range(1, count)], query=query)
        names = [row.line.name for row in [*table.reported, *table.calculated]]
        assert (names == ["APR"]) is is_differing
        assert (len(names), table.same) == ((1, 12) if is_differing else (13, 0))

    @pytest.mark.parametrize("rows", ["all", "differing"])
    def test_rows_that_no_shown_offer_has_are_counted_and_shown_on_demand(self, rows: str) -> None:
        offers = [offer(0), offer(1), offer(2, explanation="Limited")]
        query = f"rows={rows}&offer=A&offer=B"
        table, more = compared(*offers, query=query), compared(*offers, query=f"{query}&empty=1")
        empty = ["Interest-only period", "Interest-only installment", "Explanation"]
        assert [row.line.name for row in more.reported if row not in table.reported] == empty
        assert (table.empty, more.empty, table.same) == (3, 3, more.same)

    def test_the_menu_sorts_by_rows_that_an_offer_has(self) -> None:
        table = compared(offer(0), offer(1), offer(2, explanation="Limited"), query="offer=A&offer=B&empty=1")
        names = [line.name for line in table.lines]
        assert ("Explanation" in names, "Interest-only period" in names) == (True, False)

    def test_of_a_single_offer_only_what_it_lacks_is_left_out(self) -> None:
        table = compared(offer(0), offer(1), query="rows=differing&offer=B")
        assert (len(table.reported), table.same, table.empty) == (len(DISCLOSED) - 3, 0, 3)

    def test_letters_go_on_after_z(self) -> None:
        assert [letter(n) for n in (0, 25, 26, 51, 52, 701, 702)] == ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]

    def test_of_very_many_offers_the_menu_holds_some(self) -> None:
        table = compared(*[offer(0) for _ in range(50)])
        assert (len(table.menu), table.unlisted) == (40, 10)
