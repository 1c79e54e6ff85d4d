"""The trail in the Django admin: searched, filtered, taken along as a file, and read-only for everybody."""

import json
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import URLPattern, path

from portal.accounts.admin import site
from portal.accounts.roles import can
from portal.audit.chain import append
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.ui.exports import csv_file


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows and exports, and does nothing else."""

    actions = None
    change_list_template = "admin/audit/change_list.html"
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

    def get_urls(self) -> list[URLPattern]:
        """The list as a file, beside Django's own addresses."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        return [path("export/", self.admin_site.admin_view(self.export), name=name), *super().get_urls()]

    def export(self, request: HttpRequest) -> StreamingHttpResponse:
        """What the filters leave, as CSV; who took it along is an entry."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_changelist_instance(request).get_queryset(request)
        columns = [field.name for field in self.opts.concrete_fields]
        append(
            Actor.of(request),
            "audit.export",
            subject_label=f"CSV of {self.opts.verbose_name_plural}",
            detail={"filters": request.GET.dict(), "rows": found.count()},
        )
        rows = found.values_list(*columns).iterator(500)
        return csv_file(
            str(self.opts.model_name), columns, ([_plain(value) for value in row] for row in rows)
        )


def _plain(value: Any) -> Any:
    """A value as a cell holds it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


@admin.register(Entry, site=site)
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


@admin.register(RemoteCall, site=site)
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


@admin.register(WriteIntent, site=site)
class WriteIntentAdmin(ReadOnly):
    """Writes and their state."""

    list_display = ["created_at", "actor_name", "operation", "label", "state", "status", "request_id"]
    list_filter = ["operation", "state"]
    search_fields = ["label", "subject_uuid", "borrower_uuid", "request_id", "actor_name"]
    date_hierarchy = "created_at"
