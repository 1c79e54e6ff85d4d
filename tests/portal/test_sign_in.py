"""Tests of second factors, single sign-on, sessions, rate limits and the replacement of keys."""

import base64
import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
import requests
import time_machine
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone
from django.utils.html import strip_tags

from portal.accounts import expired_forms
from portal.accounts.encryption import CannotDecrypt, decrypt
from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from portal.gateway import client as gateway
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import CLIENT_ID, browser_of, existing_user, htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.conftest import use_provider
from tests.portal.operations.test_demo import free_port

PASSWORD = "walnut-harbor-77"
UNVERIFIED = "The passkey couldn’t be verified. Try again."
WRONG = "Incorrect username or password."
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


def post_form(browser: Browser, url: str, typed: dict[str, str], **extra: Any) -> Any:
    """Post a URL-encoded form, as browsers do."""
    return browser.post(url, urlencode(typed), content_type="application/x-www-form-urlencoded", **extra)


def html(answer: Any) -> str:
    return unescape(answer.content.decode())


def code(secret: str, steps_ago: int = 0) -> str:
    """Return the app's present code, or that of some 30-second steps ago."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 - steps_ago))


def set_up_app(browser: Browser) -> tuple[str, list[str]]:
    """Set up an authenticator app half a minute ago, and return its secret and the recovery codes."""
    browser.post("/accounts/confirm/", {"password": PASSWORD})
    secret = re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", html(browser.get(f"{PAGES}app/")))[0]
    # The code works once, so that the present one is left.
    with time_machine.travel(timezone.now() - timedelta(seconds=30)):
        answer = browser.post(f"{PAGES}app/", {"code": code(secret)}, follow=True)
    return secret, re.findall(r"<code>(\d{8})</code>", html(answer))


def errors(answer: Any) -> list[str]:
    """The messages above a form of the sign-in pages."""
    found = re.findall(r'<div class="sd-errors".*?</div>', html(answer), re.DOTALL)
    return [" ".join(strip_tags(one).split()) for one in found]


def actions() -> list[str]:
    found = Entry.objects.filter(action__startswith="accounts.").order_by("id")
    return [entry.action.removeprefix("accounts.") for entry in found]


class TestSecondFactor:
    @pytest.mark.slow
    def test_the_app_code_is_required_at_the_next_sign_in(self, browser: Browser) -> None:
        secret, codes = set_up_app(browser)
        assert len(codes) == 10
        other = Browser()
        assert sign_in(other, next="/loans/")["Location"] == "/sign-in/second-factor/"
        assert other.get("/")["Location"].startswith("/sign-in/")
        assert "Incorrect code." in html(other.post("/sign-in/second-factor/", {"code": "000000"}))
        assert other.post("/sign-in/second-factor/", {"code": code(secret)})["Location"] == "/loans/"
        assert actions() == [
            "sign_in", "second_factor_added", "second_factor_added", "sign_in_failed", "sign_in",
        ]  # fmt: skip

    @pytest.mark.slow
    def test_a_code_and_a_recovery_code_work_once(self, browser: Browser) -> None:
        secret, codes = set_up_app(browser)
        for given_code in (code(secret), codes[0]):
            results = []
            for other in (Browser(), Browser()):
                sign_in(other)
                results.append(other.post("/sign-in/second-factor/", {"code": given_code}).status_code)
            assert results == [302, 200]

    def test_the_code_of_the_set_up_does_not_sign_in(self, browser: Browser) -> None:
        browser.post("/accounts/confirm/", {"password": PASSWORD})
        secret = re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", html(browser.get(f"{PAGES}app/")))[0]
        with time_machine.travel(timezone.now(), tick=False):
            used = code(secret)
            assert browser.post(f"{PAGES}app/", {"code": used})["Location"] == f"{PAGES}codes/"
            other = Browser()
            sign_in(other)
            spaced = f"{used[:3]} {used[3:]}"
            for again in (used, spaced):
                page = html(other.post("/sign-in/second-factor/", {"code": again}))
                assert "Incorrect code." in page
            assert other.get("/").status_code == 302

    def test_recovery_codes_are_shown_once(self, browser: Browser) -> None:
        _, codes = set_up_app(browser)
        page = html(browser.get(f"{PAGES}codes/"))
        assert not [one for one in codes if one in page]

    def test_second_factor_secrets_are_encrypted(self, browser: Browser) -> None:
        secret, codes = set_up_app(browser)
        stored = json.dumps(list(Authenticator.objects.values_list("data", flat=True)))
        assert not [one for one in (secret, *codes) if one in stored]

    def test_adding_a_second_factor_requires_confirmation(self, browser: Browser) -> None:
        assert browser.get(f"{PAGES}app/")["Location"].startswith("/accounts/confirm/")
        assert browser.get(f"{PAGES}passkeys/add/")["Location"].startswith("/accounts/confirm/")

    @pytest.mark.slow
    @pytest.mark.parametrize("required", [["all"], ["servicer"]])
    def test_a_required_second_factor_must_be_set_up_first(
        self, browser: Browser, settings: LazySettings, required: list[str]
    ) -> None:
        settings.SECOND_FACTOR_REQUIRED = required
        assert browser.get("/borrowers/")["Location"] == PAGES
        assert browser.get("/loans/", headers=htmx("loan-rows"))["HX-Redirect"] == PAGES
        set_up_app(browser)
        assert browser.get("/borrowers/").status_code == 200

    def test_other_roles_need_no_second_factor(self, browser: Browser, settings: LazySettings) -> None:
        settings.SECOND_FACTOR_REQUIRED = ["supervisor", "admin"]
        assert browser.get("/borrowers/").status_code == 200

    @pytest.mark.slow
    def test_an_administrator_removes_lost_second_factors(
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

    @pytest.mark.slow
    def test_a_malformed_passkey_is_rejected(self, browser: Browser, anonymous: Browser) -> None:
        browser.post("/accounts/confirm/", {"password": PASSWORD})
        for nonsense in ("{}", "[]", '{"id": "x", "response": {"userHandle": "%%"}}', "null"):
            answer = Browser().post("/sign-in/passkey/", {"credential": nonsense}, follow=True)
            assert answer.redirect_chain == [("/sign-in/", 302)]
            is_empty = nonsense in ("{}", "[]", "null")
            assert errors(answer) == ["This field is required." if is_empty else UNVERIFIED]
            assert browser.post(f"{PAGES}passkeys/add/", {"credential": nonsense}).status_code == 200

    def test_a_malformed_passkey_does_not_confirm_a_session(self, browser: Browser, maya: User) -> None:
        Authenticator.objects.create(
            user=maya, type=Authenticator.Type.WEBAUTHN, data={"name": "Key", "credential": {"id": "x"}}
        )
        for nonsense in ("", "{", "{}", "[]", '{"id": "x", "response": {"userHandle": "%%"}}', "null"):
            answer = browser.post("/accounts/confirm/passkey/", {"credential": nonsense})
            assert (answer.status_code, answer["Location"]) == (302, "/sign-in/")

    @pytest.mark.parametrize("stored", [{}, {"id": "x"}, {"id": "x", "rawId": "x", "response": {}}, [], None])
    def test_an_unreadable_stored_passkey_shows_an_error_page(
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
    def age_sessions(self, **ages: timedelta) -> None:
        now = timezone.now()
        UserSession.objects.update(**{name: now - age for name, age in ages.items()})

    def test_an_idle_session_ends(self, browser: Browser, settings: LazySettings) -> None:
        self.age_sessions(last_seen_at=timedelta(minutes=settings.SESSION_IDLE_MINUTES, seconds=1))
        assert browser.get("/loans/")["Location"] == "/sign-in/?next=/loans/"
        assert actions() == ["sign_in", "session_ended"]
        assert not UserSession.objects.exists()

    def test_user_activity_extends_the_session(self, browser: Browser, settings: LazySettings) -> None:
        self.age_sessions(last_seen_at=timedelta(minutes=settings.SESSION_IDLE_MINUTES - 1))
        full_time = settings.SESSION_IDLE_MINUTES * 60
        assert int(browser.get("/accounts/profile/")["X-Session-Left"]) > full_time - 10

    def test_background_requests_do_not_extend_the_session(
        self, browser: Browser, settings: LazySettings
    ) -> None:
        self.age_sessions(last_seen_at=timedelta(minutes=settings.SESSION_IDLE_MINUTES - 1))
        answer = browser.get("/accounts/session/", headers={"X-Background": "1"})
        assert 50 < answer.json()["left"] <= 60
        assert browser.post("/accounts/session/").json()["left"] > 60

    def test_a_session_ends_after_its_maximum_time(self, browser: Browser, settings: LazySettings) -> None:
        self.age_sessions(created_at=timedelta(hours=settings.SESSION_HOURS, seconds=1))
        assert browser.get("/loans/").status_code == 302

    def test_a_new_password_ends_other_sessions(self, browser: Browser) -> None:
        other_browser = Browser()
        sign_in(other_browser)
        new = {"oldpassword": PASSWORD, "password1": "gravel-lantern-9", "password2": "gravel-lantern-9"}
        assert browser.post("/accounts/password/", new)["Location"] == "/accounts/profile/"
        assert browser.get("/loans/").status_code == 200
        assert other_browser.get("/loans/").status_code == 302
        assert actions()[-1] == "password_changed"

    @pytest.mark.slow
    def test_a_short_or_common_password_is_rejected(self, browser: Browser) -> None:
        for weak in ("short-one-1", "Maya@desk.example", "1qaz2wsx3edc"):
            new = {"oldpassword": PASSWORD, "password1": weak, "password2": weak}
            assert "The password was not changed." in html(browser.post("/accounts/password/", new))

    @pytest.mark.slow
    def test_other_sessions_can_be_listed_and_ended(self, browser: Browser) -> None:
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

    def test_sessions_ended_by_an_administrator_are_recorded(self, browser: Browser, maya: User) -> None:
        chosen = {"action": "end_sessions", "_selected_action": [maya.pk]}
        browser_of(Role.ADMIN).post("/admin/accounts/user/", chosen)
        assert browser.get("/loans/").status_code == 302
        entry = Entry.objects.get(action="accounts.session_ended")
        assert (entry.actor_role, entry.subject_label) == ("admin", "maya")

    @pytest.mark.parametrize("wanted", ["", "x", "²", "0"])
    def test_sessions_of_other_users_cannot_be_ended(
        self, browser: Browser, servicer: Browser, wanted: str
    ) -> None:
        servicer.get("/loans/")
        other_session = UserSession.objects.exclude(user__username="maya").get()
        browser.post("/accounts/sessions/end/", {"session": wanted or other_session.pk})
        assert servicer.get("/loans/").status_code == 200

    def test_an_expired_form_can_be_resumed_without_its_secrets(
        self, browser: Browser, maya: User, portal_service: Sandbox
    ) -> None:
        record = given.borrower(portal_service)
        url = f"/borrowers/{record.uuid}/edit/"
        self.age_sessions(last_seen_at=timedelta(days=1))
        typed = {"text": "Called about the\nMay payment", "password": "x", "code": "219-09-9999"}
        answer = post_form(browser, url, typed)
        assert answer["Location"] == "/sign-in/?next=/accounts/resume/"
        assert "Called" not in str([one.get_decoded() for one in Session.objects.all()])
        assert sign_in(browser, next="/accounts/resume/")["Location"] == "/accounts/resume/"
        page = html(browser.get("/accounts/resume/"))
        assert f'action="{url}"' in page
        assert 'name="text" value="Called about the\nMay payment"' in page
        assert 'name="password"' not in page
        assert 'name="code"' not in page
        assert "Nothing to continue" in html(browser.get("/accounts/resume/"))

    def test_an_expired_form_is_not_shown_to_another_user(self, browser: Browser) -> None:
        User.objects.create_user("ravi", password=PASSWORD, role=Role.SERVICER)
        self.age_sessions(last_seen_at=timedelta(days=1))
        post_form(browser, "/accounts/profile/", {"first_name": "M"})
        browser.post("/sign-in/", {"login": "ravi", "password": PASSWORD})
        assert "Nothing to continue" in html(browser.get("/accounts/resume/"))

    def test_a_forged_form_is_not_saved(self, maya: User, portal_service: Sandbox) -> None:
        browser = Browser(enforce_csrf_checks=True)
        browser.force_login(maya)
        record = given.borrower(portal_service)
        browser.get("/loans/")
        self.age_sessions(last_seen_at=timedelta(days=1))
        answer = post_form(browser, f"/borrowers/{record.uuid}/edit/", {"email": "evil@evil.example"})
        assert answer.status_code == 403
        assert expired_forms.SESSION_KEY not in browser.session

    def test_an_expired_htmx_form_is_saved(self, browser: Browser) -> None:
        self.age_sessions(last_seen_at=timedelta(days=1))
        answer = post_form(browser, "/accounts/profile/", {"first_name": "M"}, headers=htmx("x"))
        assert answer["HX-Redirect"] == "/sign-in/?next=/accounts/resume/"


class TestRateLimits:
    def failed_sign_in(self, browser: Browser, **headers: str) -> Entry:
        browser.post("/sign-in/", {"login": "maya", "password": "x"}, headers=headers)
        return Entry.objects.latest("id")

    def test_the_forwarded_header_of_a_browser_is_ignored(self, anonymous: Browser, maya: User) -> None:
        assert self.failed_sign_in(anonymous, **{"X-Forwarded-For": "203.0.113.9"}).ip == "127.0.0.1"

    def test_the_forwarded_header_of_a_trusted_proxy_is_used(
        self, anonymous: Browser, maya: User, settings: LazySettings
    ) -> None:
        settings.TRUSTED_PROXIES = 1
        assert (
            self.failed_sign_in(anonymous, **{"X-Forwarded-For": "6.6.6.6, 203.0.113.9"}).ip == "203.0.113.9"
        )

    @pytest.mark.slow
    def test_wrong_passwords_for_one_name_do_not_keep_others_out(
        self, anonymous: Browser, maya: User
    ) -> None:
        for name, tries in {"ravi": 14, "nobody": 14, "third": 7}.items():
            for number in range(tries):
                anonymous.post("/sign-in/", {"login": name, "password": f"guess-{number}"})
        assert sign_in(anonymous)["Location"] == "/"

    @pytest.mark.slow
    def test_one_address_can_try_twenty_names(self, anonymous: Browser, maya: User) -> None:
        def guess(name: str) -> list[str]:
            return errors(anonymous.post("/sign-in/", {"login": name, "password": "x"}))

        for number in range(19):
            assert guess(f"staff-{number}") == guess(f"STAFF-{number}") == [WRONG]
        assert sign_in(Browser())["Location"] == "/"
        assert guess("staff-19") == [WRONG]
        for refused in (*(guess(f"more-{number}") for number in range(30)), errors(sign_in(anonymous))):
            assert refused == ["Too many attempts. Try again in 10 minutes."]
        assert guess("staff-3") == [WRONG]  # Names that were tried before have their own limit.
        assert sign_in(Browser(REMOTE_ADDR="203.0.113.7"))["Location"] == "/"
        with time_machine.travel(timezone.now() + timedelta(minutes=10, seconds=1)):
            assert sign_in(anonymous)["Location"] == "/"

    @pytest.mark.parametrize(
        ("seconds", "words"), [(0, "5 minutes"), (61, "4 minutes"), (230, "2 minutes"), (290, "1 minute")]
    )
    def test_the_page_names_the_wait_that_applies(
        self, anonymous: Browser, maya: User, seconds: int, words: str
    ) -> None:
        start = timezone.now()
        with time_machine.travel(start, tick=False):
            for number in range(5):
                sign_in(anonymous, password=f"guess-{number}")
        with time_machine.travel(start + timedelta(seconds=seconds), tick=False):
            for _ in range(3):  # Being refused does not prolong the wait.
                assert errors(sign_in(anonymous)) == [f"Too many attempts. Try again in {words}."]
        with time_machine.travel(start + timedelta(seconds=301), tick=False):
            assert sign_in(anonymous)["Location"] == "/"

    @pytest.mark.slow
    def test_the_page_names_the_wait_after_wrong_codes(self, browser: Browser) -> None:
        set_up_app(browser)
        other, start = Browser(), timezone.now()
        sign_in(other)
        with time_machine.travel(start, tick=False):
            for _ in range(5):
                assert errors(other.post("/sign-in/second-factor/", {"code": "000000"})) == [
                    "Incorrect code."
                ]
        with time_machine.travel(start + timedelta(minutes=2), tick=False):
            words = ["Too many attempts. Try again in 3 minutes."]
            assert errors(other.post("/sign-in/second-factor/", {"code": "000000"})) == words
            browser.post("/accounts/confirm/", {"password": PASSWORD})
            confirmed = browser.post("/accounts/confirm/code/", {"code": "000000"})
            assert words[0] in errors(confirmed)[0]

    def test_correct_passwords_are_not_rate_limited(self, anonymous: Browser, maya: User) -> None:
        assert {sign_in(Browser())["Location"] for _ in range(12)} == {"/"}


class TestPasswordGuessing:
    """Wrong passwords from strangers never lock an account's owner out."""

    @pytest.fixture(autouse=True)
    def behind_a_proxy(self, settings: LazySettings) -> None:
        settings.TRUSTED_PROXIES = 1
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

    def guess_passwords(self, times: int, *, each_from: str = "203.0.113.9") -> None:
        for number in range(times):
            headers = {"X-Forwarded-For": each_from.format(number)}
            typed = {"login": "maya", "password": f"guess-{number}"}
            assert Browser().post("/sign-in/", typed, headers=headers).status_code == 200

    def sign_in_from(self, address: str = "198.51.100.7", **typed: str) -> Any:
        browser = Browser(headers={"X-Forwarded-For": address})
        return browser, browser.post("/sign-in/", {"login": "maya", "password": PASSWORD} | typed)

    def test_wrong_passwords_from_elsewhere_do_not_lock_the_owner_out(
        self, anonymous: Browser, maya: User
    ) -> None:
        self.guess_passwords(5)
        assert "Too many attempts" in html(self.sign_in_from("203.0.113.9")[1])
        assert self.sign_in_from()[1]["Location"] == "/"

    @pytest.mark.slow
    def test_many_guesses_do_not_lock_out_a_password_only_owner(self, anonymous: Browser, maya: User) -> None:
        self.guess_passwords(110, each_from="203.0.113.{}")
        assert self.sign_in_from()[1]["Location"] == "/"

    @pytest.mark.slow
    def test_guesses_do_not_lock_out_a_second_factor_owner(self, browser: Browser) -> None:
        secret, _ = set_up_app(browser)
        self.guess_passwords(12)
        assert "Too many attempts" in html(self.sign_in_from("203.0.113.9", password="wrong")[1])
        other, answer = self.sign_in_from("203.0.113.9")
        assert answer["Location"] == "/sign-in/second-factor/"
        assert other.post("/sign-in/second-factor/", {"code": code(secret)})["Location"] == "/"

    @pytest.mark.slow
    def test_after_100_guesses_sign_in_asks_for_the_code_first(self, browser: Browser) -> None:
        secret, recovery_codes = set_up_app(browser)
        self.guess_passwords(100, each_from="203.0.113.{}")
        for password in (PASSWORD, "wrong"):  # The response must not reveal which is right.
            page = html(self.sign_in_from(password=password)[1])
            assert "Enter the code from your app with your password" in page
            assert 'name="code"' in page
        for typed in ({"code": "000000"}, {"code": code(secret), "password": "wrong"}):
            other, answer = self.sign_in_from(**typed)
            assert "Incorrect username or password" in html(answer)
            assert other.get("/").status_code == 302
        other, answer = self.sign_in_from(code=recovery_codes[0])
        assert answer["Location"] == "/"
        assert other.get("/").status_code == 200


