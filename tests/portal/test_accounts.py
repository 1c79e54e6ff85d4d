"""Tests of sign-in, sign-out, roles, preferences and the admin's staff accounts."""

import re
import threading
from collections.abc import Callable
from io import StringIO
from typing import Any, ClassVar

import pytest
from allauth.account.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.apps import apps
from django.conf import LazySettings
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client as Browser
from django.urls import reverse

from portal.accounts.models import User
from portal.accounts.roles import ACTS, Role, can
from portal.audit.models import Entry
from servicing.sandbox import Sandbox
from tests.conftest import browser_of, browser_of_superuser, existing_user, htmx, superuser
from tests.test_structure import addresses

PASSWORD = "walnut-harbor-77"
STAFF_FORM = {"username": "servicer", "role": "servicer", "theme": "light", "density": "comfortable"}


@pytest.fixture
def maya(portal_service: Sandbox) -> User:
    return existing_user("maya", PASSWORD, role=Role.SERVICER, first_name="Maya")


def sign_in(browser: Browser, password: str = PASSWORD, **extra: str) -> HttpResponse:
    return browser.post("/sign-in/", {"login": "maya", "password": password} | extra)


def is_signed_in(browser: Browser) -> bool:
    return browser.get("/").status_code == 200


def change_page(user: User) -> str:
    return reverse("admin:accounts_user_change", args=[user.pk])


def toasts(answer: Any) -> list[str]:
    """The messages on a page."""
    shown = answer.content.decode().partition('id="toasts"')[2].partition("<template")[0]
    return re.findall(r"<p><b>(.*?)</b>", shown)


class TestSignIn:
    def test_the_right_password_signs_in(self, anonymous: Browser, maya: User) -> None:
        assert sign_in(anonymous)["Location"] == "/"
        assert is_signed_in(anonymous)
        assert Entry.objects.get(action__startswith="accounts.").action == "accounts.sign_in"
        assert {entry.actor_name for entry in Entry.objects.all()} == {"Maya (maya)"}

    def test_a_wrong_password_is_rejected_and_not_recorded(self, anonymous: Browser, maya: User) -> None:
        page = sign_in(anonymous, "walnut-harbor-78")
        shown = page.content.decode()
        assert "Incorrect username or password." in shown
        assert "not signed in" not in shown
        assert not is_signed_in(anonymous)
        entry = Entry.objects.get(action="accounts.sign_in_failed")
        assert entry.subject_label == "maya"
        assert "walnut" not in str(vars(entry))

    def test_repeated_guesses_are_rate_limited(self, anonymous: Browser, maya: User) -> None:
        for guess in range(5):
            sign_in(anonymous, f"guess-{guess}")
        assert "Too many attempts" in sign_in(anonymous).content.decode()
        assert not is_signed_in(anonymous)

    def test_a_deactivated_account_cannot_sign_in(self, anonymous: Browser, maya: User) -> None:
        User.objects.update(is_active=False)
        assert "Incorrect username or password." in sign_in(anonymous).content.decode()
        assert Entry.objects.latest("id").action == "accounts.sign_in_failed"

    def test_deactivation_ends_a_session_at_once(self, viewer: Browser) -> None:
        User.objects.update(is_active=False)
        assert not is_signed_in(viewer)

    def test_sign_in_returns_to_the_requested_page(self, anonymous: Browser, maya: User) -> None:
        redirect = anonymous.get("/borrowers/?q=baking")
        assert redirect["Location"] == "/sign-in/?next=/borrowers/%3Fq%3Dbaking"
        assert 'value="/borrowers/?q=baking"' in anonymous.get(redirect["Location"]).content.decode()
        assert sign_in(anonymous, next="/borrowers/?q=baking")["Location"] == "/borrowers/?q=baking"

    def test_sign_in_never_redirects_to_another_host(self, anonymous: Browser, maya: User) -> None:
        assert sign_in(anonymous, next="https://evil.example/")["Location"] == "/"

    def test_a_signed_out_fragment_redirects_the_page_to_sign_in(self, anonymous: Browser) -> None:
        headers = {"HX-Current-URL": "http://testserver/loans/?page=2"}
        answer = anonymous.get("/loans/", headers=htmx("loan-rows") | headers)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer["HX-Redirect"] == "/sign-in/?next=/loans/%3Fpage%3D2"

    def test_a_fragment_without_a_page_url_returns_to_home(self, anonymous: Browser) -> None:
        assert anonymous.get("/loans/", headers=htmx("loan-rows"))["HX-Redirect"] == "/sign-in/?next=/"

    def test_authenticate_outside_a_request_is_not_recorded(self, maya: User) -> None:
        assert authenticate(username="maya", password="guess") is None
        assert not Entry.objects.exists()

    def test_sign_up_is_disabled(self, anonymous: Browser) -> None:
        assert not get_adapter().is_open_for_signup(None)
        assert "account_signup" not in anonymous.get("/sign-in/").content.decode()
        assert anonymous.get("/sign-in/signup/").status_code == 404


