"""Background jobs of the home page."""

from portal.home import notices
from portal.jobs.execution import Progress
from portal.jobs.kinds import job


@job("home.write_mail", label="Prepare email", single=True, every="MAIL_MINUTES")
def write_mail(progress: Progress) -> None:
    """Write due mail to people and operators, each message once."""
    notices.write_mail()
