"""Onboarding a borrower: what is sent, what is rejected, and how the page shows both."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from portal.borrowers.models import Draft
from portal.gateway import client as gateway
from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.borrowers.editor import phases
from tests.portal.borrowers.wizard import (
    ADDRESS,
    BUSINESS,
    CREATE,
    EIN,
    ELENA,
    PHONE_REJECTED,
    PRIYA,
    SIGNED,
    SSN,
    Wizard,
    html,
    html_of_error,
    people,
)
from tests.portal.pages import visible_text


@contextmanager
def no_service(settings: LazySettings) -> Iterator[None]:
    """Point the portal at a port where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings.SERVICING_URL = f"http://127.0.0.1:{taken.getsockname()[1]}"
        gateway.client.cache_clear()
        yield


# --- Success ---


@pytest.mark.slow
@pytest.mark.parametrize("step", ["business", "people", "review"])
def test_draft_urls_redirect_to_the_created_borrower(step: str, wizard: Wizard, sandbox: Sandbox) -> None:
    wizard.send()
    (user,) = sandbox.world.users()
    answer = wizard.get(step)
    assert (answer.status_code, answer["Location"]) == (303, f"/borrowers/{user['uuid']}/")


@pytest.mark.slow
def test_a_pasted_tab_becomes_a_space(wizard: Wizard, sandbox: Sandbox) -> None:
    wizard.post("business", BUSINESS | {"first_name": "Bay\tBakery LLC"})
    wizard.send()
    assert [user["first_name"] for user in sandbox.world.users()] == ["Bay Bakery LLC"]


@pytest.mark.slow
def test_all_fields_are_sent(wizard: Wizard, sandbox: Sandbox) -> None:
    answer = wizard.send()
    (user,) = sandbox.world.users()
    assert (answer.status_code, answer["Location"]) == (303, f"/borrowers/{user['uuid']}/")
    assert user["first_name"] == BUSINESS["first_name"]
    assert (user["phone"], user["start_date"], user["entity"]) == (
        "5125550143",
        "2015-03-09",
        BUSINESS["entity"],
    )
    assert (user["address"]["state"], user["address"]["country"]) == ("TX", "UNITED STATES")
    elena, priya = user["key_people"]
    assert (elena["last_name"], elena["phone"], elena["citizenship"]) == ("O'Neil", "5125550178", "US")
    assert (priya["title"], priya["citizenship"], priya["address"]["zip"]) == ("DIRECTOR", "IN", "78702")
    assert sandbox.world.received_dob(priya["uuid"]) == "1987/04/19"


@pytest.mark.slow
def test_the_service_decrypts_the_ein_and_ssn(wizard: Wizard, sandbox: Sandbox) -> None:
    wizard.send({"ssn_1": SSN, "ssn_1_again": "219 09 9999"})
    (user,) = sandbox.world.users()
    assert sandbox.world.received_ein(user["uuid"]) == "471029384"
    received = [sandbox.world.received_ssn(person["uuid"]) for person in user["key_people"]]
    assert received == [None, "219099999"]


@pytest.mark.slow
def test_a_key_person_can_have_another_address(servicer: Browser, sandbox: Sandbox) -> None:
    address = {
        "same_address": "",
        "line_1": "9 Calle Sol",
        "city": "San Juan",
        "state": "pr",
        "zip": "00901-1234",
    }
    Wizard(servicer).fill(ELENA | address).send()
    (person,) = sandbox.world.users()[0]["key_people"]
    assert person["address"]["state"] == "PR"
    assert person["address"]["zip"] == "00901-1234"


@pytest.mark.slow
def test_review_shows_the_masked_request(wizard: Wizard) -> None:
    page = html(wizard.get("review"))
    assert "Create O&#x27;Neil &amp; Daughters, LLC" in page
    assert "[hidden]" in page
    assert "UNITED STATES" in page
    assert "000000000" not in page


# --- Roles ---


@pytest.mark.parametrize("role", [Role.VIEWER, Role.AUDITOR, Role.ADMIN])
def test_other_roles_cannot_onboard(role: Role, portal_service: Sandbox) -> None:
    browser = browser_of(role)
    assert browser.get("/borrowers/new/").status_code == 403
    url = f"/borrowers/new/{Draft().pk}/"
    assert browser.post(f"{url}business/", BUSINESS).status_code == 403
    assert browser.post(f"{url}review/", SIGNED).status_code == 403
    assert browser.post(f"{url}discard/").status_code == 403
    assert not Draft.objects.exists()


