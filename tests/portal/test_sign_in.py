"""Second factors, single sign-on, sessions that end and what they leave behind, keys that are changed."""

import base64
import json
import re
import time
from datetime import timedelta
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
import requests
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone

from portal import gateway
from portal.accounts import expired_forms
from portal.accounts.encryption import CannotDecrypt, decrypt
from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import CLIENT_ID, browser_of, existing_user, htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.conftest import use_provider
from tests.portal.operations.test_demo import free_port

PASSWORD = "walnut-harbor-77"
PAGES = "/accounts/second-factor/"


@pytest.fixture
def maya(portal_service: Sandbox) -> User:
    email = "Maya@desk.example"
    return existing_user("maya", PASSWORD, email=email, role=Role.SERVICER, first_name="Maya")


@pytest.fixture
def browser(anonymous: Browser, maya: User) -> Browser:
    sign_in(anonymous)
    return anonymous


def sign_in(browser: Browser, **extra: str) -> Any:
    return browser.post("/sign-in/", {"login": "maya", "password": PASSWORD} | extra)


def post(browser: Browser, url: str, typed: dict[str, str], **extra: Any) -> Any:
    """Post a form as browsers do."""
    return browser.post(url, urlencode(typed), content_type="application/x-www-form-urlencoded", **extra)


def html(answer: Any) -> str:
    return unescape(answer.content.decode())


def code(secret: str, ago: int = 0) -> str:
    """What the app shows, or showed some half minutes ago."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 - ago))


def set_up_app(browser: Browser) -> tuple[str, list[str]]:
    """The app's secret and the recovery codes, after the page has shown them."""
    browser.post("/accounts/confirm/", {"password": PASSWORD})
    secret = re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", html(browser.get(f"{PAGES}app/")))[0]
    answer = browser.post(f"{PAGES}app/", {"code": code(secret)}, follow=True)
    return secret, re.findall(r"<code>(\d{8})</code>", html(answer))


def actions() -> list[str]:
    found = Entry.objects.filter(action__startswith="accounts.").order_by("id")
    return [entry.action.removeprefix("accounts.") for entry in found]


