"""Background work that survives the death of its worker.

Each area keeps its tasks in its own ``tasks.py``, where workers find them::

    from portal.jobs.kinds import job
    from portal.jobs.queue import start_job
    from portal.jobs.execution import Progress

    @job("messaging.sync", label="Sync messages", single=True, every="MESSAGE_SYNC_MINUTES")
    def sync(progress: Progress, *, read_before: str = "") -> dict[str, int]:
        progress.begin(total=len(pages))             # resume(remaining) where an earlier attempt counts
        for page in pages:
            ...
            progress.step(failed=0, words="Page 3")  # raises when the job has to stop
        return {"new": 12}                           # becomes Job.result

    started = start_job(sync, by=Actor.of(request), read_before="2026-11-01")   # a Job; joins the open one if single

Rules for tasks:

- Arguments and results are JSON with IDs: never a secret, never personal data.
- A task may start again after its worker died, so doing it twice must have the same effect as doing it once.
- ``progress.step()`` is where a job can be canceled, or put back in line because its worker stops: call it after every
  item. It raises :class:`portal.jobs.execution.Stopped`, which a task lets through. In the transaction of the item's
  effect it also undoes that effect if another worker has the job by now.
- Other exceptions are logged, and the job is tried again a little later, up to ``attempts`` times.

A page shows a job with ``{% include "ui/panels.html#job" %}`` and ``job`` in its context: the fragment refreshes, shows
the progress, and offers to cancel. ``Job.latest("messaging.sync")`` is the newest of a kind.

Tests run waiting jobs in their own process with ``call_command("work", batch=True)``.

A worker takes the job that has been due longest by one conditional update, so several workers on one or more machines
share the rows. Killing a worker loses nothing: its lease ends, and another one takes the job.
"""
