"""Lists of accounts, of loans and of lines alike: columns on screen and in a file, and chosen accounts read again.

Hides what a list asks of the registry, and how accounts are read politely: one after the other, each step an answer of
the page that shows how far it is. Nothing goes on behind anybody's back: whoever leaves the page stops it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify

from portal.audit.chain import append
from portal.audit.models import Actor, Sighting
from portal.audit.sightings import log_list
from portal.clocks import SKEW, is_recent
from portal.gateway import StaffRequest
from portal.readings import DEADLINE, HOLD, PATIENCE, account, ask, coverage
from portal.registry import changes
from portal.registry.lists import Filter, Listing, known, listing, occurring, with_borrowers
from portal.registry.memory import IDENTIFIER
from portal.registry.models import Kind, Record
from portal.registry.query import NotUnderstood
from portal.saved_views.menu import menu
from portal.ui.exports import list_file
from portal.ui.htmx import render_page

BATCH = 500
AT_ONCE = 20
"""So many accounts are read again with one click at most."""
PROGRESS = "refresh-progress"


@dataclass(frozen=True)
class Row:
    """An account with its borrower; ``has_changed`` since the person who asks saw it last."""

    record: Record
    borrower: Record | None
    has_changed: bool = False

    @property
    def is_overdue(self) -> bool:
        """Whether the first unpaid day of a loan has passed; when a line's payment was due says nothing of it."""
        day = self.record.due_date
        return self.record.kind == Kind.LOAN and day is not None and day < timezone.localdate()

    @property
    def rate(self) -> Decimal | None:
        """As it was sent, without the places that only the database added."""
        told = self.record.rate
        return None if told is None else Decimal(f"{told:f}".rstrip("0"))


@dataclass(frozen=True)
class Column:
    """One thing told of every account; ``form`` says how a cell shows it, none where only a file tells it."""

    name: str
    head: str
    told: Callable[[Row], Any] = field(repr=False)
    form: str = ""
    width: str = ""
    """The class that says on which screens there is room for it."""

    @property
    def css(self) -> str:
        """How head and cells are set."""
        return f"{'sd-num ' if self.form in ('money', 'owed', 'rate') else ''}{self.width}".strip()


@dataclass(frozen=True)
class Portfolio:
    """One list of accounts: what is in it, and how it is narrowed and ordered."""

    kind: Kind
    area: str
    title: str
    noun: str
    columns: Sequence[Column]
    sorts: Mapping[str, str]
    filters: Sequence[Filter]
    views: Mapping[str, str]
    """The views that everybody has, as query strings by their names."""

    @property
    def rows_id(self) -> str:
        """The region that holds the rows."""
        return f"{self.noun}-rows"

    @property
    def index_url(self) -> str:
        return reverse(f"{self.area}:index")

    @property
    def export_url(self) -> str:
        return reverse(f"{self.area}:export")

    @property
    def refresh_url(self) -> str:
        return reverse(f"{self.area}:refresh")


def only_flagged(name: str, label: str) -> Filter:
    """The filter that leaves the accounts which the service calls delinquent or past due."""

    def keep(value: str) -> Q:
        if value != "yes":
            raise NotUnderstood("It can only be yes.")
        return Q(flagged__in=[True])  # A list of one value is looked up in the index.

    return Filter(name, label, keep)


def index(request: StaffRequest, of: Portfolio) -> HttpResponse:
    """The list with search, filters, order and paging, from the registry."""
    found = _listing(request, of)
    log_list(request, count=found.total)
    context = {
        "portfolio": of,
        "listing": found,
        "rows": list(_rows(found.page, Actor.of(request))),
        "columns": [(column, found.sort_links.get(column.name)) for column in of.columns if column.form],
        "statuses": occurring(of.kind, "status") if any(one.name == "status" for one in of.filters) else [],
        "coverage": coverage(of.kind),
        "views": menu(request.user, f"{of.area}:index", found.query_string, of.views),
        "at_once": AT_ONCE,
    }
    return render_page(request, f"{of.area}/index.html", context, partial=of.rows_id)


def export(request: StaffRequest, of: Portfolio) -> HttpResponseBase:
    """The shown page, or with ``all`` everything that the filters leave, in the columns of the screen."""
    found = _listing(request, of)
    is_whole = "all" in request.GET
    whole = found.found.defer("answer", "search_text")
    records: Iterable[Record] = whole.iterator(BATCH) if is_whole else found.page
    append(
        Actor.of(request),
        f"{of.area}.export",
        subject_label="all that match" if is_whole else "one page",
        detail={
            "query": found.query,
            "filters": dict(found.filters),
            "rows": whole.order_by().count() if is_whole else len(found.page),
        },
    )
    heads = [of.kind.label, "Borrower", "Borrower identifier", *(column.head for column in of.columns)]
    name = slugify(" ".join([of.area, *(f"{chip.label} {chip.words}" for chip in found.chips)]))[:100]
    return list_file(request, name, heads, (_file_row(of, row) for row in _rows(records)))


def _listing(request: StaffRequest, of: Portfolio) -> Listing:
    state = request.GET.copy()
    state.pop("choose", None)  # Which rows are ticked goes for this page alone.
    return listing(
        known(of.kind), state, sorts=of.sorts, filters=of.filters, kinds=[of.kind], by_borrower=True
    )


