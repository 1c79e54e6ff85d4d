"""What keeps this deployment tidy in the background."""

import io

from django.core.management import call_command

from portal.jobs.kinds import job
from portal.jobs.running import Progress
from portal.registry.planning import count_anew


@job("operations.forget_old", label="Deleting what was kept long enough", single=True, every="FORGET_MINUTES")
def forget_old(progress: Progress) -> None:
    """As the command does; then the database counts anew what it plans by."""
    call_command("forget_old", stdout=io.StringIO())
    count_anew()


@job(
    "operations.verify_audit",
    label="Checking the audit trail",
    single=True,
    attempts=1,
    every="VERIFY_MINUTES",
)
def verify_audit(progress: Progress) -> None:
    """As the command does; a trail that is broken makes the job fail, and is named on the home page."""
    call_command("verify_audit", stdout=io.StringIO(), stderr=io.StringIO())


@job(
    "operations.sign_audit",
    label="Signing the audit trail",
    single=True,
    attempts=1,
    every="CHECKPOINT_MINUTES",
)
def sign_audit(progress: Progress) -> None:
    """Check what is new in the trail and sign how it ends, so that little can be cut off unnoticed."""
    call_command("verify_audit", recent=True, stdout=io.StringIO(), stderr=io.StringIO())
