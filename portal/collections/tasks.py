"""Background work of collections."""

from portal.collections.promises import decide_outdated
from portal.jobs.kinds import chore


@chore
def decide_after_midnight() -> None:
    """Decide the promises whose deadline has passed."""
    decide_outdated()