class TestSigningOut:
    def test_the_sign_out_page_asks_for_confirmation(self, viewer: Browser) -> None:
        assert "Sign out?" in viewer.get("/sign-out/").content.decode()
        assert is_signed_in(viewer)

    def test_signing_out_ends_the_session_and_is_recorded(self, viewer: Browser) -> None:
        assert viewer.post("/sign-out/")["Location"] == "/sign-in/"
        assert not is_signed_in(viewer)
        assert Entry.objects.get(action="accounts.sign_out").actor_name == "Viewer (viewer)"

    def test_signing_out_without_a_session_is_not_recorded(self, anonymous: Browser) -> None:
        anonymous.post("/sign-out/")
        anonymous.logout()
        assert not Entry.objects.exists()


class TestRoles:
    def test_admins_cannot_lend_and_servicers_cannot_administer(self, portal_service: Sandbox) -> None:
        admin, servicer = User(role=Role.ADMIN), User(role=Role.SERVICER)
        assert (can(admin, "accounts.staff"), can(admin, "borrowers.create")) == (True, False)
        assert (can(servicer, "accounts.staff"), can(servicer, "borrowers.create")) == (False, True)

    def test_a_deactivated_user_has_no_permissions(self) -> None:
        assert not any(can(User(role=Role.SUPERVISOR, is_active=False), act) for act in ACTS)

    def test_an_undefined_act_raises(self) -> None:
        with pytest.raises(KeyError):
            can(User(role=Role.ADMIN), "borrowers.delete")


class TestProfile:
    def test_preferences_are_saved(self, servicer: Browser) -> None:
        typed = {
            "preferred_name": "May",
            "time_zone": "America/Denver",
            "theme": "dark",
            "density": "compact",
        }
        assert servicer.post("/accounts/profile/", typed).status_code == 303
        user = User.objects.get()
        assert (user.preferred_name, user.time_zone, user.theme) == ("May", "America/Denver", "dark")
        assert (user.density, user.shortcuts) == ("compact", False)
        page = servicer.get("/accounts/profile/").content.decode()
        assert 'data-theme="dark" data-density="compact"' in page
        assert "Settings saved." in page

    def test_a_preferred_name_does_not_change_the_audit_name(self, servicer: Browser) -> None:
        typed = {"preferred_name": "Ravi Patel", "first_name": "Ravi", "last_name": "Patel"}
        for _ in range(2):
            servicer.post(
                "/accounts/profile/", typed | {"username": "ravi", "theme": "auto", "density": "comfortable"}
            )
        entry = Entry.objects.get(action="accounts.profile")
        assert (entry.actor_name, entry.subject_label) == ("Servicer (servicer)", "servicer")
        assert entry.changes == {"preferred_name": ["", "Ravi Patel"]}
        assert User.objects.get().get_full_name() == "Servicer"
        assert "Ravi Patel" in servicer.get("/").content.decode()

    @pytest.mark.parametrize(
        ("field", "typed"), [("time_zone", "Mars/Olympus"), ("theme", "sepia"), ("density", "")]
    )
    def test_invalid_preferences_are_rejected(self, servicer: Browser, field: str, typed: str) -> None:
        answer = servicer.post("/accounts/profile/", {"theme": "dark", "density": "compact", field: typed})
        assert answer.status_code == 422
        assert User.objects.get().theme == "auto"

    def test_the_profile_form_cannot_change_the_role(self, servicer: Browser) -> None:
        typed = {"theme": "dark", "density": "compact", "role": "admin", "is_superuser": "on"}
        servicer.post("/accounts/profile/", typed)
        user = User.objects.get()
        assert (user.theme, user.role, user.is_superuser) == ("dark", Role.SERVICER, False)

    @pytest.mark.slow
    def test_the_theme_follows_the_system_until_changed(self, viewer: Browser) -> None:
        assert 'data-theme="auto"' in viewer.get("/").content.decode()
        for chosen in ("light", "auto"):
            viewer.post("/accounts/profile/theme/", {"theme": chosen})
            assert f'data-theme="{chosen}"' in viewer.get("/").content.decode()

    def test_the_theme_switch_returns_to_the_same_page(self, viewer: Browser) -> None:
        headers = {"Referer": "http://testserver/loans/?page=2"}
        answer = viewer.post("/accounts/profile/theme/", {"theme": "dark"}, headers=headers)
        assert (answer.status_code, answer["Location"]) == (303, "http://testserver/loans/?page=2")
        assert User.objects.get().theme == "dark"

    @pytest.mark.parametrize("typed", ["sepia", ""])
    def test_an_unknown_theme_is_ignored(self, viewer: Browser, typed: str) -> None:
        foreign_referrer = {"Referer": "https://evil.example/"}
        answer = viewer.post("/accounts/profile/theme/", {"theme": typed}, headers=foreign_referrer)
        assert (answer["Location"], User.objects.get().theme) == ("/", "auto")


