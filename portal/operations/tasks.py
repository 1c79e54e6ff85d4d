"""Background jobs that maintain this deployment."""

import io

from django.core.management import call_command

from portal.audit import integrity
from portal.core.database import analyze
from portal.jobs.execution import Progress
from portal.jobs.kinds import job

DAILY = 24 * 60
"""In minutes."""


@job("operations.forget_old", label="Delete expired records", single=True, every=DAILY)
def forget_old(progress: Progress) -> None:
    """Delete old data as the command does, then update the database's statistics."""
    call_command("forget_old", stdout=io.StringIO())
    analyze()


@job("operations.verify_audit", label="Check the audit trail", single=True, attempts=1, every=DAILY)
def verify_audit(progress: Progress) -> None:
    """Check the whole trail. If it is broken, the job fails and the home page says so."""
    integrity.check_trail()


@job("operations.log_audit_head", label="Log the end of the audit trail", single=True, attempts=1, every=60)
def log_audit_head(progress: Progress) -> None:
    """Write the last entry's number and hash to the log, once an hour."""
    integrity.log_head()
