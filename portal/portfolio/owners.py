"""The past due accounts of each colleague, and the work on them since the month began."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from django.db.models import Count, Exists, OuterRef, Q, Subquery

from portal.accounts.models import User
from portal.collections.models import Contact, Outcome, Promise
from portal.collections.promises import ensure_decided
from portal.portfolio.models import LATE, AccountState, BookDay, Bucket, OwnerSum
from portal.portfolio.sums import add_sums, read_sum
from servicing.figures import NOTHING
from servicing.promises import PromiseState

REACHED: Final = (Outcome.REACHED, Outcome.PROMISED, Outcome.DISPUTES, Outcome.HARDSHIP)
DECIDED: Final = (PromiseState.KEPT.name, PromiseState.BROKEN.name)
MIN_FOR_PERCENT: Final = 10
"""With fewer, a percentage would say more than is known."""


# --- Written at night ---


def was_reached(day: date) -> Exists:
    """The condition that somebody was reached about an account since the month of a day began."""
    contacts = Contact.objects.filter(day__range=(day.replace(day=1), day), outcome__in=REACHED)
    return Exists(contacts.filter(account_kind=OuterRef("kind"), account_uuid=OuterRef("uuid")))


def cured_since(since: date, day: date) -> Any:
    """The accounts that were past due on one day and are current on another, as they were on the first."""
    later = AccountState.objects.on(day).filter(kind=OuterRef("kind"), uuid=OuterRef("uuid"))
    late = AccountState.objects.on(since).filter(bucket__in=LATE)
    return late.annotate(now=Subquery(later.values("bucket")[:1])).filter(now=Bucket.CURRENT)


def write(day: date) -> None:
    """Save the past due accounts of each owner at the end of a day."""
    counts: dict[int | None, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(_COUNTS, 0))
    late = AccountState.objects.on(day).filter(bucket__in=LATE)
    groups = add_sums(late.order_by().values("owner_id"), "past_due")
    for one in groups.annotate(number=Count("pk"), reached=Count("pk", filter=Q(was_reached(day)))):
        counts[one["owner_id"]] |= {
            "number": one["number"], "past_due": read_sum(one, "past_due"), "reached": one["reached"],
        }  # fmt: skip
    month = Promise.objects.filter(logged_on__range=(day.replace(day=1), day), withdrawn_at=None)
    ensure_decided()
    made = list(month)
    states = AccountState.objects.on(day).of_accounts({one.account_uuid for one in made})
    owners = dict(states.values_list("uuid", "owner_id"))
    for promise in made:
        found = counts[owners.get(promise.account_uuid)]
        found["promised"] += 1
        found["decided"] += promise.state in DECIDED
        found["kept"] += promise.state == PromiseState.KEPT.name
    since = BookDay.objects.filter(day=day).values_list("roll_since", flat=True).first()
    if since:
        cured = cured_since(since, day).order_by().values("owner_id").annotate(number=Count("pk"))
        for one in cured:
            counts[one["owner_id"]]["cured"] = one["number"]
    users = User.objects.in_bulk([owner for owner in counts if owner])
    names = {owner: user.display_name() for owner, user in users.items()}
    OwnerSum.objects.bulk_create(
        OwnerSum(
            day=day,
            owner_id=owner,
            owner_name=names.get(owner or 0, ""),
            **({"past_due": NOTHING} | found),
        )
        for owner, found in counts.items()
    )


_COUNTS: Final = ("number", "past_due", "reached", "promised", "kept", "decided", "cured")


# --- Read by the page ---


@dataclass
class Owner:
    """The row of one colleague, of nobody, or of all."""

    name: str
    key: str
    """The value of its filter; empty for all."""
    number: int
    past_due: Decimal
    reached: int
    promised: int
    kept: int
    decided: int
    cured: int

    @property
    def reached_share(self) -> Decimal | None:
        return _share(self.reached, self.number)

    @property
    def kept_share(self) -> Decimal | None:
        return _share(self.kept, self.decided)


def _share(part: int, whole: int) -> Decimal | None:
    return Decimal(part * 100) / whole if whole >= MIN_FOR_PERCENT else None


def read(day: date) -> Sequence[Owner]:
    """The owners of a day, the most past due first, then nobody and the sum; empty if there are none."""
    rows = list(OwnerSum.objects.filter(day=day))
    found = sorted(rows, key=lambda one: (one.owner_id is None, -one.past_due))
    named = [_owner(one) for one in found]
    return [*named, _total(named)] if named else []


def _owner(one: OwnerSum) -> Owner:
    name = "Unassigned" if one.owner_id is None else one.owner_name or "Former colleague"
    return Owner(name, str(one.owner_id or "none"), *(getattr(one, name) for name in _COUNTS))


def _total(rows: Iterable[Owner]) -> Owner:
    rows = list(rows)
    values: list[Any] = [sum((getattr(one, name) for one in rows), 0) for name in _COUNTS]
    return Owner("All past due", "", *values)
