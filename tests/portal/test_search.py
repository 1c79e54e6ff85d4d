"""What a search box understands, and in which order it finds."""

import random
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from portal.registry.models import Kind, Record
from portal.registry.query import parse_query
from portal.registry.search.backend import MAX_BY_KEYS, MIN_COMPARED
from portal.registry.search.find import filter_by_text, rank_matches
from portal.registry.search.index import create_missing_triggers
from portal.registry.search.postgres import SAMPLED
from portal.registry.search.texts import index_of, search_text
from portal.registry.store import Observation, save

pytestmark = pytest.mark.django_db
ONE = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
TWO = "0f0e0d0c-0000-4000-8000-000000000002"
LONG_NAME = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9_000))


def record(*lines: str, kind: Kind = Kind.BORROWER, **fields: object) -> Record:
    """A known record that can be found by these lines; the first is its name."""
    uuid = f"r-{Record.objects.count()}"
    values = {
        "kind": kind,
        "uuid": uuid,
        "label": lines[0] if lines else "",
        "search_text": search_text(*lines),
    }
    return Record.objects.create(**values | fields)


def found(text: str, kind: Kind = Kind.BORROWER, *, limit: int = 100) -> list[str]:
    """The names of what a text finds, best first."""
    keys = rank_matches([kind], parse_query(text), limit).get(kind, ())
    return [Record.objects.get(pk=key).label for key in keys]


def indexes() -> list[str]:
    """What PostgreSQL says of each index of records."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'registry_record'")
        return [statement for (statement,) in cursor.fetchall()]


def in_index(kind: Kind) -> int:
    """How many records its index of texts holds."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {index_of(kind)}")
        return int(cursor.fetchone()[0])


