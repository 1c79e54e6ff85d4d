"""Staff accounts in the Django admin, for administrators; sign-in goes through the portal's own page."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from portal.accounts.models import User
from portal.accounts.roles import can

admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.site_header = admin.site.site_title = "Servicing Desk administration"


def may_enter(request: HttpRequest) -> bool:
    """Administrators and those who oversee may open the admin; each model decides the rest."""
    return can(request.user, "audit.index")


admin.site.has_permission = may_enter  # type: ignore[method-assign]


@admin.register(User)
class StaffAdmin(UserAdmin):  # type: ignore[type-arg]
    """Staff and their roles."""

    list_display = ["username", "first_name", "last_name", "role", "is_active", "last_login"]
    list_filter = ["role", "is_active"]
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email", "role", "is_active")}),
        ("Preferences", {"fields": ("time_zone", "theme", "density", "shortcuts")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "role", "password1", "password2")}),
    )

    def has_module_permission(self, request: HttpRequest) -> bool:
        return can(request.user, "accounts.staff")

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return can(request.user, "accounts.staff")

    has_add_permission = has_change_permission = has_view_permission

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Accounts are deactivated, not deleted: their work stays attributable."""
        return False
