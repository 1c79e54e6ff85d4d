"""The book on a day, the accounts behind each of its numbers, and both as files."""

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, HttpResponseBase
from django.utils.text import slugify
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.view_log import log_list
from portal.gateway.client import StaffRequest
from portal.jobs.queue import start_job
from portal.portfolio import day_list, demo, files, payment_lists, tasks
from portal.portfolio.accounts import yesterday
from portal.portfolio.page import find_book, known_book, known_page, read_page
from portal.tables.saved_views import saved_views_menu
from portal.ui.exports import list_file, tables_file
from portal.ui.htmx import finish_action, render_page
from portal.ui.query_strings import query_string

PAGE_SIZE = 50
BUILT_IN_VIEWS = {"Past due": "bucket=late", "90+ days past due": "bucket=late_90"}
OWN_FIELDS = ("day", "bucket", "kind", "page")
"""The parameters that the form of a list of accounts has fields for, or that it begins anew."""


@require_safe
@requires("portfolio.index")
def index(request: StaffRequest) -> HttpResponse:
    """The book at the end of a day. The first request of a new date has the day before written."""
    book = find_book(request.GET.get("day", ""))
    if book.newest and book.newest < yesterday():
        start_job(tasks.write_days)
    page = read_page(book, book.chosen) if book.chosen else None
    log_list(request, count=page.figures.total.number if page else None)
    context: dict[str, Any] = {"book": book, "page": page, "is_demo": demo.is_demo()}
    context["tables"] = files.tables(page) if page else []
    return render_page(request, "portfolio/index.html", context)


@require_POST
@requires("portfolio.demo_past")
def demo_past(request: StaffRequest) -> HttpResponse:
    """Have a worker add days to a demo's past, on the page of its job."""
    if not demo.is_demo():
        raise Http404("Only a demo’s days can pass.")
    job = start_job(tasks.add_past, by=Actor.of(request), until=demo.last_day().isoformat())
    return finish_action(request, job.get_absolute_url())


@require_safe
@requires("portfolio.index")
def export(request: StaffRequest) -> HttpResponseBase:
    """All tables of a day as sheets of one file, or one of them as CSV."""
    page = known_page(request.GET.get("day", ""))
    found = files.tables(page)
    day, name = page.chosen.day, request.GET.get("table", "")
    chosen = next((table for table in found if table.name == name), None)
    append(
        Actor.of(request),
        "portfolio.export",
        subject_label=str(day),
        detail={"day": str(day), "table": chosen.title if chosen else "all"},
    )
    if chosen:
        return list_file(request, f"portfolio-{day}-{chosen.name}", chosen.columns, chosen.rows)
    return tables_file(f"portfolio-{day}", [(table.title, table.columns, table.rows) for table in found])


@require_safe
@requires("portfolio.accounts")
def accounts(request: StaffRequest) -> HttpResponse:
    """The accounts of a day that a number of the page counts."""
    book = find_book(request.GET.get("day", ""))
    context: dict[str, Any] = {"book": book}
    if book.chosen:
        found = day_list.find(request.GET, book.day)
        shown = Paginator(found.states, PAGE_SIZE).get_page(request.GET.get("page"))
        context |= {
            "found": found,
            "sums": found.sums(),
            "shown": shown,
            "rows": list(day_list.rows_of(found, shown)),
            "state": query_string(request.GET),
            # A view is of the newest day, whatever day is open.
            "views": saved_views_menu(
                request.user, "portfolio:accounts", query_string(request.GET, ("day", "page")), BUILT_IN_VIEWS
            ),
            "others": [(name, value) for name, value in request.GET.items() if name not in OWN_FIELDS],
        }
        log_list(request, count=shown.paginator.count)
    else:
        log_list(request, count=None)
    return render_page(request, "portfolio/accounts.html", context)


@require_safe
@requires("portfolio.accounts")
def payments(request: StaffRequest) -> HttpResponse:
    """The payments that a number of the page adds up."""
    found = payment_lists.find(request.GET)
    shown = Paginator(found.payments, PAGE_SIZE).get_page(request.GET.get("page"))
    log_list(request, count=shown.paginator.count)
    sums = found.sums(shown.paginator.count)
    context = {"found": found, "shown": shown, "rows": list(found.rows(shown)), "sums": sums}
    context["state"] = query_string(request.GET, ("page",))
    return render_page(request, "portfolio/payments.html", context)


@require_safe
@requires("portfolio.accounts")
def export_payments(request: StaffRequest) -> HttpResponseBase:
    found = payment_lists.find(request.GET)
    days = f"{found.first} to {found.last}"
    detail = {"list": found.title, "days": days, "rows": found.payments.count()}
    append(Actor.of(request), "portfolio.export_payments", subject_label=str(found.day), detail=detail)
    payments = found.payments.iterator(files.BATCH_SIZE)
    lines = (
        [value(row) for value in found.columns.values()]
        for batch in files.batches(payments)
        for row in found.rows(batch)
    )
    return list_file(request, f"{slugify(found.title)}-{found.first}-{found.last}", [*found.columns], lines)


@require_safe
@requires("portfolio.accounts")
def export_accounts(request: StaffRequest) -> HttpResponseBase:
    book = known_book(request.GET.get("day", ""))
    found = day_list.find(request.GET, book.day)
    words = ", ".join(found.words)
    detail = {"day": str(book.day), "filters": words, "rows": found.states.count()}
    append(Actor.of(request), "portfolio.export_accounts", subject_label=str(book.day), detail=detail)
    states = found.states.iterator(files.BATCH_SIZE)
    lines = (
        [value(row) for value in day_list.COLUMNS.values()]
        for batch in files.batches(states)
        for row in day_list.rows_of(found, batch)
    )
    return list_file(request, f"accounts-{book.day}", [*day_list.COLUMNS], lines)
