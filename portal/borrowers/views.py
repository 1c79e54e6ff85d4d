"""The list of known borrowers, and the same as a file."""

from collections.abc import Iterable

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import reason_for, requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import log_list
from portal.borrowers import listed
from portal.gateway import StaffRequest
from portal.readings import coverage
from portal.registry.lists import Listing, listing
from portal.registry.models import Kind, Record
from portal.saved_views.menu import menu
from portal.ui.exports import list_file
from portal.ui.htmx import done, render_page
from servicing import rules

LIST = "borrowers"


@require_http_methods(["GET", "HEAD", "POST"])
@requires("borrowers.index")
def index(request: StaffRequest) -> HttpResponse:
    """Borrowers known to this dashboard, with what each one has. A choice of columns is posted, and kept."""
    if request.method == "POST":
        keep_columns(request)
        return done(request, request.get_full_path())
    found = listed_borrowers(request)
    columns = listed.columns_named(request.user.list_columns.get(LIST, []))
    context = {
        "listing": found,
        "rows": listed.rows_of(found.page),
        "columns": [(column, found.sort_links.get(column.sort)) for column in columns],
        "all_columns": [(column, column in columns) for column in listed.COLUMNS],
        "entities": listed.ENTITIES,
        "states": rules.US_STATES,
        "checked": listed.CHECKED,
        "owners": listed.owners(),
        "coverage": coverage(),
        "views": menu(request.user, "borrowers:index", found.query_string, listed.VIEWS),
        "has_more_filters": any(name in found.filters for name in listed.MORE),
        "why_not": {"edit": reason_for("borrowers.edit"), "submit": reason_for("applications.submit")},
        "may_edit": request.can("borrowers.edit"),
        "may_submit": request.can("applications.submit"),
    }
    log_list(request, count=found.total)
    response = render_page(request, "borrowers/index.html", context, partial="borrower-rows")
    if request.htmx:
        response["HX-Push-Url"] = f"{request.path}{found.query_string}"
    return response


@require_safe
@requires("borrowers.index")
def export(request: StaffRequest) -> StreamingHttpResponse:
    """The shown page, or with ``all`` everything that the filters leave, in the chosen columns."""
    found = listed_borrowers(request)
    columns = listed.columns_named(request.user.list_columns.get(LIST, []))
    is_whole = "all" in request.GET
    records: Iterable[Record] = found.found.iterator(listed.BATCH) if is_whole else found.page
    append(
        Actor.of(request),
        "borrowers.export",
        subject_label="all that match" if is_whole else "one page",
        detail={
            "query": found.query,
            "filters": dict(found.filters),
            "rows": found.found.order_by().count() if is_whole else len(found.page),
        },
    )
    rows = (listed.file_row(columns, row) for row in listed.rows_of(records))
    return list_file(request, file_name(found), listed.file_columns(columns), rows)


def listed_borrowers(request: StaffRequest) -> Listing:
    """What the query string asks for."""
    return listing(
        listed.borrowers(), request.GET, sorts=listed.SORTS, filters=listed.FILTERS, kinds=[Kind.BORROWER]
    )


def file_name(found: Listing) -> str:
    """Says what narrowed the file."""
    return slugify(" ".join(["borrowers", *(f"{chip.label} {chip.words}" for chip in found.chips)]))[:100]


def keep_columns(request: StaffRequest) -> None:
    """Remember which columns this person wants; ``reset`` forgets it."""
    chosen = [] if "reset" in request.POST else request.POST.getlist("column")
    kept = [column.name for column in listed.COLUMNS if column.name in chosen]
    request.user.list_columns |= {LIST: kept}
    request.user.save(update_fields=["list_columns"])
