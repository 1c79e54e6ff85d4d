"""One application's page: its decision, its offers side by side, how old it is, and what does not add up."""

import re
from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import Entry, RecordView
from portal.notes.models import Note
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.applications.answers import known, offer
from tests.portal.pages import forget, page, panel, plain


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def line_application(portal_service: Sandbox, borrower: Record, **fields: object) -> Record:
    """An application for a line that the service has; this desk knows its identifier."""
    uuid = portal_service.world.line_application(borrower.uuid, **fields)["uuid"]
    return given.account(Kind.APPLICATION, borrower, uuid)


def offers(browser: Browser, record: Record, query: str = "") -> str:
    """The offers as HTMX gets them."""
    return panel(browser, f"{record.get_absolute_url()}{query}", "offers")


def words(html: str) -> str:
    """The text of some markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


class TestHeader:
    def test_everything_that_was_applied_for_is_told(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, offer(), term=36, purpose="Equipment")
        shown = words(page(viewer, record.get_absolute_url()))
        for text in (
            "Loan application",
            "Approved",
            "Northwind Baking Co LLC",
            "Requested $40,000.00",
            "Term requested 36",
            "Purpose Equipment",
            "Credit-score consent Given",
            "Credit report 88214",
            "Created Nov 20, 2026, 1:31 PM",
            "by Ana Reyes",
        ):
            assert text in shown

    def test_details_are_shown_whatever_their_shape(self, viewer: Browser, borrower: Record) -> None:
        status = {"decision": "REJECTED", "details": {"score": 480, "reasons": ["Too young.", "Too small."]}}
        record = known(borrower, status=status, details=["Two banks were read."], purpose={"text": "Ovens"})
        shown = words(page(viewer, record.get_absolute_url()))
        for text in ("score 480", "reasons Too young.", "Two banks were read.", "text Ovens", "Rejected"):
            assert text in shown

    def test_a_time_without_a_certain_zone_keeps_its_words(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, created_at="2026-11-20 10:31:07 IST")
        assert "2026-11-20 10:31:07 IST" in page(viewer, record.get_absolute_url())

    def test_fields_that_the_interface_does_not_describe_are_shown_by_name(
        self, viewer: Browser, borrower: Record
    ) -> None:
        record = known(borrower, risk_band="B2")
        assert "risk_band B2" in words(page(viewer, record.get_absolute_url()))

    def test_what_could_not_be_read_is_said_and_shown(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, offer(apr="soon"), amount="a lot")
        shown = words(page(viewer, record.get_absolute_url()))
        assert "Requested a lot" in shown
        assert "offers.0.apr is not an exact number" in shown

    def test_unknown_words_of_the_service_stay_as_they_are(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, product="MICRO_LEASE", status={"decision": "COUNTER_OFFERED"})
        shown = page(viewer, record.get_absolute_url())
        assert "MICRO_LEASE application" in shown
        assert 'class="sd-badge sd-neutral"' in shown
        assert "COUNTER_OFFERED" in shown

    def test_what_is_off_about_it_is_a_quiet_badge(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, status={"decision": "APPROVED"}, credit_score_consent=False)
        shown = page(viewer, record.get_absolute_url())
        assert "Approved without offers" in shown
        assert "Credit report without consent" in shown

    def test_text_of_the_service_is_never_markup(self, viewer: Browser, borrower: Record) -> None:
        evil = "<script>alert(1)</script>"
        record = known(borrower, offer(explanation=evil), purpose=evil, product=evil, details={evil: evil})
        assert evil not in page(viewer, f"{record.get_absolute_url()}?raw=1")


class TestOffers:
    def test_they_stand_side_by_side_with_their_names_as_heads(
        self, viewer: Browser, borrower: Record
    ) -> None:
        record = known(borrower, offer(0), offer(1, apr=13.04))
        shown = page(viewer, record.get_absolute_url())
        assert re.findall(r'<th scope="col">\s*Offer (\w)', shown) == ["A", "B"]
        assert len(re.findall(r'<th scope="row"', shown)) == 15
        assert "lowest APR" in shown

    def test_one_offer_is_a_card(self, viewer: Browser, borrower: Record) -> None:
        shown = page(viewer, known(borrower, offer()).get_absolute_url())
        assert "sd-offer-cards-only" in shown
        assert "<table" not in shown

    def test_none_is_said_with_the_details_of_the_decision(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, status={"decision": "REJECTED", "details": "Cash flow is too low."})
        assert "No offers Decision details: Cash flow is too low." in words(
            page(viewer, record.get_absolute_url())
        )

    def test_calculated_rows_are_set_apart_with_their_formula(
        self, viewer: Browser, borrower: Record
    ) -> None:
        shown = words(offers(viewer, known(borrower, offer(0), offer(1, installment=None))))
        _, calculated = shown.split("Calculated here", 1)
        assert "Net proceeds amount − origination fee $39,200.00" in calculated
        assert "Total of payments installment × term Not marked: value missing" in calculated
        assert "Needs installment" in calculated

    def test_the_query_string_is_the_state(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, *[offer(n, apr=20 - n) for n in range(6)])
        shown = offers(viewer, record, "?sort=apr&rows=differing&offer=A&offer=F")
        assert re.findall(r'<th scope="col">\s*Offer (\w)', shown) == ["F", "A"]
        assert 'aria-sort="ascending"' in shown
        assert "12 rows hidden, the same for all" in words(shown)
        assert "2 of 6 shown" in shown

    def test_what_no_offer_has_is_one_line_until_it_is_wanted(
        self, viewer: Browser, borrower: Record
    ) -> None:
        record = known(borrower, *[offer(n, apr=20 - n) for n in range(3)])
        shown = offers(viewer, record, "?sort=apr&offer=A&offer=B")
        assert "Interest-only" not in shown
        assert "Not provided: 3 rows. Show" in words(shown)
        assert 'href="?sort=apr&amp;offer=A&amp;offer=B&amp;empty=1#offers"' in shown
        more = offers(viewer, record, "?sort=apr&offer=A&offer=B&empty=1&rows=all")
        assert "Not provided: 3 rows. Hide" in words(more)
        # In the table and in the card of each offer.
        assert more.count("Interest-only period") == 3
        for kept in ('name="empty" value="1"', 'name="rows" value="all"'):
            assert f'<input type="hidden" {kept}>' in more
        assert 'href="?sort=apr&amp;offer=A&amp;offer=B&amp;empty=1&amp;rows=differing#offers"' in more

    def test_of_three_offers_all_rows_are_one_click_away(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, *[offer(n, apr=20 - n) for n in range(3)])
        shown = offers(viewer, record)
        assert "12 rows hidden, the same for all All rows" in words(shown)
        assert 'href="?rows=all#offers"' in shown
        assert "Only differing rows" in offers(viewer, record, "?rows=all")

    def test_a_fragment_is_the_region_alone(self, viewer: Browser, borrower: Record) -> None:
        fragment = offers(viewer, known(borrower, offer()))
        assert fragment.startswith('<div class="sd-stack" id="offers"')
        assert "<html" not in fragment

    def test_accepting_is_said_to_be_impossible(self, viewer: Browser, borrower: Record) -> None:
        text = "Offers can’t be accepted here."
        assert text in page(viewer, known(borrower, offer()).get_absolute_url())

    def test_an_offer_that_does_not_add_up_has_a_badge(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, offer(0), offer(1, amount=50000, interest_rate=20))
        shown = words(offers(viewer, record))
        assert "Doesn’t add up No issues Above the requested amount APR below interest rate" in shown

    def test_an_account_known_under_its_identifier_is_linked_as_a_hint(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = known(borrower, offer(0))
        loan = given.account(Kind.LOAN, borrower, offer(0)["uuid"])
        shown = offers(viewer, record)
        assert f'href="{loan.get_absolute_url()}"' in shown
        assert "with this ID exists" in shown

    def test_the_object_is_shown_whole_when_it_is_wanted(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, offer(0))
        assert 'class="sd-json"' not in page(viewer, record.get_absolute_url())
        raw = offers(viewer, record, "?raw=1")
        assert "<b>&quot;credit_report_id&quot;</b>: <data>88214</data>" in raw
        assert "&quot;credit_report_id&quot;:88214" in raw


class TestAge:
    def test_a_loan_application_tells_that_it_cannot_be_read_again(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        shown = plain(viewer, known(borrower, offer()).get_absolute_url())
        assert "Can’t be refreshed." in shown
        assert "Saved from the response of" in shown
        assert "Refresh" not in shown
        assert portal_service.calls == []

    def test_an_application_for_a_line_reads_itself_again(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = line_application(portal_service, borrower, purpose="Stock")
        assert 'hx-trigger="load"' in page(viewer, record.get_absolute_url())
        assert portal_service.calls == []
        assert "Purpose Stock" in words(panel(viewer, record.get_absolute_url(), "application"))
        portal_service.world.amend(record.uuid, purpose="Ovens")
        forget(record)
        shown = panel(viewer, record.get_absolute_url(), "application")
        assert shown.startswith('<div class="sd-stack sd-application" id="application"')
        assert "Purpose Ovens" in words(shown)

    def test_without_scripts_it_is_read_with_the_page(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = line_application(portal_service, borrower, purpose="Stock")
        assert "Purpose Stock" in words(plain(viewer, record.get_absolute_url()))

    def test_sorting_asks_the_service_nothing(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = line_application(portal_service, borrower)
        panel(viewer, record.get_absolute_url(), "application")
        forget(record)
        offers(viewer, record, "?sort=apr")
        assert len(portal_service.calls) == 1

    def test_a_silent_service_leaves_the_copy_and_its_age(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = line_application(portal_service, borrower, purpose="Stock")
        panel(viewer, record.get_absolute_url(), "application")
        portal_service.fail_next("applications.get_for_line", status=503, times=None)
        forget(record)
        shown = panel(viewer, record.get_absolute_url(), "application")
        assert "Purpose Stock" in words(shown)
        assert "Not responding since" in shown

    def test_one_that_was_never_read_and_cannot_be_says_so(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        portal_service.fail_next("applications.get_for_line", status=503, times=None)
        record = line_application(portal_service, borrower)
        assert "The application couldn’t be loaded" in panel(viewer, record.get_absolute_url(), "application")

    def test_one_that_the_service_has_no_line_application_for_is_not_called_silent(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = given.account(Kind.APPLICATION, borrower, "c40e91d7-0000-4000-8000-000000000009")
        shown = panel(viewer, record.get_absolute_url(), "application")
        assert "Application not found" in shown
        assert "If this is a loan application, the service can’t show it again" in shown
        assert "Not responding" not in shown
        assert "Refused" in words(plain(viewer, "/applications/"))

    def test_a_line_application_tells_what_changed_since_somebody_looked(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = line_application(portal_service, borrower)
        address = record.get_absolute_url()
        panel(viewer, address, "application")
        assert "since your last visit" not in page(viewer, address)
        RecordView.objects.update(first_at=timezone.now() - timedelta(hours=3))
        portal_service.world.amend(record.uuid, status={"decision": "REJECTED", "details": None}, offers=[])
        forget(record)
        shown = words(panel(viewer, address, "application"))
        assert "Status: decision was: APPROVED is: REJECTED" in shown
        assert "is: 0 entries" in shown

    def test_of_a_loan_application_made_elsewhere_only_the_identifier_is_known(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = given.account(Kind.APPLICATION, borrower, "c40e91d7-0000-4000-8000-000000000009")
        Record.objects.filter(pk=record.pk).update(category="LOAN")
        shown = plain(viewer, record.get_absolute_url())
        assert "Only the ID is on file" in shown
        assert portal_service.calls == []


class TestAccess:
    def test_everybody_may_look_and_only_some_may_act(
        self, portal_service: Sandbox, borrower: Record
    ) -> None:
        record = known(borrower, offer())
        for role in Role:
            shown = page(browser_of(role), record.get_absolute_url())
            may_act = role in (Role.SERVICER, Role.SUPERVISOR)
            assert ('title="Requires the servicer or supervisor role"' in shown) != may_act

    def test_under_another_borrower_it_is_not_found(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        record, other = known(borrower, offer()), given.borrower(portal_service)
        assert viewer.get(f"/borrowers/{other.uuid}/applications/{record.uuid}/").status_code == 404

    def test_a_look_is_in_the_audit_and_a_second_one_only_counts(
        self, viewer: Browser, borrower: Record
    ) -> None:
        record = known(borrower, offer())
        for _ in range(2):
            page(viewer, record.get_absolute_url())
        offers(viewer, record)
        entry = Entry.objects.get(action="applications.detail")
        assert (entry.subject_uuid, entry.subject_label) == (
            record.uuid,
            "application c40e91d7 for $40,000.00",
        )
        assert RecordView.objects.get().count == 2

    @pytest.mark.parametrize("method", ["post", "put", "delete"])
    def test_it_is_only_for_reading(self, servicer: Browser, borrower: Record, method: str) -> None:
        assert getattr(servicer, method)(known(borrower).get_absolute_url()).status_code == 405

    def test_the_borrowers_page_leads_here_and_to_a_new_one(
        self, servicer: Browser, borrower: Record
    ) -> None:
        record = known(borrower, offer())
        address = f"/borrowers/{borrower.uuid}/"
        assert f'href="{record.get_absolute_url()}"' in page(servicer, f"{address}?tab=applications")
        assert f'href="{address}applications/new/"' in page(servicer, address)

    def test_notes_of_colleagues_are_shown(self, viewer: Browser, borrower: Record) -> None:
        record = known(borrower, offer())
        Note.objects.create(
            borrower_uuid=borrower.uuid,
            subject_kind=record.kind,
            subject_uuid=record.uuid,
            text="Call them on Monday",
            author_id=1,
            author_name="Marcus Bell",
        )
        assert "Call them on Monday" in page(viewer, record.get_absolute_url())


def test_hostile_addresses_are_answered(viewer: Browser, borrower: Record) -> None:
    record = known(borrower, offer(0), offer(1))
    for query in (
        "?sort=%00",
        "?offer=%00&offer=" + "A" * 3000,
        "?rows=%ff&empty=%ff",
        "?raw=%F0%9F%98%80",
        "?panel=x",
    ):
        assert viewer.get(record.get_absolute_url() + query, headers=htmx("offers")).status_code == 200
    for uuid in ("..", "%00", "x" * 3000, "😀"):
        assert viewer.get(f"/borrowers/{borrower.uuid}/applications/{uuid}/").status_code == 404