class IdentityProvider:
    """The mock identity provider with one user."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.set_claims(email="maya@desk.example", email_verified=True)

    def set_claims(self, sub: str = "s-1", **claims: Any) -> None:
        """Set the user that the provider signs in, and the claims."""
        self.sub = sub
        requests.put(f"{self.url}/users/{sub}", json=claims, timeout=10).raise_for_status()

    def authorize_url(self, browser: Browser, **typed: str) -> str:
        """Return the URL at the provider to which the portal sends a browser."""
        address = str(browser.post("/sign-in/with/sso/", {"next": "/loans/"} | typed)["Location"])
        assert address.startswith(f"{self.url}/oauth2/authorize?")
        return address

    def callback_url(self, url: str) -> str:
        """Sign in at the provider, and return the path to which it sends the browser back."""
        query = parse_qs(urlsplit(url).query)
        assert query["code_challenge_method"] == ["S256"]
        answer = requests.post(url, data={"sub": self.sub}, allow_redirects=False, timeout=10)
        back = urlsplit(answer.headers["Location"])
        return f"{back.path}?{back.query}"


@pytest.fixture
def provider(settings: LazySettings, portal_service: Sandbox, provider_url: str) -> IdentityProvider:
    use_provider(settings, provider_url)
    return IdentityProvider(provider_url)


def sign_in_with_provider(browser: Browser, provider: IdentityProvider) -> Any:
    """Sign in through the identity provider."""
    return browser.get(provider.callback_url(provider.authorize_url(browser)))


class TestSingleSignOn:
    @pytest.mark.slow
    def test_a_known_user_signs_in_and_is_connected(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        assert "Continue with Acme" in html(anonymous.get("/sign-in/"))
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
        assert actions() == ["single_sign_on_connected", "sign_in"]
        provider.set_claims(email="other@desk.example")  # From now on the provider's ID finds the account.
        assert sign_in_with_provider(Browser(), provider)["Location"] == "/loans/"
        assert SocialAccount.objects.get().user == maya

    def test_single_sign_on_needs_no_second_factor(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        settings.SECOND_FACTOR_REQUIRED = ["all"]
        sign_in_with_provider(anonymous, provider)
        assert anonymous.get("/loans/").status_code == 200

    @pytest.mark.slow
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
    def test_only_a_verified_or_trusted_email_signs_in(
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
        provider.set_claims(**said)
        answer = sign_in_with_provider(anonymous, provider)
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

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("match", "said"),
        [
            ("preferred_username", {"preferred_username": "Maya"}),
            ("upn", {"upn": "MAYA", "email": "stranger@desk.example"}),
            ("sub", {"sub": "maya"}),
            ("email", {"email": "maya@desk.example", "email_verified": "true"}),
        ],
    )
    def test_the_configured_claim_finds_the_account(
        self,
        anonymous: Browser,
        provider: IdentityProvider,
        maya: User,
        settings: LazySettings,
        match: str,
        said: dict[str, Any],
    ) -> None:
        provider.set_claims(**said)
        settings.OIDC_MATCH = "sub" if match != "sub" else "upn"
        assert sign_in_with_provider(Browser(), provider).status_code == 403
        settings.OIDC_MATCH = match
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
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
    def test_lookalike_names_do_not_match(
        self, anonymous: Browser, provider: IdentityProvider, settings: LazySettings, claims: dict[str, Any]
    ) -> None:
        for name in ("mike", "boss"):
            User.objects.create_user(name, f"{name}@desk.example", PASSWORD)
        settings.OIDC_MATCH = next(iter(claims))
        provider.set_claims(**claims)
        assert sign_in_with_provider(anonymous, provider).status_code in (401, 403)
        assert not SocialAccount.objects.exists()

    def test_a_claim_with_a_nul_does_not_prevent_sign_in(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        provider.set_claims(email=maya.email, email_verified=True, name="Maya\0", address={"street": "\0"})
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
        assert SocialAccount.objects.get().user == maya

    @pytest.mark.slow
    def test_an_email_shared_by_two_accounts_is_rejected(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        User.objects.create_user("maya2", "maya@desk.example", PASSWORD)
        assert "No account here" in html(sign_in_with_provider(anonymous, provider))

    @pytest.mark.slow
    def test_a_deactivated_user_cannot_sign_in(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        sign_in_with_provider(anonymous, provider)
        User.objects.update(is_active=False)
        other = Browser()
        assert "not active" in html(other.get(sign_in_with_provider(other, provider)["Location"]))
        entry = Entry.objects.latest("id")
        assert (entry.action, entry.subject_label) == ("accounts.sign_in_failed", "maya")
        assert entry.detail == {"at": "inactive account"}

    def test_another_browsers_state_is_rejected(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        callback = provider.callback_url(provider.authorize_url(Browser()))
        answer = anonymous.get(callback)
        assert answer.status_code == 401
        assert "Single sign-on failed" in html(answer)

    def test_another_sign_ins_identity_token_is_rejected(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        foreign_code = parse_qs(urlsplit(provider.callback_url(provider.authorize_url(Browser()))).query)[
            "code"
        ][0]
        state = parse_qs(urlsplit(provider.authorize_url(anonymous)).query)["state"][0]
        answer = anonymous.get("/sign-in/with/sso/back/", {"code": foreign_code, "state": state})
        assert answer.status_code == 401
        assert anonymous.get("/loans/").status_code == 302
        assert not SocialAccount.objects.exists()
        entry = Entry.objects.latest("id")
        assert (entry.action, entry.subject_label) == ("accounts.sign_in_failed", "s-1")

    def test_an_unreachable_provider_shows_an_error(
        self, anonymous: Browser, provider: IdentityProvider, settings: LazySettings
    ) -> None:
        use_provider(settings, f"http://127.0.0.1:{free_port()}")
        answer = anonymous.post("/sign-in/with/sso/")
        assert answer.status_code == 401
        assert "You’re not signed in." in html(answer)

    def test_a_signed_in_user_cannot_connect_an_identity(
        self, browser: Browser, provider: IdentityProvider
    ) -> None:
        callback = provider.callback_url(provider.authorize_url(browser, process="connect"))
        assert browser.get(callback).status_code == 401
        assert not SocialAccount.objects.exists()

    def test_single_sign_on_is_off_by_default(self, anonymous: Browser) -> None:
        assert "Continue with" not in html(anonymous.get("/sign-in/"))
        assert anonymous.post("/sign-in/with/sso/").status_code == 404
        assert anonymous.get("/sign-in/with/sso/back/", {"code": "c", "state": "s"}).status_code == 404

    def test_a_provider_in_the_database_is_ignored(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        provider_app = SocialApp.objects.create(
            provider="openid_connect", provider_id="evil", name="Evil", client_id="desk", secret="s",
            settings={"server_url": provider.url},
        )  # fmt: skip
        SocialAccount.objects.create(user=maya, provider="evil", uid="s-1")
        assert "Evil" not in html(anonymous.get("/sign-in/"))
        assert anonymous.post("/sign-in/with/evil/").status_code == 404
        assert anonymous.get("/sign-in/with/evil/back/", {"code": "c", "state": "s"}).status_code == 404
        provider_app.provider_id = "sso"
        provider_app.save()
        assert provider.authorize_url(anonymous)

    @pytest.mark.slow
    def test_an_account_without_a_password_cannot_change_it(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        maya.set_unusable_password()
        maya.save()
        sign_in_with_provider(anonymous, provider)
        page = html(anonymous.get("/accounts/password/", follow=True))
        assert "This account uses single sign-on" in page
        assert "Change password" not in page

    @pytest.mark.parametrize("sign_out", [True, False])
    def test_signing_out_ends_the_provider_session(
        self,
        anonymous: Browser,
        provider: IdentityProvider,
        maya: User,
        settings: LazySettings,
        sign_out: bool,
    ) -> None:
        settings.OIDC_SIGN_OUT = sign_out
        sign_in_with_provider(anonymous, provider)
        stored_sessions = str([one.get_decoded() for one in Session.objects.all()])
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
        assert query["id_token_hint"][0] not in stored_sessions

    def test_signing_out_works_without_the_provider(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        sign_in_with_provider(anonymous, provider)
        use_provider(settings, f"http://127.0.0.1:{free_port()}")
        assert anonymous.post("/sign-out/")["Location"] == "/sign-in/"
        assert anonymous.get("/loans/").status_code == 302

    def test_a_password_session_signs_out_only_here(
        self, browser: Browser, provider: IdentityProvider
    ) -> None:
        assert browser.post("/sign-out/")["Location"] == "/sign-in/"


class TestGroups:
    """Groups of the identity provider set the role if the settings map them."""

    ROLES = [("Desk Supervisors", "supervisor"), ("5f1c0a52-7c3e", "servicer"), ("Staff", "viewer")]
    MAYA = {"email": "maya@desk.example", "email_verified": True}
    NEW = {"email": "Ravi@desk.example", "email_verified": True, "given_name": "Ravi", "family_name": "Rao"}

    @pytest.fixture(autouse=True)
    def map_roles(self, settings: LazySettings) -> None:
        settings.OIDC_ROLES = self.ROLES

    @pytest.mark.parametrize(
        ("groups", "role"),
        [
            (["Staff", "Desk Supervisors"], "supervisor"),
            (["5f1c0a52-7c3e", "0000"], "servicer"),
            ("Staff", "viewer"),
        ],
    )
    def test_groups_by_name_or_id_set_the_role(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, groups: Any, role: str
    ) -> None:
        provider.set_claims(**self.MAYA, groups=groups)
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
        maya.refresh_from_db()
        assert maya.role == role
        changed = Entry.objects.filter(action="accounts.staff_changed")
        assert changed.count() == (role != "servicer")
        for entry in changed:
            assert (entry.actor_role, entry.subject_label) == ("system", "maya")
            assert entry.changes == {"role": ["servicer", role]}

    @pytest.mark.slow
    @pytest.mark.parametrize("groups", [[], ["staff"], None, [{"name": "Staff"}], 7])
    def test_users_without_a_mapped_group_are_rejected(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, groups: Any, settings: LazySettings
    ) -> None:
        provider.set_claims(**self.MAYA, groups=["Staff"])
        sign_in_with_provider(Browser(), provider)
        provider.set_claims(**self.MAYA, groups=groups)
        answer = sign_in_with_provider(anonymous, provider)
        assert "none of your groups has a role here" in html(answer)
        assert anonymous.get("/loans/").status_code == 302

    @pytest.mark.slow
    def test_groups_change_no_inactive_account(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        provider.set_claims(**self.MAYA, groups=["5f1c0a52-7c3e"])
        sign_in_with_provider(Browser(), provider)
        User.objects.update(is_active=False)
        provider.set_claims(**self.MAYA, groups=["Desk Supervisors"])
        sign_in_with_provider(anonymous, provider)
        maya.refresh_from_db()
        assert (maya.role, maya.is_active) == ("servicer", False)
        assert anonymous.get("/loans/").status_code == 302

    def test_the_groups_claim_is_configurable(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        settings.OIDC_GROUPS_CLAIM = "https://desk.example/groups"
        provider.set_claims(**self.MAYA, **{"https://desk.example/groups": ["Staff"]})
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"

    @pytest.mark.slow
    def test_a_missing_account_is_created_with_its_role(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        provider.set_claims("s-2", **self.NEW, groups=["Staff"])
        assert sign_in_with_provider(Browser(), provider).status_code == 403
        settings.OIDC_CREATE = True
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
        ravi = User.objects.get(username="Ravi@desk.example")
        assert (ravi.role, ravi.email, ravi.get_full_name()) == ("viewer", "Ravi@desk.example", "Ravi Rao")
        assert not ravi.has_usable_password()
        assert actions()[-3:] == ["staff_created", "single_sign_on_connected", "sign_in"]
        assert anonymous.get("/borrowers/new/").status_code == 403
        assert sign_in_with_provider(Browser(), provider)["Location"] == "/loans/"
        assert User.objects.filter(email__iexact="ravi@desk.example").count() == 1

    @pytest.mark.parametrize(
        "existing",
        [
            {"username": "ravi", "email": "ravi@desk.example", "is_active": False},
            {"username": "RAVI@desk.example", "email": "else@desk.example"},
        ],
    )
    def test_existing_accounts_are_not_duplicated_or_taken_over(
        self, provider: IdentityProvider, maya: User, settings: LazySettings, existing: dict[str, Any]
    ) -> None:
        settings.OIDC_CREATE = True
        User.objects.create(**existing)
        provider.set_claims("s-2", **self.NEW, groups=["Staff"])
        assert sign_in_with_provider(Browser(), provider).status_code == 403
        assert not SocialAccount.objects.exists()

    def test_an_invalid_username_creates_no_account(
        self, provider: IdentityProvider, maya: User, settings: LazySettings
    ) -> None:
        settings.OIDC_CREATE, settings.OIDC_MATCH = True, "preferred_username"
        provider.set_claims("s-2", preferred_username="Ravi|Rao <b>", groups=["Staff"])
        page = html(sign_in_with_provider(Browser(), provider))
        assert "“Ravi|Rao <b>” can’t be the username of an account" in page
        assert User.objects.count() == 1

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("settings_", "claims", "code", "words"),
        [
            ({}, {"groups": ["staff", "x"]}, "no_role", "none of your groups has a role here"),
            ({}, {"groups": [{"name": "Staff"}]}, "no_role", "sent none as text (“groups”)"),
            ({"OIDC_GROUPS_CLAIM": "g"}, {"groups": ["Staff"]}, "no_role", "as text (“g”)"),
            ({"OIDC_MATCH": "upn"}, {"upn": 12}, "no_claim", "(“upn” is missing or not text)"),
            ({}, {"email_verified": False}, "no_claim", "no verified email address"),
            ({}, {"email": "ravi@desk.example"}, "no_account", "ravi@desk.example has no account here"),
            ({}, {"email": "two@desk.example"}, "shared_email", "2 accounts have the email two@desk.example"),
            ({}, {"email": "gone@desk.example"}, "inactive", "the account gone@desk.example is inactive"),
            (
                {"OIDC_MATCH": "preferred_username"},
                {"preferred_username": "Ravi Rao"},
                "name_not_allowed",
                "“Ravi Rao” can’t be the username of an account: Enter a valid username.",
            ),
            (
                {"OIDC_MATCH": "preferred_username", "OIDC_CREATE": True},
                {"preferred_username": "r" * 151},
                "name_not_allowed",
                "Ensure this value has at most 150 characters",
            ),
            (
                {"OIDC_MATCH": "preferred_username", "OIDC_CREATE": True},
                {"preferred_username": "ravi", "email": "Maya@Desk.example"},
                "email_taken",
                "another account has the email Maya@Desk.example",
            ),
            (
                {"OIDC_CREATE": True},
                {"email": "plain@desk.example"},
                "username_taken",
                "another account has the username plain@desk.example",
            ),
        ],
    )
    def test_page_and_trail_name_the_reason_and_the_groups(
        self,
        anonymous: Browser,
        provider: IdentityProvider,
        maya: User,
        settings: LazySettings,
        settings_: dict[str, Any],
        claims: dict[str, Any],
        code: str,
        words: str,
    ) -> None:
        for name in ("two", "three"):
            existing_user(name, email="two@desk.example")
        existing_user("gone", email="gone@desk.example", is_active=False)
        existing_user("plain@desk.example", email="else@desk.example")
        for name, value in settings_.items():
            setattr(settings, name, value)
        claims = {**self.MAYA, "groups": ["Staff", "Other"], **claims}
        provider.set_claims(**claims)
        answer = sign_in_with_provider(anonymous, provider)
        assert answer.status_code == 403
        assert words in " ".join(html(answer).split())
        assert "Ask your administrator to " in html(answer)
        assert not SocialAccount.objects.exists()
        detail = Entry.objects.latest("id").detail
        assert detail["at"] == f"single sign-on: {code}"
        assert words.rstrip(".") in detail["why"]
        texts = [one for one in claims["groups"] if isinstance(one, str)]
        assert detail["groups"] == ([] if "OIDC_GROUPS_CLAIM" in settings_ else texts)

    @pytest.mark.slow
    def test_the_trail_names_twenty_of_very_many_groups(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        groups = [f"{number:05}-5f1c-0a52" for number in range(10_000)]
        provider.set_claims(**self.MAYA, groups=[7, *groups, groups[0]])
        assert sign_in_with_provider(anonymous, provider).status_code == 403
        assert Entry.objects.latest("id").detail["groups"] == groups[:20]
        provider.set_claims(**self.MAYA, groups=[*groups, "Desk Supervisors"])
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
        assert User.objects.get().role == Role.SUPERVISOR
        left = parse_qs(urlsplit(anonymous.post("/sign-out/")["Location"]).query)
        assert left.keys() == {"client_id", "post_logout_redirect_uri"}

    @pytest.mark.slow
    def test_groups_never_lower_the_last_administrator(
        self, anonymous: Browser, provider: IdentityProvider, maya: User
    ) -> None:
        User.objects.update(role=Role.ADMIN)
        provider.set_claims(**self.MAYA, groups=["Staff"])
        page = html(sign_in_with_provider(anonymous, provider))
        assert "<h1>Single sign-on rejected</h1>" in page
        assert "your groups give you the viewer role, and you’re the only administrator" in page
        assert anonymous.get("/").status_code == 302
        assert User.objects.get().role == Role.ADMIN
        assert not SocialAccount.objects.exists()
        entry = Entry.objects.latest("id")
        assert entry.action == "accounts.sign_in_failed"
        assert entry.detail["at"] == "single sign-on: last_administrator"
        assert entry.detail["groups"] == ["Staff"]
        existing_user("other", role=Role.ADMIN)
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
        assert User.objects.get(username="maya").role == Role.VIEWER

    def test_a_connected_administrator_is_not_lowered_either(
        self, anonymous: Browser, provider: IdentityProvider, settings: LazySettings, maya: User
    ) -> None:
        settings.OIDC_ROLES = [("Chiefs", "admin"), *self.ROLES]
        provider.set_claims(**self.MAYA, groups=["Chiefs"])
        assert sign_in_with_provider(Browser(), provider)["Location"] == "/loans/"
        provider.set_claims(**self.MAYA, groups=["Staff"])
        assert sign_in_with_provider(anonymous, provider).status_code == 403
        assert User.objects.get().role == Role.ADMIN


class TestSecondIdentity:
    """An account that has an identity takes no second one until an administrator disconnects it."""

    CLAIMS = {"email": "maya@desk.example", "email_verified": True, "preferred_username": "maya"}

    @pytest.mark.slow
    @pytest.mark.parametrize("match", ["email", "preferred_username"])
    def test_another_identity_with_the_same_claim_is_rejected(
        self,
        anonymous: Browser,
        provider: IdentityProvider,
        maya: User,
        settings: LazySettings,
        match: str,
    ) -> None:
        settings.OIDC_MATCH = match
        settings.OIDC_ROLES = [("Chiefs", "admin"), ("Staff", "servicer")]
        provider.set_claims("s-1", **self.CLAIMS, groups=["Staff"])
        assert sign_in_with_provider(Browser(), provider)["Location"] == "/loans/"
        provider.set_claims("s-2", **self.CLAIMS, groups=["Chiefs"])
        answer = sign_in_with_provider(anonymous, provider)
        assert answer.status_code == 403
        assert "the account maya is connected to another identity" in html(answer)
        assert anonymous.get("/").status_code == 302
        maya.refresh_from_db()
        assert (maya.role, SocialAccount.objects.get().uid) == (Role.SERVICER, "s-1")
        assert Entry.objects.latest("id").detail["at"] == "single sign-on: connected"
        provider.set_claims("s-1", groups=["Staff"])
        assert sign_in_with_provider(Browser(), provider)["Location"] == "/loans/"

    @pytest.mark.slow
    def test_an_administrator_disconnects_an_identity(
        self, anonymous: Browser, provider: IdentityProvider, maya: User, admin: Browser
    ) -> None:
        sign_in_with_provider(Browser(), provider)
        chosen = {"action": "disconnect_identities", "_selected_action": [maya.pk], "index": "0"}
        assert "1 disconnected." in html(admin.post("/admin/accounts/user/", chosen, follow=True))
        entry = Entry.objects.get(action="accounts.single_sign_on_removed")
        assert (entry.actor_name, entry.subject_label) == ("Administrator (admin)", "maya")
        provider.set_claims("s-2", **self.CLAIMS)
        assert sign_in_with_provider(anonymous, provider)["Location"] == "/loans/"
        assert SocialAccount.objects.get().uid == "s-2"

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_two_tabs_at_once_connect_one_identity(
        self, portal_service: Sandbox, transactional_db: None, provider: IdentityProvider, maya: User
    ) -> None:
        existing_user("admin", role=Role.ADMIN)
        browsers = [Browser() for _ in range(4)]
        urls = [provider.callback_url(provider.authorize_url(browser)) for browser in browsers]
        start, answers = threading.Barrier(4), list[str]()

        def come_back(browser: Browser, url: str) -> None:
            try:
                start.wait(30)
                answers.append(browser.get(url)["Location"])
            finally:
                connection.close()

        threads = [threading.Thread(target=come_back, args=one) for one in zip(browsers, urls, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert answers == ["/loans/"] * 4
        assert SocialAccount.objects.get().uid == "s-1"

    def test_nothing_can_be_disconnected_without_single_sign_on(self, admin: Browser) -> None:
        assert "Disconnect single sign-on" not in html(admin.get("/admin/accounts/user/"))


class AnyProvider(BaseHTTPRequestHandler):
    """An identity provider with any answers."""

    id_token: ClassVar[dict[str, Any]]
    userinfo: ClassVar[Any]
    token_answer: ClassVar[dict[str, Any]]

    def do_GET(self) -> None:
        url = f"http://{self.headers['Host']}"
        names = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
        config = {"issuer": url} | {name: f"{url}/{name}" for name in names}
        self.answer(self.userinfo if self.path == "/userinfo_endpoint" else config)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        url = f"http://{self.headers['Host']}"
        claims = {"iss": url, "aud": "desk", "exp": int(time.time()) + 60, "sub": "s-1"} | self.id_token
        token = jwt.api_jws.encode(json.dumps(claims).encode(), "k" * 32, algorithm="HS256")
        self.answer({"access_token": "a", "token_type": "Bearer", "id_token": token} | self.token_answer)

    def answer(self, said: Any) -> None:
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def any_provider(settings: LazySettings, portal_service: Sandbox) -> Iterator[type[AnyProvider]]:
    answers = {"id_token": {}, "userinfo": {"sub": "s-1"}, "token_answer": {}}
    handler = type("Handler", (AnyProvider,), answers)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    use_provider(settings, f"http://127.0.0.1:{server.server_port}")
    yield handler
    server.shutdown()
    server.server_close()
    thread.join(10)


def sign_in_with_any(browser: Browser, provider: type[AnyProvider]) -> Any:
    query = parse_qs(urlsplit(browser.post("/sign-in/with/sso/", {"next": "/loans/"})["Location"]).query)
    provider.id_token = {"nonce": query["nonce"][0]} | provider.id_token
    return browser.get("/sign-in/with/sso/back/", {"code": "c", "state": query["state"][0]})


NOT_TEXT = [12, 1.5, True, False, None, {}, {"a": "b"}, [], ["maya"], [[]], "", " "]
UNSTORABLE = ["ma\0ya", "\ud800", "maya\udfff"]


class TestAnyClaims:
    """A claim that isn't text counts as missing."""

    MAYA = {"sub": "s-1", "email": "maya@desk.example", "email_verified": True, "preferred_username": "maya"}

    @pytest.mark.slow
    @pytest.mark.parametrize("value", [*NOT_TEXT, *UNSTORABLE], ids=ascii)
    def test_claims_that_are_not_needed_do_not_matter(
        self, anonymous: Browser, any_provider: type[AnyProvider], maya: User, value: Any
    ) -> None:
        names = [
            *("name", "given_name", "family_name", "preferred_username", "upn", "picture", "user_id"),
            *("locale", "phone_number", "address", "groups", "updated_at"),
        ]
        any_provider.id_token = any_provider.userinfo = self.MAYA | dict.fromkeys(names, value)
        assert sign_in_with_any(anonymous, any_provider)["Location"] == "/loans/"

    @pytest.mark.slow
    @pytest.mark.parametrize("match", ["email", "preferred_username", "upn"])
    @pytest.mark.parametrize("value", [*NOT_TEXT, *UNSTORABLE], ids=ascii)
    def test_a_matching_claim_of_another_type_is_missing(
        self,
        anonymous: Browser,
        any_provider: type[AnyProvider],
        maya: User,
        settings: LazySettings,
        match: str,
        value: Any,
    ) -> None:
        settings.OIDC_MATCH = match
        any_provider.id_token = any_provider.userinfo = self.MAYA | {match: value}
        assert sign_in_with_any(anonymous, any_provider).status_code == 403
        # A text with a replaced character is another name.
        is_name = value in UNSTORABLE
        expected = ("name_not_allowed", "no_account") if is_name else ("no_claim",)
        assert Entry.objects.latest("id").detail["at"].removeprefix("single sign-on: ") in expected
        assert not SocialAccount.objects.exists()

    @pytest.mark.slow
    @pytest.mark.parametrize("value", [*NOT_TEXT, "s" * 192, "s-2"], ids=lambda value: ascii(value)[:9])
    def test_an_unusable_id_of_the_person_is_rejected(
        self, anonymous: Browser, any_provider: type[AnyProvider], maya: User, value: Any
    ) -> None:
        any_provider.userinfo = self.MAYA | {"sub": value}
        if value != "s-2":
            any_provider.id_token = {"sub": value}
        answer = sign_in_with_any(anonymous, any_provider)
        assert answer.status_code == 401
        assert "You’re not signed in." in html(answer)
        entry = Entry.objects.latest("id")
        assert (entry.action, entry.actor_name) == ("accounts.sign_in_failed", "anonymous")
        assert entry.detail["at"].startswith("single sign-on: The ")
        assert not SocialAccount.objects.exists()

    @pytest.mark.slow
    def test_an_answer_nested_too_deeply_is_rejected(
        self, anonymous: Browser, any_provider: type[AnyProvider], maya: User
    ) -> None:
        any_provider.userinfo = b'{"sub": "s-1", "name": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        answer = sign_in_with_any(anonymous, any_provider)
        assert (answer.status_code, "You’re not signed in." in html(answer)) == (401, True)

    @pytest.mark.slow
    @pytest.mark.parametrize("userinfo", [[], "maya", 12, None, [{"sub": "s-1"}]], ids=repr)
    def test_the_identity_token_is_enough(
        self, anonymous: Browser, any_provider: type[AnyProvider], maya: User, userinfo: Any
    ) -> None:
        any_provider.id_token, any_provider.userinfo = self.MAYA, userinfo
        assert sign_in_with_any(anonymous, any_provider)["Location"] == "/loans/"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "claims",
        [
            *({"exp": {}}, {"exp": "soon"}, {"exp": float("inf")}, {"exp": "9999999999", "jti": "j"}),
            *({"aud": {}}, {"iss": ["x"]}, {"nonce": 1}, {"nonce": {}}),
        ],
        ids=repr,
    )
    def test_a_malformed_identity_token_is_rejected(
        self, anonymous: Browser, any_provider: type[AnyProvider], maya: User, claims: dict[str, Any]
    ) -> None:
        any_provider.id_token, any_provider.userinfo = claims, self.MAYA
        assert sign_in_with_any(anonymous, any_provider).status_code == 401
        assert Entry.objects.latest("id").action == "accounts.sign_in_failed"
        assert anonymous.get("/").status_code == 302

    @pytest.mark.slow
    @pytest.mark.parametrize("said", [{"expires_in": {}}, {"expires_in": 10**400}, {"refresh_token": 5}])
    def test_the_rest_of_the_token_answer_does_not_matter(
        self, anonymous: Browser, any_provider: type[AnyProvider], maya: User, said: dict[str, Any]
    ) -> None:
        any_provider.userinfo, any_provider.token_answer = self.MAYA, said
        assert sign_in_with_any(anonymous, any_provider)["Location"] == "/loans/"

    @pytest.mark.slow
    @pytest.mark.parametrize("token", [12, {}, ["x"], True, "x", None], ids=repr)
    def test_an_unreadable_identity_token_is_rejected(
        self, browser: Browser, any_provider: type[AnyProvider], token: Any
    ) -> None:
        any_provider.userinfo, any_provider.token_answer = self.MAYA, {"id_token": token}
        assert sign_in_with_any(browser, any_provider).status_code == 401

    @pytest.mark.slow
    def test_only_claims_used_here_are_stored(
        self, anonymous: Browser, any_provider: type[AnyProvider], maya: User
    ) -> None:
        any_provider.userinfo = self.MAYA | {"ssn": "219-09-9999", "picture": "p", "groups": ["a", 1, "a"]}
        sign_in_with_any(anonymous, any_provider)
        stored = SocialAccount.objects.get().extra_data["userinfo"]
        assert stored == self.MAYA | {"groups": ["a", "a"]}


