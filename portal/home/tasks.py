"""Background jobs of the home page."""

from portal.home import attention, notices
from portal.jobs.execution import Progress
from portal.jobs.kinds import chore, job


@job("home.write_mail", label="Prepare email", single=True, every="MAIL_MINUTES")
def write_mail(progress: Progress) -> None:
    """Write due mail to people and operators, each message once."""
    notices.write_mail()


# Keeps the number in the navigation counted.
chore(attention.renew_shared_count)
