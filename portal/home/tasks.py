"""What the home page’s list does in the background."""

from portal.home import notices
from portal.jobs.execution import Progress
from portal.jobs.kinds import job


@job("home.write_mail", label="Prepare email", single=True, every="MAIL_MINUTES")
def write_mail(progress: Progress) -> None:
    """Write the mail that people and operators asked for; what was written before is not written again."""
    notices.write_mail()