def test_onboarding_requires_sign_in(anonymous: Browser) -> None:
    assert anonymous.get("/borrowers/new/")["Location"].startswith("/sign-in/")


@pytest.mark.slow
def test_another_users_draft_cannot_be_sent(wizard: Wizard, supervisor: Browser, sandbox: Sandbox) -> None:
    typed = wizard.hidden_fields() | SIGNED
    assert supervisor.post(f"{wizard.url}review/", typed).status_code == 404
    assert not sandbox.world.users()


# --- Bad input ---


def test_review_shows_all_errors_at_once(wizard: Wizard, sandbox: Sandbox) -> None:
    page = html_of_error(wizard.post("review", wizard.hidden_fields() | {"ssn_0": "12"}))
    assert "Fix 4 fields. Nothing was sent." in page
    assert "Select the box to confirm." in page
    assert "Enter all 9 digits (2 entered)." in page
    assert ">Confirm EIN: Enter the EIN again.</a>" in page
    assert not sandbox.world.users()


def test_mismatched_ein_and_ssn_are_rejected_and_not_shown(wizard: Wizard, sandbox: Sandbox) -> None:
    page = html_of_error(wizard.send({"ein_again": "47-1029385", "ssn_0": SSN}))
    assert page.count("The entries don’t match. Enter both again.") == 4
    assert EIN not in page
    assert "1029385" not in page
    assert SSN not in page
    assert not sandbox.world.users()


@pytest.mark.slow
def test_an_error_asks_again_for_every_number_typed(wizard: Wizard, sandbox: Sandbox) -> None:
    page = html_of_error(wizard.send({"ein_again": "47-1029385", "ssn_1": SSN, "ssn_1_again": SSN}))
    for name in ("ein", "ssn_1", "ssn_1_again"):
        assert f'id="id_{name}_error"' in page
    assert 'href="#id_ssn_1">SSN of Priya Raman: This was cleared. Enter it again.</a>' in page
    assert 'id="id_ssn_0_error"' not in page
    assert SSN not in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(lambda wizard, typed: wizard.send(typed | {"ein": "1"}), id="error"),
        pytest.param(lambda wizard, typed: wizard.post("review", typed, act="back"), id="back"),
        pytest.param(lambda wizard, typed: wizard.send(typed), id="rejected"),
    ],
)
def test_review_remembers_whose_ssn_was_cleared(
    lose: Callable[[Wizard, dict[str, str]], HttpResponse], wizard: Wizard, sandbox: Sandbox
) -> None:
    sandbox.fail_next(CREATE, **PHONE_REJECTED)
    lose(wizard, {"ssn_1": SSN, "ssn_1_again": SSN})
    wizard.post("people", people(ELENA, PRIYA), act="up-1")
    page = html(wizard.get("review"))
    assert page.count("This was cleared. Enter it again.") == 1
    assert 'id="id_ssn_0_helptext"' in page
    assert not re.search(r"\b9999\b", page)


@pytest.mark.slow
def test_an_unsent_request_asks_again_for_its_ssns(
    wizard: Wizard, sandbox: Sandbox, settings: LazySettings
) -> None:
    with no_service(settings):
        page = html_of_error(wizard.send({"ssn_0": SSN, "ssn_0_again": SSN}), 503)
    assert page.count("This was cleared. Enter it again.") == 1


@pytest.mark.slow
def test_a_rejected_review_is_an_htmx_fragment(wizard: Wizard) -> None:
    page = html_of_error(wizard.send({"ein": "1"}, headers=htmx("wizard")))
    assert page.strip().startswith('<div class="sd-wizard" id="wizard">')
    assert "<html" not in page


def test_review_shows_no_reports_and_asks_to_confirm_the_ein(wizard: Wizard) -> None:
    shown = wizard.get("review").content.decode()
    assert "Reports: none" in shown
    assert ">Confirm EIN<" in shown


@pytest.mark.slow
def test_an_incomplete_draft_is_not_sent(servicer: Browser, sandbox: Sandbox) -> None:
    wizard = Wizard(servicer)
    wizard.post("business", BUSINESS)
    page = html_of_error(wizard.send())
    assert "Address: not started" in page
    assert "Key people: not started" in page
    assert not sandbox.world.users()


