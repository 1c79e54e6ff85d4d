"""The search box: suggestions while typing, the page of results, and ways on where nothing is known."""

import re
from decimal import Decimal

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.utils import timezone

from portal.messaging.keeping import keep
from portal.messaging.models import Message
from portal.registry.models import Kind, Record
from portal.registry.search import search_text
from servicing import Client
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx

UNKNOWN = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


def suggestions(browser: Browser, text: str) -> str:
    answer = browser.get("/search/", {"q": text}, headers=htmx("suggestions"))
    assert answer.status_code == 200
    return answer.content.decode()


def results(browser: Browser, text: str, **state: str) -> str:
    answer = browser.get("/search/", {"q": text, **state})
    assert answer.status_code == 200
    return answer.content.decode()


def best(html: str) -> str:
    """Where Enter leads."""
    found = re.findall(r'aria-selected="true"[^>]*href="([^"]+)"', html)
    return found[0] if len(found) == 1 else ""


class TestSuggestions:
    def test_they_are_grouped_by_kind_and_marked(self, viewer: Browser, desk: Sandbox) -> None:
        people = [{"first_name": "Harriet", "last_name": "Underhill"}]
        given.borrower(desk, first_name="Harbor Street Bakery LLC", key_people=people)
        html = suggestions(viewer, "har")
        assert 'aria-label="Borrowers"' in html
        assert 'aria-label="Key people"' in html
        assert "<mark>Har</mark>bor Street Bakery LLC" in html
        assert "<mark>Har</mark>riet Underhill" in html

    def test_they_are_a_fragment_that_names_what_it_answers(self, viewer: Browser) -> None:
        html = suggestions(viewer, " acme   farms ").strip()
        assert html.startswith('<div id="suggestions"')
        assert 'data-query="acme farms"' in html
        assert "<html" not in html

    def test_the_reason_of_a_short_word_is_where_it_begins_one(self, viewer: Browser) -> None:
        text = search_text("Cedar Foods", "bee169c0-cba75cc66aba", "Abigail Reed")
        Record.objects.create(kind=Kind.BORROWER, uuid="b-1", label="Cedar Foods", search_text=text)
        html = suggestions(viewer, "ab")
        assert "<mark>Ab</mark>igail Reed" in html
        assert "bee169c0" not in html

    def test_a_kind_shows_five_at_most(self, viewer: Browser, desk: Sandbox) -> None:
        for number in range(6):
            given.borrower(desk, first_name=f"Acme {number} LLC", key_people=[])
        assert suggestions(viewer, "acme").count("<mark>Acme</mark>") == 5

    def test_one_character_is_not_enough(self, viewer: Browser, desk: Sandbox) -> None:
        given.borrower(desk, first_name="Acme LLC")
        assert "Acme" not in suggestions(viewer, "a")

    @pytest.mark.parametrize("typed", ["{Harbor", '"{cafe"', "{name} please", "{3f2a1b4c-9d47"])
    def test_a_brace_makes_no_json_of_words(self, viewer: Browser, typed: str) -> None:
        assert "All results for" in suggestions(viewer, typed)
        assert "Nothing known here matches" in results(viewer, typed)

    def test_an_identifier_that_matches_is_shown(self, viewer: Browser) -> None:
        Record.objects.create(kind=Kind.BORROWER, uuid=UNKNOWN, label="Acme", city="Austin")
        Record.objects.create(kind=Kind.LOAN, uuid=UNKNOWN, borrower_uuid=UNKNOWN, amount=Decimal(25000))
        assert (found := suggestions(viewer, "3f2b")).count("<mark>3f2b</mark>8c1e") == 2
        assert "$25,000.00, Acme" in found
        assert "<mark>3f2b8c1e</mark>" in suggestions(viewer, f"of {UNKNOWN}")
        assert "<mark>3f2b8c1e</mark>" in results(viewer, f"of {UNKNOWN[:13]}.")

    def test_the_best_hit_of_all_kinds_is_the_one_that_enter_opens(
        self, viewer: Browser, desk: Sandbox
    ) -> None:
        named = given.borrower(desk, first_name="Ana Lopez Consulting LLC", key_people=[{"first_name": "Bo"}])
        ana = {"first_name": "Ana", "last_name": "Lopez", "middle_name": None}
        owner = given.borrower(desk, first_name="Zeta LLC", key_people=[ana])
        assert best(suggestions(viewer, "ana lopez")) == f"/borrowers/{owner.uuid}/?tab=people"
        assert best(suggestions(viewer, "ana lopez c")) == f"/borrowers/{named.uuid}/"

    def test_a_hit_says_what_matches_where_its_name_does_not(self, viewer: Browser, desk: Sandbox) -> None:
        given.borrower(desk, first_name="Acme LLC", phone="5125550143", key_people=[{"first_name": "Elena"}])
        assert "<mark>(512) 555-0143</mark>" in suggestions(viewer, "512-555-0143")
        assert "<mark>Elena</mark>" in suggestions(viewer, "elena")

    @pytest.mark.parametrize("text", ["25000", "25,000.00", "$25,000"])
    def test_a_loan_is_found_by_its_amount_and_says_whose_it_is(
        self, viewer: Browser, desk: Sandbox, text: str
    ) -> None:
        owner = given.borrower(desk, first_name="Acme LLC")
        loan = given.account(Kind.LOAN, owner, "loan-1")
        Record.objects.filter(pk=loan.pk).update(amount=25000)
        assert "$25,000.00, Acme LLC" in suggestions(viewer, text)

    def test_a_kind_that_is_asked_for_is_found_by_its_borrower_too(
        self, viewer: Browser, desk: Sandbox
    ) -> None:
        given.account(Kind.LOAN, given.borrower(desk, first_name="Acme LLC"), "loan-1")
        assert "/loans/loan-1/" in suggestions(viewer, "type:loan acme")
        assert "/loans/loan-1/" not in suggestions(viewer, "acme")
        assert 'Loans<span class="sd-count">1</span>' in results(viewer, "type:loan acme")

    def test_pages_and_actions_are_found_by_their_words(self, viewer: Browser, servicer: Browser) -> None:
        assert 'href="/lines/"' in suggestions(viewer, "lines cred")
        assert 'href="/borrowers/new/"' in suggestions(servicer, "new borr")

    def test_what_a_person_may_not_do_is_not_suggested(self, viewer: Browser) -> None:
        assert "/borrowers/new/" not in suggestions(viewer, "new borrower")
        assert "/audit/" not in suggestions(viewer, "audit")

    def test_all_results_come_last(self, viewer: Browser, desk: Sandbox) -> None:
        given.borrower(desk, first_name="Acme LLC")
        last = suggestions(viewer, "acme").rsplit("<a ", 1)[1]
        assert "All results for “acme”" in last
        assert 'href="/search/?q=acme"' in last

    def test_an_unknown_name_may_become_a_new_borrower(self, viewer: Browser, servicer: Browser) -> None:
        assert "New borrower named “Acme Farms”" in suggestions(servicer, "Acme Farms")
        assert "New borrower named" not in suggestions(viewer, "Acme Farms")

    @pytest.mark.parametrize(
        "text", ["<script>alert(1)</script>", '"><b>', "\0", "\ud800", "x" * 10_000, "%s{}"]
    )
    def test_hostile_text_stays_text(self, servicer: Browser, text: str) -> None:
        html = suggestions(servicer, text.encode("utf-8", "replace").decode())
        assert "<script" not in html
        assert "<b>" not in html


