"""Writes the columns that come from saved answers again."""

from typing import Any

from django.core.management.base import BaseCommand

from portal.records.models import Kind
from portal.records.rebuilding import MODELS, rebuild, rebuild_repayments
from portal.ui import wording


class Command(BaseCommand):
    """``manage.py rebuild_records``"""

    help = "Write what is on file from saved answers again, after a change of how they are read. Can be repeated."

    def handle(self, *args: Any, **options: Any) -> None:
        for kind in MODELS:
            self._report(str(Kind(kind).label), rebuild(kind))
        self._report("Repayment", rebuild_repayments())

    def _report(self, name: str, changed: int) -> None:
        self.stdout.write(f"{name}: {wording.count(changed, 'row')} changed.")