class TestSecondFactor:
    def test_an_app_is_asked_for_from_the_next_sign_in_on(self, browser: Browser) -> None:
        secret, codes = set_up_app(browser)
        assert len(codes) == 10
        other = Browser()
        assert sign_in(other, next="/loans/")["Location"] == "/sign-in/second-factor/"
        assert other.get("/")["Location"].startswith("/sign-in/")
        assert "not signed in yet" in html(other.post("/sign-in/second-factor/", {"code": "000000"}))
        assert other.post("/sign-in/second-factor/", {"code": code(secret)})["Location"] == "/loans/"
        assert actions() == [
            "sign_in", "second_factor_added", "second_factor_added", "sign_in_failed", "sign_in",
        ]  # fmt: skip

    def test_a_code_and_a_recovery_code_work_once(self, browser: Browser) -> None:
        secret, codes = set_up_app(browser)
        for given_code in (code(secret), codes[0]):
            results = []
            for other in (Browser(), Browser()):
                sign_in(other)
                results.append(other.post("/sign-in/second-factor/", {"code": given_code}).status_code)
            assert results == [302, 200]

    def test_recovery_codes_are_shown_once(self, browser: Browser) -> None:
        _, codes = set_up_app(browser)
        page = html(browser.get(f"{PAGES}codes/"))
        assert not [one for one in codes if one in page]

    def test_what_it_is_made_from_rests_sealed(self, browser: Browser) -> None:
        secret, codes = set_up_app(browser)
        stored = json.dumps(list(Authenticator.objects.values_list("data", flat=True)))
        assert not [one for one in (secret, *codes) if one in stored]

    def test_whoever_has_only_the_session_must_prove_who_they_are(self, browser: Browser) -> None:
        assert browser.get(f"{PAGES}app/")["Location"].startswith("/accounts/confirm/")
        assert browser.get(f"{PAGES}passkeys/add/")["Location"].startswith("/accounts/confirm/")

    @pytest.mark.parametrize("required", [["all"], ["servicer"]])
    def test_who_must_have_one_does_nothing_before_it_is_set_up(
        self, browser: Browser, settings: LazySettings, required: list[str]
    ) -> None:
        settings.SECOND_FACTOR_REQUIRED = required
        assert browser.get("/borrowers/")["Location"] == PAGES
        assert browser.get("/loans/", headers=htmx("loan-rows"))["HX-Redirect"] == PAGES
        set_up_app(browser)
        assert browser.get("/borrowers/").status_code == 200

    def test_others_need_none(self, browser: Browser, settings: LazySettings) -> None:
        settings.SECOND_FACTOR_REQUIRED = ["supervisor", "admin"]
        assert browser.get("/borrowers/").status_code == 200

    def test_an_administrator_removes_one_that_was_lost(
        self, browser: Browser, admin: Browser, maya: User
    ) -> None:
        set_up_app(browser)
        chosen = {"action": "remove_second_factors", "_selected_action": [maya.pk], "index": "0"}
        assert "with only a password" in html(admin.post("/admin/accounts/user/", chosen, follow=True))
        assert not Authenticator.objects.exists()
        assert (
            Entry.objects.filter(
                action="accounts.second_factor_removed", actor_name="Administrator (admin)"
            ).count()
            == 2
        )
        assert sign_in(Browser())["Location"] == "/"

    def test_an_unreadable_passkey_is_refused(self, browser: Browser, anonymous: Browser) -> None:
        browser.post("/accounts/confirm/", {"password": PASSWORD})
        for nonsense in ("{}", "[]", '{"id": "x", "response": {"userHandle": "%%"}}', "null"):
            answer = Browser().post("/sign-in/passkey/", {"credential": nonsense})
            assert answer["Location"] == "/sign-in/"
            assert browser.post(f"{PAGES}passkeys/add/", {"credential": nonsense}).status_code == 200

    def test_an_unreadable_passkey_confirms_nobody(self, browser: Browser, maya: User) -> None:
        Authenticator.objects.create(
            user=maya, type=Authenticator.Type.WEBAUTHN, data={"name": "Key", "credential": {"id": "x"}}
        )
        for nonsense in ("", "{", "{}", "[]", '{"id": "x", "response": {"userHandle": "%%"}}', "null"):
            answer = browser.post("/accounts/confirm/passkey/", {"credential": nonsense})
            assert (answer.status_code, answer["Location"]) == (302, "/sign-in/")

    @pytest.mark.parametrize("stored", [{}, {"id": "x"}, {"id": "x", "rawId": "x", "response": {}}, [], None])
    def test_a_stored_passkey_that_cannot_be_read_is_no_failure(
        self, browser: Browser, maya: User, stored: Any
    ) -> None:
        data = {"name": "Key", "credential": stored}
        Authenticator.objects.create(user=maya, type=Authenticator.Type.WEBAUTHN, data=data)
        other = Browser()
        assert sign_in(other)["Location"] == "/sign-in/second-factor/"
        for answer in (browser.get("/accounts/confirm/passkey/"), other.get("/sign-in/second-factor/")):
            assert answer.status_code == 403
            assert "A passkey of this account can't be read" in html(answer)


