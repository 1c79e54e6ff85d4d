"""Search: suggestions while typing, the results page, and lookups of unknown IDs."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.conf import LazySettings
from django.test import Client as Browser
from django.utils import timezone

from portal.collections.models import Contact
from portal.messaging.models import Message
from portal.messaging.store import save_messages
from portal.records import store
from portal.records.models import Account, Borrower, KeyPerson, Kind, Repayment, Source
from portal.records.query import parse_query
from portal.records.texts import search_text
from servicing import Client, Loan, Statement, codec
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.pages import visible_text

pytestmark = pytest.mark.postgres

UNKNOWN = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


def suggestions(browser: Browser, text: str, page: str = "/") -> str:
    headers = htmx("suggestions") | {"HX-Current-URL": f"http://testserver{page}"}
    answer = browser.get("/search/", {"q": text}, headers=headers)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def results(browser: Browser, text: str, **state: str) -> str:
    answer = browser.get("/search/", {"q": text, **state})
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def selected_link(html: str) -> str:
    """Return the link that Enter opens."""
    links = re.findall(r'aria-selected="true"[^>]*href="([^"]+)"', html)
    return links[0] if len(links) == 1 else ""


class TestSuggestions:
    def test_matches_are_grouped_by_kind_and_highlighted(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        people = [{"first_name": "Harriet", "last_name": "Underhill"}]
        given.borrower(portal_service, first_name="Harbor Street Bakery LLC", key_people=people)
        html = suggestions(viewer, "har")
        assert 'aria-label="Borrowers"' in html
        assert 'aria-label="Key people"' in html
        assert "<mark>Har</mark>bor Street Bakery LLC" in html
        assert "<mark>Har</mark>riet Underhill" in html

    def test_the_fragment_names_its_query(self, viewer: Browser) -> None:
        html = suggestions(viewer, " acme   farms ").strip()
        assert html.startswith('<div id="suggestions"')
        assert 'data-query="acme farms"' in html
        assert "<html" not in html

    def test_a_short_query_highlights_the_start_of_a_word(self, viewer: Browser) -> None:
        text = search_text("Cedar Foods", "bee169c0-cba75cc66aba", "Abigail Reed")
        Borrower.objects.create(uuid="b-1", name="Cedar Foods", search_text=text)
        html = suggestions(viewer, "ab")
        assert "<mark>Ab</mark>igail Reed" in html
        assert "bee169c0" not in html

    def test_each_kind_shows_at_most_five(self, viewer: Browser, portal_service: Sandbox) -> None:
        for number in range(6):
            given.borrower(portal_service, first_name=f"Acme {number} LLC", key_people=[])
        assert suggestions(viewer, "acme").count("<mark>Acme</mark>") == 5

    def test_one_character_is_not_enough(self, viewer: Browser, portal_service: Sandbox) -> None:
        given.borrower(portal_service, first_name="Acme LLC")
        assert "Acme" not in suggestions(viewer, "a")

    @pytest.mark.parametrize("typed", ["{Harbor", '"{cafe"', "{name} please", "{3f2a1b4c-9d47"])
    def test_an_opening_brace_is_not_read_as_json(self, viewer: Browser, typed: str) -> None:
        assert "All results for" in suggestions(viewer, typed)
        assert "No results" in results(viewer, typed)

    def test_matching_ids_are_highlighted(self, viewer: Browser) -> None:
        Borrower.objects.create(uuid=UNKNOWN, name="Acme", city="Austin")
        Account.objects.create(kind=Kind.LOAN, uuid=UNKNOWN, borrower_uuid=UNKNOWN, amount=Decimal(25000))
        assert (found := suggestions(viewer, "3f2b")).count("<mark>3f2b</mark>8c1e") == 2
        assert "$25,000.00, Acme" in found
        assert "<mark>3f2b8c1e</mark>" in suggestions(viewer, f"of {UNKNOWN}")
        assert "<mark>3f2b8c1e</mark>" in results(viewer, f"of {UNKNOWN[:13]}.")

    def test_enter_opens_the_best_match_of_all_kinds(self, viewer: Browser, portal_service: Sandbox) -> None:
        named = given.borrower(
            portal_service, first_name="Ana Lopez Consulting LLC", key_people=[{"first_name": "Bo"}]
        )
        ana = {"first_name": "Ana", "last_name": "Lopez", "middle_name": None}
        owner = given.borrower(portal_service, first_name="Zeta LLC", key_people=[ana])
        assert selected_link(suggestions(viewer, "ana lopez")) == f"/borrowers/{owner.uuid}/?tab=people"
        assert selected_link(suggestions(viewer, "ana lopez c")) == f"/borrowers/{named.uuid}/"

    def test_a_match_outside_the_name_is_shown(self, viewer: Browser, portal_service: Sandbox) -> None:
        given.borrower(
            portal_service, first_name="Acme LLC", phone="5125550143", key_people=[{"first_name": "Elena"}]
        )
        assert "<mark>(512) 555-0143</mark>" in suggestions(viewer, "512-555-0143")
        assert "<mark>Elena</mark>" in suggestions(viewer, "elena")

    @pytest.mark.parametrize("text", ["25000", "25,000.00", "$25,000"])
    def test_a_loan_is_found_by_amount_and_shows_its_borrower(
        self, viewer: Browser, portal_service: Sandbox, text: str
    ) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        loan = given.account(Kind.LOAN, owner, "loan-1")
        Account.objects.filter(pk=loan.pk).update(amount=25000)
        assert "$25,000.00, Acme LLC" in suggestions(viewer, text)

    def test_type_operator_finds_loans_by_borrower(self, viewer: Browser, portal_service: Sandbox) -> None:
        given.account(Kind.LOAN, given.borrower(portal_service, first_name="Acme LLC"), "loan-1")
        assert 'aria-label="Loans"' in suggestions(viewer, "type:loan acme")
        assert 'aria-label="Loans"' not in suggestions(viewer, "acme")
        assert 'Loans<span class="sd-count">1</span>' in results(viewer, "type:loan acme")

    def test_the_accounts_of_a_borrower_follow_it_most_past_due_first(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC", key_people=[])
        for number in range(6):
            given.account(Kind.LOAN, owner, f"loan-{number}")
        Account.objects.filter(uuid="loan-0").update(past_due_rank=90, past_due=90, is_past_due=True)
        first = ["loan-0", "loan-5", "loan-4", "loan-3", "loan-2"]
        options = r'role="option" class="sd-owned"[^>]*href="([^"]+)"'
        assert [url.split("/")[-2] for url in re.findall(options, suggestions(viewer, "acme"))] == first
        page = results(viewer, "acme")
        rows = re.findall(
            r'<li data-row class="sd-owned">.*?<a href="([^"]+)".*?sd-hit-facts">(.*?)</div>', page
        )
        assert [url.split("/")[-2] for url, _ in rows] == first
        assert visible_text(rows[0][1]) == "$90.00 Past due"
        assert "All accounts of Acme LLC" in page

    def test_pages_and_actions_are_suggested(self, viewer: Browser, servicer: Browser) -> None:
        assert 'href="/lines/"' in suggestions(viewer, "lines cred")
        assert 'href="/borrowers/new/"' in suggestions(servicer, "new borr")

    @pytest.mark.slow
    def test_actions_of_this_page_are_suggested(
        self, viewer: Browser, servicer: Browser, portal_service: Sandbox
    ) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        page = owner.get_absolute_url()
        line, loan = (given.account(kind, owner, "a-1").get_absolute_url() for kind in (Kind.LINE, Kind.LOAN))
        assert f'href="{page}summary/"' in suggestions(viewer, "print summary", f"{page}?tab=notes")
        assert f'href="{line}summary/"' in suggestions(viewer, "print summary", line)
        assert f'href="{loan}schedule/"' in suggestions(viewer, "print", loan)
        assert f'href="{page}edit/"' in suggestions(servicer, "edit", page)
        assert f'href="{page}edit/"' not in suggestions(viewer, "edit", page)
        for other in ("/", "/nowhere/", "//[", loan):
            assert f"{page}summary/" not in suggestions(viewer, "print summary", other)

    def test_forbidden_pages_and_actions_are_not_suggested(self, viewer: Browser) -> None:
        assert "/borrowers/new/" not in suggestions(viewer, "new borrower")
        assert 'href="/audit/"' not in suggestions(viewer, "audit")

    def test_the_link_to_all_results_is_last(self, viewer: Browser, portal_service: Sandbox) -> None:
        given.borrower(portal_service, first_name="Acme LLC")
        last = suggestions(viewer, "acme").rsplit("<a ", 1)[1]
        assert "All results for “acme”" in last
        assert 'href="/search/?q=acme"' in last

    def test_an_unknown_name_offers_a_new_borrower(self, viewer: Browser, servicer: Browser) -> None:
        assert "New borrower named “Acme Farms”" in suggestions(servicer, "Acme Farms")
        assert "New borrower named" not in suggestions(viewer, "Acme Farms")
        assert "New borrower named" not in suggestions(servicer, "collections")

    @pytest.mark.parametrize(
        "text", ["<script>alert(1)</script>", '"><b>', "\0", "\ud800", "x" * 10_000, "%s{}"]
    )
    def test_hostile_text_is_escaped(self, servicer: Browser, text: str) -> None:
        html = suggestions(servicer, text.encode("utf-8", "replace").decode())
        assert "<script" not in html
        assert "<b>" not in html


class TestResults:
    @pytest.mark.slow
    def test_results_are_counted_by_kind(self, viewer: Browser, portal_service: Sandbox) -> None:
        for number in range(12):
            given.borrower(portal_service, first_name=f"Acme {number} LLC", key_people=[])
        html = results(viewer, "acme")
        assert html.count("<mark>Acme</mark>") == 10
        assert '<span class="sd-count">12</span>' in html
        assert "Show all" in html

    @pytest.mark.slow
    def test_results_of_one_kind_are_paged(self, viewer: Browser, portal_service: Sandbox) -> None:
        for number in range(27):
            Account.objects.create(
                kind=Kind.LOAN,
                uuid=f"l-{number}",
                label=f"Acme {number}",
                search_text=search_text(f"acme {number}"),
            )
        assert "26 to 27 of 27" in results(viewer, "acme", kind="loan", page="2")

    @pytest.mark.slow
    @pytest.mark.parametrize(("typed", "line"), [("78701", "78701"), ("cafe", "Cafe")])
    def test_paging_lists_each_match_once(self, viewer: Browser, typed: str, line: str) -> None:
        uuids = [f"{typed:0<8}-4a71-4000-8000-000000000001", *(f"l-{number}" for number in range(60))]
        for number, uuid in enumerate(uuids):
            Account.objects.create(
                kind=Kind.LOAN,
                uuid=uuid,
                label=f"Firm {number}.",
                search_text=search_text(f"{line} {number}", line),
                amount=Decimal(78701) if number % 2 == 0 else None,
            )
        pages = "".join(results(viewer, typed, kind="loan", page=page) for page in "123")
        assert sorted(map(int, re.findall(r"Firm (\d+)\.", pages))) == list(range(len(uuids)))

    def test_htmx_fetches_only_the_results(self, viewer: Browser, portal_service: Sandbox) -> None:
        answer = viewer.get("/search/?q=acme", headers=htmx("results")).content.decode().strip()
        assert answer.startswith('<div id="results"')

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "typed", ["5125550143", "(512) 555-0143", "+1 512.555.0143", "call 512-555-0143 please"]
    )
    def test_a_borrower_is_found_by_phone_in_any_format(
        self, viewer: Browser, portal_service: Sandbox, typed: str
    ) -> None:
        given.borrower(portal_service, first_name="Acme LLC", phone="5125550143")
        assert "Acme LLC" in results(viewer, typed)

    @pytest.mark.slow
    def test_a_borrower_is_found_by_state_name(self, viewer: Browser, portal_service: Sandbox) -> None:
        address = {
            "line_1": "1 Main St",
            "city": "Austin",
            "state": "TX",
            "zip": "78701",
            "country": "UNITED STATES",
        }
        given.borrower(portal_service, first_name="Acme LLC", address=address)
        assert "Acme LLC" in results(viewer, "texas")

    @pytest.mark.slow
    def test_a_loan_is_found_by_its_external_id(self, viewer: Browser, portal_service: Sandbox) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        loan = portal_service.world.loan(owner.uuid)
        portal_service.world.amend(loan["uuid"], external_id="EXT-2207")
        viewer.post("/search/open/", {"kind": "loan", "uuid": loan["uuid"], "borrower_uuid": owner.uuid})
        assert loan["uuid"][:8] in results(viewer, "ext-2207")

    def test_a_recognized_phone_number_is_shown(self, viewer: Browser) -> None:
        assert "Read as the phone number (512) 555-0143." in results(viewer, "please call 512 555 0143")

    def test_invalid_operators_are_reported(self, viewer: Browser) -> None:
        html = results(viewer, "state:ZZ colour:blue")
        assert "“state:ZZ” was ignored." in html
        assert "“colour:” isn’t an operator" in html

    @pytest.mark.slow
    def test_asterisks_are_ignored_with_a_note(self, viewer: Browser, portal_service: Sandbox) -> None:
        given.borrower(portal_service, first_name="Oyster Bay LLC")
        pages = [
            viewer.get(f"{address}?q=oyster*").content.decode() for address in ("/search/", "/borrowers/")
        ]
        for html in pages:
            assert "Bay LLC" in html
            assert "Searched without asterisks: “oyster*”. Words match anywhere." in html

    @pytest.mark.slow
    def test_archived_records_are_not_found(self, viewer: Browser, portal_service: Sandbox) -> None:
        Borrower.objects.filter(pk=given.borrower(portal_service, first_name="Acme LLC").pk).update(
            archived_at=timezone.now()
        )
        assert "Acme LLC" not in results(viewer, "acme")

    @pytest.mark.slow
    def test_no_results_offers_a_new_borrower(self, viewer: Browser, servicer: Browser) -> None:
        assert "No results" in results(viewer, "acme farms")
        assert 'href="/borrowers/new/?name=acme%20farms"' in results(servicer, "acme farms")

    def test_an_empty_query_explains_the_operators(self, viewer: Browser) -> None:
        assert "past_due:&gt;0" in results(viewer, "")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "state", [{"kind": "ship"}, {"page": "x"}, {"page": "-1"}, {"kind": "loan", "page": "99"}]
    )
    def test_invalid_parameters_do_not_break_the_page(self, viewer: Browser, state: dict[str, str]) -> None:
        assert "Results for “acme”" in results(viewer, "acme", **state)

    @pytest.mark.slow
    def test_results_take_a_limited_number_of_queries(
        self,
        viewer: Browser,
        portal_service: Sandbox,
        settings: LazySettings,
        django_assert_max_num_queries: object,
    ) -> None:
        settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
        given.borrower(portal_service, first_name="Acme LLC")
        with django_assert_max_num_queries(67):  # type: ignore[operator]
            results(viewer, "acme")


class TestMistypedNames:
    @pytest.fixture
    def farm(self, portal_service: Sandbox) -> Account:
        given.borrower(portal_service, first_name="Cedar Grove Dental Inc", key_people=[])
        people = [{"first_name": "Ana", "middle_name": None, "last_name": "Lindqvist"}]
        return given.borrower(portal_service, first_name="Hathaway Farm Supply LLC", key_people=people)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "typed",
        [
            "Hathawey",
            "Hatahway",
            "hathway farm",
            "Hathaway Fram Suply",
            "Hathaway Farms Supply Inc",
            "Hathaway-Farm Suply, Austin",
            "state:TX hathawey",
        ],
    )
    def test_a_typo_suggests_the_borrower_before_a_new_one(
        self, servicer: Browser, farm: Account, typed: str
    ) -> None:
        Borrower.objects.filter(pk=farm.pk).update(state="TX")
        for html in (suggestions(servicer, typed), results(servicer, typed)):
            suggestion, new = html.index("Did you mean"), html.index("New borrower named")
            assert suggestion < html.index(f'href="/borrowers/{farm.uuid}/"') < new
            assert "Hathaway Farm Supply LLC" in html
            assert "Cedar Grove" not in html

    @pytest.mark.slow
    @pytest.mark.parametrize("typed", ["Lindqvst", "Ana Lnidqvist", "anna lindkvist"])
    def test_a_typo_suggests_a_key_person(self, viewer: Browser, farm: Account, typed: str) -> None:
        for html in (suggestions(viewer, typed), results(viewer, typed)):
            assert f'href="/borrowers/{farm.uuid}/?tab=people"' in html
            assert "Key person of Hathaway Farm Supply LLC" in html

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "typed",
        ["hathaway", "lindqvist", "Northern Lights", "zz", "Acme", "!!!", "farmer john", "state:CO hathawey"],
    )
    def test_matching_and_unrelated_names_get_no_suggestion(
        self, viewer: Browser, farm: Account, typed: str
    ) -> None:
        Borrower.objects.filter(pk=farm.pk).update(state="TX")
        assert "Did you mean" not in suggestions(viewer, typed)
        assert "Did you mean" not in results(viewer, typed)

    @pytest.mark.slow
    def test_borrowers_are_suggested_before_key_people(
        self, viewer: Browser, portal_service: Sandbox, farm: Account
    ) -> None:
        for name in ("Felix", "Meera", "Freya", "Olga"):
            KeyPerson.objects.create(
                uuid=name,
                borrower_uuid=farm.uuid,
                name=f"{name} Hathaway",
                search_text=search_text(f"{name} Hathaway"),
            )
        suggested = results(viewer, "Hathawey").partition("Did you mean")[2]
        assert suggested.index(f'href="/borrowers/{farm.uuid}/"') < suggested.index("Hathaway</a>")

    @pytest.mark.slow
    def test_the_closest_active_borrower_is_suggested_first(
        self, viewer: Browser, portal_service: Sandbox, farm: Account
    ) -> None:
        other = given.borrower(portal_service, first_name="Hathaway Farm Supply of Texas LLC", key_people=[])
        archived = given.borrower(portal_service, first_name="Hathaway Farm LLC", key_people=[])
        Borrower.objects.filter(pk=archived.pk).update(archived_at=timezone.now())
        html = results(viewer, "Hathawey Farm Supply")
        assert html.index(farm.uuid) < html.index(other.uuid)
        assert archived.uuid not in html


class TestDates:
    @pytest.fixture
    def payment(self, portal_service: Sandbox, service_client: Client) -> Repayment:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        loan = given.loan(portal_service, owner)
        portal_service.world.repayment(loan.uuid, effective_date=timezone.localdate() - timedelta(days=12))
        ids = {"borrower_id": owner.uuid, "loan_id": loan.uuid}
        answer = service_client.repayments.of_loan(**ids)
        store.save(store.records_in_answer("repayments.of_loan", answer, ids), source=Source.SERVICE)
        return Repayment.objects.latest("effective_on")

    @pytest.mark.slow
    def test_a_repayment_is_found_by_date_in_us_formats(self, viewer: Browser, payment: Repayment) -> None:
        day = payment.effective_on
        assert day
        for typed in (
            f"{day:%m/%d/%Y}",
            f"{day.month}/{day.day}/{day:%y}",
            f"{day.month}/{day.day}",
            f"{day:%b} {day.day}",
            f"{day:%B} {day.day}, {day.year}",
            day.isoformat(),
        ):
            for html in (suggestions(viewer, typed), results(viewer, typed)):
                assert f'href="{payment.get_absolute_url()}"' in html, typed
                assert "New borrower named" not in html
        assert payment.get_absolute_url() not in results(viewer, f"{day - timedelta(days=3):%m/%d/%Y}")

    @pytest.mark.parametrize("typed", ["13/45/2026", "2/30/2026", "Nov 31", "11/10/1969", "Nob 10"])
    def test_invalid_dates_are_not_read_as_dates(self, typed: str) -> None:
        assert parse_query(typed).day is None

    @pytest.mark.parametrize(
        ("typed", "day"),
        [
            ("Dec 1st", date(2026, 12, 1)),
            ("Sept. 5, 2026", date(2026, 9, 5)),
            ("1/5", date(2027, 1, 5)),
            ("11-10-2026", date(2026, 11, 10)),
            ("feb 29", None),
        ],
    )
    def test_a_date_without_a_year_is_the_nearest_one(self, typed: str, day: date | None) -> None:
        with time_machine.travel(datetime(2026, 11, 22, 18, tzinfo=UTC), tick=False):
            assert parse_query(typed).day == day

    def test_created_operator_accepts_a_us_date(self, viewer: Browser, portal_service: Sandbox) -> None:
        given.borrower(portal_service, first_name="Acme LLC")
        today = timezone.localdate()
        assert "</mark> LLC" in results(viewer, f"acme created:{today:%m/%d/%Y}")
        assert "</mark> LLC" not in results(viewer, f"acme created:<{today:%m/%d/%Y}")


class TestNotes:
    @pytest.mark.slow
    def test_a_note_is_found_by_its_text_and_links_to_its_loan(
        self, servicer: Browser, portal_service: Sandbox
    ) -> None:
        loan = given.account(Kind.LOAN, given.borrower(portal_service, first_name="Acme LLC"), "loan-1")
        servicer.post("/notes/new/loan/loan-1/", {"text": "Owner asked for a payoff quote by Friday"})
        for html in (suggestions(servicer, "payoff QUOTE"), results(servicer, "payoff QUOTE")):
            assert f'href="{loan.get_absolute_url()}"' in html
            assert "asked for a <mark>payoff</mark> <mark>quote</mark> by Friday" in html
            assert "New borrower named" not in html
        assert "Friday" not in results(servicer, "payoff letter")
        assert "Friday" not in results(servicer, "type:loan payoff")

    @pytest.mark.parametrize("typed", ["---", "'''", '"""', "..."])
    def test_marks_alone_find_no_note(self, servicer: Browser, portal_service: Sandbox, typed: str) -> None:
        given.account(Kind.LOAN, given.borrower(portal_service, first_name="Acme LLC"), "loan-1")
        servicer.post("/notes/new/loan/loan-1/", {"text": "Owner asked for a payoff quote by Friday"})
        assert "Friday" not in results(servicer, typed)

    @pytest.mark.slow
    def test_a_contact_is_found_by_its_note_and_links_to_its_account(
        self, servicer: Browser, portal_service: Sandbox
    ) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        loan = given.account(Kind.LOAN, owner, "loan-1")
        about = {"borrower_uuid": owner.uuid, "channel": "phone", "outcome": "reached", "person": "Ana"}
        author = {"author_id": 1, "author_name": "Bo", "day": timezone.localdate()}
        of_loan = {"account_kind": "loan", "account_uuid": "loan-1"}
        Contact.objects.create(note="Café closed for inventory", **about, **author, **of_loan)
        Contact.objects.create(next_action="Send the invéntory list", **about, **author)
        for html in (suggestions(servicer, "inventory"), results(servicer, "inventory")):
            assert f'href="{loan.get_absolute_url()}"' in html
            assert f'href="{owner.get_absolute_url()}"' in html
            assert "closed for <mark>inventory</mark>" in html
        assert "closed for" in results(servicer, "cafe inventory")
        assert "closed for" not in results(servicer, "invoice")