@pytest.mark.slow
def test_a_draft_changed_in_another_window_is_not_sent(wizard: Wizard, sandbox: Sandbox) -> None:
    seen = wizard.hidden_fields()
    wizard.post("business", BUSINESS | {"email": "other@oneil.example"})
    page = html_of_error(wizard.post("review", seen | SIGNED))
    assert "The draft changed in another window." in page
    assert "other@oneil.example" in page
    assert not sandbox.world.users()


@pytest.mark.slow
def test_an_error_from_the_client_library_returns_to_its_step(
    wizard: Wizard, sandbox: Sandbox, settings: LazySettings
) -> None:
    gateway.client()
    settings.SERVICING_COUNTRY = "USA"
    page = html_of_error(wizard.send())
    assert "2. Address" in page
    assert "The country must be written" in page
    assert phases(CREATE) == []


# --- Rejected or not sent ---


@pytest.mark.slow
def test_a_rejected_phone_returns_to_the_business_step(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, **PHONE_REJECTED)
    page = html_of_error(wizard.send())
    assert "1. Business" in page
    assert "<q>phone must be a valid US phone number</q>" in page
    assert "The service rejected this. No borrower was created." in page
    assert 'href="#id_phone"' in page
    assert phases(CREATE) == ["attempt", "outcome rejected"]


@pytest.mark.slow
def test_a_rejection_keeps_all_input_but_ein_and_ssn(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, **PHONE_REJECTED)
    wizard.send({"ssn_1": SSN, "ssn_1_again": SSN})
    review = html(wizard.get("review"))
    assert "priya@oneil.example" in review
    assert "born Apr 19, 1987" in review
    assert "1029384" not in review
    assert not re.search(r"\b9999\b", review)


@pytest.mark.slow
def test_a_rejected_draft_can_be_corrected_and_sent(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, **PHONE_REJECTED)
    wizard.send()
    assert "Business: needs attention: 1 field" in html_of_error(wizard.send())
    wizard.post("business", BUSINESS | {"phone": "512 555 0144"})
    assert wizard.send().status_code == 303
    assert [user["phone"] for user in sandbox.world.users()] == ["5125550144"]


@pytest.mark.slow
def test_resubmitting_a_rejected_page_shows_the_rejection(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, status=422, message="computer says no")
    typed = wizard.hidden_fields() | SIGNED
    wizard.post("review", typed)
    page = html_of_error(wizard.post("review", typed), 409)
    assert "Already submitted; it didn’t go through" in page
    assert "<q>computer says no</q>" in page
    assert not sandbox.world.users()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "step", "marked"),
    [
        ("key_people.1.phone must be a phone number", "3. Key people", "id_person-1-phone"),
        ("key_people[0].address.zip is not in TX", "3. Key people", "id_person-0-zip"),
        ("address.zip 78702 is not in TX", "2. Address", "id_zip"),
        ("Invalid incorporation date", "1. Business", "id_incorporated_on"),
        ("asset_report_json_gzip must be gzip", "4. Reports", "id_asset_report"),
        ("EIN could not be decrypted", "5. Review and send", "id_ein"),
        ("key_people.1.ssn could not be decrypted", "5. Review and send", "id_ssn_1"),
    ],
)
def test_a_rejection_links_to_the_field_it_names(
    words: str, step: str, marked: str, wizard: Wizard, sandbox: Sandbox
) -> None:
    sandbox.fail_next(CREATE, status=422, message=words)
    page = html_of_error(wizard.send())
    assert f'<h2 id="step-title">{step}</h2>' in page
    assert f"<q>{words}</q>" in page
    assert f'href="#{marked}"' in page


@pytest.mark.slow
def test_a_rejection_without_a_field_stays_on_review(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, status=400, body={"errors": ["Try again on Monday", "Or <b>never</b>"]})
    page = html_of_error(wizard.send())
    assert "5. Review and send" in page
    assert "<q>Try again on Monday</q>, <q>Or &lt;b&gt;never&lt;/b&gt;</q>" in page


def test_a_byte_order_mark_before_the_answer_changes_nothing(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, body="\ufeff".encode() + dumps(sandbox.world.borrower()))
    assert wizard.send().status_code == 303
    assert phases(CREATE) == ["attempt", "outcome confirmed"]