class TestKeys:
    """SECRET_KEY signs sessions and encrypts second factors; replacing it signs no one out."""

    @pytest.mark.slow
    def test_the_secret_key_can_be_replaced_in_three_steps(
        self, browser: Browser, settings: LazySettings, maya: User
    ) -> None:
        secret, _ = set_up_app(browser)
        old = settings.SECRET_KEY
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-" * 8, [old]
        assert browser.get("/loans/").status_code == 200
        call_command("reencrypt", stdout=StringIO())
        settings.SECRET_KEY_FALLBACKS = []
        other = Browser()
        sign_in(other)
        assert other.post("/sign-in/second-factor/", {"code": code(secret)}).status_code == 302

    @pytest.mark.slow
    def test_the_services_secret_can_be_replaced(
        self, servicer: Browser, portal_service: Sandbox, settings: LazySettings, tmp_path: Path
    ) -> None:
        """The lender changes the secret first; until the portal follows, its writes are rejected."""
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

    def test_secrets_cannot_be_decrypted_with_another_key(
        self, browser: Browser, settings: LazySettings
    ) -> None:
        set_up_app(browser)
        encrypted = Authenticator.objects.get(type="totp").data["secret"]
        settings.SECRET_KEY = "another-" * 8
        with pytest.raises(CannotDecrypt):
            decrypt(encrypted)
        with pytest.raises(CannotDecrypt):
            decrypt(base64.b64encode(b"nonsense").decode())