def _rows(records: Iterable[Record], actor: Actor | None = None) -> Iterator[Row]:
    """The accounts with their borrowers, a batch at a time; for a person with what changed since they looked."""
    left = iter(records)
    while batch := list(islice(left, BATCH)):
        changed = _changed(batch, actor) if actor else set()
        for record, borrower in with_borrowers(batch):
            yield Row(record, borrower, record.uuid in changed)


def _changed(records: Sequence[Record], actor: Actor) -> set[str]:
    """Of which of them this person last saw another answer than the one that is kept now."""
    uuids = [record.uuid for record in records]
    looks = Sighting.objects.filter(actor_id=actor.id or 0, subject_uuid__in=uuids).exclude(shown="")
    seen = dict(looks.order_by("last_at").values_list("subject_uuid", "shown"))
    return {one.uuid for one in records if seen.get(one.uuid, changes.digest(one)) != changes.digest(one)}


def _file_row(of: Portfolio, row: Row) -> list[Any]:
    told = (column.told(row) for column in of.columns)
    return [row.record.uuid, str(row.borrower or ""), row.record.borrower_uuid, *told]


# --- Chosen accounts are read again ---


@dataclass(frozen=True)
class Turn:
    """One of the chosen accounts, and how far its reading is."""

    row: Row
    state: str
    """``waiting``, ``asking``, ``read`` or ``failed``."""


@dataclass(frozen=True)
class Progress:
    """How far the reading of all of them is."""

    turns: Sequence[Turn]

    @property
    def done(self) -> int:
        return sum(turn.state in ("read", "failed") for turn in self.turns)

    @property
    def failed(self) -> int:
        return sum(turn.state == "failed" for turn in self.turns)

    @property
    def is_over(self) -> bool:
        return self.done == len(self.turns)


def refresh(request: StaffRequest, of: Portfolio) -> HttpResponseBase:
    """Posted, what was chosen leads to the page of its progress; each time that is asked for, one more is read."""
    if request.method == "POST":
        return _begin(request, of)
    since = _moment(request.GET.get("since", ""))
    records = _chosen(of, request.GET.getlist("uuid"))
    if since is None or not 0 < len(records) <= AT_ONCE:
        return HttpResponseRedirect(of.index_url)
    without_script = not request.htmx and request.COOKIES.get("js") != "1"
    if without_script or request.htmx.target == PROGRESS:
        _step(request, _progress(records, since), deadline=DEADLINE if without_script else HOLD)
        records = _chosen(of, request.GET.getlist("uuid"))
    progress = _progress(records, since)
    log_list(request, count=len(records))
    back = f"{of.index_url}?{QueryDict(request.GET.get('back', '')).urlencode()}"
    context = {"portfolio": of, "progress": progress, "back": back}
    response = render_page(request, "ui/account_refresh.html", context, partial=PROGRESS)
    if without_script and not progress.is_over:
        response["Refresh"] = "1"
    return response


def _begin(request: StaffRequest, of: Portfolio) -> HttpResponseBase:
    records = _chosen(of, request.POST.getlist("uuid"))
    back = request.POST.get("back", "").removeprefix("?")
    if not 0 < len(records) <= AT_ONCE:
        back = f"{of.index_url}?{QueryDict(back).urlencode()}"
        context = {"portfolio": of, "chosen": len(records), "at_once": AT_ONCE, "back": back}
        return render_page(request, "ui/account_refresh.html", context, status=422)
    label = f"{len(records)} {of.noun}{'' if len(records) == 1 else 's'}"
    append(Actor.of(request), f"{of.area}.refresh", subject_label=label)
    state = [("uuid", one.uuid) for one in records]
    state += [("since", timezone.now().isoformat()), ("back", back)]
    return HttpResponseRedirect(f"{of.refresh_url}?{urlencode(state)}", status=303)


def _chosen(of: Portfolio, uuids: Sequence[str]) -> list[Record]:
    """The known ones among them, in the order in which they were chosen."""
    wanted = [uuid for uuid in dict.fromkeys(uuids) if IDENTIFIER.fullmatch(uuid)][:BATCH]
    found = {one.uuid: one for one in known(of.kind).filter(uuid__in=wanted)}
    return [found[uuid] for uuid in wanted if uuid in found]


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    # One in the future is of a clock that was set back since: no record would ever be read after it.
    return moment if timezone.is_aware(moment) and moment <= timezone.now() + SKEW else None


def _progress(records: Sequence[Record], since: datetime) -> Progress:
    return Progress([Turn(row, _state(row.record, since)) for row in _rows(records)])


def _state(record: Record, since: datetime) -> str:
    """Where a reading stands that was wanted at a moment."""
    asked, told, failed = record.asked_at, record.checked_at, record.failed_at
    if not asked or asked < since:
        return "waiting"
    if told and told >= since and (not failed or failed <= told):
        return "read"
    has_ended = (failed and failed >= since) or not is_recent(asked, PATIENCE)
    return "failed" if has_ended else "asking"


def _step(request: StaffRequest, progress: Progress, *, deadline: float) -> None:
    """Read the next one with its repayments, unless one is still under way."""
    if any(turn.state == "asking" for turn in progress.turns):
        return
    following = next((turn.row.record for turn in progress.turns if turn.state == "waiting"), None)
    if following:
        ask(Actor.of(request), account(following), force=True, deadline=deadline)
