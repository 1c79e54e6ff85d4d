"""The application page: its header, offers, refreshes and access."""

import re
from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import PageView
from portal.notes.models import Note
from portal.records.models import Application, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.applications.answers import offer, saved_application
from tests.portal.pages import allow_refresh, page, panel, plain


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def line_application(portal_service: Sandbox, borrower: Borrower, **fields: object) -> Application:
    """Create a line application in the service, and put only its ID on file."""
    uuid = portal_service.world.line_application(borrower.uuid, **fields)["uuid"]
    return given.account(Kind.APPLICATION, borrower, uuid)


def offers(browser: Browser, record: Application, query: str = "") -> str:
    """Return the offers as HTMX receives them."""
    return panel(browser, f"{record.get_absolute_url()}{query}", "offers")


def words(html: str) -> str:
    """Return the text of the HTML, without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


class TestHeader:
    def test_decision_and_requested_terms_are_shown(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer(), term=36, purpose="Equipment")
        shown = words(page(viewer, record.get_absolute_url()))
        for text in (
            "Loan application",
            "Approved",
            "Northwind Baking Co LLC",
            "Requested $40,000.00",
            "Term 36",
            "Purpose Equipment",
            "Credit check Consented",
            "Credit report 88214",
            "Created Nov 20, 2026, 1:31 PM",
            "by Ana Reyes",
        ):
            assert text in shown

    def test_details_of_any_shape_are_shown(self, viewer: Browser, borrower: Borrower) -> None:
        status = {"decision": "REJECTED", "details": {"score": 480, "reasons": ["Too young.", "Too small."]}}
        record = saved_application(
            borrower, status=status, details=["Two banks were read."], purpose={"text": "Ovens"}
        )
        shown = words(page(viewer, record.get_absolute_url()))
        for text in ("score 480", "reasons Too young.", "Two banks were read.", "text Ovens", "Rejected"):
            assert text in shown

    def test_a_time_in_an_ambiguous_zone_is_shown_as_sent(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, created_at="2026-11-20 10:31:07 IST")
        assert "2026-11-20 10:31:07 IST" in page(viewer, record.get_absolute_url())

    def test_undocumented_fields_are_shown_by_name(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, risk_band="B2")
        assert "risk_band B2" in words(page(viewer, record.get_absolute_url()))

    def test_unreadable_values_are_shown_and_reported(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer(apr="soon"), amount="a lot")
        shown = words(page(viewer, record.get_absolute_url()))
        assert "Requested a lot" in shown
        assert "offers.0.apr is not an exact number" in shown

    def test_unknown_products_and_decisions_are_shown_as_sent(
        self, viewer: Browser, borrower: Borrower
    ) -> None:
        record = saved_application(borrower, product="MICRO_LEASE", status={"decision": "COUNTER_OFFERED"})
        shown = page(viewer, record.get_absolute_url())
        assert "MICRO_LEASE application" in shown
        assert 'class="sd-badge sd-neutral"' in shown
        assert "COUNTER_OFFERED" in shown

    def test_failed_data_checks_are_shown_as_badges(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, status={"decision": "APPROVED"}, credit_score_consent=False)
        shown = page(viewer, record.get_absolute_url())
        assert "Approved without offers" in shown
        assert "Credit report without consent" in shown

    def test_text_from_the_service_is_escaped(self, viewer: Browser, borrower: Borrower) -> None:
        evil = "<script>alert(1)</script>"
        record = saved_application(
            borrower, offer(explanation=evil), purpose=evil, product=evil, details={evil: evil}
        )
        shown = page(viewer, f"{record.get_absolute_url()}?raw=1")
        assert evil not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


class TestOffers:
    def test_two_offers_are_columns_of_a_table(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer(0), offer(1, apr=13.04))
        shown = page(viewer, record.get_absolute_url())
        assert re.findall(r'<th scope="col">\s*Offer (\w)', shown) == ["A", "B"]
        assert len(re.findall(r'<th scope="row"', shown)) == 14
        assert "lowest APR" in shown

    def test_one_offer_is_a_card(self, viewer: Browser, borrower: Borrower) -> None:
        shown = page(viewer, saved_application(borrower, offer()).get_absolute_url())
        assert "sd-offer-cards-only" in shown
        assert "<table" not in shown

    def test_without_offers_the_decision_details_are_shown(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(
            borrower, status={"decision": "REJECTED", "details": "Cash flow is too low."}
        )
        assert "No offers Reasons: Cash flow is too low." in words(page(viewer, record.get_absolute_url()))

    def test_calculated_rows_show_their_formula(self, viewer: Browser, borrower: Borrower) -> None:
        shown = words(offers(viewer, saved_application(borrower, offer(0), offer(1, installment=None))))
        _, calculated = shown.split("Estimated", 1)
        assert "Net proceeds amount − origination fee $39,200.00" in calculated
        assert "Total of payments installment × term" in calculated
        assert "Needs installment" in calculated

    def test_the_query_string_sets_order_rows_and_offers(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, *[offer(n, apr=20 - n) for n in range(6)])
        shown = offers(viewer, record, "?sort=apr&rows=differing&offer=A&offer=F")
        assert re.findall(r'<th scope="col">\s*Offer (\w)', shown) == ["F", "A"]
        assert 'aria-sort="ascending"' in shown
        assert "11 identical rows hidden" in words(shown)
        assert "2 of 6 shown" in shown

    def test_rows_without_values_are_collapsed(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, *[offer(n, apr=20 - n) for n in range(3)])
        shown = offers(viewer, record, "?sort=apr&offer=A&offer=B")
        assert "Interest-only" not in shown
        assert "Not provided: 3 rows. Show" in words(shown)
        assert 'href="?sort=apr&amp;offer=A&amp;offer=B&amp;empty=1#offers"' in shown
        more = offers(viewer, record, "?sort=apr&offer=A&offer=B&empty=1&rows=all")
        assert "Not provided: 3 rows. Hide" in words(more)
        # The row is in the table and in each offer's card.
        assert more.count("Interest-only period") == 3
        for kept in ('name="empty" value="1"', 'name="rows" value="all"'):
            assert f'<input type="hidden" {kept}>' in more
        assert 'href="?sort=apr&amp;offer=A&amp;offer=B&amp;empty=1&amp;rows=differing#offers"' in more

    def test_hidden_identical_rows_can_be_shown(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, *[offer(n, apr=20 - n) for n in range(3)])
        shown = offers(viewer, record)
        assert "11 identical rows hidden Show all rows" in words(shown)
        assert 'href="?rows=all#offers"' in shown
        assert "Only differing rows" in offers(viewer, record, "?rows=all")

    def test_htmx_receives_only_the_offers(self, viewer: Browser, borrower: Borrower) -> None:
        fragment = offers(viewer, saved_application(borrower, offer()))
        assert re.findall(r'id="([\w-]+)"', fragment)[:2] == ["print-offers", "offers"]
        assert "<html" not in fragment

    def test_a_notice_says_offers_cannot_be_accepted(self, viewer: Browser, borrower: Borrower) -> None:
        text = "Offers can’t be accepted here."
        assert text in page(viewer, saved_application(borrower, offer()).get_absolute_url())

    def test_an_offer_that_does_not_add_up_has_a_badge(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer(0), offer(1, amount=50000, interest_rate=20))
        shown = words(offers(viewer, record))
        assert "Doesn’t add up No issues Above the requested amount APR below interest rate" in shown

    def test_an_account_with_the_offers_id_is_linked(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = saved_application(borrower, offer(0))
        loan = given.account(Kind.LOAN, borrower, offer(0)["uuid"])
        shown = offers(viewer, record)
        assert f'href="{loan.get_absolute_url()}"' in shown

    def test_raw_data_is_shown_on_request(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer(0))
        assert 'class="sd-json"' not in page(viewer, record.get_absolute_url())
        raw = offers(viewer, record, "?raw=1")
        assert "<b>&quot;credit_report_id&quot;</b>: <data>88214</data>" in raw
        assert "&quot;credit_report_id&quot;:88214" in raw


class TestRefresh:
    def test_a_loan_application_cannot_be_refreshed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        shown = plain(viewer, saved_application(borrower, offer()).get_absolute_url())
        assert "Can’t be refreshed." in shown
        assert "Saved" in shown
        assert "Refresh" not in shown
        assert portal_service.calls == []

    def test_a_line_application_refreshes_on_load(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = line_application(portal_service, borrower, purpose="Stock")
        assert 'id="application" hx-get="" hx-trigger="due"' in page(viewer, record.get_absolute_url())
        assert portal_service.calls == []
        assert "Purpose Stock" in words(panel(viewer, record.get_absolute_url(), "application"))
        portal_service.world.amend(record.uuid, purpose="Ovens")
        allow_refresh(record)
        shown = panel(viewer, record.get_absolute_url(), "application")
        assert shown.startswith('<div class="sd-stack sd-application" id="application"')
        assert "Purpose Ovens" in words(shown)

    def test_without_scripts_refresh_reads_the_service(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = line_application(portal_service, borrower, purpose="Stock")
        assert "Purpose Stock" in words(plain(viewer, f"{record.get_absolute_url()}?refresh=1"))

    def test_sorting_makes_no_service_calls(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = line_application(portal_service, borrower)
        panel(viewer, record.get_absolute_url(), "application")
        allow_refresh(record)
        offers(viewer, record, "?sort=apr")
        assert len(portal_service.calls) == 1

    @pytest.mark.slow
    def test_the_saved_copy_is_shown_while_the_service_is_down(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = line_application(portal_service, borrower, purpose="Stock")
        panel(viewer, record.get_absolute_url(), "application")
        portal_service.fail_next("applications.get_for_line", status=503, times=None)
        allow_refresh(record)
        shown = panel(viewer, record.get_absolute_url(), "application")
        assert "Purpose Stock" in words(shown)
        assert "Failing since" in shown

    @pytest.mark.slow
    def test_a_failed_first_read_shows_an_error(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        portal_service.fail_next("applications.get_for_line", status=503, times=None)
        record = line_application(portal_service, borrower)
        assert "The application couldn’t be loaded" in panel(viewer, record.get_absolute_url(), "application")

    def test_an_id_unknown_to_the_service_shows_not_found(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = given.account(Kind.APPLICATION, borrower, "c40e91d7-0000-4000-8000-000000000009")
        shown = panel(viewer, record.get_absolute_url(), "application")
        assert "Application not found" in shown
        assert "If this is a loan application, the service can’t show it again" in shown
        assert "Not responding" not in shown
        assert "Refused" in words(plain(viewer, "/applications/"))

    def test_changes_since_the_last_visit_are_shown(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = line_application(portal_service, borrower)
        address = record.get_absolute_url()
        panel(viewer, address, "application")
        assert "since your last visit" not in page(viewer, address)
        PageView.objects.update(first_at=timezone.now() - timedelta(hours=3))
        portal_service.world.amend(record.uuid, status={"decision": "REJECTED", "details": None}, offers=[])
        allow_refresh(record)
        shown = words(panel(viewer, address, "application"))
        assert "Status: decision was: APPROVED is: REJECTED" in shown
        assert "is: 0 entries" in shown

    def test_a_loan_application_never_read_shows_only_its_id(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = given.account(Kind.APPLICATION, borrower, "c40e91d7-0000-4000-8000-000000000009")
        Application.objects.filter(pk=record.pk).update(product="LOAN")
        shown = plain(viewer, record.get_absolute_url())
        assert "Only the ID is on file" in shown
        assert portal_service.calls == []


class TestAccess:
    def test_all_roles_can_view_but_only_lending_roles_can_act(
        self, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record = saved_application(borrower, offer())
        for role in Role:
            shown = page(browser_of(role), record.get_absolute_url())
            can_act = role in (Role.SERVICER, Role.SUPERVISOR)
            assert (f"/applications/{record.uuid}/prefer/?offer=" in shown) == can_act

    def test_the_url_under_another_borrower_is_not_found(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        record, other = saved_application(borrower, offer()), given.borrower(portal_service)
        assert viewer.get(f"/borrowers/{other.uuid}/applications/{record.uuid}/").status_code == 404

    def test_repeated_views_share_one_audit_entry(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer())
        for _ in range(2):
            page(viewer, record.get_absolute_url())
        offers(viewer, record)
        entry = PageView.objects.get(page="applications.detail")
        assert (entry.subject_uuid, entry.subject_label) == (
            record.uuid,
            "application c40e91d7 for $40,000.00",
        )
        assert PageView.objects.get().count == 2

    @pytest.mark.parametrize("method", ["post", "put", "delete"])
    def test_write_methods_are_rejected(self, servicer: Browser, borrower: Borrower, method: str) -> None:
        assert getattr(servicer, method)(saved_application(borrower).get_absolute_url()).status_code == 405

    def test_the_borrower_page_links_to_applications_and_the_form(
        self, servicer: Browser, borrower: Borrower
    ) -> None:
        record = saved_application(borrower, offer())
        address = f"/borrowers/{borrower.uuid}/"
        assert f'href="{record.get_absolute_url()}"' in page(servicer, f"{address}?tab=applications")
        assert f'href="{address}applications/new/"' in page(servicer, address)

    def test_notes_are_shown(self, viewer: Browser, borrower: Borrower) -> None:
        record = saved_application(borrower, offer())
        Note.objects.create(
            borrower_uuid=borrower.uuid,
            subject_kind=record.kind,
            subject_uuid=record.uuid,
            text="Call them on Monday",
            author_id=1,
            author_name="Marcus Bell",
        )
        assert "Call them on Monday" in page(viewer, record.get_absolute_url())


def test_malformed_urls_never_fail(viewer: Browser, borrower: Borrower) -> None:
    record = saved_application(borrower, offer(0), offer(1))
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
