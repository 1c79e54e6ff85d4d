"""Tests of how search parses its input and ranks its results."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from portal.registry.models import NAMED_KINDS, Kind, Record, Repayment
from portal.registry.query import parse_query
from portal.registry.repayments import matching_repayments, rank_repayments
from portal.registry.search.backend import MAX_BY_KEYS, MIN_COMPARED
from portal.registry.search.find import filter_by_text, rank_matches
from portal.registry.search.index import create_missing_triggers
from portal.registry.search.postgres import SAMPLED
from portal.registry.search.texts import index_of, search_text
from portal.registry.store import Observation, save
from portal.runtime.folding import fold

pytestmark = pytest.mark.django_db
ONE = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
TWO = "0f0e0d0c-0000-4000-8000-000000000002"
LONG_NAME = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9_000))


def add_record(*lines: str, kind: Kind = Kind.BORROWER, **fields: object) -> Record:
    """Add a record that these lines find; the first line is its name."""
    uuid = f"r-{Record.objects.count()}"
    values = {
        "kind": kind,
        "uuid": uuid,
        "label": lines[0] if lines else "",
        "search_text": search_text(*lines),
    }
    return Record.objects.create(**values | fields)


def find(text: str, kind: Kind = Kind.BORROWER, *, limit: int = 100) -> list[str]:
    """Return the names of the matches, best first."""
    keys = rank_matches([kind], parse_query(text), limit).get(kind, ())
    return [Record.objects.get(pk=key).label for key in keys]


def find_repayments(text: str) -> list[str]:
    """Return the IDs of matching repayments, best first, which are those that their list finds."""
    query = parse_query(text)
    found = Repayment.objects.in_bulk([*rank_repayments(query, (), 100)])
    listed = Repayment.objects.filter(matching_repayments(query, ()))
    assert set(listed) == set(found.values())
    return [one.uuid for one in found.values()]


def index_definitions() -> list[str]:
    """Return PostgreSQL's definition of each index on records."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'registry_record'")
        return [statement for (statement,) in cursor.fetchall()]


