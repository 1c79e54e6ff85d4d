"""The audit trail in the Django admin: search, filters and export, read-only for everyone."""

import json
import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import JSONField, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode

from portal.accounts.admin import AdminFilter, FramedAdmin, choice_filter, site
from portal.accounts.roles import can
from portal.audit.chain import append
from portal.audit.filters import GROUPS, RESULTS, is_about_borrower, people
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.audit.reading import EntryPages, entry_lines, stream_lines
from portal.audit.view_log import log_list, log_page
from portal.audit.views import COLUMNS, export_row
from portal.registry.query import midnight
from portal.ui import wording
from portal.ui.exports import format_name, list_file
from portal.ui.templatetags.ui import status_badge

FIELD_WORDS = {"id": "ID", "uuid": "ID", "ip": "IP address"}
BORROWER_IN_PATH = re.compile(r"/users?/([^/?]+)")


class BorrowerFilter(AdminFilter):
    """Rows about a borrower."""

    parameter_name, title, prompt, control = "borrower", "Borrower", "Borrower name or ID", "text"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.parsed_value():
            return queryset
        if queryset.model is RemoteCall:
            return queryset.filter(path__contains=f"/{self.parsed_value()}")
        return queryset.filter(is_about_borrower(self.parsed_value()))


class DayFilter(AdminFilter):
    """Rows of one day, in the reader's time zone."""

    parameter_name, title, prompt, control = "day", "Day", "Day", "date"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        try:
            day = date.fromisoformat(self.parsed_value())
            start, end = midnight(day), midnight(day + timedelta(days=1))
        except (ValueError, OverflowError):
            return queryset
        column = "created_at" if queryset.model is WriteIntent else "at"
        return queryset.filter(**{f"{column}__gte": start, f"{column}__lt": end})


def _field_filter(name: str, label: str, every: str, model: Any) -> type[AdminFilter]:
    """Create a filter by the values present in an indexed column."""

    def choices() -> dict[str, tuple[str, Q]]:
        values = model.objects.order_by(name).values_list(name, flat=True).distinct()
        return {value: (str(wording.human(value)), Q(**{name: value})) for value in values}

    return choice_filter(name, label, every, choices)