class TestReading:
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
    def test_a_phone_is_its_ten_digits(self, typed: str) -> None:
        assert parse_query(typed).alternatives == (("5125550143",),)

    @pytest.mark.parametrize(
        "typed", ["call (512) 555-0143 ext. 7", "Ana, 512-555-0143x7", "phone:(512) 555-0143"]
    )
    def test_a_phone_in_a_sentence_is_said_and_the_rest_does_not_count(self, typed: str) -> None:
        assert parse_query(typed, operators=False).alternatives == (("5125550143",),)
        assert parse_query(typed, operators=False).read_as == "the phone number (512) 555-0143"

    @pytest.mark.parametrize(
        "typed",
        [ONE, ONE.upper(), ONE.replace("-", ""), f"https://desk.example/loans/{ONE}/?tab=1", f"Loan:{ONE},"],
    )
    def test_an_identifier_is_found_in_whatever_was_pasted(self, typed: str) -> None:
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
    def test_the_beginning_of_an_identifier_is_found_in_whatever_was_pasted(self, typed: str) -> None:
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
    def test_identifiers_begin_in_their_own_form(self, typed: str, starts: tuple[str, ...]) -> None:
        assert parse_query(typed).starts == starts

    def test_what_begins_like_more_identifiers_than_are_looked_up_is_said(self) -> None:
        query = parse_query(" ".join(f"fa2ab1c{digit}" for digit in "abcdef"))
        assert (len(query.starts), query.problems) == (5, ("Only the first 5 IDs were looked up.",))

    def test_a_name_of_the_letters_of_identifiers_is_one(self) -> None:
        assert parse_query("Fabaceae").name == "Fabaceae"

    def test_several_identifiers_are_all_looked_up(self) -> None:
        assert parse_query(f"/users/{ONE}/loan/{TWO} and {ONE}").uuids == (ONE, TWO)

    @pytest.mark.parametrize(
        "typed", ["Ana Ortiz <ana@north.example>", "mailto:ANA@north.example", "ana@north.example."]
    )
    def test_an_address_is_taken_out_of_a_mail(self, typed: str) -> None:
        assert parse_query(typed).alternatives == (("ana@north.example",),)

    @pytest.mark.parametrize(
        "typed", ["25000", "25,000.00", "$25,000", "$ 25000.0", "a payment of $25,000.00 bounced"]
    )
    def test_an_amount_is_the_same_however_it_is_written(self, typed: str) -> None:
        assert parse_query(typed).amount == Decimal(25000)

    @pytest.mark.parametrize("typed", ["25k", "$25k", "paid $0.025M today", "25K"])
    def test_thousands_and_millions_may_be_letters(self, typed: str) -> None:
        assert parse_query(typed).amount == 25_000

    @pytest.mark.parametrize("typed", ["ACH af19d63dc2ce bounced", "batch 20261111", "loan LN-70137 of ours"])
    def test_a_reference_is_taken_out_of_a_line_which_may_as_well_be_words(self, typed: str) -> None:
        reference, words = parse_query(typed).alternatives
        assert parse_query(typed).read_as == f"the reference {reference[0]}, or as words"
        assert set(reference) < set(words) == set(typed.lower().split())

    @pytest.mark.parametrize("typed", ["Portland 97205-2679", "since 2026-11-01", "3 Rivers Tool"])
    def test_neither_a_zip_code_nor_a_day_is_a_reference(self, typed: str) -> None:
        assert not parse_query(typed).read_as

    @pytest.mark.parametrize("typed", ["1,25,000", "ach-25000", "25000 26000", "$", "9" * 30])
    def test_what_only_looks_like_an_amount_is_none(self, typed: str) -> None:
        assert parse_query(typed).amount is None

    @pytest.mark.parametrize("typed", ["+44 512 555 0143", "+353-512-555-0143"])
    def test_a_phone_of_another_country_is_not_taken_for_one_of_this(self, typed: str) -> None:
        assert parse_query(typed).read_as == ""
        assert ("5125550143",) not in parse_query(typed).alternatives

    def test_a_part_of_a_phone_may_as_well_be_something_else(self) -> None:
        assert parse_query("555-0143").alternatives == (("5550143",), ("555-0143",))

    def test_case_accents_and_dashes_do_not_matter(self) -> None:
        assert parse_query("JOSÉ  Peña–Ruiz").alternatives == (("jose", "pena-ruiz"),)

    def test_apostrophes_are_one_however_they_were_typed(self) -> None:
        record("O'Neil & Daughters, LLC")
        record("D’Angelo Masonry LLC")
        assert found("O’Neil") == ["O'Neil & Daughters, LLC"]
        assert found("d'angelo") == ["D’Angelo Masonry LLC"]

    def test_an_exact_phrase_stays_whole(self) -> None:
        assert parse_query('"ana ortiz" austin').alternatives == (("ana ortiz", "austin"),)

    @pytest.mark.parametrize("typed", ["j.r.smith", "100%_x", "a\\b-cdef", "o'neil's"])
    def test_marks_within_a_word_count(self, typed: str) -> None:
        record(f"Acme {typed} LLC")
        for between in ("x", " "):
            record(f"Acme {typed[:4]}{between}{typed[4:]} LLC")
        assert found(typed) == [f"Acme {typed} LLC"]

    @pytest.mark.parametrize("typed", ["Austin TX", "foods, austin, tx.", "Austin, TX 78702", "austin texas"])
    def test_the_code_behind_a_place_is_its_state(self, typed: str) -> None:
        record("Cedar Foods", "Austin", "78702", "Texas")
        record("Cedar Tools", "Austin", "55912", "Minnesota")
        assert found(typed) == ["Cedar Foods"]

    def test_the_code_of_a_state_may_be_a_word(self) -> None:
        record("Cedar & Co")
        record("Cedar Foods", "Colorado")
        assert sorted(found("cedar co")) == ["Cedar & Co", "Cedar Foods"]
        assert parse_query("co").alternatives == (("co",),)
        assert parse_query("78702").alternatives == (("78702",),)

    @pytest.mark.parametrize("typed", ["\0", "\ud800", " \t\u200b", '""', ""])
    def test_what_holds_no_text_asks_for_nothing(self, typed: str) -> None:
        assert parse_query(typed).is_empty

    def test_what_is_too_much_is_said(self) -> None:
        assert parse_query("x" * 600).problems == ("Only the first 500 characters were used.",)
        assert parse_query(" ".join("abcdefghijk")).problems == ("Only the first 8 words were used.",)
        many = " ".join(f"{number:08}{ONE[8:]}" for number in range(6))
        assert parse_query(many).problems == ("Only the first 5 IDs were looked up.",)

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
    def test_only_words_can_be_somebodys_name(self, typed: str, name: str) -> None:
        assert parse_query(typed).name == name