class TestSessions:
    def let_pass(self, **ages: timedelta) -> None:
        now = timezone.now()
        UserSession.objects.update(**{name: now - age for name, age in ages.items()})

    def test_an_idle_one_ends(self, browser: Browser, settings: LazySettings) -> None:
        self.let_pass(last_seen_at=timedelta(minutes=settings.SESSION_IDLE_MINUTES, seconds=1))
        assert browser.get("/loans/")["Location"] == "/sign-in/?next=/loans/"
        assert actions() == ["sign_in", "session_ended"]
        assert not UserSession.objects.exists()

    def test_what_a_person_does_keeps_it(self, browser: Browser, settings: LazySettings) -> None:
        self.let_pass(last_seen_at=timedelta(minutes=settings.SESSION_IDLE_MINUTES - 1))
        whole = settings.SESSION_IDLE_MINUTES * 60
        assert int(browser.get("/accounts/profile/")["X-Session-Left"]) > whole - 10

    def test_what_a_page_asks_by_itself_does_not(self, browser: Browser, settings: LazySettings) -> None:
        self.let_pass(last_seen_at=timedelta(minutes=settings.SESSION_IDLE_MINUTES - 1))
        answer = browser.get("/accounts/session/", headers={"X-Background": "1"})
        assert 50 < answer.json()["left"] <= 60
        assert browser.post("/accounts/session/").json()["left"] > 60

    def test_the_longest_ends_however_busy(self, browser: Browser, settings: LazySettings) -> None:
        self.let_pass(created_at=timedelta(hours=settings.SESSION_HOURS, seconds=1))
        assert browser.get("/loans/").status_code == 302

    def test_a_new_password_ends_the_others(self, browser: Browser) -> None:
        elsewhere = Browser()
        sign_in(elsewhere)
        new = {"oldpassword": PASSWORD, "password1": "gravel-lantern-9", "password2": "gravel-lantern-9"}
        assert browser.post("/accounts/password/", new)["Location"] == "/accounts/profile/"
        assert browser.get("/loans/").status_code == 200
        assert elsewhere.get("/loans/").status_code == 302
        assert actions()[-1] == "password_changed"

    def test_a_short_or_common_password_is_refused(self, browser: Browser) -> None:
        for weak in ("short-one-1", "Maya@desk.example", "1qaz2wsx3edc"):
            new = {"oldpassword": PASSWORD, "password1": weak, "password2": weak}
            assert "The password was not changed." in html(browser.post("/accounts/password/", new))

    def test_others_are_listed_and_ended(self, browser: Browser) -> None:
        first, second = Browser(headers={"User-Agent": "Firefox/140 (Windows NT 10.0)"}), Browser()
        sign_in(first)
        sign_in(second)
        page = html(browser.get("/accounts/sessions/"))
        assert page.count(">End<") == 2
        assert "Firefox on Windows" in page
        browser.post("/accounts/sessions/end/", {"session": UserSession.objects.order_by("id")[1].pk})
        assert [one.get("/loans/").status_code for one in (first, second, browser)] == [302, 200, 200]
        browser.post("/accounts/sessions/end/", {"session": "all"})
        assert [one.get("/loans/").status_code for one in (second, browser)] == [302, 200]

    def test_an_administrator_who_ends_them_is_named(self, browser: Browser, maya: User) -> None:
        chosen = {"action": "end_sessions", "_selected_action": [maya.pk]}
        browser_of(Role.ADMIN).post("/admin/accounts/user/", chosen)
        assert browser.get("/loans/").status_code == 302
        entry = Entry.objects.get(action="accounts.session_ended")
        assert (entry.actor_role, entry.subject_label) == ("admin", "maya")

    @pytest.mark.parametrize("wanted", ["", "x", "²", "0"])
    def test_somebody_elses_are_not_touched(self, browser: Browser, servicer: Browser, wanted: str) -> None:
        servicer.get("/loans/")
        theirs = UserSession.objects.exclude(user__username="maya").get()
        browser.post("/accounts/sessions/end/", {"session": wanted or theirs.pk})
        assert servicer.get("/loans/").status_code == 200

    def test_a_form_that_came_too_late_can_still_be_sent(
        self, browser: Browser, maya: User, portal_service: Sandbox
    ) -> None:
        record = given.borrower(portal_service)
        url = f"/borrowers/{record.uuid}/edit/"
        self.let_pass(last_seen_at=timedelta(days=1))
        typed = {"text": "Called about the\nMay payment", "password": "x", "code": "219-09-9999"}
        answer = post(browser, url, typed)
        assert answer["Location"] == "/sign-in/?next=/accounts/resume/"
        assert "Called" not in str([one.get_decoded() for one in Session.objects.all()])
        assert sign_in(browser, next="/accounts/resume/")["Location"] == "/accounts/resume/"
        page = html(browser.get("/accounts/resume/"))
        assert f'action="{url}"' in page
        assert 'name="text" value="Called about the\nMay payment"' in page
        assert 'name="password"' not in page
        assert 'name="code"' not in page
        assert "Nothing to continue" in html(browser.get("/accounts/resume/"))

    def test_it_waits_for_nobody_else(self, browser: Browser) -> None:
        User.objects.create_user("ravi", password=PASSWORD, role=Role.SERVICER)
        self.let_pass(last_seen_at=timedelta(days=1))
        post(browser, "/accounts/profile/", {"first_name": "M"})
        browser.post("/sign-in/", {"login": "ravi", "password": PASSWORD})
        assert "Nothing to continue" in html(browser.get("/accounts/resume/"))

    def test_a_form_made_elsewhere_is_not_kept(self, maya: User, portal_service: Sandbox) -> None:
        browser = Browser(enforce_csrf_checks=True)
        browser.force_login(maya)
        record = given.borrower(portal_service)
        browser.get("/loans/")
        self.let_pass(last_seen_at=timedelta(days=1))
        answer = post(browser, f"/borrowers/{record.uuid}/edit/", {"email": "evil@evil.example"})
        assert answer.status_code == 403
        assert expired_forms.SESSION_KEY not in browser.session

    def test_a_fragments_form_is_kept_too(self, browser: Browser) -> None:
        self.let_pass(last_seen_at=timedelta(days=1))
        answer = post(browser, "/accounts/profile/", {"first_name": "M"}, headers=htmx("x"))
        assert answer["HX-Redirect"] == "/sign-in/?next=/accounts/resume/"


