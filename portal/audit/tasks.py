"""What workers do for the audit trail beside jobs."""

from portal.audit import outcomes
from portal.jobs.kinds import chore

chore(outcomes.prepare)