class TestOperators:
    @pytest.mark.parametrize(
        "typed", ["type:loc", "TYPE:line", 'type:"line of credit"', "type:LOCs", "type:line-of-credit"]
    )
    def test_a_type_has_more_than_one_name(self, typed: str) -> None:
        assert parse_query(typed).kinds == (Kind.LINE,)

    def test_two_types_are_either(self) -> None:
        assert parse_query("type:loan type:loc").kinds == (Kind.LOAN, Kind.LINE)

    @pytest.mark.parametrize("typed", ["state:TX", "state:texas", "state:Texas"])
    def test_a_state_goes_by_code_or_name(self, typed: str) -> None:
        record("Austin Foods", state="TX")
        record("Denver Foods", state="CO")
        assert found(f"{typed} foods") == ["Austin Foods"]

    def test_a_state_of_two_words_is_quoted_or_dashed(self) -> None:
        record("Buffalo Foods", state="NY")
        assert found('state:"new york"') == found("state:new-york") == ["Buffalo Foods"]

    @pytest.mark.parametrize(
        ("typed", "names"), [(">0", "c"), ("0", "b"), (">=$0", "bc"), ("<1,000.50", "b"), ("<=1000.50", "bc")]
    )
    def test_past_due_is_compared(self, typed: str, names: str) -> None:
        record("a")
        record("b", past_due=Decimal(0))
        record("c", past_due=Decimal("1000.50"))
        assert sorted(found(f"past_due:{typed}")) == list(names)

    def test_a_status_is_matched_whatever_its_case_and_separators(self) -> None:
        record("Back", kind=Kind.REPAYMENT, status="FAILED_AFTER_SUCCESS")
        assert found("status:failed-after-success", Kind.REPAYMENT) == ["Back"]

    def test_delinquent_is_a_status_too(self) -> None:
        record("Late", kind=Kind.LOAN, status="ACTIVE", flagged=True)
        record("Good", kind=Kind.LOAN, status="ACTIVE")
        record("Back", kind=Kind.REPAYMENT, status="FAILED_AFTER_SUCCESS", flagged=True)
        assert found("status:delinquent", Kind.LOAN) == ["Late"]
        assert found("status:delinquent", Kind.REPAYMENT) == []

    def test_a_status_that_nobody_foresaw_can_be_asked_for_once_it_was_told(self) -> None:
        assert "Unknown status" in parse_query("status:hibernating").problems[0]
        record("Asleep", kind=Kind.LOAN, status="HIBERNATING")
        assert found("status:hibernating", Kind.LOAN) == ["Asleep"]
        record("On hold", kind=Kind.LOAN, status="In review")
        record("Due", kind=Kind.LOAN, status="Active")
        assert found('status:"in review"', Kind.LOAN) == found("status:in-review", Kind.LOAN) == ["On hold"]
        assert found("status:active", Kind.LOAN) == ["Due"]

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
    def test_created_counts_days_weeks_and_months(self, typed: str, days: str) -> None:
        for day in ("10-31", "11-01", "11-09", "11-15", "11-16", "11-17", "11-18"):
            made = record(day[-2:])
            Record.objects.filter(pk=made.pk).update(
                created_at=datetime.fromisoformat(f"2026-{day}T12:00+00:00")
            )
        assert sorted(found(f"added:{typed}")) == sorted(days.split())

    @time_machine.travel(datetime(2026, 11, 18, 3, tzinfo=UTC), tick=False)
    def test_a_day_is_that_of_whoever_looks(self) -> None:
        record("Evening")
        with timezone.override("America/New_York"):
            assert found("added:2026-11-17") == ["Evening"]
            assert found("created:2026-11-18") == []

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
    def test_a_value_that_means_nothing_is_left_out_and_said(self, typed: str, reason: str) -> None:
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
    def test_an_asterisk_beside_a_word_is_left_out_and_said(self, typed: str, plain: str, said: str) -> None:
        record("Oyster Bay Inc.")
        query = parse_query(typed)
        assert found(typed) == ["Oyster Bay Inc."]
        assert query.problems == (f"Searched without asterisks: {said}. Words match anywhere.",)
        assert query.name == plain

    @pytest.mark.parametrize(("typed", "amount"), [("25,000*", 25000), ("*2.5k", 2500)])
    def test_what_is_not_a_word_is_still_known_beside_an_asterisk(self, typed: str, amount: int) -> None:
        assert parse_query(typed).amount == amount

    def test_asterisks_in_what_does_not_count_are_not_told(self) -> None:
        query = parse_query("*please* write to ana@oyster.example")
        assert query.alternatives == (("ana@oyster.example",),)
        assert query.problems == ()

    @pytest.mark.parametrize("typed", ["*", "e*bay", '"oyster*"'])
    def test_another_asterisk_is_looked_for(self, typed: str) -> None:
        query = parse_query(typed)
        assert query.problems == ()
        assert query.alternatives == ((typed.strip('"'),),)

    def test_an_unknown_operator_is_a_word_and_said(self) -> None:
        query = parse_query("colour:blue")
        assert query.problems[0].startswith(
            "“colour:” isn’t an operator. The operators are type, status, state, past_due and added."
        )
        assert query.alternatives == (("colour:blue",),)

    def test_what_cannot_be_together_is_said(self) -> None:
        assert parse_query("type:repayment state:TX").problems[-1].startswith("Nothing can match")

    def test_an_address_of_the_web_is_no_operator(self) -> None:
        assert parse_query("https://north.example/").problems == ()


