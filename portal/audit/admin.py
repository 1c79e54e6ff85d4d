"""The audit trail in the Django admin: search, filters and export, read-only for everyone."""

import json
import re
from collections.abc import Iterable
from datetime import timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode

from portal.accounts.admin import AdminFilter, FramedAdmin, choice_filter, site
from portal.accounts.roles import can
from portal.audit.chain import append
from portal.audit.filters import (
    GROUPS,
    KINDS,
    PERIODS,
    RESULTS,
    ids_of_named,
    is_about_borrower,
    people,
    period_start,
    started_or_unchanged,
    typed_moment,
)
from portal.audit.models import Actor, Entry, PageView, RemoteCall, WriteIntent
from portal.audit.raw_record import raw_record
from portal.audit.reading import VIEWS, EntryLine, entry_lines, stream_lines, view_sentence
from portal.audit.view_log import log_list, log_page
from portal.audit.writes import close_stale_writes
from portal.core.folding import folded_pattern
from portal.records.models import NAMED_KINDS
from portal.ui import wording
from portal.ui.exports import format_name, list_file
from portal.ui.paging import CappedPaginator
from portal.ui.templatetags.ui import status_badge
from servicing.masking import masked_text

COLUMNS = [
    *("Number", "Time (UTC)", "Person", "Role", "Address", "Browser", "Act", "Step", "Sentence", "Result"),
    *("Object", "Object id", "Object name", "Borrower id", "Reason", "Reference", "Changes", "Detail"),
    *("Previous hash", "Hash"),
]
"""The columns of a file of entries."""
MAX_TYPED = 200
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


class TimeFilter(AdminFilter):
    """A filter by the time of a row.

    A list is of the last seven days unless a time is chosen, or of entries a request.
    """

    @staticmethod
    def column(queryset: QuerySet[Any]) -> str:
        return {WriteIntent: "created_at", PageView: "last_at"}.get(queryset.model, "at")


class PeriodFilter(TimeFilter):
    """Rows of the last seven days, or of another period."""

    parameter_name, title, prompt = "when", "Time", PERIODS[""]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, words) for value, words in PERIODS.items() if value]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        name = self.parsed_value()
        if name not in PERIODS:
            return queryset.none()
        others = ("from", "to", "request") if queryset.model is Entry else ("from", "to")
        if not name and any(request.GET.get(other) for other in others):
            return queryset
        start = period_start(name)
        return queryset.filter(**{f"{self.column(queryset)}__gte": start}) if start else queryset


class FromFilter(TimeFilter):
    """Rows from a time on, in the reader's time zone."""

    parameter_name, title, prompt, control = "from", "From", "From", "datetime-local"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.parsed_value():
            return queryset
        start = typed_moment(self.parsed_value())
        return queryset.filter(**{f"{self.column(queryset)}__gte": start}) if start else queryset.none()


class ToFilter(TimeFilter):
    """Rows up to the end of a minute, in the reader's time zone."""

    parameter_name, title, prompt, control = "to", "To", "To", "datetime-local"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.parsed_value():
            return queryset
        end = typed_moment(self.parsed_value(), fold=1)
        if end is None:
            return queryset.none()
        return queryset.filter(**{f"{self.column(queryset)}__lt": end + timedelta(minutes=1)})


class ReferenceFilter(AdminFilter):
    """Everything of one request."""

    parameter_name, title, prompt, control = "request", "Reference", "Reference", "text"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(request_id=self.parsed_value()) if self.parsed_value() else queryset


class DetailFilter(AdminFilter):
    """What most readers don't look for; a request found by its reference is always whole."""

    parameter_name, title, prompt = "show", "Also show", "Main entries"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("all", "Also page views before 2.0, no-change saves, started requests")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.parsed_value() or request.GET.get("request"):
            return queryset
        return queryset.exclude(VIEWS).exclude(started_or_unchanged())


def _field_filter(name: str, label: str, every: str, model: Any) -> type[AdminFilter]:
    """Create a filter by the values present in an indexed column."""

    def choices() -> dict[str, tuple[str, Q]]:
        values = model.objects.order_by(name).values_list(name, flat=True).distinct()
        return {value: (str(wording.human(value)), Q(**{name: value})) for value in values}

    return choice_filter(name, label, every, choices)


class RowList(ChangeList):
    """A list whose rows lead to their pages of the portal."""

    def url_for_result(self, result: Any) -> str:
        return (
            result.get_absolute_url()
            if hasattr(result, "get_absolute_url")
            else super().url_for_result(result)
        )