class TestAdmin:
    @pytest.mark.parametrize(
        ("role", "status"),
        [
            (Role.VIEWER, 403),
            (Role.SERVICER, 403),
            (Role.SUPERVISOR, 200),
            (Role.AUDITOR, 200),
            (Role.ADMIN, 200),
        ],
    )
    def test_only_oversight_roles_open_the_admin(
        self, portal_service: Sandbox, role: Role, status: int
    ) -> None:
        assert browser_of(role).get("/admin/").status_code == status

    def test_the_admin_uses_the_portal_sign_in(self, anonymous: Browser) -> None:
        assert anonymous.get("/admin/", follow=True).redirect_chain[-1][0].startswith("/sign-in/")
        assert anonymous.post("/admin/login/", {"username": "a", "password": "b"}).status_code == 302

    def test_administrators_create_and_change_accounts(self, admin: Browser) -> None:
        new = {"username": "ravi", "role": "viewer", "password1": PASSWORD, "password2": PASSWORD}
        assert admin.post("/admin/accounts/user/add/", new | {"usable_password": "true"}).status_code == 302
        ravi = User.objects.get(username="ravi")
        assert (ravi.role, ravi.check_password(PASSWORD)) == (Role.VIEWER, True)
        page = reverse("admin:accounts_user_change", args=[ravi.pk])
        changed = STAFF_FORM | {"username": "ravi", "is_active": "on", "time_zone": "America/Denver"}
        saved = admin.post(page, changed, follow=True).content.decode()
        assert '<div class="sd-toast">' in saved
        assert "Account saved." in saved
        ravi.refresh_from_db()
        assert (ravi.role, ravi.time_zone) == (Role.SERVICER, "America/Denver")

    def test_an_unknown_time_zone_is_rejected(self, admin: Browser, maya: User) -> None:
        page = reverse("admin:accounts_user_change", args=[maya.pk])
        answer = admin.post(page, STAFF_FORM | {"time_zone": "Mars/Olympus"})
        assert "Unknown time zone" in answer.content.decode()

    @pytest.mark.parametrize("role", [Role.SUPERVISOR, Role.AUDITOR])
    def test_supervisors_and_auditors_cannot_manage_accounts(self, maya: User, role: Role) -> None:
        browser = browser_of(role)
        for name in ("changelist", "add"):
            assert browser.get(reverse(f"admin:accounts_user_{name}")).status_code == 403
        assert browser.get(reverse("admin:accounts_user_change", args=[maya.pk])).status_code == 403

    def test_accounts_cannot_be_deleted(self, admin: Browser, maya: User) -> None:
        assert (
            admin.post(reverse("admin:accounts_user_delete", args=[maya.pk]), {"post": "yes"}).status_code
            == 403
        )
        action = {"action": "delete_selected", "_selected_action": [maya.pk], "post": "yes"}
        admin.post(reverse("admin:accounts_user_changelist"), action)
        assert User.objects.filter(pk=maya.pk).exists()


