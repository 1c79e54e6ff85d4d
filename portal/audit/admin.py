"""The trail in the Django admin: searchable, filterable, and read-only for everybody."""

from django.contrib import admin
from django.http import HttpRequest

from portal.accounts.roles import can
from portal.audit.models import Entry, RemoteCall, WriteIntent


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows, and does nothing else."""

    actions = None
    list_per_page = 50
    show_full_result_count = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return can(request.user, "audit.index")

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return can(request.user, "audit.index")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Entry)
class EntryAdmin(ReadOnly):
    """Audit entries."""

    list_display = [
        "at",
        "actor_name",
        "actor_role",
        "action",
        "phase",
        "result",
        "subject_label",
        "request_id",
    ]
    list_filter = ["action", "phase", "result", "actor_role"]
    search_fields = ["actor_name", "subject_label", "subject_uuid", "borrower_uuid", "request_id", "reason"]
    date_hierarchy = "at"


@admin.register(RemoteCall)
class RemoteCallAdmin(ReadOnly):
    """Calls of the remote service, bodies masked."""

    list_display = [
        "at",
        "operation",
        "method",
        "path",
        "outcome",
        "status",
        "duration_ms",
        "tries",
        "actor_name",
    ]
    list_filter = ["operation", "outcome", "status"]
    search_fields = ["path", "request_id", "actor_name", "error"]
    date_hierarchy = "at"


@admin.register(WriteIntent)
class WriteIntentAdmin(ReadOnly):
    """Writes and their state."""

    list_display = ["created_at", "actor_name", "operation", "label", "state", "status", "request_id"]
    list_filter = ["operation", "state"]
    search_fields = ["label", "subject_uuid", "borrower_uuid", "request_id", "actor_name"]
    date_hierarchy = "created_at"
