"""Compare the book with figures worked out anew from raw answers, for random pairs of account and day.

    DEBUG=1 DATA_DIR=… python -m tests.pairs [1000]

:mod:`tests.owed` calculates from plain JSON with none of the portal's code. The answer of a day is the text that was
received last by its end; one that was received before and after a day counts as a copy of that day.
"""

import json
import os
import random
import sys
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from tests import owed

BUCKETS = {
    "Current": "current",
    "1–29 days": "days_1_29",
    "30–59 days": "days_30_59",
    "60–89 days": "days_60_89",
    "90+ days": "days_90",
    "Not known": "not_known",
}


def main(number: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()
    from portal.portfolio.models import AccountState, BookDay
    from portal.records.models import Account

    accounts = list(Account.objects.filter(kind__in=("loan", "line")).values_list("kind", "uuid"))
    days = list(BookDay.objects.filter(not_certain=0).values_list("day", flat=True))
    compared, wrong = 0, 0
    for _ in range(number):
        (kind, uuid), day = random.choice(accounts), random.choice(days)
        row = AccountState.objects.on(day).filter(kind=kind, uuid=uuid).first()
        found = {name: getattr(row, name, None) for name in expected(kind, None, day)}
        wanted = expected(kind, answer_of(kind, uuid, day), day)
        compared += len(wanted)
        if found != wanted:
            wrong += 1
            differs = {name: (found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}
            sys.stdout.write(f"{kind} {uuid} {day}: {differs}\n")
    sys.stdout.write(f"{number:,} pairs, {compared:,} figures compared; {wrong} pairs differ.\n")
    sys.exit(bool(wrong))


def answer_of(kind: str, uuid: str, day: date) -> tuple[dict[str, Any], date] | None:
    """The latest answer by the end of a day, and the day of its copy."""
    from portal.records.models import Answer

    said = Answer.objects.get(kind=kind, uuid=uuid)
    texts = [(one.first_on, one.last_on, one.body) for one in [*said.snapshots.order_by("last_at"), said]]
    by_then = [(last_on, body) for first_on, last_on, body in texts if first_on and first_on <= day]
    if not by_then:
        return None
    last_on, body = by_then[-1]
    return json.loads(body, parse_float=Decimal), min(day, last_on or day)


def expected(kind: str, answer: tuple[dict[str, Any], date] | None, day: date) -> dict[str, Any]:
    """The columns of a state that the answer leads to."""
    if answer is None:
        return dict.fromkeys(["past_due", "principal", "due_since_amount", "due_next_on"]) | {
            "bucket": "not_known", "oldest_unpaid_on": None, "reported_days": None,
        }  # fmt: skip
    body, copied_on = answer
    one = owed.figures(kind, body, day, copied_on)
    days = one["Days past due"]
    bucket = "current" if one["is_new"] else BUCKETS[one["Aging"]]
    if bucket == "current" and one["Oldest due since the copy"]:
        bucket = "due_since"
    is_late_loan = kind == "loan" and days and days > 0
    return {
        "past_due": one["Past due"],
        "principal": one["Principal"],
        "due_since_amount": one["Due since the copy"],
        "due_next_on": one["Due next"],
        "bucket": "closed" if one["is_closed"] else bucket,
        "oldest_unpaid_on": day - timedelta(days=days) if is_late_loan else None,
        "reported_days": body["days_past_due"] if kind == "line" else None,
    }


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