class TestOffersAndZipCodes:
    @pytest.mark.slow
    def test_an_application_is_found_by_offer_id(
        self, servicer: Browser, portal_service: Sandbox, service_client: Client
    ) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        answer = service_client.applications.submit(owner.uuid, amount=Decimal(25_000))
        (record,) = store.save(store.observe(answer, borrower_uuid=owner.uuid), source=Source.SERVICE)
        for typed in (answer.offers[-1].uuid, answer.offers[-1].uuid[:8], f"offer {answer.offers[0].uuid}"):
            for html in (suggestions(servicer, typed), results(servicer, typed)):
                assert f'href="{record.get_absolute_url()}"' in html
                assert "Not on file" not in html

    @pytest.mark.parametrize("typed", ["78701", "78701-1234", "Austin 78701", "Austin, TX 78701-1234"])
    def test_a_borrower_is_found_by_zip_code(
        self, viewer: Browser, portal_service: Sandbox, typed: str
    ) -> None:
        address = {"line_1": "1 Main St", "city": "Austin", "state": "TX", "zip": "78701", "country": "US"}
        given.borrower(portal_service, first_name="Acme LLC", address=address)
        assert "Acme LLC" in results(viewer, typed)


class TestUnknownId:
    @pytest.mark.slow
    def test_lookups_at_the_service_are_offered(self, servicer: Browser, portal_service: Sandbox) -> None:
        given.borrower(portal_service, first_name="Acme LLC")
        html = results(servicer, f"see {UNKNOWN}", of="acme")
        for words in ("Open as loan", "as line of credit", "as application for a line", "Add as borrower"):
            assert words in html
        assert "under Acme LLC" in html

    @pytest.mark.slow
    def test_a_pasted_url_selects_its_borrower(self, viewer: Browser, portal_service: Sandbox) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        assert "under Acme LLC" in results(viewer, f"/v1/users/{owner.uuid}/loan/{UNKNOWN}")

    @pytest.mark.slow
    def test_a_pasted_loan_id_selects_its_borrower(self, viewer: Browser, portal_service: Sandbox) -> None:
        owner = given.borrower(portal_service, first_name="Acme LLC")
        given.account(Kind.LOAN, owner, UNKNOWN.replace("3f", "aa"))
        assert "under Acme LLC" in results(viewer, f"{UNKNOWN} {UNKNOWN.replace('3f', 'aa')}")

    @pytest.mark.slow
    def test_a_borrower_not_on_file_is_reported(self, viewer: Browser) -> None:
        assert "No borrower on file matches “nobody”" in results(viewer, UNKNOWN, of="nobody")

    @pytest.mark.slow
    def test_a_viewer_sees_the_required_role(self, viewer: Browser) -> None:
        assert "Requires the servicer or supervisor role" in results(viewer, UNKNOWN)

    def test_suggestions_offer_a_lookup_at_the_service(self, viewer: Browser) -> None:
        assert "Not on file. Look up at the service" in suggestions(viewer, UNKNOWN)

    @pytest.mark.slow
    def test_an_archived_loan_is_shown_as_archived(self, viewer: Browser, portal_service: Sandbox) -> None:
        loan = given.account(Kind.LOAN, given.borrower(portal_service), UNKNOWN)
        Account.objects.filter(pk=loan.pk).update(archived_at=timezone.now())
        html = results(viewer, UNKNOWN)
        assert "This loan is archived" in html
        assert "Not on file" not in html


