"""The comparison of offers: rows, calculated figures, best values, sorting and selection."""

from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import QueryDict
from hypothesis import example, given
from hypothesis import strategies as st

from portal.applications.offers import Comparison, OfferView, compare, letter
from tests.portal.applications.answers import decode_application, offer

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


def compare_offers(*offers: dict[str, Any], query: str = "", **fields: Any) -> Comparison:
    return compare(decode_application(*offers, **fields), OfferView.of(QueryDict(query)))


def cells(table: Comparison, name: str) -> list[Any]:
    rows = [*table.reported, *table.calculated]
    return [cell for row in rows if row.line.name == name for cell in row.cells]


def texts(table: Comparison, name: str) -> list[str | None]:
    return [cell.figure.text for cell in cells(table, name)]


def marks(table: Comparison, name: str) -> list[str]:
    return [cell.best for cell in cells(table, name)]


def shown_letters(table: Comparison) -> str:
    return "".join(column.letter for column in table.columns)


class TestRows:
    def test_rows_are_in_disclosure_order(self) -> None:
        table = compare_offers(offer(amount=39000), query="empty=1")
        assert [row.line.name for row in table.reported] == DISCLOSED
        assert [row.line.name for row in table.calculated] == [
            "Net proceeds",
            "Total of payments",
            "Cost over principal",
        ]

    def test_figures_are_formatted(self) -> None:
        table = compare_offers(
            offer(amount=35000.5, apr=13.0400, interest_only_period=6, explanation="Limited")
        )
        assert texts(table, "Amount") == ["$35,000.50"]
        assert texts(table, "Difference from requested") == ["−$4,999.50"]
        assert texts(compare_offers(offer(amount=40000)), "Difference from requested") == []
        keys = [line.key for line in compare_offers(offer(amount=40000), offer(2, amount=40000)).lines]
        assert ("difference" in keys, "amount" in keys) == (False, True)
        two = compare_offers(offer(amount=40000), offer(2, amount=35000.5))
        assert texts(two, "Difference from requested") == ["$0.00", "−$4,999.50"]
        assert texts(table, "APR") == ["13.04%"]
        assert texts(table, "Term") == ["24 months"]
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
    def test_missing_values_differ_from_zero(self, field: str, name: str) -> None:
        assert texts(compare_offers(offer(**{field: None})), name) == []
        assert texts(compare_offers(offer(**{field: None}), query="empty=1"), name) == [None]
        if field in ("amount", "origination_fee", "installment"):
            assert texts(compare_offers(offer(**{field: 0})), name) == ["$0.00"]

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
    def test_unreadable_values_are_shown_as_sent(self, field: str, value: Any, name: str, text: str) -> None:
        assert texts(compare_offers(offer(**{field: value})), name) == [text]

    def test_a_term_may_lack_a_part(self) -> None:
        assert texts(compare_offers(offer(term=None)), "Term") == ["monthly"]
        assert texts(compare_offers(offer(term_frequency=None)), "Term") == ["24"]
        assert texts(compare_offers(offer(term=None, term_frequency=None)), "Term") == []


class TestCalculated:
    def test_figures_are_exact(self) -> None:
        table = compare_offers(offer(amount="0.10", origination_fee="0.03", installment="0.07", term=3))
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
    def test_missing_inputs_are_named(self, missing: list[str], name: str, needs: str) -> None:
        (cell,) = cells(compare_offers(offer(**dict.fromkeys(missing)), query="empty=1"), name)
        assert (cell.figure.value, cell.figure.text, cell.figure.missing) == (None, None, needs)

    def test_no_total_is_calculated_with_an_interest_only_period(self) -> None:
        table = compare_offers(offer(interest_only_period=6), query="empty=1")
        assert cells(table, "Total of payments")[0].figure.value is None
        assert cells(table, "Cost over principal")[0].figure.value is None
        assert texts(compare_offers(offer(interest_only_period=0)), "Total of payments") == ["$45,594.96"]

    def test_net_proceeds_require_deducted_fees(self, settings: LazySettings) -> None:
        settings.SERVICING_FEE_DEDUCTED = False
        table = compare_offers(offer())
        assert [row.line.name for row in table.calculated] == ["Total of payments", "Cost over principal"]
        assert not table.is_fee_deducted