class ReadOnly(FramedAdmin):
    """Lists, shows and exports rows without changing any."""

    actions = None
    change_list_template = "admin/audit/change_list.html"
    change_form_template = "admin/audit/change_form.html"
    paginator = EntryPages

    def has_module_permission(self, request: HttpRequest) -> bool:
        return can(request.user, "audit.index")

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return can(request.user, "audit.index")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission

    def list_context(self, request: HttpRequest, cl: Any) -> dict[str, Any]:
        log_list(request, count=cl.result_count)
        return {"export_url": reverse(f"admin:{self._address}_export")}

    @property
    def _address(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row = self._load_and_log(request, object_id)
        context = {} if row is None else self.row_context(row)
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def row_context(self, row: Any) -> dict[str, Any]:
        """A row as facts and documents, with links to its other pages."""
        values = [(field, getattr(row, field.attname)) for field in self.opts.concrete_fields]
        return {
            "title": str(row),
            "list_title": self.title,
            "facts": [
                (_field_words(f), _fact(row, f))
                for f, value in values
                if not isinstance(f, JSONField) and value not in (None, "")
            ],
            "documents": [
                (f.verbose_name, value) for f, value in values if isinstance(f, JSONField) and value
            ],
            "page_url": row.get_absolute_url() if hasattr(row, "get_absolute_url") else "",
        }

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        self._load_and_log(request, object_id)
        return super().history_view(request, object_id, extra_context)

    def _load_and_log(self, request: HttpRequest, object_id: str) -> Any:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return None
        subject = getattr(row, "subject_uuid", "") or getattr(row, "borrower_uuid", "")
        found = BORROWER_IN_PATH.search(getattr(row, "path", ""))
        log_page(
            request,
            subject_kind=getattr(row, "subject_kind", ""),
            subject_uuid=subject or f"{self.opts.model_name} {row.pk}",
            subject_label=f"{self.opts.verbose_name} {row.pk}",
            borrower_uuid=getattr(row, "borrower_uuid", "") or (found[1] if found else ""),
        )
        return row

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the list's file to Django's own."""
        address = path("export/", self.admin_site.admin_view(self.export), name=f"{self._address}_export")
        return [address, *super().get_urls()]

    def export(self, request: HttpRequest) -> StreamingHttpResponse:
        """Export the shown page, or with ``all`` every filtered row, and record the export."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked = {name: str(value) for name, value in request.GET.items() if name not in ("format", "all")}
        is_whole, file_format = "all" in request.GET, format_name(request)
        request.GET = QueryDict(urlencode(asked))  # Django's list accepts only its own filters.
        cl = self.get_changelist_instance(request)
        found = cl.get_queryset(request) if is_whole else cl.result_list
        append(
            Actor.of(request),
            "audit.export",
            subject_label=f"{file_format} of {self.opts.verbose_name_plural}",
            detail={"filters": asked, "rows": found.count() if is_whole else len(found)},
        )
        return list_file(request, str(self.opts.model_name), self.export_columns(), self.export_rows(found))

    def export_columns(self) -> list[str]:
        return [field.name for field in self.opts.concrete_fields]

    def export_rows(self, found: QuerySet[Any]) -> Iterable[list[Any]]:
        columns = self.export_columns()
        rows = found.iterator(500) if isinstance(found, QuerySet) and found._result_cache is None else found
        return ([_plain(getattr(row, name)) for name in columns] for row in rows)

    @admin.display(description="When")
    def when(self, row: Any) -> str:
        return wording.clock(getattr(row, "at", None) or row.created_at, seconds=True)

    @admin.display(description="By")
    def by(self, row: Any) -> str:
        return str(row.actor_name)

    @admin.display(description="Reference")
    def reference(self, row: Any) -> str:
        return str(row.request_id)


def _plain(value: Any) -> Any:
    """A value for a cell of the file."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value) if isinstance(value, UUID) else value


def _fact(row: Any, field: Any) -> Any:
    """A field's value as shown on the row's page."""
    value = getattr(row, field.attname)
    if isinstance(value, datetime):
        return wording.moment(value)
    return wording.human(value) if field.choices else value


def _field_words(field: Any) -> str:
    """A field's name in words."""
    return " ".join(FIELD_WORDS.get(word, word) for word in field.verbose_name.split())


@admin.register(Entry, site=site)
class EntryAdmin(ReadOnly):
    """The audit trail as sentences."""

    title, purpose = "Audit trail", "Who did what, when and why"
    list_display = ["when"]
    list_filter = [
        choice_filter("group", "Actions", "All actions", lambda: GROUPS),
        choice_filter("person", "Person", "Everyone", people),
        choice_filter("result", "Result", "All results", lambda: RESULTS),
        BorrowerFilter,
        DayFilter,
    ]
    search_fields = ["actor_name", "subject_label", "subject_uuid", "borrower_uuid", "request_id", "reason"]
    search_help_text = "Name, ID, reason, reference"

    def list_context(self, request: HttpRequest, cl: Any) -> dict[str, Any]:
        return super().list_context(request, cl) | {"lines": entry_lines(cl.result_list)}

    def row_context(self, row: Any) -> dict[str, Any]:
        line = entry_lines([row])[0]
        return super().row_context(row) | {"title": f"{row.actor_name} {line.sentence}"}

    def export_columns(self) -> list[str]:
        return COLUMNS

    def export_rows(self, found: Any) -> Iterable[list[Any]]:
        return map(export_row, stream_lines(found) if isinstance(found, QuerySet) else entry_lines(found))


@admin.register(RemoteCall, site=site)
class RemoteCallAdmin(ReadOnly):
    """Calls to the lending service, with masked bodies."""

    title, purpose = "Service calls", "Every call to the lending service, sensitive values masked"
    list_display = ["when", "call", "result", "status", "duration", "tries", "by", "reference"]
    list_filter = [
        _field_filter("operation", "Operation", "All operations", RemoteCall),
        _field_filter("outcome", "Outcome", "All outcomes", RemoteCall),
        BorrowerFilter,
        DayFilter,
    ]
    search_fields = ["path", "request_id", "actor_name", "error"]
    search_help_text = "Path, reference, name"

    @admin.display(description="Call")
    def call(self, row: RemoteCall) -> str:
        return f"{row.method} {row.short_path}"

    @admin.display(description="Outcome")
    def result(self, row: RemoteCall) -> str:
        return status_badge(row.outcome)

    @admin.display(description="Time (ms)")
    def duration(self, row: RemoteCall) -> str:
        return f"{row.duration_ms:,}"


_STATES = {value: (words, Q(state=value)) for value, words in WriteIntent.State.choices}


@admin.register(WriteIntent, site=site)
class WriteIntentAdmin(ReadOnly):
    """Writes and their states."""

    title, purpose = "Changes at the service", "What was sent, and its outcome"
    list_display = ["when", "label", "by", "result", "reference"]
    list_filter = [
        choice_filter("state", "Status", "Any status", lambda: _STATES),
        BorrowerFilter,
        DayFilter,
    ]
    search_fields = ["label", "subject_uuid", "borrower_uuid", "request_id", "actor_name"]
    search_help_text = "Name, ID, reference"

    @admin.display(description="Status")
    def result(self, row: WriteIntent) -> str:
        return status_badge(row.state)
