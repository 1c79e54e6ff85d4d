"""Which entries a query string asks for, in the zone of whoever asks, and how that is said.

Hides the defaults: the last seven days, without looks, saves that changed nothing, and first halves of finished writes.
One click, by its reference, is always shown whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.accounts.models import User
from portal.audit.models import Entry, WriteIntent
from portal.registry.lists import Chip, query_string
from portal.registry.models import Kind, Record
from portal.ui import wording

LOOKS = Q(sighting__isnull=False)
NO_CHANGE = Q(action__endswith=".no_change")
GROUPS: Mapping[str, tuple[str, Q]] = {
    "writes": ("Changes at the service", ~Q(phase=Entry.Phase.EVENT) | Q(action="audit.resolve")),
    "views": ("Views", LOOKS),
    "files": (
        "Exports and prints",
        Q(action__contains=".export") | Q(action__contains=".print") | Q(action="loans.schedule"),
    ),
    "sign_in": ("Sign-ins", Q(action__startswith="accounts.sign_") | Q(action="accounts.session_ended")),
    "staff": ("Staff, roles and settings", Q(action__startswith="accounts.")),
    "approvals": ("Approvals", Q(action__startswith="approvals.")),
    "refused": ("Refusals of permission", Q(action="accounts.refused")),
    "desk": (
        "Registry, notes, lists",
        Q(action__startswith="lookup.") | Q(action__startswith="notes.") | Q(action__startswith="home."),
    ),
    "system": ("Commands and background work", Q(actor_role="system")),
}
WHEN = {"": "Last 7 days", "today": "Today", "30": "Last 30 days", "all": "All time"}
SHOWN = {"views": "Views", "same": "Saves without a change", "steps": "First halves of finished writes"}
RESULTS = [*WriteIntent.State.choices, ("no_change", "No change"), ("broken", "Chain broken")]
OTHERS = {"system": "The system", "anonymous": "Nobody signed in"}
KINDS = [(kind.value, kind.label) for kind in Kind if "_repayments" not in kind.value]


@dataclass(frozen=True)
class Asked:
    """The entries that are asked for, and the filters in words."""

    entries: QuerySet[Entry]
    chips: Sequence[Chip]
    problems: Sequence[str]
    values: Mapping[str, str]
    shown: Sequence[str] = ()
    """Which of :data:`SHOWN` are not left out."""
    period: str = ""
    is_one_click: bool = False
    query_string: str = ""

    @property
    def words(self) -> dict[str, str]:
        """Every filter that was in force, for the entry of an export."""
        hidden = ", ".join(words.lower() for name, words in SHOWN.items() if name not in self.shown)
        told = {chip.label: chip.words for chip in self.chips} | {"Time": self.period}
        return told | ({} if self.is_one_click else {"Left out": hidden or "nothing"})


@dataclass
class _Reading:
    """What has been understood so far."""

    state: QueryDict
    condition: Q = field(default_factory=Q)
    chips: list[Chip] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def value(self, name: str) -> str:
        """One parameter without what no database holds, cut to a sensible length."""
        return self.state.get(name, "").replace("\0", "").strip()[:200]

    def narrow(self, name: str, label: str, words: str, condition: Q) -> None:
        """One more filter."""
        self.condition &= condition
        self.chips.append(Chip(label, words, query_string(self.state, **{name: None})))


def asked(state: QueryDict) -> Asked:
    """What the query string asks for; what is not understood is said and left out."""
    reading = _Reading(state)
    for name, read in _FILTERS.items():
        if value := reading.value(name):
            read(reading, value)
    is_one_click = bool(reading.value("request"))
    shown = [name for name in SHOWN if name in state.getlist("show")]
    period = "All time" if is_one_click else _narrow_time(reading)
    entries: QuerySet[Entry] = Entry.objects.filter(reading.condition)
    if not is_one_click:
        entries = _without_noise(entries, shown, reading.value("group"))
    return Asked(
        entries,
        reading.chips,
        reading.problems,
        {name: reading.value(name) for name in (*_FILTERS, "when", "from", "to")},
        shown,
        period,
        is_one_click,
        query_string(state, page=None),
    )


def people() -> list[tuple[str, str]]:
    """Whoever has an account, and what acts without one. Whose account is gone is found by name, as text."""
    staff = [(str(user.pk), user.audit_name()) for user in User.objects.order_by("first_name", "username")]
    return [*staff, *OTHERS.items()]


def _without_noise(entries: QuerySet[Entry], shown: Sequence[str], group: str) -> QuerySet[Entry]:
    if "views" not in shown and group != "views":
        entries = entries.exclude(LOOKS)
    if "same" not in shown:
        entries = entries.exclude(NO_CHANGE)
    if "steps" not in shown:
        outcome = Entry.objects.filter(intent_id=OuterRef("intent_id"), phase=Entry.Phase.OUTCOME)
        entries = entries.exclude(Q(phase=Entry.Phase.ATTEMPT) & Exists(outcome))
    return entries


# --- One function for each filter ---


def _person(reading: _Reading, value: str) -> None:
    if value in OTHERS:
        condition = Q(actor_role="system") if value == "system" else Q(actor_id=None, actor_role="")
        reading.narrow("person", "Person", OTHERS[value], condition)
    elif value.isascii() and value.isdigit() and len(value) < 18:
        user = User.objects.filter(pk=value).first()
        name = user.audit_name() if user else f"account {value}"
        reading.narrow("person", "Person", name, Q(actor_id=int(value)))
    else:
        reading.problems.append(f"There is no account “{value}”; the person was left out.")


def _one_of(name: str, label: str, column: str, choices: Sequence[tuple[str, str]]) -> "_Filter":
    def read(reading: _Reading, value: str) -> None:
        words = dict(choices).get(value)
        if words is None:
            reading.problems.append(f"{label} “{value}” is not known here and was left out.")
        else:
            reading.narrow(name, label, words, Q(**{column: value}))

    return read


def _group(reading: _Reading, value: str) -> None:
    if value not in GROUPS:
        reading.problems.append(f"There is no group of acts “{value}”; it was left out.")
        return
    words, condition = GROUPS[value]
    reading.narrow("group", "Acts", words, condition)


def _borrower(reading: _Reading, value: str) -> None:
    """An identifier, or a part of the name."""
    if Record.objects.filter(kind=Kind.BORROWER, uuid=value).exists():
        known = Record.objects.get(kind=Kind.BORROWER, uuid=value)
        reading.narrow("borrower", "Borrower", str(known), Q(borrower_uuid=value))
        return
    named = Record.objects.filter(kind=Kind.BORROWER, label__icontains=value).values("uuid")[:50]
    condition = Q(borrower_uuid=value) | Q(borrower_uuid__in=list(named.values_list("uuid", flat=True)))
    reading.narrow("borrower", "Borrower", f"“{value}”", condition)


def _text(reading: _Reading, value: str) -> None:
    columns = ("actor_name", "subject_label", "subject_uuid", "request_id", "reason", "action")
    condition = Q()
    for column in columns:
        condition |= Q(**{f"{column}__icontains": value})
    reading.narrow("q", "Text", f"“{value}”", condition)


def _click(reading: _Reading, value: str) -> None:
    reading.narrow("request", "One click", value, Q(request_id=value))


def _narrow_time(reading: _Reading) -> str:
    """The period in words. Moments that are typed count, else the choice, else the last seven days."""
    since, until = _moment(reading, "from"), _moment(reading, "to")
    now = timezone.localtime()
    if since and until and until < since:
        reading.problems.append(f"Until {wording.moment(until)} was left out. {wording.DAYS_TURNED_ROUND}")
        until = None
    if not (since or until):
        name = reading.value("when") if reading.value("when") in WHEN else ""
        days = {"": 7, "30": 30}.get(name)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        since = now - timedelta(days=days) if days else midnight if name == "today" else None
        reading.condition &= Q(at__gte=since) if since else Q()
        return WHEN[name]
    if since:
        reading.narrow("from", "From", wording.moment(since), Q(at__gte=since))
    if until:
        reading.narrow("to", "Until", wording.moment(until), Q(at__lt=until + timedelta(minutes=1)))
    return " ".join(
        f"{chip.label.lower()} {chip.words}" for chip in reading.chips if chip.label in ("From", "Until")
    )


def _moment(reading: _Reading, name: str) -> datetime | None:
    value = reading.value(name)
    if not value:
        return None
    try:
        found = parse_datetime(value if "T" in value or " " in value else f"{value}T00:00")
        if found:
            return timezone.make_aware(found) if timezone.is_naive(found) else found
    except (ValueError, OverflowError):
        pass  # such a time has the right form and does not exist
    reading.problems.append(f"“{value}” is no time and was left out; write 2026-11-21 14:30.")
    return None


_Filter = Callable[[_Reading, str], None]
_FILTERS: Mapping[str, _Filter] = {
    "q": _text,
    "person": _person,
    "group": _group,
    "kind": _one_of("kind", "Object", "subject_kind", KINDS),
    "borrower": _borrower,
    "result": _one_of("result", "Result", "result", RESULTS),
    "request": _click,
}
