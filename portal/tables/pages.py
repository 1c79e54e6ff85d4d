"""A list of records: its columns, filters and orders, and its pages on screen and as a file."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from django.core.paginator import Page
from django.db.models import Expression, F, OrderBy, Q, QuerySet
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.urls import reverse
from django.utils.html import conditional_escape, strip_tags
from django.utils.safestring import SafeString
from django.utils.text import slugify
from django_htmx.http import push_url

from portal.audit.chain import append
from portal.audit.models import Actor, PageView
from portal.audit.view_log import log_list
from portal.gateway.client import StaffRequest
from portal.gateway.reading import coverage
from portal.records import changes
from portal.records.models import Account, Application, Borrower, Kind, Repayment
from portal.records.query import Query, parse_query
from portal.records.repayments import matching_repayments
from portal.records.rows import active_records, read_records, with_borrowers
from portal.records.search import matching, matching_owners
from portal.tables import cells
from portal.tables.filters import Filter, chosen_filters
from portal.tables.saved_views import saved_views_menu
from portal.ui.exports import list_file
from portal.ui.htmx import finish_action, render_page, requested_partial
from portal.ui.paging import MAX_COUNTED, CappedPaginator, UpcomingLast, cached_sums, capped_count, counted
from portal.ui.query_strings import TRANSIENT_PARAMS, Chip, query_string
from portal.ui.templatetags.ui import explain_missing

T = TypeVar("T")
SIZES = (25, 50, 100)
BATCH_SIZE = 500
MAX_SELECTED = 20
"""The most records that one click may refresh."""
MIN_FOLDED = 3
"""With fewer rows, columns with the same words in each are shown."""
_FILE_FIELDS = {"id", "kind", "uuid", "borrower_uuid"}
"""The fields of a record that the rows of each file need."""


@dataclass
class Row:
    """One record of a list, and what else its columns need."""

    record: Any
    borrower: Borrower | None = None
    has_changed: bool = False
    """Whether the answer changed since this person saw it."""
    state: str = ""
    """The query string of the list."""
    html: SafeString | str = ""


def rows_with_borrowers(records: Sequence[Account]) -> Iterator[Row]:
    """The rows of a list that needs only the borrowers."""
    return (Row(record, borrower) for record, borrower in with_borrowers(records))


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: ``cell`` shows it on screen, ``value`` exactly in a file; either may be missing."""

    name: str
    head: str
    value: Callable[[Any], Any] | None = field(default=None, repr=False)
    cell: Callable[[Any], str] | None = field(default=None, repr=False)
    sort: str = ""
    """The name of its order, if it differs from the column's."""
    css: str = ""
    is_default: bool = True
    is_fixed: bool = False
    """Whether it can't be hidden."""
    beside: str = ""
    """The column with which this one is exported, if it has no cell of its own."""
    shared: Callable[[Any], str] | None = field(default=None, repr=False)
    """What every row must share for the column to be left out, even as the order; by default the cell."""
    reads: Collection[str] | None = None
    """The record's fields that ``value`` needs in a file; by default all."""


@dataclass(frozen=True)
class Action:
    """A link beside a list, for people who may follow it."""

    words: str
    url_name: str
    act: str = ""
    query: str = ""
    icon: str = ""
    css: str = ""

    @property
    def url(self) -> str:
        return f"{reverse(self.url_name)}{self.query}"


