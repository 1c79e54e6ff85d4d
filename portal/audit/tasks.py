"""What workers do for the audit trail besides jobs."""

from portal.audit import view_log, writes
from portal.jobs.kinds import chore

chore(writes.prepare_spool)
chore(view_log.replay_views)
