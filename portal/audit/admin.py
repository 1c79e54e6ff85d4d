"""The trail in the Django admin: search, filters and export, read-only for everyone."""

import json
import re
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import URLPattern, path

from portal.accounts.admin import site
from portal.accounts.roles import can
from portal.audit.chain import append
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.audit.view_log import log_list, log_page
from portal.ui.exports import csv_file

BORROWER_IN_PATH = re.compile(r"/users?/([^/?]+)")


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Lists, shows and exports rows; changes none."""

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

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        context = getattr(response, "context_data", None) or {}
        if "cl" in context:
            log_list(request, count=context["cl"].result_count)
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self._log(request, object_id)
        return super().change_view(request, object_id, form_url, extra_context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        self._log(request, object_id)
        return super().history_view(request, object_id, extra_context)

    def _log(self, request: HttpRequest, object_id: str) -> None:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return
        subject = getattr(row, "subject_uuid", "") or getattr(row, "borrower_uuid", "")
        found = BORROWER_IN_PATH.search(getattr(row, "path", ""))
        log_page(
            request,
            kind=getattr(row, "subject_kind", ""),
            uuid=subject or f"{self.opts.model_name} {row.pk}",
            label=f"{self.opts.verbose_name} {row.pk}",
            borrower_uuid=getattr(row, "borrower_uuid", "") or (found[1] if found else ""),
        )

    def get_urls(self) -> list[URLPattern]:
        """The list as a file, beside Django's own addresses."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        return [path("export/", self.admin_site.admin_view(self.export), name=name), *super().get_urls()]

    def export(self, request: HttpRequest) -> StreamingHttpResponse:
        """The filtered rows as CSV; who exported them is an entry."""
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
    """A value as a cell of the file."""
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