def count_indexed(kind: Kind) -> int:
    """Count the records in a kind's text index."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {index_of(kind)}")
        return int(cursor.fetchone()[0])


class TestParsing:
    @pytest.mark.parametrize(
        "typed",
        [
            *("11/28/2026", "2026-11-28", "2026/11/28", "2026/11/28", "11-28-2026", "11-28-26", "11/28/26"),
            *(
                "28 Nov 2026",
                "28 November, 2026",
                "28-Nov-2026",
                "28-nov-26",
                "28th Nov",
                "28 nov",
                "Nov 28th, 2026",
            ),
            *(
                "Nov. 28 2026",
                "11.28.2026",
                "2026.11.28",
                "Sat, Nov 28, 2026",
                "Saturday 28 Nov 2026",
                "11/28",
            ),
        ],
    )
    def test_a_date_is_read_in_any_usual_form(self, typed: str) -> None:
        with time_machine.travel(datetime(2026, 11, 27, 12, tzinfo=UTC)):
            assert parse_query(typed).day == date(2026, 11, 28)

    @pytest.mark.parametrize(
        "typed", ["11.30", "28 Nov Bakery", "2026/13/01", "31 Nov 2026", "November Rain", "12 30"]
    )
    def test_other_texts_are_no_dates(self, typed: str) -> None:
        assert parse_query(typed).day is None

    @pytest.mark.parametrize(
        "typed",
        [
            "(512) 555-0143",
            "512.555.0143",
            "+1 512-555-0143",
            "1 512 555 0143",
            "tel:+15125550143",
            "512–555–0143",
        ],
    )
    def test_a_phone_is_read_as_ten_digits(self, typed: str) -> None:
        assert parse_query(typed).alternatives == (("5125550143",),)

    @pytest.mark.parametrize(
        "typed", ["call (512) 555-0143 ext. 7", "Ana, 512-555-0143x7", "phone:(512) 555-0143"]
    )
    def test_a_phone_in_a_sentence_replaces_the_other_words(self, typed: str) -> None:
        assert parse_query(typed, operators=False).alternatives == (("5125550143",),)
        assert parse_query(typed, operators=False).read_as == "the phone number (512) 555-0143"

    @pytest.mark.parametrize(
        "typed",
        [ONE, ONE.upper(), ONE.replace("-", ""), f"https://desk.example/loans/{ONE}/?tab=1", f"Loan:{ONE},"],
    )
    def test_an_id_is_found_in_pasted_text(self, typed: str) -> None:
        assert parse_query(typed).uuids == (ONE,)
        assert parse_query(typed).problems == ()

    @pytest.mark.parametrize(
        "typed",
        [
            "fa2ab1cd",
            "Loan FA2AB1CD.",
            "“Loan fa2ab1cd”",
            "#fa2ab1cd",
            "loans/fa2ab1cd…",
            "line fa2ab1cd: $6,559.96 past due",
            "fa2ab1cd ada@example.com",
            "Hello all, could someone please have a look at loan fa2ab1cd today",
        ],
    )
    def test_an_id_prefix_is_found_in_pasted_text(self, typed: str) -> None:
        assert parse_query(typed).starts == ("fa2ab1cd",)
        assert parse_query(typed).name == ""

    @pytest.mark.parametrize(
        ("typed", "starts"),
        [
            ("3f2b8c1e9d474a", ("3f2b8c1e-9d47-4a",)),
            ("3f2b8c1e-9d47-", ("3f2b8c1e-9d47",)),
            ("fa2ab1cd,3f2a1b4c", ("fa2ab1cd", "3f2a1b4c")),
            ("cafe", ("cafe",)),
            ("cafe luna", ()),
            ("(2500)", ("2500",)),
            ("$2500", ()),
            ("-2500", ()),
            ("2500%", ()),
            ("xfa2ab1cd", ()),
            (ONE, ()),
        ],
    )
    def test_only_hex_text_is_read_as_an_id_prefix(self, typed: str, starts: tuple[str, ...]) -> None:
        assert parse_query(typed).starts == starts

    def test_too_many_id_prefixes_are_reported(self) -> None:
        query = parse_query(" ".join(f"fa2ab1c{digit}" for digit in "abcdef"))
        assert (len(query.starts), query.problems) == (5, ("Only the first 5 IDs were looked up.",))

    def test_a_name_of_hex_letters_is_read_as_a_name(self) -> None:
        assert parse_query("Fabaceae").name == "Fabaceae"

    def test_several_ids_are_all_looked_up(self) -> None:
        assert parse_query(f"/users/{ONE}/loan/{TWO} and {ONE}").uuids == (ONE, TWO)

    @pytest.mark.parametrize(
        "typed", ["Ana Ortiz <ana@north.example>", "mailto:ANA@north.example", "ana@north.example."]
    )
    def test_an_email_is_found_in_pasted_text(self, typed: str) -> None:
        assert parse_query(typed).alternatives == (("ana@north.example",),)

    @pytest.mark.parametrize(
        "typed", ["25000", "25,000.00", "$25,000", "$ 25000.0", "a payment of $25,000.00 bounced"]
    )
    def test_an_amount_is_read_in_any_notation(self, typed: str) -> None:
        assert parse_query(typed).amount == Decimal(25000)

    @pytest.mark.parametrize("typed", ["25k", "$25k", "paid $0.025M today", "25K"])
    def test_amounts_may_end_in_k_or_m(self, typed: str) -> None:
        assert parse_query(typed).amount == 25_000

    @pytest.mark.parametrize("typed", ["ACH af19d63dc2ce bounced", "batch 20261111", "loan LN-70137 of ours"])
    def test_a_line_is_searched_as_a_reference_or_as_words(self, typed: str) -> None:
        reference, words = parse_query(typed).alternatives
        assert (
            parse_query(typed).read_as.removesuffix(", or as words").replace("-", "").endswith(reference[0])
        )
        assert set(reference) < set(words) == set(fold(typed).split())

    @pytest.mark.parametrize("typed", ["Portland 97205-2679", "since 2026-11-01", "3 Rivers Tool"])
    def test_zip_codes_and_dates_are_not_references(self, typed: str) -> None:
        assert not parse_query(typed).read_as

    @pytest.mark.parametrize("typed", ["25.000", "$25.000", "1.234", "$1,234.567 fee", "1,234.5678"])
    def test_three_decimals_are_no_amount(self, typed: str) -> None:
        assert parse_query(typed).amount is None

    @pytest.mark.parametrize("typed", ["1.234k", "$1.234k", "1234.00", "$1,234.0"])
    def test_decimals_of_thousands_are_an_amount(self, typed: str) -> None:
        assert parse_query(typed).amount == 1234

    @pytest.mark.parametrize("typed", ["1,25,000", "ach-25000", "25000 26000", "$", "9" * 30])
    def test_malformed_amounts_are_not_amounts(self, typed: str) -> None:
        assert parse_query(typed).amount is None

    @pytest.mark.parametrize("typed", ["+44 512 555 0143", "+353-512-555-0143"])
    def test_a_foreign_phone_is_not_read_as_a_us_phone(self, typed: str) -> None:
        assert parse_query(typed).read_as == ""
        assert ("5125550143",) not in parse_query(typed).alternatives

    def test_a_partial_phone_is_also_searched_as_typed(self) -> None:
        assert parse_query("555-0143").alternatives == (("5550143",),)

    def test_case_accents_and_dashes_do_not_matter(self) -> None:
        assert parse_query("JOSÉ  Peña–Ruiz").alternatives == (("jose", "penaruiz"),)

    def test_straight_and_curly_apostrophes_match(self) -> None:
        add_record("O'Neil & Daughters, LLC")
        add_record("D’Angelo Masonry LLC")
        assert find("O’Neil") == ["O'Neil & Daughters, LLC"]
        assert find("d'angelo") == ["D’Angelo Masonry LLC"]

    def test_an_exact_phrase_stays_whole(self) -> None:
        assert parse_query('"ana ortiz" austin').alternatives == (("ana ortiz", "austin"),)

    @pytest.mark.parametrize("typed", ["j.r.smith", "100%_x", "a\\b-cdef", "o'neil's"])
    def test_punctuation_inside_a_word_must_match(self, typed: str) -> None:
        add_record(f"Acme {typed} LLC")
        for between in ("x", " "):
            add_record(f"Acme {typed[:4]}{between}{typed[4:]} LLC")
        assert find(typed) == [f"Acme {typed} LLC"]

    @pytest.mark.parametrize("typed", ["Austin TX", "foods, austin, tx.", "Austin, TX 78702", "austin texas"])
    def test_a_code_after_a_city_is_read_as_a_state(self, typed: str) -> None:
        add_record("Cedar Foods", "Austin", "78702", "Texas")
        add_record("Cedar Tools", "Austin", "55912", "Minnesota")
        assert find(typed) == ["Cedar Foods"]

    def test_a_state_code_may_also_be_a_word(self) -> None:
        add_record("Cedar & Co")
        add_record("Cedar Foods", "Colorado")
        assert sorted(find("cedar co")) == ["Cedar & Co", "Cedar Foods"]
        assert parse_query("co").alternatives == (("co",),)
        assert parse_query("78702").alternatives == (("78702",),)

    @pytest.mark.parametrize("typed", ["\0", "\ud800", " \t\u200b", '""', ""])
    def test_input_without_text_is_an_empty_query(self, typed: str) -> None:
        assert parse_query(typed).is_empty

    def test_input_over_a_limit_is_reported(self) -> None:
        assert parse_query("x" * 600).problems == ("Only the first 500 characters were used.",)
        assert parse_query(" ".join("abcdefghijk")).problems == ("Only the first 8 words were used.",)
        ids = " ".join(f"{number:08}{ONE[8:]}" for number in range(6))
        assert parse_query(ids).problems == ("Only the first 5 IDs were looked up.",)

    @pytest.mark.parametrize(
        ("typed", "name"),
        [
            ("Acme Farms", "Acme Farms"),
            ("state:TX Acme", "Acme"),
            ("Acme foo:bar", ""),
            ("5125550143", ""),
            ("$5", ""),
        ],
    )
    def test_only_plain_words_are_read_as_a_name(self, typed: str, name: str) -> None:
        assert parse_query(typed).name == name


class TestOperators:
    @pytest.mark.parametrize(
        "typed", ["type:loc", "TYPE:line", 'type:"line of credit"', "type:LOCs", "type:line-of-credit"]
    )
    def test_a_type_has_several_names(self, typed: str) -> None:
        assert parse_query(typed).kinds == (Kind.LINE,)

    def test_two_types_match_either(self) -> None:
        assert parse_query("type:loan type:loc").kinds == (Kind.LOAN, Kind.LINE)

    @pytest.mark.parametrize("typed", ["state:TX", "state:texas", "state:Texas"])
    def test_a_state_is_matched_by_code_or_name(self, typed: str) -> None:
        add_record("Austin Foods", state="TX")
        add_record("Denver Foods", state="CO")
        assert find(f"{typed} foods") == ["Austin Foods"]

    def test_a_state_of_two_words_is_quoted_or_dashed(self) -> None:
        add_record("Buffalo Foods", state="NY")
        assert find('state:"new york"') == find("state:new-york") == ["Buffalo Foods"]

    @pytest.mark.parametrize(
        ("typed", "names"), [(">0", "c"), ("0", "b"), (">=$0", "bc"), ("<1,000.50", "b"), ("<=1000.50", "bc")]
    )
    def test_past_due_supports_comparisons(self, typed: str, names: str) -> None:
        add_record("a")
        add_record("b", past_due=Decimal(0))
        add_record("c", past_due=Decimal("1000.50"), flagged=True)
        add_record("d", past_due=Decimal(900))  # closed
        assert sorted(find(f"past_due:{typed}")) == list(names)

    def test_a_status_ignores_case_and_separators(self) -> None:
        Repayment.objects.create(uuid="back", status="FAILED_AFTER_SUCCESS")
        assert find_repayments("status:failed-after-success") == ["back"]

    def test_delinquent_is_a_status_too(self) -> None:
        add_record("Late", kind=Kind.LOAN, status="ACTIVE", flagged=True)
        add_record("Good", kind=Kind.LOAN, status="ACTIVE")
        Repayment.objects.create(uuid="back", status="FAILED_AFTER_SUCCESS", has_failed=True)
        assert find("status:delinquent", Kind.LOAN) == ["Late"]
        assert find_repayments("status:delinquent") == []

    def test_a_new_status_is_searchable_once_on_file(self) -> None:
        assert "Unknown status" in parse_query("status:hibernating").problems[0]
        add_record("Asleep", kind=Kind.LOAN, status="HIBERNATING")
        assert find("status:hibernating", Kind.LOAN) == ["Asleep"]
        add_record("On hold", kind=Kind.LOAN, status="In review")
        add_record("Due", kind=Kind.LOAN, status="Active")
        assert find('status:"in review"', Kind.LOAN) == find("status:in-review", Kind.LOAN) == ["On hold"]
        assert find("status:active", Kind.LOAN) == ["Due"]

    @pytest.mark.parametrize(
        ("typed", "days"),
        [
            *[("today", "18"), ("yesterday", "17"), ("this-week", "16 17 18"), ("last-week", "09 15")],
            *[("this-month", "01 09 15 16 17 18"), ("last-month", "31"), ("2026-11-09", "09")],
            *[
                (">2026-11-16", "17 18"),
                (">=2026-11-16", "16 17 18"),
                ("<2026-11-09", "01 31"),
                ("<=2026-11-01", "01 31"),
            ],
        ],
    )
    @time_machine.travel(datetime(2026, 11, 18, 17, tzinfo=UTC), tick=False)
    def test_added_understands_days_weeks_and_months(self, typed: str, days: str) -> None:
        for day in ("10-31", "11-01", "11-09", "11-15", "11-16", "11-17", "11-18"):
            created = add_record(day[-2:])
            Record.objects.filter(pk=created.pk).update(
                created_at=datetime.fromisoformat(f"2026-{day}T12:00+00:00")
            )
        assert sorted(find(f"added:{typed}")) == sorted(days.split())

    @time_machine.travel(datetime(2026, 11, 18, 3, tzinfo=UTC), tick=False)
    def test_a_day_is_in_the_users_time_zone(self) -> None:
        add_record("Evening")
        with timezone.override("America/New_York"):
            assert find("added:2026-11-17") == ["Evening"]
            assert find("created:2026-11-18") == []

    @pytest.mark.parametrize(
        ("typed", "reason"),
        [
            ("type:ship", "Unknown type"),
            ("state:ZZ", "Not a US state or territory"),
            ("past_due:lots", "Not an amount"),
            ("past_due:>", "Not an amount"),
            ("created:2026-02-30", "Not a date"),
            ("created:0001-01-01", "Not a date"),
            ("created:9999-12-31", "Not a date"),
            ("type:", "Enter a value right after the colon"),
        ],
    )
    def test_an_invalid_value_is_ignored_and_reported(self, typed: str, reason: str) -> None:
        query = parse_query(f"{typed} northwind")
        assert query.problems[0].startswith(f"“{typed}” was ignored. {reason}")
        assert query.alternatives == (("northwind",),)

    @pytest.mark.parametrize(
        ("typed", "plain", "said"),
        [
            ("oyster*", "oyster", "“oyster*”"),
            ("*yster inc **bay**", "yster inc bay", "“*yster”, “**bay**”"),
            ("type:borrower oyster*", "oyster", "“oyster*”"),
        ],
    )
    def test_asterisks_around_a_word_are_ignored_and_reported(
        self, typed: str, plain: str, said: str
    ) -> None:
        add_record("Oyster Bay Inc.")
        query = parse_query(typed)
        assert find(typed) == ["Oyster Bay Inc."]
        assert query.problems == (f"Searched without asterisks: {said}. Words match anywhere.",)
        assert query.name == plain

    @pytest.mark.parametrize(("typed", "amount"), [("25,000*", 25000), ("*2.5k", 2500)])
    def test_an_amount_is_read_next_to_an_asterisk(self, typed: str, amount: int) -> None:
        assert parse_query(typed).amount == amount

    def test_asterisks_in_ignored_words_are_not_reported(self) -> None:
        query = parse_query("*please* write to ana@oyster.example")
        assert query.alternatives == (("ana@oyster.example",),)
        assert query.problems == ()

    @pytest.mark.parametrize("typed", ["*", "e*bay", '"oyster*"'])
    def test_other_asterisks_are_searched_literally(self, typed: str) -> None:
        query = parse_query(typed)
        assert query.problems == ()
        assert query.alternatives == ((typed.strip('"'),),)

    def test_an_unknown_operator_is_searched_and_reported(self) -> None:
        query = parse_query("colour:blue")
        assert query.problems[0].startswith(
            "“colour:” isn’t an operator. The operators are type, status, state, past_due and added."
        )
        assert query.alternatives == (("colour:blue",),)

    def test_operators_that_cannot_match_are_reported(self) -> None:
        assert parse_query("type:repayment state:TX").problems[-1].startswith("Nothing can match")

    def test_a_url_is_not_read_as_an_operator(self) -> None:
        assert parse_query("https://north.example/").problems == ()


class TestRanking:
    def test_names_and_word_starts_rank_first(self) -> None:
        add_record("Elsewhere", "Port Austin")
        add_record("Saint Austin Foods")
        add_record("Reaustined LLC")
        add_record("Austin Foods")
        add_record("Denver Foods", "Austin")
        add_record("Austin")
        assert find("austin") == [
            "Austin",
            "Denver Foods",
            "Austin Foods",
            "Saint Austin Foods",
            "Elsewhere",
            "Reaustined LLC",
        ]

    @pytest.mark.parametrize("limit", [5, 100])
    def test_ranking_is_the_same_among_many_matches(self, limit: int) -> None:
        add_record("Austin")
        add_record("Denver Foods", "Austin")
        many = (
            {"uuid": f"m-{number}", "search_text": search_text(f"Reaustined {number}")}
            for number in range(max(limit, MIN_COMPARED))
        )
        Record.objects.bulk_create(Record(kind=Kind.BORROWER, label="Other", **one) for one in many)
        add_record("Austin Foods")
        assert find("austin", limit=limit)[:4] == ["Austin", "Denver Foods", "Austin Foods", "Other"]

    def test_ranking_is_the_same_for_old_records(self) -> None:
        add_record("Austin Foods")
        add_record("Austin")
        for number in range(MIN_COMPARED):
            add_record(f"Reaustined {number}")
        others = ({"uuid": f"s-{n}", "search_text": search_text(f"Stranger {n}")} for n in range(SAMPLED))
        Record.objects.bulk_create(Record(kind=Kind.BORROWER, **one) for one in others)
        newest = f"Reaustined {MIN_COMPARED - 1}"
        assert find("austin", limit=3) == ["Austin", "Austin Foods", newest]
        assert find("austin", limit=100)[:3] == ["Austin", "Austin Foods", newest]

    def test_the_best_match_is_first_among_counted_matches(self) -> None:
        add_record("Austin")
        for number in range(MIN_COMPARED * 2):
            add_record(f"Reaustined {number}")
        counted = rank_matches([Kind.BORROWER, Kind.LOAN], parse_query("austin"), 1, most=MIN_COMPARED * 2)
        assert {kind: len(ranks) for kind, ranks in counted.items()} == {Kind.BORROWER: MIN_COMPARED * 2}
        assert Record.objects.get(pk=next(iter(counted[Kind.BORROWER]))).label == "Austin"

    def test_records_with_separated_words_are_counted(self) -> None:
        for number in range(MIN_COMPARED * 2):
            add_record(f"Baking {number} Northwind")
        counted = rank_matches([Kind.BORROWER], parse_query("northwind baking"), 1, most=MIN_COMPARED * 3)
        assert len(counted[Kind.BORROWER]) == MIN_COMPARED * 2

    @pytest.mark.parametrize("text", ["state:TX acme", "acme"])
    def test_a_higher_limit_keeps_the_first_results(self, text: str) -> None:
        for number in range(MIN_COMPARED * 3):
            one = add_record(f"{number} Acme" if number % 3 else f"Acme {number}", state="TX")
            changed = datetime(2026, 3, 1 + number * 7 % 28, 12, tzinfo=UTC)
            Record.objects.filter(pk=one.pk).update(updated_at=changed)
        all_labels = find(text, limit=MIN_COMPARED * 3)
        assert len(set(all_labels)) == MIN_COMPARED * 3
        assert all(
            find(text, limit=limit) == all_labels[:limit] for limit in (5, MIN_COMPARED, MIN_COMPARED * 2)
        )

    def test_short_words_match_only_at_word_starts(self) -> None:
        for number in range(MIN_COMPARED):
            add_record(f"Hanna Smith {number}")
        for number in range(MIN_COMPARED):
            add_record(f"Aisha Smith {number}")
        counted = rank_matches([Kind.BORROWER], parse_query("ha sm"), 1, most=MIN_COMPARED * 3)
        assert len(counted[Kind.BORROWER]) == MIN_COMPARED
        assert find("ha sm") == [f"Hanna Smith {number}" for number in reversed(range(MIN_COMPARED))]

    @pytest.mark.parametrize("typed", ["Garcia, Maria", "(maria) garcia;", "maria & garcia"])
    def test_punctuation_next_to_words_is_ignored(self, typed: str) -> None:
        add_record("Maria Garcia")
        assert find(typed) == ["Maria Garcia"]

    def test_filtered_figures_decide_the_order(self) -> None:
        for name, owed, day in (("Little", 1, 3), ("Much", 900, 1), ("Some", 20, 2)):
            one = add_record(name, past_due=owed, past_due_rank=owed, flagged=True)
            Record.objects.filter(pk=one.pk).update(created_at=datetime(2026, 3, day, 12, tzinfo=UTC))
        assert find("past_due:>0") == ["Much", "Some", "Little"]
        assert find("created:>2026-01-01") == ["Little", "Some", "Much"]

    def test_a_word_does_not_match_across_spaces(self) -> None:
        add_record("Ban Ana Tools")
        add_record("Toolbox Banana")
        assert find("banana tool") == ["Toolbox Banana"]
        assert len(rank_matches([Kind.BORROWER], parse_query("banana tool"), 1, most=10)[Kind.BORROWER]) == 1

    def test_equal_matches_are_sorted_newest_first(self) -> None:
        for name in ("First Acme", "Second Acme", "Third Acme"):
            add_record(name)
        assert find("acme") == ["Third Acme", "Second Acme", "First Acme"]

    def test_words_in_typed_order_rank_first(self) -> None:
        add_record("Baking Northwind")
        add_record("Northwind Baking Co")
        assert find("northwind baking") == ["Northwind Baking Co", "Baking Northwind"]

    def test_two_characters_match_word_starts(self) -> None:
        add_record("Acme", "Nora Quist")
        add_record("Northwind")
        add_record("Canopy")
        assert find("no") == ["Northwind", "Acme"]

    def test_a_single_letter_narrows_other_words(self) -> None:
        add_record("Ana Smith")
        add_record("Jo Smith")
        assert find("j smith") == ["Jo Smith"]

    def test_an_id_finds_its_record_and_repayments_from_that_bank_account(self) -> None:
        add_record("Loan", kind=Kind.LOAN, uuid=ONE)
        Repayment.objects.create(uuid="paid", bank_account=ONE)
        assert find(f"see {ONE}", Kind.LOAN) == ["Loan"]
        assert find_repayments(ONE) == ["paid"]

    @pytest.mark.parametrize(
        "typed",
        ["ACH-77", "see Batch-2026-7", "r01", "$310.00", "2026-11-17", ONE, ONE[:9], "added:today ach-77"],
    )
    def test_a_repayment_is_found_by_ids_code_amount_and_day(self, typed: str) -> None:
        columns = {"ach_id": fold("ach-77"), "ach_batch_id": fold("batch-2026-7"), "code": "R01"}
        day = date(2026, 11, 17)
        Repayment.objects.create(uuid=ONE, amount=Decimal(310), effective_on=day, **columns)
        Repayment.objects.create(uuid="other", ach_id=fold("ach-7"), amount=Decimal(31))
        assert find_repayments(typed) == [ONE]

    @pytest.mark.parametrize(
        "typed", [ONE[:4], ONE[:8].upper(), f"Loan {ONE[:8]}", ONE[:30], "3f2b8c1e9d474a"]
    )
    def test_an_id_prefix_finds_its_record(self, typed: str) -> None:
        loan = add_record("Instalment", kind=Kind.LOAN, uuid=ONE)
        add_record("Other", kind=Kind.LOAN, uuid=ONE.replace("3f2b", "3f2c"))
        archived_loan = add_record("Gone", kind=Kind.LOAN, uuid=ONE[:-1] + "5", archived_at=timezone.now())
        assert find(typed, Kind.LOAN) == ["Instalment"]
        assert set(filter_by_text(Record.objects.exclude(pk=archived_loan.pk), typed)) == {loan}

    def test_name_prefixes_rank_before_id_prefixes(self) -> None:
        for name in ("The Cafe", "Cafe Luna", "Ana's Cafe"):
            add_record(name)
        add_record("Identified", uuid="cafe8c1e-9d47-4a60-b1c5-7e8f90a2d364")
        assert find("cafe") == ["Cafe Luna", "Identified", "Ana's Cafe", "The Cafe"]
        assert find("cafe8") == ["Identified"]
        assert find("cafe state:tx") == []

    def test_many_ids_with_one_prefix_are_all_found(self) -> None:
        rows_to_add = (
            Record(kind=kind, uuid=f"0192aaaa-0000-4000-8000-{number:012}", state=state)
            for kind, number, state in [
                (Kind.BORROWER, MAX_BY_KEYS, "TX"),
                *(
                    (kind, number, "")
                    for kind in (Kind.APPLICATION, Kind.BORROWER)
                    for number in range(MAX_BY_KEYS)
                ),
                (Kind.LOAN, 1, ""),
            ]
        )
        Record.objects.bulk_create(rows_to_add)
        listed = filter_by_text(Record.objects.filter(kind=Kind.BORROWER), "0192")
        assert listed.count() == MAX_BY_KEYS + 1
        ranks = rank_matches([Kind.APPLICATION, Kind.BORROWER, Kind.LOAN], parse_query("0192"), 5, most=10)
        assert [len(keys) for keys in ranks.values()] == [10, 10, 1]
        assert list(ranks[Kind.BORROWER]) == list(listed.order_by("-id").values_list("pk", flat=True)[:10])
        assert [
            len(keys) for keys in rank_matches([Kind.BORROWER], parse_query("0192 state:tx"), 5).values()
        ] == [1]

    def test_a_borrower_id_finds_the_borrowers_loans(self) -> None:
        owner = add_record("Acme", uuid=ONE)
        add_record("Their loan", kind=Kind.LOAN, uuid=TWO, borrower_uuid=owner.uuid)
        assert (
            find(f"{ONE[:8]} type:loan", Kind.LOAN) == find(f"{ONE} type:loan", Kind.LOAN) == ["Their loan"]
        )
        assert find(ONE[:8], Kind.LOAN) == []

    def test_an_id_that_is_not_a_uuid_is_searched_as_text(self) -> None:
        [loan] = save([Observation(kind=Kind.LOAN, uuid="LN-20391", borrower_uuid=ONE)], source="FILE")
        assert [*filter_by_text(Record.objects.all(), "n-2039")] == [loan]
        assert [*rank_matches([Kind.LOAN], parse_query("20391"), 5)[Kind.LOAN]] == [loan.pk]

    @pytest.mark.parametrize("typed", ["25000", "25,000.00", "$25,000"])
    def test_an_amount_is_found_in_any_notation(self, typed: str) -> None:
        add_record("Loan", kind=Kind.LOAN, amount=Decimal("25000.0000"))
        add_record("Other", kind=Kind.LOAN, amount=Decimal(2500))
        assert find(typed, Kind.LOAN) == ["Loan"]

    @pytest.mark.parametrize(
        "typed", ["%", "_", "\\", "'; --", '" OR "', "NEAR(a b)", "a AND", "*", "-", "^a", "(", "{}", "%s"]
    )
    def test_hostile_text_matches_nothing(self, typed: str) -> None:
        add_record("Acme")
        assert find(typed) == []
        assert list(filter_by_text(Record.objects.all(), typed)) == []

    @pytest.mark.parametrize("typed", ["Ana ǂ Ortiz", '"ǂAna Ortizǂ"', "ǂortiz", "Anaǀortiz"])
    def test_index_marker_characters_are_ignored(self, typed: str) -> None:
        add_record("Ana Ortiz")
        add_record("Anaǀ Ortizǂ")
        add_record("Anaortiz")
        assert find(typed)[:2] == ["Anaǀ Ortizǂ", "Ana Ortiz"]

    def test_list_search_finds_quotation_marks_in_names(self) -> None:
        add_record('The "Best" Bakery')
        assert filter_by_text(Record.objects.all(), 'the "best"').count() == 1


class TestIndex:
    def test_the_index_follows_record_changes(self) -> None:
        acme = add_record("Acme")
        Record.objects.filter(pk=acme.pk).update(search_text=search_text("Birch"), label="Birch")
        assert (find("acme"), find("birch")) == ([], ["Birch"])
        Record.objects.filter(pk=acme.pk).update(archived_at=timezone.now())
        assert find("birch") == []
        Record.objects.filter(pk=acme.pk).update(search_text=search_text("Cedar"), label="Cedar")
        Record.objects.filter(pk=acme.pk).update(archived_at=None)
        assert (find("birch"), find("cedar")) == ([], ["Cedar"])
        for text in ("", search_text("Cedar")):
            Record.objects.filter(pk=acme.pk).update(search_text=text)
            assert find("cedar") == (["Cedar"] if text else [])
        acme.delete()
        assert find("cedar") == []

    def test_a_record_without_text_is_not_indexed(self) -> None:
        empty = add_record()
        assert count_indexed(Kind.BORROWER) == 0
        Record.objects.filter(pk=empty.pk).update(search_text=search_text("Acme"))
        assert count_indexed(Kind.BORROWER) == 1
        Record.objects.filter(pk=empty.pk).update(search_text="")
        empty.delete()
        assert count_indexed(Kind.BORROWER) == 0
        assert find("acme") == []

    def test_bulk_created_records_are_indexed_by_kind(self) -> None:
        rows_to_add = [(Kind.BORROWER, None), (Kind.LOAN, None), (Kind.BORROWER, timezone.now())]
        Record.objects.bulk_create(
            Record(kind=kind, uuid=f"u-{number}", search_text=search_text("Acme"), archived_at=archived)
            for number, (kind, archived) in enumerate(rows_to_add)
        )
        matches = rank_matches(NAMED_KINDS, parse_query("acme"), 5)
        assert {kind: len(ranks) for kind, ranks in matches.items()} == {Kind.BORROWER: 1, Kind.LOAN: 1}

    def test_missing_triggers_are_created_again(self) -> None:
        with connection.cursor() as cursor:
            on = "" if connection.vendor == "sqlite" else " ON registry_record"
            cursor.execute(f"DROP TRIGGER {index_of(Kind.BORROWER)}_insert{on}")
        create_missing_triggers(using="default")
        add_record("Acme")
        assert find("acme") == ["Acme"]

    def test_a_very_long_line_is_found_by_its_start(self) -> None:
        add_record(LONG_NAME, "Austin", label="Long")
        assert find(LONG_NAME[:40]) == find("austin") == ["Long"]

    def test_a_very_common_word_is_found_with_a_filter(self) -> None:
        many = (
            {"uuid": f"m-{number}", "search_text": search_text(f"{number} LLC")}
            for number in range(MAX_BY_KEYS + 1)
        )
        Record.objects.bulk_create(Record(kind=Kind.BORROWER, state="CO", **one) for one in many)
        add_record("Acme LLC", state="TX")
        add_record("Birch Inc", state="TX")
        assert filter_by_text(Record.objects.all(), "llc").count() == MAX_BY_KEYS + 2
        assert find("state:TX llc") == ["Acme LLC"]

    @pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite looks for the kind in the columns")
    def test_indexes_of_one_kind_do_not_start_with_the_kind(self) -> None:
        of_one_kind = [index for index in index_definitions() if "(kind)::text =" in index]
        assert of_one_kind
        assert not [index for index in of_one_kind if "(kind, " in index]
