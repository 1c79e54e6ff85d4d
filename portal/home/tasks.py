"""Background jobs of the home page."""

from portal.home import attention, notices
from portal.jobs.execution import Progress
from portal.jobs.kinds import chore, job


@job("home.write_mail", label="Prepare email", single=True, every="MAIL_MINUTES")
def write_mail(progress: Progress) -> None:
    """Write due mail to people and operators, each message once."""
    notices.write_mail()


# The number in the navigation, so that pages rarely count.
chore(attention.renew_shared_count)