class TestResults:
    def test_they_are_shown_by_kind_with_their_counts(self, viewer: Browser, desk: Sandbox) -> None:
        for number in range(12):
            given.borrower(desk, first_name=f"Acme {number} LLC", key_people=[])
        html = results(viewer, "acme")
        assert html.count("<mark>Acme</mark>") == 10
        assert '<span class="sd-count">12</span>' in html
        assert "Show all" in html

    def test_a_kind_is_paged(self, viewer: Browser, desk: Sandbox) -> None:
        for number in range(27):
            Record.objects.create(
                kind=Kind.LOAN,
                uuid=f"l-{number}",
                label=f"Acme {number}",
                search_text=search_text(f"acme {number}"),
            )
        assert "26 to 27 of 27" in results(viewer, "acme", kind="loan", page="2")

    @pytest.mark.parametrize(("typed", "line"), [("78701", "78701"), ("cafe", "Cafe")])
    def test_each_is_on_one_page_by_whatever_it_is_found(
        self, viewer: Browser, typed: str, line: str
    ) -> None:
        uuids = [f"{typed:0<8}-4a71-4000-8000-000000000001", *(f"l-{number}" for number in range(60))]
        for number, uuid in enumerate(uuids):
            Record.objects.create(
                kind=Kind.LOAN,
                uuid=uuid,
                label=f"Firm {number}.",
                search_text=search_text(f"{line} {number}", line),
                amount=Decimal(78701) if number % 2 == 0 else None,
            )
        pages = "".join(results(viewer, typed, kind="loan", page=page) for page in "123")
        assert sorted(map(int, re.findall(r"Firm (\d+)\.", pages))) == list(range(len(uuids)))

    def test_the_page_of_a_kind_can_be_swapped(self, viewer: Browser, desk: Sandbox) -> None:
        answer = viewer.get("/search/?q=acme", headers=htmx("results")).content.decode().strip()
        assert answer.startswith('<div id="results"')

    @pytest.mark.parametrize(
        "typed", ["5125550143", "(512) 555-0143", "+1 512.555.0143", "call 512-555-0143 please"]
    )
    def test_a_borrower_is_found_by_phone_in_any_notation(
        self, viewer: Browser, desk: Sandbox, typed: str
    ) -> None:
        given.borrower(desk, first_name="Acme LLC", phone="5125550143")
        assert "Acme LLC" in results(viewer, typed)

    def test_a_state_is_found_by_its_name(self, viewer: Browser, desk: Sandbox) -> None:
        address = {
            "line_1": "1 Main St",
            "city": "Austin",
            "state": "TX",
            "zip": "78701",
            "country": "UNITED STATES",
        }
        given.borrower(desk, first_name="Acme LLC", address=address)
        assert "Acme LLC" in results(viewer, "texas")

    def test_a_loan_is_found_by_the_id_it_has_elsewhere(self, viewer: Browser, desk: Sandbox) -> None:
        owner = given.borrower(desk, first_name="Acme LLC")
        loan = desk.world.loan(owner.uuid)
        desk.world.amend(loan["uuid"], external_id="EXT-2207")
        viewer.post("/search/open/", {"kind": "loan", "uuid": loan["uuid"], "borrower_uuid": owner.uuid})
        assert loan["uuid"][:8] in results(viewer, "ext-2207")

    def test_what_a_text_was_taken_for_is_said(self, viewer: Browser) -> None:
        assert "Read as the phone number (512) 555-0143." in results(viewer, "please call 512 555 0143")

    def test_what_was_not_understood_is_said(self, viewer: Browser) -> None:
        html = results(viewer, "state:ZZ colour:blue")
        assert "“state:ZZ” was left out." in html
        assert "“colour:” is no operator" in html

    def test_an_asterisk_finds_and_is_said_here_and_above_a_list(
        self, viewer: Browser, desk: Sandbox
    ) -> None:
        given.borrower(desk, first_name="Oyster Bay LLC")
        pages = [
            viewer.get(f"{address}?q=oyster*").content.decode() for address in ("/search/", "/borrowers/")
        ]
        for html in pages:
            assert "Bay LLC" in html
            assert "Read without asterisks: “oyster*”. A word is found wherever it stands." in html

    def test_archived_records_are_left_out(self, viewer: Browser, desk: Sandbox) -> None:
        Record.objects.filter(pk=given.borrower(desk, first_name="Acme LLC").pk).update(
            archived_at=timezone.now()
        )
        assert "Acme LLC" not in results(viewer, "acme")

    def test_nothing_found_says_what_can_be_done(self, viewer: Browser, servicer: Browser) -> None:
        assert "Nothing known here matches" in results(viewer, "acme farms")
        assert 'href="/borrowers/new/?name=acme%20farms"' in results(servicer, "acme farms")

    def test_an_empty_box_says_what_to_type_and_what_is_understood(self, viewer: Browser) -> None:
        html = results(viewer, "")
        assert "Type what you have" in html
        assert "past_due:&gt;0" in html

    @pytest.mark.parametrize(
        "state", [{"kind": "ship"}, {"page": "x"}, {"page": "-1"}, {"kind": "loan", "page": "99"}]
    )
    def test_a_state_that_means_nothing_breaks_nothing(self, viewer: Browser, state: dict[str, str]) -> None:
        assert "Results for “acme”" in results(viewer, "acme", **state)

    def test_it_asks_the_database_only_a_few_times(
        self, viewer: Browser, desk: Sandbox, settings: LazySettings, django_assert_max_num_queries: object
    ) -> None:
        settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
        given.borrower(desk, first_name="Acme LLC")
        with django_assert_max_num_queries(60):  # type: ignore[operator]
            results(viewer, "acme")