class TestSuperuser:
    """A user created by ``createsuperuser`` has only the administrator's rights."""

    @pytest.fixture
    def root(self, portal_service: Sandbox) -> Browser:
        return browser_of_superuser()

    @pytest.mark.slow
    @pytest.mark.parametrize("selected", [["nobody"], ["1", "x"], ["9" * 30], ["\0"]])
    def test_an_action_on_unknown_accounts_changes_nothing(self, admin: Browser, selected: list[str]) -> None:
        before = Entry.objects.count()
        action = {"action": "end_sessions", "_selected_action": selected, "index": "0"}
        assert ">Choose an action</option>" in admin.get("/admin/accounts/user/").content.decode()
        answer = admin.post("/admin/accounts/user/", action, follow=True)
        assert answer.status_code == 200
        body = answer.content.decode().partition("<template")[0]
        assert '<div class="sd-toast sd-toast-bad">' in body
        assert "Nothing was changed." in body
        assert Entry.objects.count() == before

    @pytest.mark.slow
    def test_the_admin_lists_only_accounts_and_the_audit_trail(self, root: Browser) -> None:
        page = root.get("/admin/").content.decode()
        linked = {path.split("/")[2] for path in re.findall(r'href="(/admin/\w+/\w+/)', page)}
        assert linked == {"accounts", "audit"}
        for model in apps.get_models():
            label, name = model._meta.app_label, model._meta.model_name
            if label not in ("accounts", "audit"):
                for end in ("", "add/", "1/change/", "1/delete/", "1/history/"):
                    assert root.get(f"/admin/{label}/{name}/{end}").status_code == 404

    def test_the_admin_cannot_add_providers_identities_or_factors(self, root: Browser, maya: User) -> None:
        app = {"provider": "openid_connect", "provider_id": "evil", "name": "Evil", "client_id": "c"}
        assert root.post("/admin/socialaccount/socialapp/add/", app).status_code == 404
        link = {"user": maya.pk, "provider": "evil", "uid": "s-1", "extra_data": "{}"}
        assert root.post("/admin/socialaccount/socialaccount/add/", link).status_code == 404
        factor = {"user": maya.pk, "type": "totp", "data": "{}"}
        assert root.post("/admin/mfa/authenticator/add/", factor).status_code == 404

    @pytest.mark.slow
    @pytest.mark.parametrize("role", [role for role in Role if role != Role.ADMIN])
    def test_losing_the_admin_role_revokes_access_at_once(self, root: Browser, role: Role) -> None:
        assert root.get("/admin/accounts/user/").status_code == 200
        existing_user("other", role=Role.ADMIN)
        page = change_page(User.objects.get(username="root"))
        changed = STAFF_FORM | {"username": "root", "role": role.value, "is_active": "on"}
        answer = root.post(page, changed, follow=True)
        assert answer.redirect_chain == [("/", 302)]
        assert toasts(answer) == [f"Your role is now {role.label}."]
        assert root.get("/admin/accounts/user/").status_code in (302, 403)
        assert root.post(page, changed | {"role": "admin"}).status_code in (302, 403)
        user = User.objects.get(username="root")
        assert user.role == role
        assert not user.has_perm("accounts.change_user")

    @pytest.mark.slow
    @pytest.mark.parametrize("role", Role)
    def test_django_flags_grant_no_admin_access(self, portal_service: Sandbox, role: Role) -> None:
        plain, flagged = browser_of(role), browser_of_superuser(role)
        found = [address.url for address in addresses() if address.url.startswith("/admin/")]
        assert len(found) > 30
        for method in ("GET", "POST"):
            answers = [[one.generic(method, url).status_code for url in found] for one in (plain, flagged)]
            assert answers[0] == answers[1]

    def test_the_admin_password_page_redirects_to_the_portal(self, root: Browser) -> None:
        new = {
            "old_password": PASSWORD,
            "new_password1": "gravel-lantern-9",
            "new_password2": "gravel-lantern-9",
        }
        assert root.post("/admin/password_change/", new)["Location"] == "/accounts/password/"
        assert User.objects.get().check_password(PASSWORD)