@pytest.mark.slow
def test_a_busy_service_is_named_with_its_wait(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, status=429, headers={"Retry-After": "17"}, message="Too Many")
    shown = visible_text(html_of_error(wizard.send(), 503))
    assert "The service is busy. Nothing was sent. Try again in 17 seconds." in shown
    assert "Try again in a moment" not in shown
    assert phases(CREATE) == ["attempt", "outcome not_sent"]


@pytest.mark.slow
def test_a_draft_can_be_sent_after_an_outage(
    wizard: Wizard, sandbox: Sandbox, settings: LazySettings
) -> None:
    with no_service(settings):
        page = html_of_error(wizard.send(), 503)
    assert "Nothing was sent" in page
    assert phases(CREATE) == ["attempt", "outcome not_sent"]
    settings.SERVICING_URL = sandbox.url
    gateway.client.cache_clear()
    assert wizard.send().status_code == 303


# --- Already on file ---


@pytest.mark.slow
def test_a_duplicate_borrower_requires_a_reason(wizard: Wizard, sandbox: Sandbox) -> None:
    known = given.borrower(sandbox, phone="5125550143")
    page = html_of_error(wizard.send())
    assert f'href="{known.get_absolute_url()}">Open existing</a>' in page
    assert "Enter the reason to create anyway" in page
    assert wizard.send({"reason": "A second business at the same desk"}).status_code == 303
    attempt = Entry.objects.get(action=CREATE, phase="attempt")
    assert attempt.reason == "A second business at the same desk"


@pytest.mark.slow
def test_a_similar_unknown_outcome_requires_a_reason(wizard: Wizard, sandbox: Sandbox) -> None:
    sandbox.fail_next(CREATE, cut_after_commit=True)
    wizard.send()
    lost = WriteIntent.objects.get()
    other = Wizard(wizard.browser).fill(email="accounts@oneil.example")
    page = html_of_error(other.send())
    assert f'href="{lost.get_absolute_url()}">Open request</a>' in page
    assert "outcome unknown. Same: O&#x27;Neil &amp; Daughters, LLC, (512) 555-0143" in page
    assert "Enter the reason to create anyway" in page
    assert len(sandbox.world.users()) == 1
    assert other.send({"reason": "The county has two of them"}).status_code == 303
    assert len(sandbox.world.users()) == 2


@pytest.mark.slow
def test_the_reason_survives_a_rejection(wizard: Wizard, sandbox: Sandbox) -> None:
    given.borrower(sandbox, email="OFFICE@oneil.example")
    sandbox.fail_next(CREATE, **PHONE_REJECTED)
    wizard.send({"reason": "They moved"})
    assert 'value="They moved"' in html(wizard.get("review"))


# --- Hostile input ---


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 10_000, "\0", "\ud800", "‮<script>alert(1)</script>", "9" * 5_000])
def test_hostile_text_on_review_is_rejected(text: str, wizard: Wizard) -> None:
    names = ("submit_id", "seen", "ein", "ein_again", "checked", "ssn_0", "ssn_99", "reason", "act")
    raw = text.encode("utf-8", "surrogatepass")
    body = b"&".join(name.encode() + b"=" + b"".join(b"%%%02x" % byte for byte in raw) for name in names)
    answer = wizard.browser.post(
        f"{wizard.url}review/", body, content_type="application/x-www-form-urlencoded"
    )
    page = html_of_error(answer)
    assert "<script>alert" not in page


def test_a_searched_name_is_filled_in(servicer: Browser) -> None:
    page = servicer.get("/borrowers/new/?name=Acme+%26+Sons+%3CLLC%3E").content.decode()
    assert 'value="Acme &amp; Sons &lt;LLC&gt;"' in page
    assert not Draft.objects.exists()


