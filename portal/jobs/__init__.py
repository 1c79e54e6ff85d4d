"""Background work that survives the death of its worker.

Each area keeps its tasks in its own ``tasks.py``; a worker finds them there by itself::

    from portal.jobs.kinds import job
    from portal.jobs.queue import start
    from portal.jobs.running import Progress

    @job("messaging.sync", label="Fetching messages", single=True, every="MESSAGE_SYNC_MINUTES")
    def sync(progress: Progress, *, since: str = "") -> dict[str, int]:
        progress.begin(total=len(pages))             # resume(remaining) where an earlier attempt counts
        for page in pages:
            ...
            progress.step(failed=0, words="Page 3")  # leaves by itself when it is to stop
        return {"new": 12}                           # becomes Job.result

    started = start(sync, by=Actor.of(request), since="2026-11-01")   # a Job; joins the open one if single

What a task must know:

- Its arguments and its result are JSON, and hold identifiers: never a secret, never personal data.
- It may be begun again from the start after its worker died, so that doing it twice ends like doing it once.
- ``progress.step()`` is where it can be cancelled, or given back because its worker stops: call it after every item,
  outside a transaction. It raises :class:`portal.jobs.running.Stopped`, which a task lets through.
- What it raises otherwise is logged, and it is tried again a little later, up to ``attempts`` times.

A page shows a job with ``{% include "ui/_job.html" %}`` and ``job`` in its context: it asks for news by itself, shows
done, failed and words, and offers to cancel. ``Job.latest("messaging.sync")`` is the newest of a kind.

In tests nothing runs by itself: ``call_command("work", batch=True)`` works off what waits, in this process.

Work is handed over through Django's task interface (``engine`` alone imports it), so that ``TASK_BACKEND`` may name
another engine than the database. A ``Job`` row holds everything that matters, and the engine only carries its id: it
may lose or repeat a delivery without harm. ``manage.py work`` runs the work, renews leases and keeps the schedule.
"""