@pytest.mark.django_db
@pytest.mark.postgres
class TestLastAdministrator:
    """The last active administrator can't be lost in any way."""

    REASON = "This is the only active administrator. Make someone else an administrator first."
    WAYS: ClassVar[dict[str, Callable[[User], object]]] = {
        "role": lambda last: save_with(last, role=Role.SUPERVISOR),
        "deactivation": lambda last: save_with(last, is_active=False),
        "one field": lambda last: save_with(last, ["role", "email"], role=Role.VIEWER),
        "bulk update": lambda last: User.objects.update(role=Role.AUDITOR),
        "bulk deactivation": lambda last: User.objects.update(is_active=False),
        "bulk update of objects": lambda last: User.objects.bulk_update(
            [with_role(last, "viewer")], ["role"]
        ),
        "bulk creation": lambda last: User.objects.bulk_create(
            [with_role(last, "viewer")],
            update_conflicts=True,
            unique_fields=["username"],
            update_fields=["role"],
        ),
        "update or create": lambda last: User.objects.update_or_create(
            username="last", defaults={"is_active": False}
        ),
        "deletion": lambda last: last.delete(),
        "deletion after an unsaved change": lambda last: with_role(last, "viewer").delete(),
        "bulk deletion": lambda last: User.objects.filter(is_active=True).delete(),
    }

    @pytest.fixture
    def last(self) -> User:
        """The only active administrator, beside an inactive one and other roles."""
        existing_user("gone", role=Role.ADMIN, is_active=False)
        existing_user("supervisor", role=Role.SUPERVISOR)
        return existing_user("last", role=Role.ADMIN)

    @pytest.mark.parametrize("way", WAYS)
    def test_no_change_loses_the_last_administrator(self, last: User, way: str) -> None:
        before = list(User.objects.order_by("pk").values())
        with pytest.raises(ValidationError, match=self.REASON), transaction.atomic():
            self.WAYS[way](last)
        assert list(User.objects.order_by("pk").values()) == before
        assert not Entry.objects.exists()

    @pytest.mark.parametrize(
        "way", [way for way in WAYS if way not in ("bulk update", "bulk deactivation", "bulk deletion")]
    )
    def test_one_of_two_administrators_may_go(self, last: User, way: str) -> None:
        other = existing_user("other", role=Role.ADMIN)
        self.WAYS[way](last)
        assert list(User.objects.administrators()) == [other]

    def test_without_an_administrator_accounts_can_be_changed(self) -> None:
        existing_user("gone", role=Role.ADMIN, is_active=False).delete()
        save_with(existing_user("maya"), role=Role.SERVICER)
        assert User.objects.get().role == Role.SERVICER

    @pytest.mark.parametrize(
        ("typed", "field"),
        [
            ({"role": "viewer", "is_active": "on"}, "role"),
            ({"role": "admin"}, "is_active"),
            ({"role": "auditor"}, "role"),
        ],
    )
    def test_the_form_names_the_reason_beside_the_field(
        self, admin: Browser, typed: dict[str, str], field: str
    ) -> None:
        own = User.objects.get()
        answer = admin.post(change_page(own), STAFF_FORM | {"username": "admin", "role": ""} | typed)
        assert answer.status_code == 200
        assert answer.context["adminform"].form.errors == {field: [self.REASON]}
        assert self.REASON in answer.content.decode()
        own.refresh_from_db()
        assert (own.role, own.is_active) == (Role.ADMIN, True)

    def test_the_last_administrator_can_change_the_rest_of_the_account(self, admin: Browser) -> None:
        own = User.objects.get()
        changed = STAFF_FORM | {"username": "admin", "role": "admin", "is_active": "on", "first_name": "Ann"}
        assert admin.post(change_page(own), changed)["Location"] == "/admin/accounts/user/"
        assert User.objects.get().first_name == "Ann"

    def test_deactivating_the_own_account_leads_to_sign_in(self, admin: Browser) -> None:
        own = User.objects.get()
        existing_user("other", role=Role.ADMIN)
        answer = admin.post(
            change_page(own), STAFF_FORM | {"username": "admin", "role": "admin"}, follow=True
        )
        assert answer.redirect_chain == [("/sign-in/", 302)]
        assert '<p role="status">Your account is now inactive.</p>' in answer.content.decode()
        assert not is_signed_in(admin)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["form", "code"])