class TestPhoneNotOnTheList:
    """The packaged list of area codes may be older than a number, so staff can confirm one."""

    NEW: ClassVar = "(624) 305-1111"

    @pytest.mark.slow
    def test_a_confirmed_number_is_sent(self, wizard: Wizard, portal_service: Sandbox) -> None:
        wizard.fill(ELENA, phone=self.NEW)
        assert "isn’t on our list of US numbers" in html(wizard.get("business"))
        rejected = wizard.send()
        assert "isn’t on our list of US numbers. Check each digit. Then confirm." in html_of_error(rejected)
        assert not portal_service.calls
        assert wizard.send({"phone_checked": "on"}).status_code == 303
        assert portal_service.world.users()[0]["phone"] == "6243051111"

    @pytest.mark.slow
    def test_a_key_persons_number_needs_confirmation(self, wizard: Wizard, portal_service: Sandbox) -> None:
        wizard.fill(ELENA | {"phone": self.NEW})
        assert wizard.send().status_code == 422
        assert wizard.send({"phone_checked": "on"}).status_code == 303

    @pytest.mark.slow
    @pytest.mark.parametrize("phone", ["911-555-0143", "512-411-0143", "199-555-0143", "876-200-1234"])
    def test_what_cannot_be_a_us_number_is_rejected(self, wizard: Wizard, phone: str) -> None:
        assert wizard.post("business", BUSINESS | {"phone": phone}).status_code == 422

    def test_a_number_on_the_list_needs_no_confirmation(self, wizard: Wizard) -> None:
        wizard.fill(ELENA)
        assert "phone_checked" not in html(wizard.get("review"))


class TestZipOfNineDigits:
    @pytest.mark.slow
    @pytest.mark.parametrize("typed", ["787021234", "78702 1234", "78702–1234", "78702-1234"])
    def test_it_is_sent_with_a_dash_and_never_taken_for_an_ssn(
        self, wizard: Wizard, portal_service: Sandbox, typed: str
    ) -> None:
        wizard.fill(ELENA)
        answer = wizard.post("address", ADDRESS | {"zip": typed})
        assert answer.status_code == 303
        assert Draft.objects.get().typed("address")[0]["zip"] == "78702-1234"
        assert 'value="78702-1234"' in html(wizard.get("address"))
        assert wizard.send().status_code == 303
        (user,) = portal_service.world.users()
        assert user["address"]["zip"] == user["key_people"][0]["address"]["zip"] == "78702-1234"

    @pytest.mark.slow
    def test_an_ssn_in_it_is_still_refused_and_not_kept(self, wizard: Wizard) -> None:
        answer = wizard.post("address", ADDRESS | {"zip": SSN})
        assert "Remove the SSN or EIN" in html_of_error(answer)
        bare = wizard.post("address", ADDRESS | {"zip": SSN.replace("-", "")})
        assert "isn’t a ZIP code" in html(bare) or "is not in Texas" in html(bare)
        assert "zip" not in Draft.objects.get().typed("address")[0]


class TestZipOfBorderingState:
    """Some towns get their mail from a bordering state, so staff can confirm such a ZIP code."""

    TEXHOMA: ClassVar = {"line_1": "12 Main St", "city": "Texhoma", "state": "Texas", "zip": "73949"}

    @pytest.mark.slow
    def test_a_confirmed_zip_is_sent(self, wizard: Wizard, portal_service: Sandbox) -> None:
        wizard.fill(ELENA)
        wizard.post("address", self.TEXHOMA)
        assert "belongs to Oklahoma (OK), which borders Texas" in html(wizard.get("address"))
        rejected = wizard.send()
        assert rejected.status_code == 422
        assert "Then confirm." in html(rejected)
        assert not portal_service.calls
        assert wizard.send({"zip_checked": "on"}).status_code == 303
        assert Borrower.objects.count() == 1

    @pytest.mark.slow
    def test_a_key_persons_zip_needs_confirmation(self, wizard: Wizard, portal_service: Sandbox) -> None:
        person = {name: text for name, text in ELENA.items() if name != "same_address"} | self.TEXHOMA
        wizard.fill(person)
        assert wizard.send().status_code == 422
        assert wizard.send({"zip_checked": "on"}).status_code == 303

    def test_a_zip_of_a_distant_state_is_rejected(self, wizard: Wizard) -> None:
        wizard.fill(ELENA)
        answer = wizard.post("address", self.TEXHOMA | {"zip": "94043"})
        assert "it belongs to California (CA)" in html(answer)

    @pytest.mark.slow
    def test_a_matching_zip_needs_no_confirmation(self, wizard: Wizard) -> None:
        wizard.fill(ELENA)
        assert "zip_checked" not in html(wizard.get("review"))