class TestBest:
    def test_best_values_are_marked(self) -> None:
        table = compare_offers(offer(0), offer(1, apr=13.04, origination_fee=525))
        assert marks(table, "APR") == ["", "lowest APR"]
        assert marks(table, "Origination fee") == ["", "lowest"]
        assert marks(table, "Net proceeds") == ["", "highest"]

    def test_ties_are_marked_with_their_count(self) -> None:
        table = compare_offers(offer(0, apr=13.04), offer(1, apr="13.0400"), offer(2))
        assert marks(table, "APR") == ["lowest APR (2 offers)", "lowest APR (2 offers)", ""]

    def test_a_row_of_equal_values_has_one_remark(self) -> None:
        table = compare_offers(offer(0), offer(1, apr=13.04))
        row = next(row for row in table.reported if row.line.key == "rate")
        assert (row.remark, marks(table, "Interest rate")) == ("Same for all", ["", ""])

    def test_a_row_with_a_missing_value_is_not_marked(self) -> None:
        table = compare_offers(offer(0), offer(1, installment=None), offer(2, installment=1))
        row = next(row for row in table.reported if row.line.key == "installment")
        assert ([cell.best for cell in row.cells], row.remark) == (["", "", ""], "")

    def test_a_row_with_an_unreadable_number_is_not_marked(self) -> None:
        assert marks(compare_offers(offer(0), offer(1, apr="low")), "APR") == ["", ""]

    def test_an_empty_row_has_no_remark(self) -> None:
        table = compare_offers(offer(0, installment=None), offer(1, installment=None), query="empty=1")
        assert next(row for row in table.reported if row.line.key == "installment").remark == ""

    def test_a_single_offer_has_no_marks(self) -> None:
        table = compare_offers(offer())
        assert {cell.best for row in [*table.reported, *table.calculated] for cell in row.cells} == {""}

    def test_hidden_offers_count_for_the_best_value(self) -> None:
        offers = [offer(n, apr=20 - n) for n in range(6)]
        assert marks(compare_offers(*offers), "APR") == [""] * 4
        assert marks(compare_offers(*offers, query="offer=F&offer=A"), "APR") == ["", "lowest APR"]

    @given(st.lists(st.none() | st.decimals("0", "99", places=2), min_size=2, max_size=6))
    @example([Decimal(0)] * 4 + [Decimal(1)])
    def test_only_the_lowest_apr_is_ever_marked(self, rates: list[Decimal | None]) -> None:
        offers = [offer(n, apr=None if rate is None else str(rate)) for n, rate in enumerate(rates)]
        table = compare_offers(*offers)
        marked = [rate for rate, mark in zip(rates, marks(table, "APR"), strict=False) if mark]
        sent_rates = [rate for rate in rates if rate is not None]
        lowest = {min(sent_rates)} if len(sent_rates) == len(rates) else set()
        assert set(marked) <= lowest
        shown = set(rates[:4])  # A row with the same value in all offers shown is left out.
        if len(shown) > 1 and lowest & shown:
            assert marked


class TestView:
    def test_at_most_four_offers_are_shown(self) -> None:
        assert shown_letters(compare_offers(*[offer(n) for n in range(6)])) == "ABCD"
        assert shown_letters(compare_offers(*[offer(n) for n in range(6)], query="offer=B&offer=F")) == "BF"
        assert shown_letters(compare_offers(*[offer(n) for n in range(6)], query="offer=Z")) == "ABCD"

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
    def test_any_row_sorts_with_missing_values_last(self, query: str, order: str) -> None:
        offers = [
            offer(0, apr=15, explanation="b", start_date="2026-12-02"),
            offer(1, apr=16, explanation="a", start_date="2026-12-03"),
            offer(2, apr=14, start_date="2026-12-01"),
            offer(3, apr=None, start_date="later"),
        ]
        assert shown_letters(compare_offers(*offers, query=query)) == order

    def test_sorting_includes_hidden_offers(self) -> None:
        offers = [offer(n, apr=20 - n) for n in range(6)]
        assert shown_letters(compare_offers(*offers, query="sort=apr")) == "FEDC"

    def test_sorting_again_reverses_the_order(self) -> None:
        rows = compare_offers(offer(0), offer(1), query="sort=apr").reported
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
    def test_three_offers_show_only_differing_rows_by_default(
        self, count: int, query: str, *, is_differing: bool
    ) -> None:
        table = compare_offers(offer(0, apr=13), *[offer(n) for n in range(1, count)], query=query)
        names = [row.line.name for row in [*table.reported, *table.calculated]]
        assert (names == ["APR"]) is is_differing
        assert (len(names), table.same) == ((1, 11) if is_differing else (12, 0))
        assert table.same_words == ("$40,000.00, starts Dec 1, 2026" if is_differing else "")

    @pytest.mark.parametrize("rows", ["all", "differing"])
    def test_empty_rows_are_counted_and_shown_on_request(self, rows: str) -> None:
        offers = [offer(0), offer(1), offer(2, explanation="Limited")]
        query = f"rows={rows}&offer=A&offer=B"
        table, more = compare_offers(*offers, query=query), compare_offers(*offers, query=f"{query}&empty=1")
        empty = ["Interest-only period", "Interest-only installment", "Explanation"]
        assert [row.line.name for row in more.reported if row not in table.reported] == empty
        assert (table.empty, more.empty, table.same) == (3, 3, more.same)

    def test_the_sort_menu_omits_rows_empty_in_all_offers(self) -> None:
        table = compare_offers(
            offer(0), offer(1), offer(2, explanation="Limited"), query="offer=A&offer=B&empty=1"
        )
        names = [line.name for line in table.lines]
        assert ("Explanation" in names, "Interest-only period" in names) == (True, False)

    def test_a_single_offer_hides_only_its_empty_rows(self) -> None:
        table = compare_offers(offer(0), offer(1), query="rows=differing&offer=B")
        assert (len(table.reported), table.same, table.empty) == (len(DISCLOSED) - 4, 0, 3)

    def test_letters_continue_after_z(self) -> None:
        assert [letter(n) for n in (0, 25, 26, 51, 52, 701, 702)] == ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]

    def test_the_offer_menu_is_limited(self) -> None:
        table = compare_offers(*[offer(0) for _ in range(50)])
        assert (len(table.menu), table.unlisted) == (40, 10)