@pytest.mark.postgres
def test_two_administrators_who_lower_each_other_at_once_leave_one(
    portal_service: Sandbox, transactional_db: None, way: str
) -> None:
    pair = [existing_user(name, role=Role.ADMIN) for name in ("first", "second")]
    start, failures = threading.Barrier(2), list[Exception]()

    def lower(own: User, other: User) -> None:
        try:
            browser = Browser()
            browser.force_login(own)
            start.wait(30)
            if way == "form":
                typed = STAFF_FORM | {"username": other.username, "role": "viewer", "is_active": "on"}
                browser.post(change_page(other), typed)
            else:
                save_with(other, role=Role.VIEWER)
        except ValidationError:
            assert way == "code"
        except Exception as error:  # Reported below, in the test's own thread.
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=lower, args=(one, two)) for one, two in (pair, pair[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert User.objects.administrators().count() == 1


def with_role(user: User, role: str) -> User:
    user.role = role
    return user


def save_with(user: User, update_fields: list[str] | None = None, **values: Any) -> None:
    for name, value in values.items():
        setattr(user, name, value)
    user.save(update_fields=update_fields)


@pytest.mark.postgres
class TestRecordedChanges:
    """Every change to an account's rights is recorded, no matter how it is made."""

    def changes(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        found = Entry.objects.filter(action__startswith="accounts.").order_by("id")
        found = found.exclude(action__startswith="accounts.sign_")
        return [(one.actor_name, one.action[9:], one.subject_label, one.changes) for one in found]

    def test_changes_by_commands_are_recorded(
        self, portal_service: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        superuser()
        created, flagged = self.changes()
        assert created[:3] == ("system", "staff_created", "root")
        assert created[3]["role"] == ["", "admin"]
        assert created[3]["password"] == ["", "set"]
        assert flagged[3] == {"is_staff": [False, True], "is_superuser": [False, True]}
        monkeypatch.setattr("getpass.getpass", lambda **_: "gravel-lantern-9")
        call_command("changepassword", "root", stdout=StringIO())
        assert self.changes()[2:] == [("system", "password_changed", "root", {})]

    def test_changes_by_code_are_recorded(self, maya: User) -> None:
        maya.role = Role.SUPERVISOR
        maya.save()
        User.objects.filter(pk=maya.pk).update(role=Role.ADMIN)
        existing_user("other", role=Role.ADMIN)
        maya.email = "new@desk.example"
        maya.save(update_fields=["email"])
        maya.delete()
        assert self.changes() == [
            ("system", "staff_changed", "maya", {"role": ["servicer", "supervisor"]}),
            ("system", "staff_changed", "maya", {"role": ["supervisor", "admin"]}),
            ("system", "staff_changed", "maya", {"email": ["", "new@desk.example"]}),
            ("system", "staff_deleted", "maya", {}),
        ]

    def test_changes_in_the_admin_are_recorded(self, maya: User) -> None:
        admin = browser_of(Role.ADMIN)
        start = len(self.changes())
        page = reverse("admin:accounts_user_change", args=[maya.pk])
        changed = STAFF_FORM | {
            "username": "maya",
            "first_name": "Maya",
            "role": "supervisor",
            "is_active": "on",
        }
        admin.post(page, changed)
        new = {"usable_password": "true", "password1": "gravel-lantern-9", "password2": "gravel-lantern-9"}
        admin.post(reverse("admin:auth_user_password_change", args=[maya.pk]), new)
        assert self.changes()[start:] == [
            ("Administrator (admin)", "staff_changed", "maya", {"role": ["servicer", "supervisor"]}),
            ("Administrator (admin)", "password_changed", "maya", {}),
        ]

    def test_changes_to_factors_and_identities_are_recorded(self, maya: User) -> None:
        ravi = User.objects.create_user("ravi")
        start = len(self.changes())
        factor = Authenticator.objects.create(user=maya, type="totp", data={"secret": "x"})
        factor.data = {"secret": "y"}
        factor.save()
        factor.delete()
        link = SocialAccount.objects.create(user=maya, provider="sso", uid="s-1")
        link.extra_data = {"picture": "p"}
        link.save()
        link.user = ravi
        link.save()
        ravi.delete()
        assert [change[1:3] for change in self.changes()[start:]] == [
            ("second_factor_added", "maya"),
            ("second_factor_changed", "maya"),
            ("second_factor_removed", "maya"),
            ("single_sign_on_connected", "maya"),
            ("single_sign_on_changed", "ravi"),
            ("single_sign_on_removed", "ravi"),
            ("staff_deleted", "ravi"),
        ]

    def test_entries_contain_no_password_or_hash(self, maya: User) -> None:
        maya.set_password("gravel-lantern-9")
        maya.save()
        stored = str(list(Entry.objects.values()))
        assert PASSWORD not in stored
        assert "gravel-lantern-9" not in stored
        assert maya.password not in stored

    @pytest.mark.slow
    def test_rehashing_a_password_is_not_recorded(
        self, anonymous: Browser, maya: User, settings: LazySettings
    ) -> None:
        start, old = len(self.changes()), maya.password
        settings.PASSWORD_HASHERS = [
            "django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS,
        ]  # fmt: skip
        sign_in(anonymous)
        maya.refresh_from_db()
        assert maya.password != old
        assert self.changes()[start:] == []


@pytest.mark.django_db
class TestCommands:
    def test_demo_staff_creates_one_account_per_role(self, settings: LazySettings) -> None:
        settings.DEBUG, settings.DEMO_PASSWORD = True, PASSWORD
        call_command("demo_staff", stdout=StringIO())
        assert {user.username: user.role for user in User.objects.all()} == {
            role: role for role in Role.values
        }
        assert all(user.check_password(PASSWORD) for user in User.objects.all())
        assert all(user.get_full_name() for user in User.objects.all())

    def test_running_demo_staff_again_changes_nothing(self, settings: LazySettings) -> None:
        settings.DEBUG = True
        call_command("demo_staff", stdout=StringIO())
        before = list(User.objects.values())
        settings.DEMO_PASSWORD = "another"
        call_command("demo_staff", stdout=StringIO())
        assert list(User.objects.values()) == before

    def test_demo_staff_requires_debug(self) -> None:
        with pytest.raises(CommandError, match="need DEBUG"):
            call_command("demo_staff")
        assert not User.objects.exists()

    def create_superuser(self) -> None:
        names = {"username": "root", "email": "root@desk.example"}
        call_command("createsuperuser", **names, interactive=False, stdout=StringIO())

    def test_a_superuser_is_an_administrator(self) -> None:
        self.create_superuser()
        assert User.objects.get().role == Role.ADMIN

    @pytest.mark.parametrize(
        ("password", "reason"),
        [
            ("short", "too short"),
            ("", "too short"),
            ("1qaz2wsx3edc", "too common"),
            ("root@desk.example", "too similar to the email"),
        ],
    )
    def test_a_weak_password_makes_no_administrator(
        self, monkeypatch: pytest.MonkeyPatch, password: str, reason: str
    ) -> None:
        monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", password)
        with pytest.raises(CommandError, match=reason) as raised:
            self.create_superuser()
        assert "\n" not in str(raised.value)
        with pytest.raises(ValidationError, match=reason):
            User.objects.create_superuser("root", "root@desk.example", password)
        assert not User.objects.exists()

    def test_a_good_password_makes_an_administrator(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
        self.create_superuser()
        assert User.objects.get().check_password(PASSWORD)

    def test_an_administrator_for_single_sign_on_has_no_password(self) -> None:
        self.create_superuser()
        assert not User.objects.get().has_usable_password()

    def test_display_name_falls_back_to_the_username(self) -> None:
        assert User(username="maya").display_name() == "maya"