class TestAddresses:
    def entry_of(self, browser: Browser, **headers: str) -> Entry:
        browser.post("/sign-in/", {"login": "maya", "password": "x"}, headers=headers)
        return Entry.objects.latest("id")

    def test_a_browser_cannot_choose_its_own(self, anonymous: Browser, maya: User) -> None:
        assert self.entry_of(anonymous, **{"X-Forwarded-For": "203.0.113.9"}).ip == "127.0.0.1"

    def test_a_trusted_proxy_tells_it(self, anonymous: Browser, maya: User, settings: LazySettings) -> None:
        settings.TRUSTED_PROXIES = 1
        assert self.entry_of(anonymous, **{"X-Forwarded-For": "6.6.6.6, 203.0.113.9"}).ip == "203.0.113.9"

    def test_one_address_is_slowed_down_over_all_accounts(self, anonymous: Browser, maya: User) -> None:
        for number in range(10):
            anonymous.post("/sign-in/", {"login": f"staff-{number}", "password": "x"})
        assert "Too many attempts" in html(sign_in(anonymous))

    def test_right_passwords_slow_no_address_down(self, anonymous: Browser, maya: User) -> None:
        assert {sign_in(Browser())["Location"] for _ in range(12)} == {"/"}


class TestStrangers:
    """Whoever knows a name and no password keeps its owner out of nothing."""

    @pytest.fixture(autouse=True)
    def behind_a_proxy(self, settings: LazySettings) -> None:
        settings.TRUSTED_PROXIES = 1
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

    def guess(self, times: int, *, each_from: str = "203.0.113.9") -> None:
        for number in range(times):
            headers = {"X-Forwarded-For": each_from.format(number)}
            typed = {"login": "maya", "password": f"guess-{number}"}
            assert Browser().post("/sign-in/", typed, headers=headers).status_code == 200

    def come(self, address: str = "198.51.100.7", **typed: str) -> Any:
        browser = Browser(headers={"X-Forwarded-For": address})
        return browser, browser.post("/sign-in/", {"login": "maya", "password": PASSWORD} | typed)

    def test_wrong_passwords_from_elsewhere_keep_nobody_out(self, anonymous: Browser, maya: User) -> None:
        self.guess(5)
        assert "Too many attempts" in html(self.come("203.0.113.9")[1])
        assert self.come()[1]["Location"] == "/"

    def test_nor_do_hundreds_from_everywhere_who_has_no_second_factor(
        self, anonymous: Browser, maya: User
    ) -> None:
        self.guess(110, each_from="203.0.113.{}")
        assert self.come()[1]["Location"] == "/"

    def test_the_right_password_with_a_second_factor_is_never_refused(self, browser: Browser) -> None:
        secret, _ = set_up_app(browser)
        self.guess(12)
        assert "Too many attempts" in html(self.come("203.0.113.9", password="wrong")[1])
        other, answer = self.come("203.0.113.9")
        assert answer["Location"] == "/sign-in/second-factor/"
        assert other.post("/sign-in/second-factor/", {"code": code(secret)})["Location"] == "/"

    def test_after_100_in_an_hour_the_second_factor_comes_first(self, browser: Browser) -> None:
        secret, recovery_codes = set_up_app(browser)
        self.guess(100, each_from="203.0.113.{}")
        for password in (PASSWORD, "wrong"):  # Which of them is right is not said.
            page = html(self.come(password=password)[1])
            assert "Enter the code from your app with your password" in page
            assert 'name="code"' in page
        for typed in ({"code": "000000"}, {"code": code(secret), "password": "wrong"}):
            other, answer = self.come(**typed)
            assert "Incorrect username or password" in html(answer)
            assert other.get("/").status_code == 302
        other, answer = self.come(code=recovery_codes[0])
        assert answer["Location"] == "/"
        assert other.get("/").status_code == 200


