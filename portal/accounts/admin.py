"""The Django admin: only what is registered on this site exists in it, and rights there come from the role alone."""

from typing import Any

from allauth.mfa.base.internal.flows import delete_and_cleanup
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.views import redirect_to_login
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from portal.accounts.forms import StaffAddForm, StaffChangeForm
from portal.accounts.models import User
from portal.accounts.roles import RoleMissing, can
from portal.accounts.sessions import end_other_sessions
from portal.ui.keys import row_key


class StaffAdminSite(admin.AdminSite):
    """An admin of our own tables. Packages register theirs on Django's default site, which no address leads to."""

    site_header = site_title = f"{settings.PRODUCT_NAME} administration"

    def has_permission(self, request: HttpRequest) -> bool:
        """Administrators and those who oversee may open the admin; each model decides the rest."""
        return can(request.user, "audit.index")

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in on the portal's own page, with its second factor."""
        if not request.user.is_authenticated:
            return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
        if not self.has_permission(request):
            raise RoleMissing("audit.index")
        return HttpResponseRedirect(reverse("admin:index"))

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Change a password on the portal's own page."""
        return HttpResponseRedirect(reverse("account_change_password"))


site = StaffAdminSite()


@admin.register(User, site=site)
class StaffAdmin(UserAdmin):  # type: ignore[type-arg]
    """Staff and their roles."""

    form, add_form = StaffChangeForm, StaffAddForm
    list_display = ["username", "first_name", "last_name", "role", "is_active", "last_login"]
    list_filter = ["role", "is_active"]
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
    actions = ["end_sessions", "remove_second_factors"]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return can(request.user, "accounts.staff")

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return can(request.user, "accounts.staff")

    has_add_permission = has_change_permission = has_view_permission

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Accounts are deactivated, not deleted: their work stays attributable."""
        return False

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[User], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Run the chosen action; IDs that no account can have, which Django would fail on, choose nobody."""
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if any(row_key(one) is None for one in chosen):
            messages.error(request, "One of the chosen accounts doesn't exist. Nothing was changed.")
            return HttpResponseRedirect(request.get_full_path())
        return super().response_action(request, queryset, *args, **kwargs)

    @admin.action(description="End all sessions")
    def end_sessions(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            rows = UserSession.objects.filter(user=user)
            end_other_sessions(request, user, rows, "ended by an administrator")
        messages.success(request, "Their sessions were ended.")

    @admin.action(description="Remove second factors (lost phone or key)")
    def remove_second_factors(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for one in Authenticator.objects.filter(user__in=queryset).exclude(
            type=Authenticator.Type.RECOVERY_CODES
        ):
            delete_and_cleanup(request, one)
        messages.success(request, "They sign in with only a password until they set up a new one.")
