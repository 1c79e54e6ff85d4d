"""The filters of the audit trail: from a query string in the viewer's time zone to entries and words.

Hides the defaults: the last seven days, without views, saves that changed nothing, and attempts of finished writes. A
request found by its reference is always shown completely.
"""

from datetime import UTC, datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.accounts.models import User
from portal.audit.models import Entry, WriteIntent
from portal.audit.writes import CORRECT, RESOLVE
from portal.registry.models import Kind, Record
from portal.runtime.folding import folded_pattern
from portal.ui import wording
from portal.ui.keys import row_key
from portal.ui.query_strings import Chip, query_string

# Until 2.0 a page view was an entry with one of these actions.
VIEWS = Q(action__in=[
    "applications.detail", "applications.index", "applications.view", "approvals.detail", "approvals.index",
    "audit.index", "audit.view", "borrowers.detail", "borrowers.edit", "borrowers.index", "collections.index",
    "collections.view", "credit_lines.detail", "credit_lines.index", "credit_lines.pdf", "home.index", "home.view",
    "loans.detail", "loans.index", "lookup.index", "lookup.record", "lookup.suggest", "lookup.view",
    "messaging.detail", "messaging.index", "messaging.view", "notes.view", "operations.index", "repayments.detail",
    "repayments.index", "summaries.index", "summaries.preview", "summaries.view",
])  # fmt: skip
GROUPS = {
    "writes": ("Changes at the service", ~Q(phase=Entry.Phase.EVENT) | Q(action__in=(RESOLVE, CORRECT))),
    "views": ("Page views", VIEWS),
    "files": (
        "Exports and prints",
        Q(action__contains=".export") | Q(action__contains=".print") | Q(action="loans.schedule"),
    ),
    "sign_in": ("Sign-ins", Q(action__startswith="accounts.sign_") | Q(action="accounts.session_ended")),
    "staff": ("Staff, roles and settings", Q(action__startswith="accounts.")),
    "approvals": ("Approvals", Q(action__startswith="approvals.")),
    "refused": ("Access denied", Q(action="accounts.refused")),
    "desk": (
        "Registry, notes, lists",
        Q(action__startswith="lookup.") | Q(action__startswith="notes.") | Q(action__startswith="home."),
    ),
    "system": ("Commands and jobs", Q(actor_role="system")),
}
KINDS = {kind.value: (kind.label, Q(subject_kind=kind)) for kind in Kind if "_repayments" not in kind.value}
_RESULTS = [*WriteIntent.State.choices, ("no_change", "No change"), ("broken", "Chain broken")]
RESULTS = {value: (words, Q(result=value)) for value, words in _RESULTS}
NON_STAFF = {
    "system": ("The system", Q(actor_role="system")),
    "anonymous": ("Not signed in", Q(actor_id=None, actor_role="")),
}
PERIODS = {"": "Last 7 days", "today": "Today", "30": "Last 30 days", "all": "All time"}
HIDDEN_BY_DEFAULT = {"views": "Page views", "same": "No-change saves", "steps": "Started requests"}
SEARCHED = ("subject_uuid", "request_id", "action")
SEARCHED_TEXTS = ("actor_name", "subject_label", "reason")
NAMES = ("q", "person", "group", "kind", "borrower", "result", "request", "when", "from", "to")
Choices = dict[str, tuple[str, Q]]


def people() -> Choices:
    """Everyone who may have acted."""
    staff = User.objects.order_by("first_name", "username")
    return {str(user.pk): (user.audit_name(), Q(actor_id=user.pk)) for user in staff} | NON_STAFF


def is_about_borrower(text: str) -> Q:
    """The condition that an entry is about a borrower with this ID or with this text in the name."""
    borrowers = Record.objects.filter(kind=Kind.BORROWER)
    if not text or borrowers.filter(uuid=text).exists():
        return Q(borrower_uuid=text)
    pattern = folded_pattern(text)
    named = borrowers.filter(label__iregex=pattern).values_list("uuid", flat=True)[:50] if pattern else []
    return Q(borrower_uuid__in=[text, *named])


