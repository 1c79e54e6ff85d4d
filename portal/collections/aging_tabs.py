"""The aging tabs of the worklist: the number of accounts in each bucket, and their sum."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Case, Count, Q, QuerySet, Sum, Value, When

from portal.records.figures import ACCOUNTS, NOT_KNOWN_RANK, aging_of_kinds, days_of
from portal.records.models import Account
from portal.tables.pages import Listing
from portal.ui import wording
from portal.ui.attention import Amount
from servicing.figures import Aging, aging


class AgingTab(NamedTuple):
    """One bucket: the number of accounts, and their sum."""

    value: str
    words: str
    number: int
    amount: Amount
    link: str = ""
    is_chosen: bool = False


ONLY_DUE_SINCE = Q(past_due_rank__isnull=True, due_since_on__isnull=False)
"""The accounts that aren't past due, but have payments that fell due since their copy. They are in no bucket."""


def is_only_due_since(record: Account) -> bool:
    return record.past_due_rank is None and record.due_since_on is not None


class DueSinceSum(NamedTuple):
    """The accounts of a list with payments that fell due since their copy, and the sum of these."""

    number: int
    amount: Amount

    @property
    def words(self) -> str:
        """Such as "2 accounts, $4,281.00"."""
        return f"{wording.count(self.number, 'account')}, {self.amount.words}"


def due_since_sum(listing: Listing) -> DueSinceSum:
    """Add up what fell due since the copies of all accounts that match."""
    amounts = listing.found.order_by().filter(due_since_on__isnull=False).values_list("due_since_amount")
    known = [amount for (amount,) in amounts if amount is not None]
    return DueSinceSum(len(amounts), Amount(sum(known, Decimal(0)), len(amounts) - len(known)))


# Name, number of accounts, known past due amount, and number of accounts with an unknown one.
Bucket = tuple[str, int, Decimal | None, int]


def aging_tabs(listing: Listing) -> list[AgingTab]:
    """Build the tabs of the accounts that match the other filters, and the chosen tab; of very many, cached."""
    found = listing.without_tab()
    if not found.page.has_other_pages():
        tabs = _tabs(_bucket_of(record) for record in found.page if not is_only_due_since(record))
    else:
        tabs = found.add_up("aging", lambda: _tabs(_buckets(found.found.exclude(ONLY_DUE_SINCE))))
    return [
        one._replace(link=listing.link(aging=one.value), is_chosen=one.value == listing.tab)
        for one in tabs
        if one.number or one.value in ("", listing.tab)
    ]


def _bucket_of(record: Account) -> Bucket:
    rank = record.past_due_rank
    known = rank if rank is not None and rank > NOT_KNOWN_RANK else None
    return aging(record.past_due, days_of(record)).name, 1, known, int(record.past_due is None)


def _buckets(accounts: QuerySet[Account]) -> Iterable[Bucket]:
    buckets = [When(aging_of_kinds(ACCOUNTS, one), then=Value(one.name)) for one in Aging]
    return (
        accounts.order_by()
        .annotate(bucket=Case(*buckets, default=Value(Aging.UNKNOWN.name)))
        .values_list("bucket")
        .annotate(
            number=Count("pk"),
            known=Sum("past_due_rank", filter=Q(past_due_rank__gt=NOT_KNOWN_RANK)),
            unknown=Count("pk", filter=Q(past_due__isnull=True)),
        )
    )


def _tabs(buckets: Iterable[Bucket]) -> list[AgingTab]:
    numbers: Counter[str] = Counter()
    amounts: defaultdict[str, Amount] = defaultdict(Amount)
    for name, number, known, unknown in buckets:
        numbers[name] += number
        amounts[name] += Amount(known or Decimal(0), unknown)
    tabs = [AgingTab(one.name.lower(), str(one), numbers[one.name], amounts[one.name]) for one in Aging]
    return [AgingTab("", "All", numbers.total(), sum(amounts.values(), Amount())), *tabs]
