"""The Django admin. It contains only what is registered on this site, and permissions come from the role alone."""

from collections.abc import Callable, Mapping
from typing import Any

from allauth.mfa.base.internal.flows import delete_and_cleanup
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import logout
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.views import redirect_to_login
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import pluralize
from django.urls import reverse

from portal.accounts import password_links
from portal.accounts.forms import StaffAddForm, StaffChangeForm, StaffPasswordForm
from portal.accounts.models import User
from portal.accounts.roles import Role, RoleMissing, can
from portal.accounts.sessions import end_other_sessions
from portal.ui import wording
from portal.ui.htmx import toast
from portal.ui.keys import row_key

Choices = Mapping[str, tuple[str, Q]]


class StaffAdminSite(admin.AdminSite):
    """An admin site for our own tables. Packages register theirs on Django's default site, which has no address."""

    site_header = site_title = f"{settings.PRODUCT_NAME} administration"

    def has_permission(self, request: HttpRequest) -> bool:
        """Admit the roles that administer or oversee; each model decides the rest.

        Other signed-in people are refused at the requested address, so that the audit trail has it.
        """
        if request.user.is_authenticated and not can(request.user, "audit.index"):
            raise RoleMissing("audit.index")
        return request.user.is_authenticated

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Django's list with a description of each table."""
        apps = super().get_app_list(request, app_label)
        for table in (table for app in apps for table in app["models"]):
            page: Any = self.get_model_admin(table["model"])
            table |= {"title": page.title, "purpose": page.purpose}
        return apps

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in on the portal's own page, with its second factor."""
        if not request.user.is_authenticated:
            return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
        self.has_permission(request)
        return HttpResponseRedirect(reverse("admin:index"))

    def logout(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Sign out on the portal's own page."""
        return HttpResponseRedirect(reverse("account_logout"))

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Change a password on the portal's own page."""
        return HttpResponseRedirect(reverse("account_change_password"))


site = StaffAdminSite()


class AdminFilter(admin.SimpleListFilter):
    """A filter above a list; ``templates/admin/filter.html`` draws it as a choice, a date or a text."""

    control = "select"
    prompt: str

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def has_output(self) -> bool:
        return True

    def parsed_value(self) -> str:
        """The value in a form that a database can compare."""
        return (self.value() or "").replace("\0", "").strip()[:200]


def choice_filter(name: str, label: str, every: str, choices: Callable[[], Choices]) -> type[AdminFilter]:
    """Create a filter with these choices: words and condition by value."""

    class Choice(AdminFilter):
        parameter_name, title, prompt = name, label, every

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(value, words) for value, (words, _) in choices().items()]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value, found = self.parsed_value(), choices().get(self.parsed_value())
            if found:
                return queryset.filter(found[1])
            return queryset.none() if value else queryset  # A choice that doesn't exist finds nothing.

    return Choice


class FramedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Lists in the product's frame, with its own footer."""

    title: str
    purpose: str
    empty_value_display = ""
    list_per_page = 50
    show_full_result_count = False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        context = getattr(response, "context_data", None) or {}
        if cl := context.get("cl"):
            context |= {"page": cl.paginator.get_page(cl.page_num), "list_title": self.title}
            context |= self.list_context(request, cl)
        return response

    def message_user(
        self, request: HttpRequest, message: Any, level: int | str = messages.INFO, *args: Any, **kwargs: Any
    ) -> None:
        """Show Django's messages in the product's words."""
        if level == messages.SUCCESS:
            message = "Account saved."
        elif level == messages.WARNING:
            message = "Select accounts and an action. Nothing was changed."
        super().message_user(request, message, level, *args, **kwargs)

    def list_context(self, request: HttpRequest, cl: Any) -> dict[str, Any]:
        """What a list shows beyond Django's own."""
        return {}


_ACTIVE = {"yes": ("Active", Q(is_active=True)), "no": ("Inactive", Q(is_active=False))}