class EntryFilters:
    """The entries that match a query string, and the filters in words; invalid values are ignored."""

    def __init__(self, state: QueryDict) -> None:
        self.state = state
        self.chips: list[Chip] = []
        self.problems: list[str] = []
        self.values = {name: state.get(name, "").replace("\0", "").strip()[:200] for name in NAMES}
        self.shown = [name for name in HIDDEN_BY_DEFAULT if name in state.getlist("show")]
        self.is_one_request = bool(self.values["request"])
        self.selects: list[tuple[str, str, str, Choices, str]] = [
            ("person", "Person", "Everyone", people(), self.values["person"]),
            ("group", "Action", "All actions", GROUPS, self.values["group"]),
            ("kind", "Object", "All objects", KINDS, self.values["kind"]),
            ("result", "Result", "All results", RESULTS, self.values["result"]),
        ]
        self._condition = Q()
        self._narrow_text()
        for name, label, _, choices, _ in self.selects:
            self._narrow_choice(name, label, choices)
        self._narrow_borrower()
        self._narrow("request", "Request", self.values["request"], Q(request_id=self.values["request"]))
        self.period = "All time" if self.is_one_request else self._narrow_time()
        self.entries = self._entries()

    @property
    def has_more(self) -> bool:
        """Whether any of the collapsed filters is set."""
        return bool(self.shown) or any(
            self.values[name] for name in ("group", "kind", "result", "from", "to")
        )

    @property
    def words(self) -> dict[str, str]:
        """All active filters, for the entry of an export."""
        hidden = ", ".join(
            words.lower() for name, words in HIDDEN_BY_DEFAULT.items() if name not in self.shown
        )
        words = {chip.label: chip.words for chip in self.chips} | {"Time": self.period}
        return words | ({} if self.is_one_request else {"Ignored": hidden or "nothing"})

    def _entries(self) -> QuerySet[Entry]:
        entries: QuerySet[Entry] = Entry.objects.filter(self._condition)
        if self.is_one_request:
            return entries
        if "views" not in self.shown and self.values["group"] != "views":
            entries = entries.exclude(VIEWS)
        if "same" not in self.shown:
            entries = entries.exclude(action__endswith=".no_change")
        if "steps" not in self.shown:
            outcome = Entry.objects.filter(intent_id=OuterRef("intent_id"), phase=Entry.Phase.OUTCOME)
            entries = entries.exclude(Q(phase=Entry.Phase.ATTEMPT) & Exists(outcome))
        return entries

    def _narrow(self, name: str, label: str, words: str, condition: Q) -> None:
        """Add a filter unless its parameter is empty."""
        if self.values[name]:
            self._condition &= condition
            self.chips.append(Chip(label, words, query_string(self.state, **{name: None})))

    def _narrow_text(self) -> None:
        condition = Q()
        for column in SEARCHED:
            condition |= Q(**{f"{column}__icontains": self.values["q"]})
        if pattern := folded_pattern(self.values["q"]):
            for column in SEARCHED_TEXTS:
                condition |= Q(**{f"{column}__iregex": pattern})
        self._narrow("q", "Text", f"“{self.values['q']}”", condition)

    def _narrow_choice(self, name: str, label: str, choices: Choices) -> None:
        value = self.values[name]
        if value in choices:
            self._narrow(name, label, *choices[value])
        elif name == "person" and row_key(value):  # Entries of a deleted account still exist.
            self._narrow(name, label, f"account {value}", Q(actor_id=row_key(value)))
        elif value:
            self.problems.append(f"{label} “{value}” doesn’t exist and was ignored.")

    def _narrow_borrower(self) -> None:
        """An ID, or a part of the name."""
        value = self.values["borrower"]
        record = Record.objects.filter(kind=Kind.BORROWER, uuid=value).first() if value else None
        self._narrow("borrower", "Borrower", str(record or f"“{value}”"), is_about_borrower(value))

    def _narrow_time(self) -> str:
        """Filter by period: from and to if given, else the chosen one, else the last seven days. Return it in words."""
        # Of an hour that comes twice, the first one is the start and the second one the end.
        since, until = self._moment("from"), self._moment("to", fold=1)
        if since and until and until < since:
            self.problems.append(f"To {wording.moment(until)} was ignored. {wording.DATES_REVERSED}")
            until = None
        if not (since or until):
            name = self.values["when"] if self.values["when"] in PERIODS else ""
            now = timezone.localtime()
            if name == "today":
                self._condition &= Q(at__gte=now.replace(hour=0, minute=0, second=0, microsecond=0))
            elif name != "all":
                self._condition &= Q(at__gte=now - timedelta(days=30 if name else 7))
            return PERIODS[name]
        if since:
            self._narrow("from", "From", wording.moment(since), Q(at__gte=since))
        if until:
            self._narrow("to", "Until", wording.moment(until), Q(at__lt=until + timedelta(minutes=1)))
        times = [chip for chip in self.chips if chip.label in ("From", "Until")]
        return " ".join(f"{chip.label.lower()} {chip.words}" for chip in times)

    def _moment(self, name: str, *, fold: int = 0) -> datetime | None:
        value = self.values[name]
        if not value:
            return None
        try:
            found = parse_datetime(value if "T" in value or " " in value else f"{value}T00:00")
            if found:
                found = timezone.make_aware(found.replace(fold=fold)) if timezone.is_naive(found) else found
                return found.astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # A time in the right format that doesn't exist.
        self.problems.append(f"“{value}” isn’t a valid time and was ignored. Use 2026-11-21 14:30.")
        return None