class TestMessages:
    @pytest.fixture
    def told(self, portal_service: Sandbox, service_client: Client) -> str:
        payload = {"uuid": UNKNOWN, "product": "LOC", "amount": Decimal("4321.50"), "status": "SUCCEEDED"}
        portal_service.world.message("payment.succeeded", payload)
        save_messages(service_client.messages.list(limit=10).data)
        return Message.objects.get().get_absolute_url()

    @pytest.mark.slow
    @pytest.mark.parametrize("typed", [UNKNOWN, "$4,321.50", "payment.succ"])
    def test_messages_are_found_by_id_amount_and_type(self, viewer: Browser, told: str, typed: str) -> None:
        for html in (results(viewer, typed), suggestions(viewer, typed)):
            assert f'href="{told}"' in html
            assert "Not on file" not in html

    def test_messages_are_not_suggested_below_a_borrower(
        self, viewer: Browser, portal_service: Sandbox, told: str
    ) -> None:
        given.borrower(portal_service, first_name="Payment Acme LLC", key_people=[])
        assert f'href="{told}"' not in suggestions(viewer, "payment")
        page = results(viewer, "payment")
        assert page.index('id="group-borrower"') < page.index('id="messages"') < page.index(f'href="{told}"')

    def test_a_text_found_in_no_message_says_which_days_were_searched(
        self, viewer: Browser, told: str
    ) -> None:
        Message.objects.update(recorded_at=timezone.now() - timedelta(days=31))
        shown = results(viewer, "payment.succ")
        assert told not in shown
        assert "Messages None in the last 30 days Search other days" in visible_text(shown)
        link = re.search(r'href="([^"]+)">Search other days', shown)
        assert link
        assert link[1] == "/messages/?q=payment.succ"
        assert "last 30 days" not in visible_text(results(viewer, "$1.23"))

    @pytest.mark.parametrize("typed", ["type:loan payment.succeeded", "pa", 'x"y', "{}", "status:active"])
    def test_unrelated_queries_find_no_messages(self, viewer: Browser, told: str, typed: str) -> None:
        assert told not in results(viewer, typed)