@admin.register(User, site=site)
class StaffAdmin(FramedAdmin, UserAdmin):  # type: ignore[type-arg]
    title, purpose = "Accounts", "Staff and their roles"
    form, add_form, change_password_form = StaffChangeForm, StaffAddForm, StaffPasswordForm
    list_display = ["username", "display_name", "email", "role", "state", "signed_in"]
    list_filter = [
        choice_filter("role", "Role", "All roles", lambda: {r.value: (r.label, Q(role=r)) for r in Role}),
        choice_filter("active", "Status", "Active or not", lambda: _ACTIVE),
    ]
    search_help_text = "Name, username or email"
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "preferred_name", "email", "role", "is_active")}),
        ("Preferences", {"fields": ("time_zone", "theme", "density", "shortcuts")}),
    )
    add_fieldsets = (
        (
            None,
            {
                "classes": ("wide",),
                "fields": ("username", "email", "role", "usable_password", "password1", "password2"),
            },
        ),
    )
    actions = ["send_password_links", "end_sessions", "remove_second_factors", "disconnect_identities"]

    @admin.display(description="Name", ordering="first_name")
    def display_name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description="Status", ordering="is_active")
    def state(self, user: User) -> str:
        return "Active" if user.is_active else "Inactive"

    @admin.display(description="Last sign-in", ordering="last_login", empty_value="Never")
    def signed_in(self, user: User) -> str | None:
        return wording.clock(user.last_login) if user.last_login else None

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        title = {"title": "Edit account" if object_id else "Add account"}
        return super().changeform_view(request, object_id, form_url, title | (extra_context or {}))

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return can(request.user, "accounts.staff")

    has_module_permission = has_add_permission = has_change_permission = has_view_permission

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Return False: accounts are deactivated, so that their work stays attributable."""
        return False

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[User], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Run the chosen action. IDs that no account can have, on which Django would fail, are dropped."""
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if any(row_key(one) is None for one in chosen):
            messages.error(request, "A selected account no longer exists. Nothing was changed.")
            return HttpResponseRedirect(request.get_full_path())
        return super().response_action(request, queryset, *args, **kwargs)

    def get_action_choices(self, request: HttpRequest, default_choices: Any = None) -> list[tuple[str, str]]:
        return super().get_action_choices(request, [("", "Choose an action")])

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found = super().get_actions(request)
        if not password_links.are_enabled():
            found.pop("send_password_links", None)
        if not settings.OIDC_URL:
            found.pop("disconnect_identities", None)
        return found

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Save an account, and send the link of a new one."""
        super().save_model(request, obj, form, change)
        if getattr(form, "sends_link", False) and password_links.send_link_for_admin(obj):
            messages.success(request, f"A link to set the password goes to {obj.email}.")

    def response_change(self, request: HttpRequest, obj: User) -> HttpResponse:
        """Lead administrators who ended their own role to a page they may still open."""
        if obj.pk != request.user.pk or can(obj, "accounts.staff"):
            return super().response_change(request, obj)
        if obj.is_active:
            toast(request, f"Your role is now {obj.get_role_display()}.")
            return HttpResponseRedirect(reverse("home:index"))
        logout(request)
        messages.success(request, "Your account is now inactive.", extra_tags="sign-in")
        return HttpResponseRedirect(reverse("account_login"))

    @admin.action(description="Send a link to set the password")
    def send_password_links(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        count = sum(map(password_links.send_link_for_admin, queryset))
        messages.success(request, f"{count} link{pluralize(count)} will be sent.")
        if left_out := len(queryset) - count:
            messages.warning(request, f"{left_out} skipped: inactive or no email address.")

    @admin.action(description="End all sessions")
    def end_sessions(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            rows = UserSession.objects.filter(user=user)
            end_other_sessions(request, user, rows, "ended by an administrator")
        messages.success(request, "Sessions ended.")

    @admin.action(description="Remove second factors (lost phone or passkey)")
    def remove_second_factors(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for one in Authenticator.objects.filter(user__in=queryset).exclude(
            type=Authenticator.Type.RECOVERY_CODES
        ):
            delete_and_cleanup(request, one)
        messages.success(request, "They sign in with only a password until they set up a new one.")

    @admin.action(description="Disconnect single sign-on")
    def disconnect_identities(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        count = 0
        for identity in SocialAccount.objects.filter(user__in=queryset):
            identity.delete()
            count += 1
        toast(request, f"{count} disconnected. The next matching sign-in connects again.")
