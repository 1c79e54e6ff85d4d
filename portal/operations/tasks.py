"""What keeps this deployment tidy in the background."""

import io

from django.core.management import call_command

from portal.audit import integrity
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.registry.table_statistics import analyze


@job("operations.forget_old", label="Delete expired records", single=True, every="FORGET_MINUTES")
def forget_old(progress: Progress) -> None:
    """As the command does; then the database counts anew what it plans by."""
    call_command("forget_old", stdout=io.StringIO())
    analyze()


@job(
    "operations.verify_audit", label="Check the audit trail", single=True, attempts=1, every="VERIFY_MINUTES"
)
def verify_audit(progress: Progress) -> None:
    """Check the whole trail; one that is broken makes the job fail, and is named on the home page."""
    integrity.check_trail()


@job(
    "operations.sign_audit", label="Sign the audit trail", single=True, attempts=1, every="CHECKPOINT_MINUTES"
)
def sign_audit(progress: Progress) -> None:
    """Check new entries and sign how the trail ends; a trail known to be broken waits for a whole check."""
    if not integrity.last_failed_check():
        integrity.check_trail(only_new=True)