class IdentityProvider:
    """A provider of single sign-on in a process of its own, with one person."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.says(email="maya@desk.example", email_verified=True)

    def says(self, sub: str = "s-1", **claims: Any) -> None:
        """Whom it signs in from now on, and with which claims."""
        self.sub = sub
        requests.put(f"{self.url}/users/{sub}", json=claims, timeout=10).raise_for_status()

    def asked_by(self, browser: Browser, **typed: str) -> str:
        """The address to which the portal sends a browser."""
        address = str(browser.post("/sign-in/with/sso/", {"next": "/loans/"} | typed)["Location"])
        assert address.startswith(f"{self.url}/oauth2/authorize?")
        return address

    def answer_to(self, asked: str) -> str:
        """Sign the person in there; the address to which the provider sends the browser back."""
        query = parse_qs(urlsplit(asked).query)
        assert query["code_challenge_method"] == ["S256"]
        answer = requests.post(asked, data={"sub": self.sub}, allow_redirects=False, timeout=10)
        back = urlsplit(answer.headers["Location"])
        return f"{back.path}?{back.query}"


@pytest.fixture
def provider(settings: LazySettings, portal_service: Sandbox, provider_url: str) -> IdentityProvider:
    use_provider(settings, provider_url)
    return IdentityProvider(provider_url)


def come_back(browser: Browser, provider: IdentityProvider) -> Any:
    """Go to the identity provider and return as it sends one back."""
    return browser.get(provider.answer_to(provider.asked_by(browser)))


class TestSingleSignOn:
    def test_a_known_person_is_signed_in_and_found_again(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        assert "Continue with Acme" in html(anonymous.get("/sign-in/"))
        assert come_back(anonymous, provider)["Location"] == "/loans/"
        assert actions() == ["single_sign_on_connected", "sign_in"]
        provider.says(email="other@desk.example")  # Known by its ID from now on.
        assert come_back(Browser(), provider)["Location"] == "/loans/"
        assert SocialAccount.objects.get().user == maya

    def test_it_needs_no_second_factor_of_ours(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        settings.SECOND_FACTOR_REQUIRED = ["all"]
        come_back(anonymous, provider)
        assert anonymous.get("/loans/").status_code == 200

    @pytest.mark.parametrize(
        ("said", "why"),
        [
            (
                {"email": "stranger@desk.example", "email_verified": True},
                "stranger@desk.example has no account",
            ),
            ({"email": "maya@desk.example", "email_verified": False}, "no verified email address"),
            ({"email": "maya@desk.example", "email_verified": "false"}, "no verified email address"),
            ({"email": "maya@desk.example"}, "no verified email address"),
            ({"preferred_username": "maya"}, "no verified email address"),
        ],
    )
    @pytest.mark.parametrize("trusted", [False, True])
    def test_nobody_else_gets_in(
        self,
        anonymous: Browser,
        provider: IdentityProvider,
        maya: User,
        settings: LazySettings,
        said: dict[str, Any],
        why: str,
        trusted: bool,
    ) -> None:
        settings.OIDC_TRUST_EMAIL = trusted
        provider.says(**said)
        answer = come_back(anonymous, provider)
        if trusted and said == {"email": "maya@desk.example"}:
            assert answer["Location"] == "/loans/"
            return
        assert answer.status_code == 403
        assert "No account here" in html(answer)
        assert why in html(answer)
        assert anonymous.get("/loans/").status_code == 302
        assert not SocialAccount.objects.exists()
        entry = Entry.objects.latest("id")
        assert (entry.action, entry.subject_label) == ("accounts.sign_in_failed", said.get("email", "s-1"))
        assert entry.detail["at"].startswith("single sign-on: no_")

    @pytest.mark.parametrize(
        ("match", "said"),
        [
            ("preferred_username", {"preferred_username": "Maya"}),
            ("upn", {"upn": "MAYA", "email": "stranger@desk.example"}),
            ("sub", {"sub": "maya"}),
            ("email", {"email": "maya@desk.example", "email_verified": "true"}),
        ],
    )
    def test_the_chosen_claim_finds_the_account(
        self,
        anonymous: Browser,
        provider: IdentityProvider,
        maya: User,
        settings: LazySettings,
        match: str,
        said: dict[str, Any],
    ) -> None:
        provider.says(**said)
        settings.OIDC_MATCH = "sub" if match != "sub" else "upn"
        assert come_back(Browser(), provider).status_code == 403
        settings.OIDC_MATCH = match
        assert come_back(anonymous, provider)["Location"] == "/loans/"
        assert SocialAccount.objects.get().user == maya

    @pytest.mark.parametrize(
        "claims",
        [
            {"email": "mıke@desk.example", "email_verified": True},
            {"email": "boſs@desk.example", "email_verified": True},
            {"email": "boss@desk.example\0", "email_verified": True},
            {"preferred_username": "mıke"},
            {"preferred_username": "BOſS"},
            {"preferred_username": "boss\0.elsewhere"},
        ],
    )
    def test_a_name_that_only_resembles_anothers_opens_nothing(
        self, anonymous: Browser, provider: IdentityProvider, settings: LazySettings, claims: dict[str, Any]
    ) -> None:
        for name in ("mike", "boss"):
            User.objects.create_user(name, f"{name}@desk.example", PASSWORD)
        settings.OIDC_MATCH = next(iter(claims))
        provider.says(**claims)
        assert come_back(anonymous, provider).status_code in (401, 403)
        assert not SocialAccount.objects.exists()

    def test_a_claim_with_a_nul_keeps_nobody_out(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        provider.says(email=maya.email, email_verified=True, name="Maya\0", address={"street": "\0"})
        assert come_back(anonymous, provider)["Location"] == "/loans/"
        assert SocialAccount.objects.get().user == maya

    def test_two_accounts_with_one_address_are_nobodys(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        User.objects.create_user("maya2", "maya@desk.example", PASSWORD)
        assert "No account here" in html(come_back(anonymous, provider))

    def test_who_was_deactivated_stays_out(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        come_back(anonymous, provider)
        User.objects.update(is_active=False)
        other = Browser()
        assert "not active" in html(other.get(come_back(other, provider)["Location"]))
        entry = Entry.objects.latest("id")
        assert (entry.action, entry.subject_label) == ("accounts.sign_in_failed", "maya")
        assert entry.detail == {"at": "inactive account"}

    def test_a_state_of_another_browser_is_refused(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        back = provider.answer_to(provider.asked_by(Browser()))
        answer = anonymous.get(back)
        assert answer.status_code == 401
        assert "Single sign-on failed" in html(answer)

    def test_an_identity_token_of_another_sign_in_is_refused(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        stolen = parse_qs(urlsplit(provider.answer_to(provider.asked_by(Browser()))).query)["code"][0]
        state = parse_qs(urlsplit(provider.asked_by(anonymous)).query)["state"][0]
        answer = anonymous.get("/sign-in/with/sso/back/", {"code": stolen, "state": state})
        assert answer.status_code == 401
        assert anonymous.get("/loans/").status_code == 302
        assert not SocialAccount.objects.exists()
        entry = Entry.objects.latest("id")
        assert (entry.action, entry.subject_label) == ("accounts.sign_in_failed", "s-1")

    def test_a_provider_that_is_away_is_told(
        self, anonymous: Browser, provider: IdentityProvider, settings: LazySettings
    ) -> None:
        use_provider(settings, f"http://127.0.0.1:{free_port()}")
        answer = anonymous.post("/sign-in/with/sso/")
        assert answer.status_code == 401
        assert "You’re not signed in." in html(answer)

    def test_an_identity_is_not_connected_by_whoever_is_signed_in(
        self, browser: Browser, provider: IdentityProvider
    ) -> None:
        back = provider.answer_to(provider.asked_by(browser, process="connect"))
        assert browser.get(back).status_code == 401
        assert not SocialAccount.objects.exists()

    def test_without_the_setting_there_is_none(self, anonymous: Browser) -> None:
        assert "Continue with" not in html(anonymous.get("/sign-in/"))
        assert anonymous.post("/sign-in/with/sso/").status_code == 404
        assert anonymous.get("/sign-in/with/sso/back/", {"code": "c", "state": "s"}).status_code == 404

    def test_a_provider_that_somebody_put_into_the_database_is_none(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        planted = SocialApp.objects.create(
            provider="openid_connect", provider_id="evil", name="Evil", client_id="desk", secret="s",
            settings={"server_url": provider.url},
        )  # fmt: skip
        SocialAccount.objects.create(user=maya, provider="evil", uid="s-1")
        assert "Evil" not in html(anonymous.get("/sign-in/"))
        assert anonymous.post("/sign-in/with/evil/").status_code == 404
        assert anonymous.get("/sign-in/with/evil/back/", {"code": "c", "state": "s"}).status_code == 404
        planted.provider_id = "sso"
        planted.save()
        assert provider.asked_by(anonymous)

    def test_an_account_without_a_password_has_none_to_change(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        maya.set_unusable_password()
        maya.save()
        come_back(anonymous, provider)
        page = html(anonymous.get("/accounts/password/", follow=True))
        assert "This account uses single sign-on" in page
        assert "Change password" not in page

    @pytest.mark.parametrize("sign_out", [True, False])
    def test_signing_out_ends_the_session_at_the_provider_too(
        self,
        anonymous: Browser,
        provider: IdentityProvider,
        maya: User,
        settings: LazySettings,
        sign_out: bool,
    ) -> None:
        settings.OIDC_SIGN_OUT = sign_out
        come_back(anonymous, provider)
        kept = str([one.get_decoded() for one in Session.objects.all()])
        left = urlsplit(anonymous.post("/sign-out/")["Location"])
        assert anonymous.get("/loans/").status_code == 302
        if not sign_out:
            assert left.geturl() == "/sign-in/"
            return
        query = parse_qs(left.query)
        assert f"{left.scheme}://{left.netloc}{left.path}" == f"{provider.url}/oauth2/end_session"
        assert query["post_logout_redirect_uri"] == ["http://testserver/sign-in/"]
        token = jwt.decode(query["id_token_hint"][0], options={"verify_signature": False})
        assert token["sub"] == "s-1"
        assert query["id_token_hint"][0] not in kept

    def test_signing_out_works_while_the_provider_is_away(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        come_back(anonymous, provider)
        use_provider(settings, f"http://127.0.0.1:{free_port()}")
        assert anonymous.post("/sign-out/")["Location"] == "/sign-in/"
        assert anonymous.get("/loans/").status_code == 302

    def test_a_password_session_ends_here_alone(self, browser: Browser, provider: IdentityProvider) -> None:
        assert browser.post("/sign-out/")["Location"] == "/sign-in/"


class TestGroups:
    """Groups of the identity provider say who has which role, if the settings map them."""

    ROLES = [("Desk Supervisors", "supervisor"), ("5f1c0a52-7c3e", "servicer"), ("Staff", "viewer")]
    MAYA = {"email": "maya@desk.example", "email_verified": True}
    NEW = {"email": "Ravi@desk.example", "email_verified": True, "given_name": "Ravi", "family_name": "Rao"}

    @pytest.fixture(autouse=True)
    def mapped(self, settings: LazySettings) -> None:
        settings.OIDC_ROLES = self.ROLES

    @pytest.mark.parametrize(
        ("groups", "role"),
        [
            (["Staff", "Desk Supervisors"], "supervisor"),
            (["5f1c0a52-7c3e", "0000"], "servicer"),
            ("Staff", "viewer"),
        ],
    )
    def test_a_group_by_name_or_id_gives_the_role_at_each_sign_in(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, groups: Any, role: str
    ) -> None:
        provider.says(**self.MAYA, groups=groups)
        assert come_back(anonymous, provider)["Location"] == "/loans/"
        maya.refresh_from_db()
        assert maya.role == role
        changed = Entry.objects.filter(action="accounts.staff_changed")
        assert changed.count() == (role != "servicer")
        for entry in changed:
            assert (entry.actor_role, entry.subject_label) == ("system", "maya")
            assert entry.changes == {"role": ["servicer", role]}

    @pytest.mark.parametrize("groups", [[], ["staff"], None, [{"name": "Staff"}], 7])
    def test_nobody_gets_in_without_a_group(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, groups: Any, settings: LazySettings
    ) -> None:
        provider.says(**self.MAYA, groups=["Staff"])
        come_back(Browser(), provider)
        provider.says(**self.MAYA, groups=groups)
        answer = come_back(anonymous, provider)
        assert "none of your groups has a role here" in html(answer)
        assert anonymous.get("/loans/").status_code == 302

    def test_the_claim_has_a_name_of_its_own(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        settings.OIDC_GROUPS_CLAIM = "https://desk.example/groups"
        provider.says(**self.MAYA, **{"https://desk.example/groups": ["Staff"]})
        assert come_back(anonymous, provider)["Location"] == "/loans/"

    def test_a_missing_account_is_created_with_its_role(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        provider.says("s-2", **self.NEW, groups=["Staff"])
        assert come_back(Browser(), provider).status_code == 403
        settings.OIDC_CREATE = True
        assert come_back(anonymous, provider)["Location"] == "/loans/"
        ravi = User.objects.get(username="Ravi@desk.example")
        assert (ravi.role, ravi.email, ravi.get_full_name()) == ("viewer", "Ravi@desk.example", "Ravi Rao")
        assert not ravi.has_usable_password()
        assert actions()[-3:] == ["staff_created", "single_sign_on_connected", "sign_in"]
        assert anonymous.get("/borrowers/new/").status_code == 403
        assert come_back(Browser(), provider)["Location"] == "/loans/"
        assert User.objects.filter(email__iexact="ravi@desk.example").count() == 1

    @pytest.mark.parametrize(
        "existing",
        [
            {"username": "ravi", "email": "ravi@desk.example", "is_active": False},
            {"username": "RAVI@desk.example", "email": "else@desk.example"},
        ],
    )
    def test_no_account_is_doubled_or_given_away(
        self, provider: IdentityProvider, maya: User, settings: LazySettings, existing: dict[str, Any]
    ) -> None:
        settings.OIDC_CREATE = True
        User.objects.create(**existing)
        provider.says("s-2", **self.NEW, groups=["Staff"])
        assert come_back(Browser(), provider).status_code == 403
        assert not SocialAccount.objects.exists()

    def test_a_name_that_no_account_can_have_creates_none(
        self, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        settings.OIDC_CREATE, settings.OIDC_MATCH = True, "preferred_username"
        provider.says("s-2", preferred_username="Ravi|Rao <b>", groups=["Staff"])
        assert "Ravi|Rao <b> has no account here" in html(come_back(Browser(), provider))
        assert User.objects.count() == 1


class TestKeys:
    """SECRET_KEY signs sessions and seals second factors; it is changed without signing anybody out."""

    def test_the_secret_key_is_changed_in_three_steps(
        self, browser: Browser, settings: LazySettings, maya: User
    ) -> None:
        secret, _ = set_up_app(browser)
        old = settings.SECRET_KEY
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-" * 8, [old]
        assert browser.get("/loans/").status_code == 200
        call_command("seal_again", stdout=StringIO())
        settings.SECRET_KEY_FALLBACKS = []
        other = Browser()
        sign_in(other)
        assert other.post("/sign-in/second-factor/", {"code": code(secret)}).status_code == 302

    def test_the_services_secret_is_changed(
        self, servicer: Browser, portal_service: Sandbox, settings: LazySettings, tmp_path: Path
    ) -> None:
        """The lender changes it first: until the desk follows, nothing is sent that counts."""
        editor = Editor(servicer, given.borrower(portal_service))
        settings.SERVICING_SECRET = "new-" * 8
        gateway.client.cache_clear()
        assert editor.send(email="new@bakery.example").status_code == 403
        assert WriteIntent.objects.get().state == "rejected"
        with_new_secret = Sandbox(tmp_path / "s.sqlite3", client_id=CLIENT_ID, secret="new-" * 8)
        with_new_secret.start()
        try:
            settings.SERVICING_URL = with_new_secret.url
            gateway.client.cache_clear()
            other = Editor(servicer, given.borrower(with_new_secret))
            assert other.send(email="new@bakery.example").status_code == 303
        finally:
            with_new_secret.stop()

    def test_what_was_sealed_does_not_open_under_another_key(
        self, browser: Browser, settings: LazySettings
    ) -> None:
        set_up_app(browser)
        sealed = Authenticator.objects.get(type="totp").data["secret"]
        settings.SECRET_KEY = "another-" * 8
        with pytest.raises(CannotDecrypt):
            decrypt(sealed)
        with pytest.raises(CannotDecrypt):
            decrypt(base64.b64encode(b"nonsense").decode())
