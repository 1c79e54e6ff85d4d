"""Tests of emailed password links: each works once, and requests do not reveal who has an account."""

import re
import threading
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.accounts import password_links
from portal.accounts.models import OutgoingMail, User
from portal.accounts.roles import Role
from portal.audit.models import Entry
from portal.jobs.models import Job
from servicing.sandbox import Sandbox
from tests.conftest import existing_user
from tests.portal.conftest import use_provider
from tests.portal.test_mail import MailServer, server
from tests.portal.test_sign_in import actions, set_up_app

__all__ = ["server"]
OLD, NEW = "walnut-harbor-77", "copper-lantern-42"
ASK = "/sign-in/password/"


@pytest.fixture
def maya(portal_service: Sandbox) -> User:
    return existing_user("maya", OLD, email="Maya@desk.example", role=Role.SERVICER, first_name="Maya")


def run_worker() -> None:
    """Run the worker twice: the first run queues the link, the second sends it."""
    for _ in range(2):
        call_command("work", batch=True)


def request_link(browser: Browser, address: str = "maya@desk.example") -> Any:
    answer = browser.post(ASK, {"email": address})
    run_worker()
    return answer


def link_in(server: MailServer) -> str:
    """Return the path of the link in the newest message."""
    found = re.search(r"https://desk\.example(/\S+)", server.received[-1].get_content())
    assert found
    return found[1]


def choose_password(browser: Browser, link: str, password: str = NEW) -> Any:
    return browser.post(link, {"new_password1": password, "new_password2": password})


def sign_in(browser: Browser, password: str = NEW) -> bool:
    browser.post("/sign-in/", {"login": "maya", "password": password})
    return browser.get("/").status_code == 200


