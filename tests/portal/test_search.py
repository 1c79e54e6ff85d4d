"""Tests of how search parses its input and ranks its results."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.utils import timezone

import servicing
from portal.accounts.models import User
from portal.collections.models import AccountOwner
from portal.core.folding import fold
from portal.records.models import NAMED_KINDS, PEOPLE, Account, Borrower, Kind, Repayment
from portal.records.query import operator_names, parse_query
from portal.records.repayments import matching_repayments, rank_repayments
from portal.records.rows import MODELS, records_of
from portal.records.search import (
    ACCOUNTS,
    MAX_OWNERS,
    Rank,
    find_by_text,
    matching,
    matching_owners,
    rank_matches,
)
from portal.records.store import Observation, records_in_answer, save, set_search_columns
from portal.records.texts import search_text
from servicing import codec

pytestmark = pytest.mark.django_db
ONE = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
TWO = "0f0e0d0c-0000-4000-8000-000000000002"
LONG_NAME = "".join(f"{number:x}" for number in range(2_000))
SCRIPTS = [
    "Αθήνα Εμπορική",
    "Москва Йошкар",
    "מאפיית השכונה",
    "مخبز المدينة",
    "東京製菓株式会社",
    "さくらベーカリー",
    "ร้านขนมไทย",
    "हिन्दी बेकरी",
]


def new_record(*lines: str, kind: Kind = Kind.BORROWER, **fields: Any) -> Any:
    """Return an unsaved record that these lines find; the first line is its name."""
    label = fields.pop("label", lines[0] if lines else "")
    record = MODELS[kind](**fields) if kind in MODELS else Account(kind=kind, **fields)
    record.label, record.search_text = label, search_text(*lines)
    set_search_columns(record)
    return record


def add_record(*lines: str, kind: Kind = Kind.BORROWER, **fields: Any) -> Any:
    """Add a record that these lines find; the first line is its name."""
    record = new_record(*lines, kind=kind, **{"uuid": f"r-{records_of(kind).count()}"} | fields)
    record.save()
    return record


def find(text: str, kind: Kind = Kind.BORROWER, *, limit: int = 100) -> list[str]:
    """Return the names of the matches, best first, and check that a list finds the same."""
    query = parse_query(text)
    keys = rank_matches([kind], query, limit).get(kind, {})
    if not query.is_empty and not query.is_limited:
        found = records_of(kind).filter(matching([kind], query), archived_at=None)
        assert len(keys) == min(found.count(), limit)
    return [records_of(kind).get(pk=key).label for key in keys]


def find_repayments(text: str) -> list[str]:
    """Return the IDs of the matching repayments, best first, and check that their list finds the same."""
    query = parse_query(text)
    keys = [*rank_repayments(query, 100)]
    owners = matching_owners(query)[0] if query.is_limited else []
    if not query.is_empty:
        assert {one.pk for one in Repayment.objects.filter(matching_repayments(query, owners))} == set(keys)
    return [Repayment.objects.get(pk=key).uuid for key in keys]


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
        add_record("Cedar Foods", "Austin", "78702", "TX", "Texas")
        add_record("Cedar Tools", "Austin", "55912", "MN", "Minnesota")
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


@pytest.mark.postgres
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
        add_record("c", past_due=Decimal("1000.50"), is_past_due=True, past_due_rank=Decimal("1000.50"))
        add_record("d", past_due=Decimal(900))  # closed
        assert sorted(find(f"past_due:{typed}")) == list(names)

    def test_a_status_ignores_case_and_separators(self) -> None:
        Repayment.objects.create(uuid="back", status="FAILED_AFTER_SUCCESS")
        assert find_repayments("status:failed-after-success") == ["back"]

    def test_delinquent_is_a_status_too(self) -> None:
        add_record("Late", kind=Kind.LOAN, status="ACTIVE", is_past_due=True, past_due_rank=1)
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
            Borrower.objects.filter(pk=created.pk).update(
                created_at=datetime.fromisoformat(f"2026-{day}T12:00+00:00")
            )
        assert sorted(find(f"added:{typed}")) == sorted(days.split())

    @pytest.mark.parametrize("typed", ["city:austin", "city:AUSTIN", 'city:"Austin"'])
    def test_a_city_is_matched_whole(self, typed: str) -> None:
        add_record("Foods", city="Austin")
        add_record("Port Foods", "Austin", city="Port Austin")
        add_record("Ana", kind=Kind.KEY_PERSON, city="Austin")
        assert find(f"{typed} foods") == find(typed) == ["Foods"]
        assert find(typed, Kind.KEY_PERSON) == []

    @pytest.mark.parametrize("typed", ["sao-paulo", '"São Paulo"', "saopaulo"])
    def test_a_city_is_matched_however_it_is_written(self, typed: str) -> None:
        add_record("Foods", city="São Paulo")
        assert find(f"city:{typed}") == ["Foods"]
        assert find("city:paulo") == []

    def test_an_owner_is_the_colleague_who_works_the_account(self) -> None:
        ana = User.objects.create(username="aortiz", first_name="Ana", last_name="Ortiz")
        User.objects.create(username="bo")
        for kind in ACCOUNTS:
            add_record(label="Hers", kind=kind, uuid=f"hers-{kind}")
            add_record(label="Nobody’s", kind=kind)
            AccountOwner.objects.create(account_uuid=f"hers-{kind}", owner=ana)
            for typed in ("ana", "ORTIZ", '"ana ortiz"', "aortiz"):
                assert find(f"owner:{typed}", kind) == ["Hers"]
            assert find("owner:none", kind) == ["Nobody’s"]
            assert find("owner:bo", kind) == []
        assert parse_query("owner:carl").problems[0].startswith("“owner:carl” was ignored. No colleague")

    def test_autopay_is_on_or_off(self) -> None:
        for label, has_autopay in (("On", True), ("Off", False), ("Not known", None)):
            add_record(label=label, kind=Kind.LOAN, has_autopay=has_autopay)
        assert find("autopay:yes", Kind.LOAN) == find("autopay:ON", Kind.LOAN) == ["On"]
        assert find("autopay:no", Kind.LOAN) == ["Off"]
        assert "Use autopay:yes or autopay:no" in parse_query("autopay:maybe").problems[0]

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
            "“colour:” isn’t an operator. The operators are type, status, state, city, past_due, autopay, owner, "
            "added and promise."
        )
        assert query.alternatives == (("colour:blue",),)

    def test_operators_that_cannot_match_are_reported(self) -> None:
        assert parse_query("type:repayment state:TX").problems[-1].startswith("Nothing can match")

    def test_a_url_is_not_read_as_an_operator(self) -> None:
        assert parse_query("https://north.example/").problems == ()


@pytest.mark.postgres
class TestRanking:
    def test_names_rank_before_other_texts(self) -> None:
        add_record("Elsewhere", "Port Austin")
        add_record("Saint Austin Foods")
        add_record("Reaustined LLC")
        add_record("Austin Foods")
        add_record("Denver Foods", "Austin")
        add_record("Austin")
        assert find("austin") == [
            "Austin",
            "Austin Foods",
            "Denver Foods",
            "Reaustined LLC",
            "Saint Austin Foods",
            "Elsewhere",
        ]

    @pytest.mark.parametrize("limit", [1, 3, 5, 30])
    def test_the_best_match_is_first_however_old_it_is(self, limit: int) -> None:
        add_record("Austin")
        add_record("Austin Foods")
        Borrower.objects.bulk_create(new_record(f"Reaustined {n}", uuid=f"m-{n}") for n in range(40))
        expected = ["Austin", "Austin Foods", *(f"Reaustined {n}" for n in reversed(range(40)))]
        assert find("austin", limit=limit) == expected[:limit]

    def test_each_match_says_how_well_it_matches(self) -> None:
        added = [
            add_record("Acme", uuid=ONE),
            add_record("Acme Farms"),
            add_record("New Acme"),
            add_record("ACME."),
        ]
        ranks = rank_matches([Kind.BORROWER], parse_query("acme"), 10)[Kind.BORROWER]
        found = [ranks[record.pk] for record in added]
        assert found == [Rank.NAME, Rank.BEGINNING, Rank.WORDS, Rank.NAME]
        ranks = rank_matches([Kind.BORROWER], parse_query(ONE[:8]), 10)[Kind.BORROWER]
        assert ranks == {added[0].pk: Rank.EXACT}

    def test_key_people_rank_by_their_name_too(self) -> None:
        for name in ("Ana Ortiz Lopez", "Ana Ortiz", "Mariana Ortiz"):
            add_record(name, kind=Kind.KEY_PERSON)
        found = ["Ana Ortiz", "Ana Ortiz Lopez", "Mariana Ortiz"]
        assert find("ana ortiz", Kind.KEY_PERSON) == found

    @pytest.mark.parametrize("text", ["state:TX acme", "acme"])
    def test_a_higher_limit_keeps_the_first_results(self, text: str) -> None:
        for number in range(30):
            add_record(f"{number} Acme" if number % 3 else f"Acme {number}", state="TX")
        all_labels = find(text, limit=30)
        assert len(set(all_labels)) == 30
        assert all(find(text, limit=limit) == all_labels[:limit] for limit in (5, 10, 20))

    def test_short_words_match_only_at_word_starts(self) -> None:
        for number in range(5):
            add_record(f"Hanna Smith {number}")
            add_record(f"Aisha Smith {number}")
        assert find("ha sm") == [f"Hanna Smith {number}" for number in reversed(range(5))]

    @pytest.mark.parametrize("typed", ["Garcia, Maria", "(maria) garcia;", "maria & garcia"])
    def test_punctuation_next_to_words_is_ignored(self, typed: str) -> None:
        add_record("Maria Garcia")
        assert find(typed) == ["Maria Garcia"]

    def test_filtered_figures_decide_the_order(self) -> None:
        for name, owed, day in (("Little", 1, 3), ("Much", 900, 1), ("Some", 20, 2)):
            one = add_record(name, past_due=owed, past_due_rank=owed, is_past_due=True)
            Borrower.objects.filter(pk=one.pk).update(created_at=datetime(2026, 3, day, 12, tzinfo=UTC))
        assert find("past_due:>0") == ["Much", "Some", "Little"]
        assert find("created:>2026-01-01") == ["Little", "Some", "Much"]

    def test_a_word_does_not_match_across_spaces(self) -> None:
        add_record("Ban Ana Tools")
        add_record("Toolbox Banana")
        assert find("banana tool") == ["Toolbox Banana"]

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
        add_record("Application", ONE, kind=Kind.APPLICATION)
        assert find(f"see {ONE}", Kind.LOAN) == ["Loan"]
        for typed in (ONE, ONE[:8], ONE[:13]):
            assert find_repayments(typed) == ["paid"]
            assert find(typed, Kind.APPLICATION) == ["Application"]

    @pytest.mark.parametrize(
        "typed", [ONE[:4], ONE[:8].upper(), f"Loan {ONE[:8]}", ONE[:30], "3f2b8c1e9d474a"]
    )
    def test_an_id_prefix_finds_its_record(self, typed: str) -> None:
        loan = add_record("Instalment", kind=Kind.LOAN, uuid=ONE)
        add_record("Other", kind=Kind.LOAN, uuid=ONE.replace("3f2b", "3f2c"))
        archived_loan = add_record("Gone", kind=Kind.LOAN, uuid=ONE[:-1] + "5", archived_at=timezone.now())
        assert find(typed, Kind.LOAN) == ["Instalment"]
        assert {one for kind in NAMED_KINDS for one in find_by_text(kind, typed)} == {loan}
        assert archived_loan.archived_at

    def test_id_prefixes_rank_before_names(self) -> None:
        for name in ("The Cafe", "Cafe Luna", "Ana's Cafe"):
            add_record(name)
        add_record("Identified", uuid="cafe8c1e-9d47-4a60-b1c5-7e8f90a2d364")
        assert find("cafe") == ["Identified", "Cafe Luna", "Ana's Cafe", "The Cafe"]
        assert find("cafe8") == ["Identified"]
        assert find("cafe state:tx") == []

    def test_a_borrower_id_finds_the_borrowers_loans(self) -> None:
        owner = add_record("Acme", uuid=ONE)
        add_record("Their loan", kind=Kind.LOAN, uuid=TWO, borrower_uuid=owner.uuid)
        assert (
            find(f"{ONE[:8]} type:loan", Kind.LOAN) == find(f"{ONE} type:loan", Kind.LOAN) == ["Their loan"]
        )
        assert find(ONE[:8], Kind.LOAN) == []

    def test_an_id_that_is_not_a_uuid_is_searched_as_text(self) -> None:
        [loan] = save([Observation(kind=Kind.LOAN, uuid="LN-20391", borrower_uuid=ONE)], source="FILE")
        assert [*find_by_text(Kind.LOAN, "n-2039")] == [loan]
        assert [*rank_matches([Kind.LOAN], parse_query("20391"), 5)[Kind.LOAN]] == [loan.pk]

    @pytest.mark.parametrize("typed", ["25000", "25,000.00", "$25,000"])
    def test_an_amount_is_found_in_any_notation(self, typed: str) -> None:
        add_record("Loan", kind=Kind.LOAN, amount=Decimal("25000.0000"))
        add_record("Other", kind=Kind.LOAN, amount=Decimal(2500))
        assert find(typed, Kind.LOAN) == ["Loan"]

    @pytest.mark.parametrize("column", ["past_due", "due_amount"])
    @pytest.mark.parametrize("kind", [Kind.LOAN, Kind.LINE])
    def test_an_account_is_found_by_what_is_due(self, kind: Kind, column: str) -> None:
        add_record(label="Late", kind=kind, **{column: Decimal("24638.10")})
        add_record(label="Other", kind=kind, **{column: Decimal(0)})
        assert find("$24,638.10", kind) == find("24638.1", kind) == ["Late"]
        assert find("$0", kind) == []

    @pytest.mark.parametrize(
        "typed",
        [
            *("ACH-77", "ach77", "B-2026111", "batch b-2026111", "R29", "r29", "P-9"),
            *("$310.00", "310", "2026-11-17", "added:today ach-77"),
        ],
    )
    def test_a_repayment_is_found_by_its_references_amount_and_day(self, typed: str) -> None:
        text = (
            b'[{"uuid": "P-9", "amount": 310.00, "ach_id": "ACH-77", "ach_batch_id": "B-2026111",'
            b' "status": "FAILED", "error_description": "R29 Not authorized", "effective_date": "2026-11-17"},'
            b' {"uuid": "P-91", "amount": 31.00, "ach_id": "ACH-7", "ach_batch_id": "B-202611",'
            b' "effective_date": "2026-11-18"}]'
        )
        ids = {"borrower_id": TWO, "loan_id": ONE}
        answer = codec.decode_list(servicing.Repayment, text)
        save(records_in_answer("repayments.of_loan", answer, ids), source="service")
        assert find_repayments(typed) == ["P-9"]

    @pytest.mark.parametrize("typed", ["bounced: ACH-77-9 or ach-77", "ach-7", "ach", "b-20261"])
    def test_a_reference_of_a_repayment_is_found_whole(self, typed: str) -> None:
        Repayment.objects.create(uuid="paid", ach_id="ach77", ach_batch_id="b2026111")
        assert find_repayments(typed) == []

    def test_repayments_are_found_by_their_borrower_only_in_a_search_for_them(self) -> None:
        add_record("Acme 310", uuid=ONE)
        for number in range(2):
            Repayment.objects.create(uuid=f"of-acme-{number}", borrower_uuid=ONE)
        Repayment.objects.create(uuid="other", borrower_uuid=TWO)
        found = ["of-acme-1", "of-acme-0"]
        assert find_repayments("type:repayment acme") == find_repayments(f"type:repayment {ONE}") == found
        assert find_repayments("acme") == find_repayments("type:loan acme") == []
        Repayment.objects.create(uuid="acme", ach_id="acme")
        query = parse_query("type:repayment acme")
        assert [*rank_repayments(query, 10).values()] == [Rank.EXACT, Rank.OWNER, Rank.OWNER]
        assert [*rank_repayments(query, 2).values()] == [Rank.EXACT, Rank.OWNER]

    @pytest.mark.parametrize("typed", ["charged off", "CHARGED_OFF"])
    def test_loans_are_found_by_their_status_as_words(self, typed: str) -> None:
        add_record(label="Old", kind=Kind.LOAN, status="CHARGED_OFF")
        add_record(label="New", kind=Kind.LOAN, status="ACTIVE")
        assert find(typed, Kind.LOAN) == ["Old"]

    @pytest.mark.parametrize(
        "typed",
        [
            *("%", "_", "\\", "'; --", '" OR "', "NEAR(a b)", "a AND", "*", "-", "^a", "(", "{}", "%s"),
            *("%c%", "a%e", "a_me", "ac\\me", "\0%", "’", "::", "city:", "owner:%", 'city:"', "x" * 9_000),
            *(f"{operator}:%'\"\\ܐ" for operator in operator_names()),
            " ".join(f"w{number}" for number in range(40)),
        ],
    )
    def test_hostile_text_matches_nothing(self, typed: str) -> None:
        add_record("Birch")
        Repayment.objects.create(uuid="paid", ach_id="ach77")
        assert find_repayments(typed) == []
        for kind in NAMED_KINDS:
            assert find(typed, kind) == []

    @pytest.mark.parametrize("name", SCRIPTS)
    @pytest.mark.parametrize("kind", PEOPLE)
    def test_a_name_in_any_script_is_found(self, kind: Kind, name: str) -> None:
        add_record(name, kind=kind)
        add_record("Birch", kind=kind)
        start, end = name[: len(name) // 2], name[len(name) // 2 :]
        for typed in (name, name.upper(), start, end.strip(), name[:2]):
            assert find(typed, kind) == [name], typed

    def test_a_list_finds_quotation_marks_in_names(self) -> None:
        best = add_record('The "Best" Bakery')
        assert [one for kind in NAMED_KINDS for one in find_by_text(kind, 'the "best"')] == [best]

    def test_a_very_long_line_is_found_by_its_start(self) -> None:
        add_record(LONG_NAME, "Austin", label="Long")
        assert find(LONG_NAME[:40]) == find("austin") == ["Long"]

    @pytest.mark.slow
    def test_a_very_common_word_is_found_with_a_filter(self) -> None:
        Borrower.objects.bulk_create(
            new_record(f"{number} LLC", uuid=f"m-{number}", state="CO") for number in range(1_000)
        )
        add_record("Acme LLC", state="TX")
        add_record("Birch Inc", state="TX")
        assert find("state:TX llc") == ["Acme LLC"]

    def test_accounts_of_too_many_borrowers_are_not_searched(self) -> None:
        for number in range(MAX_OWNERS + 1):
            owner = add_record("Acme", uuid=f"acme-{number}")
        add_record(label="Theirs", kind=Kind.LOAN, borrower_uuid=owner.uuid)
        assert find("type:loan acme", Kind.LOAN) == []
        owner.delete()
        Account.objects.filter(kind=Kind.LOAN).update(borrower_uuid="acme-0")
        assert find("type:loan acme", Kind.LOAN) == ["Theirs"]
