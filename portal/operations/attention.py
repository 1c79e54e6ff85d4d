"""Background work that needs attention."""

from django.urls import reverse

from portal.accounts.models import User
from portal.jobs.status import jobs_status, live_workers
from portal.ui.attention import Item, Items, Snoozed


def stopped_worker(snoozed: Snoozed, _user: User) -> Items:
    """An item if no worker is running although one was, or a job waits for one."""
    if workers := live_workers():
        return Items()
    jobs = jobs_status(workers)
    since = jobs.silent_since or jobs.oldest
    if since is None:
        return Items()
    return snoozed.only(
        Item(
            key=f"worker:{since.timestamp():.0f}",
            fact="Background jobs are stopped:",
            rest="no worker is running",
            meta=f"{jobs.waiting:,} waiting" if jobs.waiting else "new messages are not fetched",
            when=since,
            url=reverse("operations:status"),
            verb="Open status",
        ),
        "system",
    )