class TestPastDue:
    """The same accounts as in the lists, each with amount and days, worst first."""

    @pytest.fixture(autouse=True)
    def accounts(self, portal_service: Sandbox) -> Account:
        owner = given.borrower(portal_service)
        for uuid, amount, days in (
            ("l-1", "90.00", 12),
            ("l-2", "700.00", 1),
            ("l-3", None, 45),
            ("l-4", "0.00", 0),
        ):
            answer = {"past_due_balance": amount and Decimal(amount), "days_past_due": days}
            statement = codec.decode(Statement, codec.to_json(answer))
            store.save(store.observe(statement, uuid=uuid, borrower_uuid=owner.uuid), source=Source.SERVICE)
        due = str(timezone.localdate() - timedelta(days=30))
        row = {"number": 1, "due_date": due, "total": 400, "status": "PAST_DUE"}
        loan = {"uuid": "closed", "status": "CHARGED_OFF", "installments": [row]}
        decoded = codec.decode(Loan, codec.to_json(loan))
        store.save(store.observe(decoded, borrower_uuid=owner.uuid), source=Source.SERVICE)
        return owner

    @staticmethod
    def hits(page: str, kind: str) -> list[tuple[str, str]]:
        """Each hit's address and the facts at its right."""
        found = re.findall(
            rf'<a href="(/borrowers/[^"]*/{kind}/[^"]*)">.*?<div class="sd-hit-facts">(.*?)</div>', page
        )
        return [(url.split("/")[-2], visible_text(facts)) for url, facts in found]

    @pytest.mark.slow
    def test_any_amount_includes_the_one_not_known(self, viewer: Browser) -> None:
        page = results(viewer, "past_due:>0")
        found = self.hits(page, "lines")
        assert sorted(found) == [
            ("l-1", "$90.00, 12 days Past due"),
            ("l-2", "$700.00, 1 day Past due"),
            ("l-3", "Not known, 45 days Past due"),
        ]
        assert [uuid for uuid, _ in found if uuid != "l-3"] == ["l-2", "l-1"]
        assert self.hits(page, "loans") == []
        listed = viewer.get("/lines/?past_due=yes").content.decode()
        assert {uuid for uuid in ("l-1", "l-2", "l-3", "l-4") if f"/lines/{uuid}/" in listed} == {
            uuid for uuid, _ in found
        }

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("typed", "found"),
        [(">90", {"l-2"}), (">=90", {"l-1", "l-2"}), ("<=90", {"l-1", "l-4"}), ("0", {"l-4"})],
    )
    def test_an_amount_compares_known_ones(self, viewer: Browser, typed: str, found: set[str]) -> None:
        page = results(viewer, f"past_due:{typed}")
        assert {uuid for uuid, _ in self.hits(page, "lines")} == found
        assert self.hits(page, "loans") == []