@dataclass(frozen=True, kw_only=True)
class ListPage:
    """The declaration of a list. Only columns, filters, sorts and ``load_rows`` differ between lists."""

    kinds: Sequence[Kind]
    model: type[Account | Application | Borrower | Repayment] = Account
    related: str = "answer"
    """What is read with each of them."""
    area: str
    title: str
    noun: str
    intro: str
    search_hint: str
    search_scope: str = ""
    empty_title: str = "None on file"
    empty: str
    columns: Sequence[Column] = ()
    filters: Sequence[Filter]
    gap_filter: str = ""
    """The checkbox filter whose rows are counted above the whole list: those without its main figure."""
    tab_filter: str = ""
    """The filter shown as tabs above the rows instead of a control and a chip."""
    sorts: Mapping[str, str | Expression]
    """The columns of each order, with a dash if it starts with the greatest; the first order is the default."""
    sort_names: Mapping[str, str] = field(default_factory=dict)
    """The orders in words, if there are no column headers to click."""
    within: Callable[[QueryDict], Q] = lambda state: Q()
    """Limits the records that the list shows at all, by its query string."""
    upcoming: Callable[[], Q] | None = None
    """The records that come last in the default order, and in reverse: soonest first."""
    presets: Mapping[str, str]
    """Views that everyone has, by name, as query strings."""
    load_rows: Callable[[Sequence[Any]], Iterable[Any]] = rows_with_borrowers
    """Loads the rows of a batch of records."""
    covered: str
    """The noun for the share of recently updated records."""
    covered_kinds: Sequence[Kind] = ()
    actions: Sequence[Action] = ()
    tools: Sequence[Action] = ()
    """Links that apply to the filtered list."""
    empty_actions: Sequence[Action] = ()
    can_refresh: bool = False
    row_menu: str = ""
    """The template of the menu that all rows share."""
    table: str = "lists/table.html"

    @property
    def rows_id(self) -> str:
        return f"{self.noun}-rows"

    @property
    def url(self) -> str:
        return reverse(f"{self.area}:index")

    @property
    def export_url(self) -> str:
        return reverse(f"{self.area}:export")

    @property
    def refresh_url(self) -> str:
        return reverse(f"{self.area}:refresh")

    @property
    def optional_columns(self) -> list[Column]:
        """The columns that people can choose from; empty if all are always shown."""
        optional = [column for column in self.columns if column.cell and not column.is_fixed]
        return optional if not all(column.is_default for column in optional) else []

    def shown_columns(self, request: StaffRequest) -> list[Column]:
        """The columns that this person chose or the default ones, with those that can't be hidden."""
        chosen = request.user.list_columns.get(self.area, [])
        shown = {
            column.name
            for column in self.columns
            if column.is_fixed or (column.name in chosen if chosen else column.is_default)
        }
        return [
            column
            for column in self.columns
            if (column.name if column.cell else column.beside or column.name) in shown
            or not (column.cell or column.beside)
        ]

    def records(self) -> QuerySet[Any]:
        """All records of its kinds that it can show, as limited by ``within``."""
        if self.model is Repayment:
            return Repayment.objects.all()
        if len(self.kinds) == 1:
            return active_records(self.kinds[0])
        return Account.objects.filter(archived_at__isnull=True)

    def find(self, state: QueryDict, records: QuerySet[Any] | None = None) -> "Listing":
        """Find what a query string asks for, among all records or these.

        Invalid values fall back to the default; ``problems`` says so if that widens the list.
        """
        records = (self.records() if records is None else records).filter(self.within(state))
        state = state.copy()
        for name in TRANSIENT_PARAMS:
            if name != "page":
                state.pop(name, None)
        query = parse_query(state.get("q", ""))
        chosen, conditions, problems = chosen_filters(self.filters, state)
        by_span = self._order_of_span(chosen)
        sort, order = self._order(state.get("sort") or by_span, state)
        is_default = sort == next(iter(self.sorts))
        is_owned = Kind.BORROWER not in self.kinds
        owners, too_many = matching_owners(query) if is_owned else ([], "")
        found = records.filter(self._matching(query, owners), conditions).order_by(*order)
        rows: Any = found.select_related(self.related)
        if self.upcoming and is_default:
            rows = UpcomingLast(rows, self.upcoming())
        size = next((size for size in SIZES if str(size) == state.get("size")), SIZES[0])
        return Listing(
            list_page=self,
            state=state,
            paginator=CappedPaginator(rows, size),
            query=query.text,
            sort=sort,
            chosen=chosen,
            records=records,
            found=found,
            problems=[*query.problems, *filter(None, [too_many]), *problems],
        )

    def _matching(self, query: Query, owners: Sequence[str]) -> Q:
        """The condition that one of them matches a query, or belongs to one of these borrowers."""
        if self.model is Repayment:
            return matching_repayments(query, owners)
        return matching(self.kinds, query, owners)

    def _order_of_span(self, chosen: Iterable[Filter]) -> str:
        """The order by the day that a span limits, for lists without a chosen order: any other sorts all matches."""
        spans = {f"-{one.span_of}" for one in chosen if one.span_of}
        return next((name for name, column in self.sorts.items() if column in spans), "")

    def _order(self, sort: str, state: QueryDict) -> tuple[str, list[OrderBy]]:
        """The order and its columns; a dash before its name reverses it.

        Missing values always come last. Ties are ordered by ID in the same direction, because an index can only be
        read backwards as a whole.
        """
        name = sort.removeprefix("-")
        if name not in self.sorts:
            sort = name = next(iter(self.sorts))
        column = self.sorts[name]
        is_reversed = isinstance(column, str) and column.startswith("-")
        column = column.removeprefix("-") if isinstance(column, str) else column
        descending = is_reversed != sort.startswith("-")
        nullable = {one.name for one in self.model._meta.concrete_fields if one.null}
        nulls_last = True if column in nullable else None
        expression = F(column) if isinstance(column, str) else column
        return sort, [
            OrderBy(expression, descending, nulls_last=nulls_last),
            OrderBy(F("id"), descending),
        ]

    def sort_link(self, name: str, listing: "Listing") -> tuple[str, str]:
        """The current order for ``aria-sort``, and the link of a column header: first its order, then the reverse."""
        if listing.sort.removeprefix("-") != name:
            return "", listing.link(sort=name)
        direction = "descending" if self._order(listing.sort, listing.state)[1][0].descending else "ascending"
        return direction, listing.link(sort=name if listing.sort.startswith("-") else f"-{name}")

    def rows(self, records: Iterable[Account]) -> Iterator[Any]:
        remaining = iter(records)
        while batch := list(islice(remaining, BATCH_SIZE)):
            yield from self.load_rows(batch)

    def index(self, request: StaffRequest, **context: Any) -> HttpResponse:
        """Show the page of the list, or only its rows; a POST saves which columns to show."""
        if request.method == "POST":
            self._save_columns(request)
            return finish_action(request, request.get_full_path())
        found = self.find(request.GET)
        log_list(request, count=found.total)
        is_fragment = requested_partial(request, (self.rows_id,))
        response = render_page(
            request,
            "lists/rows.html" if is_fragment else "lists/index.html",
            self._context(request, found) | {name: build(found) for name, build in context.items()},
        )
        if is_fragment and "payment" not in request.GET:
            push_url(response, f"{request.path}{found.query_string}")
        return response

    def _context(self, request: StaffRequest, found: "Listing") -> dict[str, Any]:
        shown = [column for column in self.shown_columns(request) if column.cell]
        rows = list(self.rows(found.page)) if shown else []
        folded = {} if request.user.list_columns.get(self.area) else _same_words(shown, rows, found.sort)
        columns = [column for column in shown if column.name not in folded]
        return {
            "list_page": self,
            "listing": found,
            "controls": [one.control_for(found.state) for one in self.filters if one.name != self.tab_filter],
            "heads": [
                (column, *(self.sort_link(name, found) if name in self.sorts else ("", "")))
                for column in columns
                for name in [column.sort or column.name]
            ],
            "rows": self._rendered_rows(request, found, columns, rows),
            "gap": self._gap(found),
            "folded": [f"{column.head} ({folded[column.name]})" for column in shown if column.name in folded],
            "optional_columns": [(column, column in shown) for column in self.optional_columns],
            "coverage": coverage(*self.covered_kinds),
            "views": saved_views_menu(request.user, f"{self.area}:index", found.query_string, self.presets),
            "max_selected": MAX_SELECTED,
        }

    def _gap(self, found: "Listing") -> tuple[int, str] | None:
        """How many rows of the whole list have no figure, and the link to them."""
        gap = next((one for one in self.filters if one.name == self.gap_filter), None)
        if not gap or found.is_filtered:
            return None
        ((value, _),) = gap.options()
        return capped_count(found.records.filter(gap.condition(value))), found.link(**{gap.name: value})

    def _rendered_rows(
        self, request: StaffRequest, found: "Listing", columns: Sequence[Column], rows: list[Any]
    ) -> list[Row]:
        state = found.query_string
        records = [row.record for row in rows]
        changed = _changed_for(Actor.of(request), records) if self.can_refresh else set()
        chosen = MAX_SELECTED if "choose" in request.GET else 0
        for number, row in enumerate(rows):
            row.has_changed = row.record.uuid in changed
            row.state = state
            choice = cells.choice(row.record, self.noun, number < chosen) if self.can_refresh else ""
            menu = cells.menu_button(row.record) if self.row_menu else ""
            row.html = SafeString(f"<tr data-row>{choice}{render_cells(columns, row)}{menu}</tr>")
        return rows

    def _save_columns(self, request: StaffRequest) -> None:
        chosen = [] if "reset" in request.POST else request.POST.getlist("column")
        names = [column.name for column in self.optional_columns if column.name in chosen]
        request.user.list_columns |= {self.area: names}
        request.user.save(update_fields=["list_columns"])

    def export(self, request: StaffRequest) -> StreamingHttpResponse:
        """Export the page, or with ``all`` everything that matches the filters."""
        found, is_whole = self.find(request.GET), "all" in request.GET
        columns = [column for column in self.shown_columns(request) if column.value]
        records: Iterable[Account] = found.page
        if is_whole:
            fields = {name for column in columns for name in column.reads or ()} | _FILE_FIELDS
            needed = None if any(column.reads is None for column in columns) else fields
            records = read_records(found.found, needed, related=self.related, batch_size=BATCH_SIZE)
        append(
            Actor.of(request),
            f"{self.area}.export",
            subject_label="all that match" if is_whole else "one page",
            detail={
                "query": found.query,
                "filters": found.filters,
                "rows": found.found.order_by().count() if is_whole else len(found.page),
            },
        )
        words = " ".join([self.area, *map(str, found.chips)])
        lines = ([column.value(row) for column in columns if column.value] for row in self.rows(records))
        return list_file(request, slugify(words)[:100], [column.head for column in columns], lines)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One page of a list, and the query string that asked for it."""

    list_page: ListPage
    state: QueryDict
    paginator: CappedPaginator
    query: str
    sort: str
    chosen: Mapping[Filter, str]
    records: QuerySet[Any]
    found: QuerySet[Any]
    """All matching records, in order."""
    problems: Sequence[str]

    @cached_property
    def page(self) -> Page[Any]:
        """The records of the page, read once they are asked for."""
        return self.paginator.get_page(self.state.get("page"))

    @property
    def total(self) -> int:
        """The number of matches, up to :data:`MAX_COUNTED`."""
        return self.paginator.count

    @property
    def total_words(self) -> str:
        return counted(self.total)

    @property
    def is_filtered(self) -> bool:
        return bool(self.query or self.chosen)

    @cached_property
    def known(self) -> int:
        """The number of records without filters, up to :data:`MAX_COUNTED`."""
        return capped_count(self.records) if self.is_filtered else self.total

    @property
    def known_words(self) -> str:
        return counted(self.known)

    @property
    def filters(self) -> dict[str, str]:
        """The values of the active filters by name."""
        return {one.name: value for one, value in self.chosen.items()}

    @property
    def chips(self) -> list[Chip]:
        return self._chips(self.chosen)

    @property
    def chips_below_tabs(self) -> list[Chip]:
        """The chips without the filter that the tabs show."""
        return self._chips(one for one in self.chosen if one.name != self.list_page.tab_filter)

    def _chips(self, filters: Iterable[Filter]) -> list[Chip]:
        text = [Chip("Text", f"“{self.query}”", self.link(q=None))] if self.query else []
        return text + [
            Chip(
                one.label,
                one.words(self.chosen[one]),
                self.link(**{one.name: None}),
                is_phrase=one.is_phrase,
            )
            for one in filters
        ]

    @property
    def tab(self) -> str:
        return self.filters.get(self.list_page.tab_filter, "")

    def without_tab(self) -> "Listing":
        if not self.tab:
            return self
        state = self.state.copy()
        del state[self.list_page.tab_filter]
        return self.list_page.find(state)

    def add_up(self, name: str, compute: Callable[[], T]) -> T:
        """Compute the sums of all matches; those of a long list are cached by name and filters."""
        if self.total < MAX_COUNTED:
            return compute()
        return cached_sums(f"{self.list_page.area} {name} {self.link(sort=None, size=None)}", compute)

    @cached_property
    def query_string(self) -> str:
        return self.link(page=self.state.get("page"))

    @property
    def size_links(self) -> dict[int, str]:
        return {size: self.link(size=str(size)) for size in SIZES}

    def link(self, **changes: str | None) -> str:
        """The query string of the list with some changes."""
        return query_string(self.state, **changes)


def _same_words(columns: Sequence[Column], rows: Sequence[Row], sort: str) -> dict[str, str]:
    """The columns with the same words in every row, and those words; figures are never folded."""
    same = {}
    for column in columns if len(rows) >= MIN_FOLDED else ():
        is_sorted = (column.sort or column.name) == sort.removeprefix("-")
        words = column.shared or column.cell
        if not words or column.is_fixed or (is_sorted and not column.shared) or "sd-num" in column.css:
            continue
        cells = (words(row) for row in rows)  # Rendered only up to the first that differs.
        first = next(cells)
        if all(cell == first for cell in cells):
            same[column.name] = strip_tags(first).strip() or "none"
    return same


def render_cells(columns: Sequence[Column], row: Row) -> SafeString:
    """The cells of a row, with a header cell first; missing values say why."""
    shown = [(column.css, conditional_escape(column.cell(row))) for column in columns if column.cell]
    (_, first), *others = shown
    head = f'<th scope="row">{first}{cells.changed_badge(row.has_changed)}</th>'
    rest = "".join(f'<td class="{css}">{cell}</td>' for css, cell in others)
    return explain_missing(SafeString(head + rest), lambda: row.record.why_null)


def _changed_for(actor: Actor, records: Sequence[Account]) -> set[str]:
    """The IDs of records whose answer changed since this person saw them."""
    uuids = [record.uuid for record in records]
    views = PageView.objects.filter(actor_id=actor.id or 0, subject_uuid__in=uuids).exclude(shown="")
    seen = dict(views.order_by("last_at").values_list("subject_uuid", "shown"))
    viewed = [record for record in records if record.uuid in seen]
    return {record.uuid for record in viewed if seen[record.uuid] != changes.answer_digest(record)}