class ReadOnly(FramedAdmin):
    """Lists, shows and exports rows without changing any."""

    actions = None
    preserve_filters = False
    change_form_template = "admin/audit/change_form.html"
    paginator = CappedPaginator

    def has_module_permission(self, request: HttpRequest) -> bool:
        return can(request.user, "audit.index")

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return can(request.user, "audit.index")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        close_stale_writes()
        return super().changelist_view(request, extra_context)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        request.GET = QueryDict(request.GET.urlencode().replace("%00", ""))  # PostgreSQL refuses NUL.
        return super().get_changelist_instance(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find a text as typed, and names however they are written: of records at any age, others for a month."""
        typed = search_term.strip()[:MAX_TYPED]
        if not (pattern := folded_pattern(typed)):
            return queryset, False
        ids = [name for name in self.search_fields if name.endswith("id")]
        texts = [name for name in self.search_fields if name not in ids]
        found = Q(*(Q(**{f"{name}__icontains": typed}) for name in texts), _connector=Q.OR)
        found |= Q(*(Q(**{f"{name}__istartswith": typed}) for name in ids), _connector=Q.OR)
        if hasattr(queryset.model, "subject_uuid"):
            found |= Q(subject_uuid__in=ids_of_named(typed, *NAMED_KINDS))
        # SQLite calls Python for each of these comparisons, so only for a month.
        month = Q(**{f"{TimeFilter.column(queryset)}__gte": period_start("30")})
        written = Q(*(Q(**{f"{name}__iregex": pattern}) for name in texts), _connector=Q.OR)
        return queryset.filter(found | (month & written)), False

    def list_context(self, request: HttpRequest, cl: Any) -> dict[str, Any]:
        log_list(request, count=cl.result_count)
        return {"export_url": reverse(f"admin:{self._address}_export")}

    @property
    def _address(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RowList

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show a row, or lead to its page of the portal if it has one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is not None and request.method == "GET" and hasattr(row, "get_absolute_url"):
            return redirect(row)
        self._log(request, row)
        context = {} if row is None else self.row_context(row)
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def row_context(self, row: Any) -> dict[str, Any]:
        return {"title": str(row), "list_title": self.title, "raw": raw_record(row)}

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        self._log(request, self.get_object(request, unquote(object_id)))
        return super().history_view(request, object_id, extra_context)

    def _log(self, request: HttpRequest, row: Any) -> None:
        if row is None:
            return
        subject = getattr(row, "subject_uuid", "") or getattr(row, "borrower_uuid", "")
        found = BORROWER_IN_PATH.search(getattr(row, "path", ""))
        log_page(
            request,
            subject_kind=getattr(row, "subject_kind", ""),
            subject_uuid=subject or f"{self.opts.model_name} {row.pk}",
            subject_label=f"{self.opts.verbose_name} {row.pk}",
            borrower_uuid=getattr(row, "borrower_uuid", "") or (found[1] if found else ""),
        )

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the list's file to Django's own."""
        address = path("export/", self.admin_site.admin_view(self.export), name=f"{self._address}_export")
        return [address, *super().get_urls()]

    def export(self, request: HttpRequest) -> StreamingHttpResponse:
        """Export the shown page, or with ``all`` every filtered row, and record the export."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        query, is_whole = request.GET, "all" in request.GET
        asked = {name: str(value) for name, value in query.items() if name not in ("format", "all")}
        request.GET = QueryDict(urlencode(asked))  # Django's list accepts only its own filters.
        try:
            cl = self.get_changelist_instance(request)
        except IncorrectLookupParameters:
            raise BadRequest("A filter of this address is unknown.") from None
        found = cl.get_queryset(request) if is_whole else cl.result_list
        request.GET = query
        own = append(
            Actor.of(request),
            "audit.export",
            subject_label=f"{format_name(request)} of {self.opts.verbose_name_plural}",
            detail={
                "filters": {name: masked_text(value) for name, value in asked.items()},
                "rows": found.count() if is_whole else len(found),
            },
        )
        if is_whole and found.model is Entry:  # Without the entry of this export.
            found = found.filter(pk__lt=own.pk)
        rows, remark = self.export_rows(found), self.export_remark(request)
        if remark:
            rows = chain(rows, [[remark if name == "Sentence" else None for name in self.export_columns()]])
        return list_file(request, str(self.opts.model_name), self.export_columns(), rows)

    def export_remark(self, request: HttpRequest) -> str:
        """What the file leaves out, if anything."""
        return ""

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
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value) if isinstance(value, UUID) else value


def _export_row(line: EntryLine) -> list[Any]:
    """An entry as a row of a file, in the order of :data:`COLUMNS`."""
    entry = line.entry
    changes = {change.label: [change.old, change.new] for change in line.changes}
    return [
        *(entry.pk, f"{entry.at:%Y-%m-%dT%H:%M:%S.%fZ}", entry.actor_name, entry.actor_role, entry.ip),
        *(entry.user_agent, entry.action, entry.phase, line.sentence, entry.result),
        *(entry.subject_kind, entry.subject_uuid, entry.subject_label, entry.borrower_uuid, entry.reason),
        *(entry.request_id, _compact_json(changes), _compact_json(entry.detail)),
        *(entry.previous_hash, entry.hash),
    ]


def _compact_json(value: dict[str, Any]) -> str:
    """An object as compact JSON; empty for an empty object."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""


@admin.register(Entry, site=site)
class EntryAdmin(ReadOnly):
    """The audit trail as sentences."""

    title, purpose = "Audit trail", "Who did what, when and why"
    change_list_template = "admin/audit/entry/change_list.html"
    list_display = ["when"]
    list_filter = [
        choice_filter("person", "Person", "Everyone", people),
        choice_filter("group", "Actions", "All actions", lambda: GROUPS),
        choice_filter("kind", "Object", "All objects", lambda: KINDS),
        choice_filter("result", "Result", "All results", lambda: RESULTS),
        BorrowerFilter,
        PeriodFilter,
        FromFilter,
        ToFilter,
        ReferenceFilter,
        DetailFilter,
    ]
    search_fields = [
        "actor_name",
        "action",
        "subject_label",
        "subject_uuid",
        "borrower_uuid",
        "request_id",
        "reason",
    ]
    search_help_text = "Name, ID, reason, reference"

    def list_context(self, request: HttpRequest, cl: Any) -> dict[str, Any]:
        return super().list_context(request, cl) | {"lines": entry_lines(cl.result_list)}

    def export_columns(self) -> list[str]:
        return COLUMNS

    def export_rows(self, found: Any) -> Iterable[list[Any]]:
        return map(_export_row, stream_lines(found) if isinstance(found, QuerySet) else entry_lines(found))

    def export_remark(self, request: HttpRequest) -> str:
        if request.GET.get("show") or request.GET.get("request"):
            return ""
        return "This file leaves out page views, no-change saves and started requests."


@admin.register(PageView, site=site)
class PageViewAdmin(ReadOnly):
    """Who opened which page."""

    title, purpose = "Page views", "Who opened which page, within ten minutes"
    list_display = ["latest", "view", "views", "reference"]
    list_filter = [
        choice_filter("person", "Person", "Everyone", people),
        choice_filter("kind", "Object", "All objects", lambda: KINDS),
        BorrowerFilter,
        PeriodFilter,
        FromFilter,
        ToFilter,
        ReferenceFilter,
    ]
    search_fields = ["actor_name", "subject_label", "subject_uuid", "request_id"]
    search_help_text = "Name, ID, reference"

    def row_context(self, row: Any) -> dict[str, Any]:
        return super().row_context(row) | {"title": f"{row.actor_name} {view_sentence(row)}"}

    @admin.display(description="Last viewed")
    def latest(self, row: PageView) -> str:
        return wording.clock(row.last_at, seconds=True)

    @admin.display(description="Who and what")
    def view(self, row: PageView) -> str:
        return f"{row.actor_name} {view_sentence(row)}"

    @admin.display(description="Views")
    def views(self, row: PageView) -> int:
        return row.count


@admin.register(RemoteCall, site=site)
class RemoteCallAdmin(ReadOnly):
    """Calls to the lending service, with masked bodies."""

    title, purpose = "Service calls", "Every call to the lending service, sensitive values masked"
    list_display = ["when", "call", "result", "status", "duration", "tries", "by", "reference"]
    list_filter = [
        _field_filter("operation", "Operation", "All operations", RemoteCall),
        _field_filter("outcome", "Outcome", "All outcomes", RemoteCall),
        BorrowerFilter,
        PeriodFilter,
        FromFilter,
        ToFilter,
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
    title, purpose = "Changes at the service", "What was sent, and its outcome"
    list_display = ["when", "label", "by", "result", "reference"]
    list_filter = [
        choice_filter("state", "Status", "Any status", lambda: _STATES),
        BorrowerFilter,
        PeriodFilter,
        FromFilter,
        ToFilter,
    ]
    search_fields = ["label", "subject_uuid", "borrower_uuid", "request_id", "actor_name"]
    search_help_text = "Name, ID, reference"

    @admin.display(description="Status")
    def result(self, row: WriteIntent) -> str:
        return status_badge(row.state)
