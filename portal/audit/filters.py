"""The choices of the audit trail's filters, and what each of them means."""

from datetime import UTC, datetime, timedelta

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.accounts.models import User
from portal.audit.models import Entry, WriteIntent
from portal.audit.writes import CORRECT, RESOLVE
from portal.core.folding import fold
from portal.records.models import Borrower, Kind
from portal.records.query import parse_query
from portal.records.rows import records_of
from portal.records.search import rank_matches

MAX_NAMED = 50
"""The most records whose entries a text finds by their names."""
OTHER_FILES = (
    *("loans.schedule", "summaries.batch"),
    *("operations.support_bundle", "operations.borrower_data"),
)
"""What gives out a file under another name."""
SIGN_INS = Q(action__startswith="accounts.sign_") | Q(action="accounts.session_ended")
GROUPS = {
    "writes": ("Changes at the service", ~Q(phase=Entry.Phase.EVENT) | Q(action__in=(RESOLVE, CORRECT))),
    "files": (
        "Exports, prints and downloads",
        Q(action__contains=".export")
        | Q(action__contains=".print")
        | Q(action__contains=".download")
        | Q(action__in=OTHER_FILES),
    ),
    "sign_in": ("Sign-ins", SIGN_INS),
    "staff": (
        "Staff, roles and settings",
        Q(action__startswith="accounts.") & ~SIGN_INS & ~Q(action="accounts.refused"),
    ),
    "approvals": ("Approvals", Q(action__startswith="approvals.")),
    "refused": ("Access denied", Q(action="accounts.refused")),
    "desk": (
        "Registry, notes, collections, lists",
        Q(action__startswith="lookup.")
        | Q(action__startswith="notes.")
        | (
            Q(action__startswith="collections.")
            & ~Q(action__contains=".export")
            & ~Q(action__contains=".print")
        )
        | Q(action__startswith="home.")
        | Q(action__startswith="saved_views."),
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
Choices = dict[str, tuple[str, Q]]


def people() -> Choices:
    staff = User.objects.order_by("first_name", "username")
    return {str(user.pk): (user.audit_name(), Q(actor_id=user.pk)) for user in staff} | NON_STAFF


def is_about_borrower(text: str) -> Q:
    """The condition that an entry is about a borrower with this ID or with this text in the name."""
    if not text or Borrower.objects.filter(uuid=text).exists():
        return Q(borrower_uuid=text)
    return Q(borrower_uuid__in=[text, *ids_of_named(text, Kind.BORROWER)])


def ids_of_named(text: str, *kinds: Kind) -> list[str]:
    """The IDs of the best matches of the search that have this text in their name, however it is written."""
    if not (folded := fold(text)):
        return []
    found = rank_matches(kinds, parse_query(text, operators=False), MAX_NAMED)
    named = [one for kind, ranks in found.items() for one in records_of(kind).filter(pk__in=list(ranks))]
    return [one.uuid for one in named if folded in fold(one.label)]


def started_or_unchanged() -> Q:
    """Saves that changed nothing, and attempts of writes that have an outcome."""
    outcome = Entry.objects.filter(intent_id=OuterRef("intent_id"), phase=Entry.Phase.OUTCOME)
    return Q(action__endswith=".no_change") | Q(Exists(outcome), phase=Entry.Phase.ATTEMPT)


def period_start(name: str) -> datetime | None:
    """When a period of :data:`PERIODS` begins; None for all time."""
    now = timezone.localtime()
    if name == "today":
        return now.replace(hour=0, minute=0, second=0, microsecond=0)
    return None if name == "all" else now - timedelta(days=30 if name == "30" else 7)


def typed_moment(text: str, *, fold: int = 0) -> datetime | None:
    """A time as typed in the person's time zone, or the start of a day; None if it isn't one.

    Of an hour that comes twice, the first one (``fold=0``) is the start of a period and the second one its end.
    """
    try:
        found = parse_datetime(text if "T" in text or " " in text else f"{text}T00:00")
        if found and timezone.is_naive(found):
            found = timezone.make_aware(found.replace(fold=fold))
        return found.astimezone(UTC) if found else None
    except (ValueError, OverflowError):  # A time in the right format that doesn't exist.
        return None
