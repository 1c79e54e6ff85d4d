"""The pages of an account under axe, on the way a person takes through them; and the warning before a session ends."""

import re
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from portal.accounts.models import User
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import complaints
from tests.conftest import existing_user
from tests.portal.test_sign_in import PASSWORD, code

pytestmark = pytest.mark.browser
NEW_PASSWORD = "copper-lantern-42"
PAGES = (
    "mfa_index",
    "mfa_view_recovery_codes",
    "mfa_generate_recovery_codes",
    "mfa_deactivate_totp",
    "mfa_list_webauthn",
    "mfa_add_webauthn",
    "accounts:profile",
    "accounts:sessions",
    "account_change_password",
    "account_logout",
)


def enter(page: Page) -> None:
    """Send the form that is being filled, and wait for the page it leads to."""
    with page.expect_navigation(wait_until="networkidle"):
        page.keyboard.press("Enter")


def sign_in(page: Page, password: str) -> None:
    page.goto(reverse("account_login"))
    page.fill("[name=login]", "maya")
    page.fill("[name=password]", password)
    enter(page)


def test_axe_finds_nothing_on_any_page_of_an_account(page: Page, portal_service: Sandbox) -> None:
    User.objects.create_user("maya", password=PASSWORD, role="servicer")
    found: list[str] = []

    def look(where: str) -> None:
        found.extend(f"{where}: {one}" for one in complaints(page))

    page.context.clear_cookies()
    sign_in(page, "wrong")
    look("a sign-in that failed")
    sign_in(page, PASSWORD)
    page.goto(reverse("mfa_activate_totp"))
    look("the password again")
    page.fill("[name=password]", PASSWORD)
    enter(page)
    look("an app to set up")
    secret = re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", page.content())[0]
    page.fill("[name=code]", code(secret))
    enter(page)
    look("the first recovery codes")
    for name in PAGES:
        page.goto(reverse(name))
        page.wait_for_load_state("networkidle")
        look(name)
    page.context.clear_cookies()
    sign_in(page, PASSWORD)
    expect(page.locator("[name=code]")).to_be_visible()
    look("a code to enter")
    assert found == []


def test_a_link_sets_a_password_and_axe_finds_nothing_on_its_pages(
    page: Page, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.HAS_MAIL, settings.PORTAL_URL = True, ""
    person = existing_user("maya", PASSWORD, email="maya@desk.example", role="servicer")
    found: list[str] = []

    def look(where: str) -> None:
        found.extend(f"{where}: {one}" for one in complaints(page))

    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    page.get_by_role("link", name="Forgot your password?").click()
    look("an address to type")
    page.fill("[name=email]", "312-09-9931@desk.example")
    enter(page)
    look("an address that was refused")
    page.fill("[name=email]", "maya@desk.example")
    enter(page)
    expect(page.get_by_role("heading", name="Check your email")).to_be_visible()
    look("what happens next")
    link = reverse("account_choose_password", args=[person.pk, default_token_generator.make_token(person)])
    page.goto(link)
    look("a password to choose")
    for name in ("new_password1", "new_password2"):
        page.fill(f"[name={name}]", NEW_PASSWORD)
    enter(page)
    expect(page.get_by_role("status")).to_have_text("Your password is set. Sign in with it.")
    look("sign-in with the new password")
    sign_in(page, NEW_PASSWORD)
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Sign in")
    assert found == []


def test_a_warning_comes_before_a_session_ends_keeps_the_form_and_prolongs_it(
    page: Page, portal_service: Sandbox
) -> None:
    borrower = given.borrower(portal_service)
    page.clock.install()
    page.goto(f"/notes/new/borrower/{borrower.uuid}/")
    page.fill("[name=text]", "Calls only after noon.")
    UserSession.objects.update(last_seen_at=timezone.now() - timedelta(minutes=29))
    page.clock.fast_forward("29:00")
    warning = page.get_by_role("dialog", name="Your session is about to expire")
    expect(warning).to_be_visible()
    expect(warning.get_by_role("timer")).to_have_text(re.compile("0:[1-5][0-9]"))
    assert complaints(page) == []
    warning.get_by_role("button", name="Stay signed in").click()
    expect(warning).to_be_hidden()
    assert UserSession.objects.get().last_seen_at > timezone.now() - timedelta(minutes=1)
    expect(page.locator("[name=text]")).to_have_value("Calls only after noon.")
