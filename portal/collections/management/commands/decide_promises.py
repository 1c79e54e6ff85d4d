"""Decides all promises anew, after a change of the days of grace or of holidays."""

from typing import Any

from django.core.management.base import BaseCommand

from portal.collections.models import Promise
from portal.collections.promises import decide_promises
from portal.ui import wording


class Command(BaseCommand):
    """``manage.py decide_promises``"""

    help = "Decide all promises again. Run it after changing PROMISE_GRACE_DAYS."

    def handle(self, *args: Any, **options: Any) -> None:
        open_promises = Promise.objects.filter(withdrawn_at=None).order_by()
        accounts = set(open_promises.values_list("account_uuid", flat=True))
        decide_promises(accounts)
        self.stdout.write(f"Decided the promises of {wording.count(len(accounts), 'account')}.")
