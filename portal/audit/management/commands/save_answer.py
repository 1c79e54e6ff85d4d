"""Records the answers of writes that the database didn't take when they came."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.audit.models import WriteIntent
from portal.audit.unsaved import answers_file
from portal.audit.writes import save_unsaved, unsaved_results


class Command(BaseCommand):
    """``manage.py save_answer``."""

    help = "Record answers of changes that the database didn’t take, from the file in DATA_DIR."

    def handle(self, *args: Any, **options: Any) -> None:
        results, missing = unsaved_results(), []
        for result in results:
            name = f"{result.call['operation']}, {result.state}, {result.uuid or 'no ID'}"
            try:
                save_unsaved(result)
            except WriteIntent.DoesNotExist:
                missing.append(name)
            else:
                self.stdout.write(f"Saved: {name}")
        if missing:
            raise CommandError(
                f"These changes aren’t in this database, as after restoring an older backup: {'; '.join(missing)}. "
                f"Check them at the service. The answers stay in {answers_file()}."
            )
        if not results:
            self.stdout.write("No answers are waiting to be saved.")
