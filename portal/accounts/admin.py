"""Staff accounts in the Django admin, for administrators; sign-in goes through the portal's own page."""

from typing import Any, cast

from allauth.account.decorators import secure_admin_login
from allauth.mfa.base.internal.flows import delete_and_cleanup
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from portal.accounts.forms import StaffAddForm, StaffChangeForm
from portal.accounts.models import User
from portal.accounts.roles import can
from portal.accounts.signals import session_ended, staff_changed
from portal.ui.keys import key_in

admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.site_header = admin.site.site_title = "Servicing Desk administration"
# What allauth keeps is shown to its owner on pages of their own; here it would be a way around them.
for name in ("account", "mfa", "socialaccount", "usersessions"):
    for model in apps.get_app_config(name).get_models():
        if admin.site.is_registered(model):
            admin.site.unregister(model)


def may_enter(request: HttpRequest) -> bool:
    """Administrators and those who oversee may open the admin; each model decides the rest."""
    return can(request.user, "audit.index")


admin.site.has_permission = may_enter  # type: ignore[method-assign]
RECORDED = ["username", "first_name", "last_name", "email", "role", "is_active"]


@admin.register(User)
class StaffAdmin(UserAdmin):  # type: ignore[type-arg]
    """Staff and their roles. Every change is told to the audit trail with what was before and after."""

    form, add_form = StaffChangeForm, StaffAddForm
    list_display = ["username", "first_name", "last_name", "role", "is_active", "last_login"]
    list_filter = ["role", "is_active"]
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email", "role", "is_active")}),
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

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        with transaction.atomic():
            before = User.objects.filter(pk=obj.pk).values(*RECORDED).first() or {}
            super().save_model(request, obj, form, change)
            after = {name: getattr(obj, name) for name in RECORDED}
            changes = {
                name: [before.get(name, ""), value]
                for name, value in after.items()
                if before.get(name) != value
            }
            _tell(request, obj, changes, created=not change)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """A new password for somebody else; their sessions end with the old one."""
        key = key_in(id)
        found = User.objects.none() if key is None else User.objects.filter(pk=key)
        before = found.values_list("password", flat=True).first()
        answer = super().user_change_password(request, id, form_url)
        user = User.objects.filter(pk=id).exclude(password=before).first() if before is not None else None
        if user:
            _tell(request, user, {"password": ["", "changed"]})
        return answer

    @admin.action(description="End all sessions")
    def end_sessions(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            ended = list(UserSession.objects.filter(user=user))
            for one in ended:
                one.end()
            session_ended.send(
                sender=UserSession,
                request=request,
                user=user,
                count=len(ended),
                why="ended by an administrator",
            )
        messages.success(request, "Their sessions were ended.")

    @admin.action(description="Remove second factors (lost phone or key)")
    def remove_second_factors(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for one in Authenticator.objects.filter(user__in=queryset).exclude(
            type=Authenticator.Type.RECOVERY_CODES
        ):
            delete_and_cleanup(request, one)
        messages.success(request, "They sign in with the password alone until a new one is set up.")


def _tell(request: HttpRequest, user: User, changes: dict[str, Any], *, created: bool = False) -> None:
    if changes:
        staff_changed.send(
            sender=User, request=cast(Any, request), user=user, changes=changes, created=created
        )
