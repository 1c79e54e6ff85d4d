"""What workers do for the audit trail beside jobs."""

from portal.audit import outcomes, view_spool
from portal.jobs.kinds import chore

chore(outcomes.prepare)
chore(view_spool.replay)