class TestUnknownIdentifier:
    def test_the_look_ups_that_could_resolve_it_are_offered(self, servicer: Browser, desk: Sandbox) -> None:
        given.borrower(desk, first_name="Acme LLC")
        html = results(servicer, f"see {UNKNOWN}", of="acme")
        for words in ("Open as loan", "as line of credit", "as application for a line", "Add as borrower"):
            assert words in html
        assert "under Acme LLC" in html

    def test_the_borrower_pasted_beside_it_is_offered_at_once(self, viewer: Browser, desk: Sandbox) -> None:
        owner = given.borrower(desk, first_name="Acme LLC")
        assert "under Acme LLC" in results(viewer, f"/v1/users/{owner.uuid}/loan/{UNKNOWN}")

    def test_so_is_the_borrower_of_a_loan_pasted_beside_it(self, viewer: Browser, desk: Sandbox) -> None:
        owner = given.borrower(desk, first_name="Acme LLC")
        given.account(Kind.LOAN, owner, UNKNOWN.replace("3f", "aa"))
        assert "under Acme LLC" in results(viewer, f"{UNKNOWN} {UNKNOWN.replace('3f', 'aa')}")

    def test_a_borrower_that_is_not_found_is_said(self, viewer: Browser) -> None:
        assert "No borrower known here matches “nobody”" in results(viewer, UNKNOWN, of="nobody")

    def test_who_may_not_add_reads_why(self, viewer: Browser) -> None:
        assert "Needs role servicer or supervisor" in results(viewer, UNKNOWN)

    def test_suggestions_lead_to_the_look_ups(self, viewer: Browser) -> None:
        assert "Not known here: look it up" in suggestions(viewer, UNKNOWN)

    def test_an_archived_record_is_not_unknown(self, viewer: Browser, desk: Sandbox) -> None:
        loan = given.account(Kind.LOAN, given.borrower(desk), UNKNOWN)
        Record.objects.filter(pk=loan.pk).update(archived_at=timezone.now())
        html = results(viewer, UNKNOWN)
        assert "This loan is archived" in html
        assert "Not known here" not in html


class TestMessages:
    @pytest.fixture
    def told(self, desk: Sandbox, lending: Client) -> str:
        payload = {"uuid": UNKNOWN, "product": "LOC", "amount": Decimal("4321.50"), "status": "SUCCEEDED"}
        desk.world.message("payment.succeeded", payload)
        keep(lending.messages.list(limit=10).data)
        return Message.objects.get().get_absolute_url()

    @pytest.mark.parametrize("typed", [UNKNOWN, "$4,321.50", "payment.succ"])
    def test_they_are_a_group_of_their_own(self, viewer: Browser, told: str, typed: str) -> None:
        for html in (results(viewer, typed), suggestions(viewer, typed)):
            assert f'href="{told}"' in html
            assert "Not known here" not in html

    @pytest.mark.parametrize("typed", ["type:loan payment.succeeded", "pa", 'x"y', "{}", "status:active"])
    def test_what_cannot_be_about_messages_finds_none(self, viewer: Browser, told: str, typed: str) -> None:
        assert told not in results(viewer, typed)