class TestOrder:
    def test_the_name_comes_before_other_lines_and_beginnings_before_the_rest(self) -> None:
        record("Elsewhere", "Port Austin")
        record("Saint Austin Foods")
        record("Reaustined LLC")
        record("Austin Foods")
        record("Denver Foods", "Austin")
        record("Austin")
        assert found("austin") == [
            "Austin",
            "Denver Foods",
            "Austin Foods",
            "Saint Austin Foods",
            "Elsewhere",
            "Reaustined LLC",
        ]

    @pytest.mark.parametrize("limit", [5, 100])
    def test_the_order_is_the_same_among_very_many(self, limit: int) -> None:
        record("Austin")
        record("Denver Foods", "Austin")
        many = (
            {"uuid": f"m-{number}", "search_text": search_text(f"Reaustined {number}")}
            for number in range(max(limit, MIN_COMPARED))
        )
        Record.objects.bulk_create(Record(kind=Kind.BORROWER, label="Other", **one) for one in many)
        record("Austin Foods")
        assert found("austin", limit=limit)[:4] == ["Austin", "Denver Foods", "Austin Foods", "Other"]

    def test_the_order_is_the_same_of_what_lies_far_back(self) -> None:
        record("Austin Foods")
        record("Austin")
        for number in range(MIN_COMPARED):
            record(f"Reaustined {number}")
        strangers = ({"uuid": f"s-{n}", "search_text": search_text(f"Stranger {n}")} for n in range(SAMPLED))
        Record.objects.bulk_create(Record(kind=Kind.BORROWER, **one) for one in strangers)
        newest = f"Reaustined {MIN_COMPARED - 1}"
        assert found("austin", limit=3) == ["Austin", "Austin Foods", newest]
        assert found("austin", limit=100)[:3] == ["Austin", "Austin Foods", newest]

    def test_the_best_come_first_although_more_are_counted(self) -> None:
        record("Austin")
        for number in range(MIN_COMPARED * 2):
            record(f"Reaustined {number}")
        counted = rank_matches([Kind.BORROWER, Kind.LOAN], parse_query("austin"), 1, most=MIN_COMPARED * 2)
        assert {kind: len(ranks) for kind, ranks in counted.items()} == {Kind.BORROWER: MIN_COMPARED * 2}
        assert Record.objects.get(pk=next(iter(counted[Kind.BORROWER]))).label == "Austin"

    def test_words_that_stand_apart_are_all_counted(self) -> None:
        for number in range(MIN_COMPARED * 2):
            record(f"Baking {number} Northwind")
        counted = rank_matches([Kind.BORROWER], parse_query("northwind baking"), 1, most=MIN_COMPARED * 3)
        assert len(counted[Kind.BORROWER]) == MIN_COMPARED * 2

    @pytest.mark.parametrize("text", ["state:TX acme", "acme"])
    def test_what_comes_later_does_not_change_what_came_first(self, text: str) -> None:
        for number in range(MIN_COMPARED * 3):
            one = record(f"{number} Acme" if number % 3 else f"Acme {number}", state="TX")
            changed = datetime(2026, 3, 1 + number * 7 % 28, 12, tzinfo=UTC)
            Record.objects.filter(pk=one.pk).update(updated_at=changed)
        whole = found(text, limit=MIN_COMPARED * 3)
        assert len(set(whole)) == MIN_COMPARED * 3
        assert all(found(text, limit=limit) == whole[:limit] for limit in (5, MIN_COMPARED, MIN_COMPARED * 2))

    def test_a_short_word_counts_where_it_begins_one_in_phrases_too(self) -> None:
        for number in range(MIN_COMPARED):
            record(f"Hanna Smith {number}")
        for number in range(MIN_COMPARED):
            record(f"Aisha Smith {number}")
        counted = rank_matches([Kind.BORROWER], parse_query("ha sm"), 1, most=MIN_COMPARED * 3)
        assert len(counted[Kind.BORROWER]) == MIN_COMPARED
        assert found("ha sm") == [f"Hanna Smith {number}" for number in reversed(range(MIN_COMPARED))]

    @pytest.mark.parametrize("typed", ["Garcia, Maria", "(maria) garcia;", "maria & garcia"])
    def test_what_stands_beside_words_is_not_looked_for(self, typed: str) -> None:
        record("Maria Garcia")
        assert found(typed) == ["Maria Garcia"]

    def test_figures_that_are_asked_for_give_the_order(self) -> None:
        for name, owed, day in (("Little", 1, 3), ("Much", 900, 1), ("Some", 20, 2)):
            one = record(name, past_due=owed)
            Record.objects.filter(pk=one.pk).update(created_at=datetime(2026, 3, day, 12, tzinfo=UTC))
        assert found("past_due:>0") == ["Much", "Some", "Little"]
        assert found("created:>2026-01-01") == ["Little", "Some", "Much"]

    def test_letters_of_a_word_that_stand_apart_are_no_match(self) -> None:
        record("Ban Ana Tools")
        record("Toolbox Banana")
        assert found("banana tool") == ["Toolbox Banana"]
        assert len(rank_matches([Kind.BORROWER], parse_query("banana tool"), 1, most=10)[Kind.BORROWER]) == 1

    def test_equal_matches_are_the_newest_first(self) -> None:
        for name in ("First Acme", "Second Acme", "Third Acme"):
            record(name)
        assert found("acme") == ["Third Acme", "Second Acme", "First Acme"]

    def test_words_in_their_order_come_before_words_anywhere(self) -> None:
        record("Baking Northwind")
        record("Northwind Baking Co")
        assert found("northwind baking") == ["Northwind Baking Co", "Baking Northwind"]

    def test_two_characters_find_what_begins_with_them(self) -> None:
        record("Acme", "Nora Quist")
        record("Northwind")
        record("Canopy")
        assert found("no") == ["Northwind", "Acme"]

    def test_a_single_letter_narrows_other_words(self) -> None:
        record("Ana Smith")
        record("Jo Smith")
        assert found("j smith") == ["Jo Smith"]

    def test_an_identifier_leads_to_the_record_and_to_what_mentions_it(self) -> None:
        record("Loan", kind=Kind.LOAN, uuid=ONE)
        record("Payment", ONE, kind=Kind.REPAYMENT)
        assert found(f"see {ONE}", Kind.LOAN) == ["Loan"]
        assert found(ONE, Kind.REPAYMENT) == ["Payment"]

    @pytest.mark.parametrize(
        "typed", [ONE[:4], ONE[:8].upper(), f"Loan {ONE[:8]}", ONE[:30], "3f2b8c1e9d474a"]
    )
    def test_an_identifier_is_found_by_how_it_begins(self, typed: str) -> None:
        loan = record("Instalment", kind=Kind.LOAN, uuid=ONE)
        record("Other", kind=Kind.LOAN, uuid=ONE.replace("3f2b", "3f2c"))
        gone = record("Gone", kind=Kind.LOAN, uuid=ONE[:-1] + "5", archived_at=timezone.now())
        assert found(typed, Kind.LOAN) == ["Instalment"]
        assert set(filter_by_text(Record.objects.exclude(pk=gone.pk), typed)) == {loan}

    def test_whose_name_begins_so_comes_before_whose_identifier_does(self) -> None:
        for name in ("The Cafe", "Cafe Luna", "Ana's Cafe"):
            record(name)
        record("Identified", uuid="cafe8c1e-9d47-4a60-b1c5-7e8f90a2d364")
        assert found("cafe") == ["Cafe Luna", "Identified", "Ana's Cafe", "The Cafe"]
        assert found("cafe8") == ["Identified"]
        assert found("cafe state:tx") == []

    def test_where_very_many_identifiers_begin_alike_none_is_hidden(self) -> None:
        written = (
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
        Record.objects.bulk_create(written)
        listed = filter_by_text(Record.objects.filter(kind=Kind.BORROWER), "0192")
        assert listed.count() == MAX_BY_KEYS + 1
        ranks = rank_matches([Kind.APPLICATION, Kind.BORROWER, Kind.LOAN], parse_query("0192"), 5, most=10)
        assert [len(keys) for keys in ranks.values()] == [10, 10, 1]
        assert list(ranks[Kind.BORROWER]) == list(listed.order_by("-id").values_list("pk", flat=True)[:10])
        assert [
            len(keys) for keys in rank_matches([Kind.BORROWER], parse_query("0192 state:tx"), 5).values()
        ] == [1]

    def test_what_belongs_to_a_borrower_is_found_by_its_identifier(self) -> None:
        owner = record("Acme", uuid=ONE)
        record("Their loan", kind=Kind.LOAN, uuid=TWO, borrower_uuid=owner.uuid)
        assert (
            found(f"{ONE[:8]} type:loan", Kind.LOAN) == found(f"{ONE} type:loan", Kind.LOAN) == ["Their loan"]
        )
        assert found(ONE[:8], Kind.LOAN) == []

    def test_an_identifier_of_another_form_is_found_like_any_text(self) -> None:
        [loan] = save([Observation(kind=Kind.LOAN, uuid="LN-20391", borrower_uuid=ONE)], source="FILE")
        assert [*filter_by_text(Record.objects.all(), "n-2039")] == [loan]
        assert [*rank_matches([Kind.LOAN], parse_query("20391"), 5)[Kind.LOAN]] == [loan.pk]

    @pytest.mark.parametrize("typed", ["25000", "25,000.00", "$25,000"])
    def test_an_amount_is_found_in_any_notation(self, typed: str) -> None:
        record("Loan", kind=Kind.LOAN, amount=Decimal("25000.0000"))
        record("Other", kind=Kind.LOAN, amount=Decimal(2500))
        assert found(typed, Kind.LOAN) == ["Loan"]

    @pytest.mark.parametrize(
        "typed", ["%", "_", "\\", "'; --", '" OR "', "NEAR(a b)", "a AND", "*", "-", "^a", "(", "{}", "%s"]
    )
    def test_hostile_text_is_only_text(self, typed: str) -> None:
        record("Acme")
        assert found(typed) == []
        assert list(filter_by_text(Record.objects.all(), typed)) == []

    @pytest.mark.parametrize("typed", ["Ana ǂ Ortiz", '"ǂAna Ortizǂ"', "ǂortiz", "Anaǀortiz"])
    def test_marks_that_the_index_is_made_with_are_read_over_wherever_they_stand(self, typed: str) -> None:
        record("Ana Ortiz")
        record("Anaǀ Ortizǂ")
        record("Anaortiz")
        assert found(typed)[:2] == ["Anaǀ Ortizǂ", "Ana Ortiz"]

    def test_quotation_marks_in_a_name_are_found_as_typed_without_operators(self) -> None:
        record('The "Best" Bakery')
        assert filter_by_text(Record.objects.all(), 'the "best"').count() == 1


class TestIndex:
    def test_it_follows_every_change_of_a_record(self) -> None:
        acme = record("Acme")
        Record.objects.filter(pk=acme.pk).update(search_text=search_text("Birch"), label="Birch")
        assert (found("acme"), found("birch")) == ([], ["Birch"])
        Record.objects.filter(pk=acme.pk).update(archived_at=timezone.now())
        assert found("birch") == []
        Record.objects.filter(pk=acme.pk).update(search_text=search_text("Cedar"), label="Cedar")
        Record.objects.filter(pk=acme.pk).update(archived_at=None)
        assert (found("birch"), found("cedar")) == ([], ["Cedar"])
        for text in ("", search_text("Cedar")):
            Record.objects.filter(pk=acme.pk).update(search_text=text)
            assert found("cedar") == (["Cedar"] if text else [])
        acme.delete()
        assert found("cedar") == []

    def test_what_has_no_text_is_not_in_it(self) -> None:
        empty = record()
        assert in_index(Kind.BORROWER) == 0
        Record.objects.filter(pk=empty.pk).update(search_text=search_text("Acme"))
        assert in_index(Kind.BORROWER) == 1
        Record.objects.filter(pk=empty.pk).update(search_text="")
        empty.delete()
        assert in_index(Kind.BORROWER) == 0
        assert found("acme") == []

    def test_what_is_written_together_is_found_each_among_its_kind(self) -> None:
        written = [(Kind.BORROWER, None), (Kind.LOAN, None), (Kind.BORROWER, timezone.now())]
        Record.objects.bulk_create(
            Record(kind=kind, uuid=f"u-{number}", search_text=search_text("Acme"), archived_at=archived)
            for number, (kind, archived) in enumerate(written)
        )
        matches = rank_matches(Kind, parse_query("acme"), 5)
        assert {kind: len(ranks) for kind, ranks in matches.items()} == {Kind.BORROWER: 1, Kind.LOAN: 1}

    def test_triggers_that_a_migration_dropped_come_back(self) -> None:
        with connection.cursor() as cursor:
            on = "" if connection.vendor == "sqlite" else " ON registry_record"
            cursor.execute(f"DROP TRIGGER {index_of(Kind.BORROWER)}_insert{on}")
        create_missing_triggers(connection)
        record("Acme")
        assert found("acme") == ["Acme"]

    def test_a_line_of_any_length_is_taken_in_and_found_by_its_beginning(self) -> None:
        record(LONG_NAME, "Austin", label="Long")
        assert found(LONG_NAME[:40]) == found("austin") == ["Long"]

    def test_a_word_of_very_many_is_looked_for_along_the_list(self) -> None:
        many = (
            {"uuid": f"m-{number}", "search_text": search_text(f"{number} LLC")}
            for number in range(MAX_BY_KEYS + 1)
        )
        Record.objects.bulk_create(Record(kind=Kind.BORROWER, state="CO", **one) for one in many)
        record("Acme LLC", state="TX")
        record("Birch Inc", state="TX")
        assert filter_by_text(Record.objects.all(), "llc").count() == MAX_BY_KEYS + 2
        assert found("state:TX llc") == ["Acme LLC"]

    @pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite looks for the kind in the columns")
    def test_an_index_of_one_kind_does_not_begin_with_it(self) -> None:
        of_one_kind = [index for index in indexes() if "(kind)::text =" in index]
        assert of_one_kind
        assert not [index for index in of_one_kind if "(kind, " in index]
