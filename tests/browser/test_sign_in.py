"""Sign-in and account pages in a browser, checked by axe, and the warning before a session expires."""

import re
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import CDPSession, Page, expect

from portal.accounts.encryption import encrypt
from portal.accounts.models import User
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import find_problems
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


def submit_form(page: Page) -> None:
    """Submit the focused form and wait for the next page."""
    with page.expect_navigation(wait_until="networkidle"):
        page.keyboard.press("Enter")


def sign_in(page: Page, password: str) -> None:
    page.goto(reverse("account_login"))
    page.fill("[name=login]", "maya")
    page.fill("[name=password]", password)
    submit_form(page)


def test_account_pages_pass_axe(page: Page, portal_service: Sandbox) -> None:
    User.objects.create_user("maya", password=PASSWORD, role="servicer")
    problems: list[str] = []

    def check_page(where: str) -> None:
        problems.extend(f"{where}: {one}" for one in find_problems(page))

    page.context.clear_cookies()
    sign_in(page, "wrong")
    check_page("a sign-in that failed")
    sign_in(page, PASSWORD)
    page.goto(reverse("mfa_activate_totp"))
    check_page("the password again")
    page.fill("[name=password]", PASSWORD)
    submit_form(page)
    check_page("an app to set up")
    secret = re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", page.content())[0]
    page.fill("[name=code]", code(secret))
    submit_form(page)
    check_page("the first recovery codes")
    for name in PAGES:
        page.goto(reverse(name))
        page.wait_for_load_state("networkidle")
        check_page(name)
    page.context.clear_cookies()
    sign_in(page, PASSWORD)
    expect(page.locator("[name=code]")).to_be_visible()
    check_page("a code to enter")
    assert problems == []


def test_password_reset_works_and_passes_axe(
    page: Page, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.HAS_MAIL, settings.PORTAL_URL = True, ""
    user = existing_user("maya", PASSWORD, email="maya@desk.example", role="servicer")
    problems: list[str] = []

    def check_page(where: str) -> None:
        problems.extend(f"{where}: {one}" for one in find_problems(page))

    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    page.get_by_role("link", name="Forgot your password?").click()
    check_page("an address to type")
    page.fill("[name=email]", "312-09-9931@desk.example")
    submit_form(page)
    check_page("an address that was refused")
    page.fill("[name=email]", "maya@desk.example")
    submit_form(page)
    expect(page.get_by_role("heading", name="Check your email")).to_be_visible()
    check_page("what happens next")
    link = reverse("account_choose_password", args=[user.pk, default_token_generator.make_token(user)])
    page.goto(link)
    check_page("a password to choose")
    for name in ("new_password1", "new_password2"):
        page.fill(f"[name={name}]", NEW_PASSWORD)
    submit_form(page)
    expect(page.get_by_role("status")).to_have_text("Your password is set. Sign in with it.")
    check_page("sign-in with the new password")
    sign_in(page, NEW_PASSWORD)
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Sign in")
    assert problems == []


def test_the_session_warning_extends_the_session_and_keeps_the_form(
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
    assert find_problems(page) == []
    warning.get_by_role("button", name="Stay signed in").click()
    expect(warning).to_be_hidden()
    assert UserSession.objects.get().last_seen_at > timezone.now() - timedelta(minutes=1)
    expect(page.locator("[name=text]")).to_have_value("Calls only after noon.")


@pytest.fixture
def device(page: Page) -> CDPSession:
    """A device that keeps passkeys and recognizes its owner."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "automaticPresenceSimulation": True}
    abilities = {"hasResidentKey": True, "hasUserVerification": True, "isUserVerified": True}
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options | abilities})
    return session


def add_passkey(page: Page, *, alone: bool = True) -> None:
    page.goto(reverse("mfa_add_webauthn"))
    if page.locator("[name=password]").count():
        page.fill("[name=password]", PASSWORD)
        submit_form(page)
    if alone:
        page.get_by_label("Sign in with this").check()
    page.get_by_role("button", name="Add the passkey").click()


def test_passkey_errors_name_the_reason(page: Page, device: CDPSession, portal_service: Sandbox) -> None:
    existing_user("maya", PASSWORD, role="servicer")
    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_have_text(
        "Canceled, took too long, or this device has no passkey for this site."
    )
    sign_in(page, PASSWORD)
    add_passkey(page)
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    add_passkey(page)
    expect(page.get_by_role("alert")).to_have_text("This device already has a passkey for your account.")
    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_hidden()
    page.goto(reverse("accounts:profile"))
    expect(page.get_by_role("heading", name="Your settings")).to_be_visible()
    page.goto(reverse("account_reauthenticate"))
    expect(page.get_by_role("link", name="Use a passkey")).to_be_visible()
    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    Authenticator.objects.all().delete()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert").first).to_have_text(
        "This passkey isn’t registered here any more. Use your password or another passkey."
    )
    User.objects.filter(username="maya").delete()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert").first).to_contain_text("isn’t registered here any more")


def test_a_passkey_removed_during_sign_in_is_named(
    page: Page, device: CDPSession, portal_service: Sandbox
) -> None:
    existing_user("maya", PASSWORD, role="servicer")
    page.context.clear_cookies()
    sign_in(page, PASSWORD)
    add_passkey(page, alone=False)
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    other = Authenticator.objects.get(type="webauthn")
    page.context.clear_cookies()
    sign_in(page, PASSWORD)
    Authenticator.objects.create(user=other.user, type="totp", data={"secret": encrypt("A" * 32)})
    other.delete()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("alert").first).to_contain_text("isn’t registered here any more")