@pytest.mark.django_db
class TestForgottenPassword:
    @pytest.mark.slow
    @pytest.mark.postgres
    def test_a_link_sets_a_new_password_once(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        other_browser = Browser()
        assert sign_in(other_browser, OLD)
        assert f'href="{ASK}"' in anonymous.get("/sign-in/").content.decode()
        assert "Check your email" in request_link(anonymous).content.decode()
        (mail,) = server.received
        assert (mail["To"], mail["Subject"]) == ("Maya@desk.example", "Servicing Desk: Choose a new password")
        assert "Your sign-in name is maya." in mail.get_content()
        link = link_in(server)
        page = anonymous.get(link)
        assert "Choose a password" in page.content.decode()
        answer = choose_password(anonymous, link)
        assert (answer.status_code, answer["Location"]) == (302, "/sign-in/")
        assert "Your password is set." in anonymous.get("/sign-in/").content.decode()
        assert anonymous.get("/").status_code == 302
        assert other_browser.get("/").status_code == 302
        again = choose_password(Browser(), link, "another-lantern-43")
        assert (again.status_code, "no longer works" in again.content.decode()) == (404, True)
        assert not sign_in(Browser(), OLD)
        assert sign_in(anonymous)
        assert actions() == [
            *("sign_in", "password_link_requested", "password_link_sent", "password_changed"),
            *("sign_in_failed", "sign_in"),
        ]
        link_request, sent, changed = Entry.objects.filter(action__contains="password").order_by("id")
        assert (link_request.actor_name, link_request.subject_label) == ("anonymous", "maya@desk.example")
        assert (sent.actor_name, sent.subject_label) == ("system", "maya")
        assert (changed.actor_name, changed.subject_label) == ("Maya (maya)", "maya")

    @pytest.mark.postgres
    def test_two_browsers_use_a_link_at_once_and_one_succeeds(
        self, server: MailServer, anonymous: Browser, maya: User, transactional_db: None
    ) -> None:
        request_link(anonymous)
        link, answers = link_in(server), list[int]()

        def use_link(password: str) -> None:
            try:
                answers.append(choose_password(Browser(), link, password).status_code)
            finally:
                connection.close()

        threads = [threading.Thread(target=use_link, args=(f"copper-lantern-{n}",)) for n in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
        assert sorted(answers) == [302, 404, 404, 404]
        assert Entry.objects.filter(action="accounts.password_changed").count() == 1

    @pytest.mark.slow
    def test_the_second_factor_is_still_required(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        assert sign_in(anonymous, OLD)
        set_up_app(anonymous)
        stranger = Browser()
        request_link(stranger)
        assert choose_password(stranger, link_in(server)).status_code == 302
        answer = stranger.post("/sign-in/", {"login": "maya", "password": NEW})
        assert answer["Location"].startswith("/sign-in/second-factor/")
        assert stranger.get("/").status_code == 302

    @pytest.mark.slow
    def test_a_new_password_lifts_the_rate_limit(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        for guess in range(6):
            sign_in(anonymous, f"guess-{guess}")
        request_link(anonymous)
        choose_password(anonymous, link_in(server))
        assert sign_in(anonymous)

    @pytest.mark.parametrize("typed", ["short", "password1234", "maya@desk.example"])
    def test_a_weak_password_is_rejected_and_the_link_stays_valid(
        self, server: MailServer, anonymous: Browser, maya: User, typed: str
    ) -> None:
        request_link(anonymous)
        answer = choose_password(anonymous, link_in(server), typed)
        assert (answer.status_code, "The password was not changed." in answer.content.decode()) == (422, True)
        assert choose_password(anonymous, link_in(server)).status_code == 302

    def test_a_link_expires_after_a_day(self, server: MailServer, anonymous: Browser, maya: User) -> None:
        request_link(anonymous)
        with time_machine.travel(timezone.now() + timedelta(hours=23), tick=False) as clock:
            assert anonymous.get(link_in(server)).status_code == 200
            clock.shift(timedelta(hours=1, minutes=1))
            assert choose_password(anonymous, link_in(server)).status_code == 404

    @pytest.mark.parametrize(
        "change",
        [{"is_active": False}, {"email": "other@desk.example"}, {"last_login": timezone.now()}],
        ids=["deactivated", "other address", "signed in"],
    )
    def test_account_changes_invalidate_a_link(
        self, server: MailServer, anonymous: Browser, maya: User, change: dict[str, Any]
    ) -> None:
        request_link(anonymous)
        User.objects.filter(pk=maya.pk).update(**change)
        assert choose_password(anonymous, link_in(server)).status_code == 404

    @pytest.mark.parametrize("pk", ["0", "999", "9" * 40])
    @pytest.mark.parametrize("token", ["x", "x-y", "%00", "é-é", "set-password"])
    def test_an_invalid_link_returns_404(
        self, server: MailServer, anonymous: Browser, maya: User, pk: str, token: str
    ) -> None:
        assert anonymous.get(f"{ASK}{pk}/{token}/").status_code == 404
        assert anonymous.get(f"{ASK}{maya.pk}/{token}/").status_code == 404

    @pytest.mark.postgres
    def test_a_link_is_encrypted_in_the_queue_and_never_stored(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        anonymous.post(ASK, {"email": "maya@desk.example"})
        assert "maya" not in str(Job.objects.values())
        call_command("work", batch=True)
        assert OutgoingMail.objects.get().sealed
        call_command("work", batch=True)
        link = link_in(server)
        choose_password(anonymous, link)
        token = link.split("/")[-2]
        models = [OutgoingMail, Job, Entry, Session, User]
        assert token not in str([list(model.objects.values()) for model in models])

    def test_a_link_ignores_the_host_header(
        self, server: MailServer, anonymous: Browser, maya: User, settings: LazySettings
    ) -> None:
        settings.ALLOWED_HOSTS = ["*"]
        anonymous.post(ASK, {"email": "maya@desk.example"}, headers={"Host": "evil.example"})
        run_worker()
        assert "evil" not in server.received[-1].as_string()


@pytest.mark.django_db
class TestUnknownEmails:
    def test_responses_do_not_reveal_which_accounts_exist(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        existing_user("gone", OLD, email="gone@desk.example", is_active=False)
        existing_user("sso", email="sso@desk.example")
        User.objects.filter(username="sso").update(password=make_password(None))
        anonymous.get("/sign-in/")
        answers = []
        for name in ("warm-up", "maya", "gone", "sso", "nobody"):
            with CaptureQueriesContext(connection) as queries:
                answer = anonymous.post(ASK, {"email": f"{name}@desk.example"})
            kinds = [one["sql"].split()[0] for one in queries]
            answers.append(
                (answer.status_code, re.sub(r'value="\w{64}"', "", unescape(answer.content.decode())), kinds)
            )
        assert [one == answers[1] for one in answers[2:]] == [True] * 3
        run_worker()
        assert [mail["To"] for mail in server.received] == ["Maya@desk.example"]

    @pytest.mark.slow
    @pytest.mark.postgres
    def test_an_account_receives_one_link_per_ten_minutes(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        with time_machine.travel("2026-11-23T12:01:00Z", tick=False) as clock:
            for _ in range(3):
                request_link(anonymous)
            clock.shift(timedelta(minutes=9, seconds=59))
            request_link(anonymous)
            assert len(server.received) == 1
            clock.shift(timedelta(seconds=2))
            request_link(anonymous)
        assert len(server.received) == 2

    def test_requests_from_one_ip_address_are_rate_limited(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        answers = [anonymous.post(ASK, {"email": f"{n}@desk.example"}).status_code for n in range(11)]
        assert answers == [200] * 10 + [422]
        assert Job.objects.filter(name="accounts.send_password_links").count() == 10

    def test_each_account_with_the_email_receives_a_link(
        self, server: MailServer, anonymous: Browser, maya: User
    ) -> None:
        existing_user("maya-admin", OLD, email="maya@desk.example", role=Role.ADMIN)
        request_link(anonymous)
        names = sorted(re.findall(r"name is ([\w-]+)", "".join(m.get_content() for m in server.received)))
        assert names == ["maya", "maya-admin"]

    @pytest.mark.parametrize("typed", ["", "maya", "maya@", "312-09-9931@desk.example"])
    def test_an_invalid_email_is_rejected(self, server: MailServer, anonymous: Browser, typed: str) -> None:
        answer = anonymous.post(ASK, {"email": typed})
        assert (answer.status_code, "No link was sent." in answer.content.decode()) == (422, True)
        assert not Job.objects.exists()


@pytest.mark.django_db
class TestAvailability:
    def test_links_are_off_without_mail(self, anonymous: Browser, maya: User) -> None:
        assert ASK not in anonymous.get("/sign-in/").content.decode()
        assert {anonymous.get(ASK).status_code, anonymous.post(ASK).status_code} == {404}

    def test_single_sign_on_turns_links_off(
        self, server: MailServer, anonymous: Browser, maya: User, settings: LazySettings
    ) -> None:
        request_link(anonymous)
        use_provider(settings, "http://127.0.0.1:9")
        assert ASK not in anonymous.get("/sign-in/").content.decode()
        assert (
            anonymous.get(ASK).status_code,
            choose_password(anonymous, link_in(server)).status_code,
        ) == (404, 404)


ADD = "/admin/accounts/user/add/"


@pytest.mark.django_db
class TestAdmin:
    NEW = {"username": "maya", "role": "servicer", "usable_password": "link"}

    def test_a_new_user_sets_a_password_with_a_link(
        self, server: MailServer, admin: Browser, anonymous: Browser
    ) -> None:
        assert 'value="link"' in admin.get(ADD).content.decode()
        assert admin.post(ADD, self.NEW | {"email": "maya@desk.example"}).status_code == 302
        person = User.objects.get(username="maya")
        assert not person.has_usable_password()
        run_worker()
        assert server.subjects == ["Set your password"]
        assert choose_password(anonymous, link_in(server)).status_code == 302
        assert sign_in(anonymous)
        sent = Entry.objects.get(action="accounts.password_link_sent")
        assert (sent.actor_name, sent.subject_label) == ("Administrator (admin)", "maya")

    def test_a_link_requires_an_email(self, server: MailServer, admin: Browser) -> None:
        answer = admin.post(ADD, self.NEW)
        assert "Enter an email address for the link." in answer.content.decode()
        assert not User.objects.filter(username="maya").exists()

    def test_an_account_can_have_a_password_or_none(self, server: MailServer, admin: Browser) -> None:
        given = {"password1": OLD, "password2": OLD, "usable_password": "true"}
        assert admin.post(ADD, self.NEW | given).status_code == 302
        assert admin.post(ADD, self.NEW | {"username": "b", "usable_password": "false"}).status_code == 302
        has_password = {
            one.username: one.has_usable_password() for one in User.objects.exclude(username="admin")
        }
        assert has_password == {"maya": True, "b": False}
        assert not OutgoingMail.objects.exists()

    def test_the_admin_action_sends_links_to_eligible_users(
        self, server: MailServer, admin: Browser, maya: User
    ) -> None:
        gone = existing_user("gone", OLD, email="gone@desk.example", is_active=False)
        without_email = existing_user("nowhere", OLD)
        chosen = {"action": "send_password_links", "_selected_action": [maya.pk, gone.pk, without_email.pk]}
        page = admin.post("/admin/accounts/user/", chosen, follow=True).content.decode()
        assert ("1 link will be sent." in page, "2 skipped: inactive or no email" in page) == (
            True,
            True,
        )
        admin.post("/admin/accounts/user/", chosen)
        run_worker()
        assert [mail["To"] for mail in server.received] == ["Maya@desk.example"] * 2

    def test_the_admin_offers_no_links_without_mail(self, admin: Browser, maya: User) -> None:
        assert 'value="link"' not in admin.get(ADD).content.decode()
        assert "send_password_links" not in admin.get("/admin/accounts/user/").content.decode()
        assert admin.post(ADD, self.NEW | {"username": "b"}).status_code == 200
        assert not User.objects.filter(username="b").exists()


def test_links_are_valid_for_24_hours() -> None:
    assert password_links.LINK_HOURS == 24
