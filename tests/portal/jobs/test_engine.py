"""The undocumented parts of django-tasks-db that the worker uses: an upgrade that changes them fails here."""

import inspect
from importlib.metadata import version

from django_tasks_db.management.commands import db_worker
from django_tasks_db.models import DBTaskResult

from portal.jobs.engine import DatabaseWorker


def test_the_engine_has_the_pinned_version() -> None:
    assert version("django-tasks-db").startswith("0.13.")


def test_the_worker_relies_on_existing_engine_names() -> None:
    overridden = {name for name in vars(DatabaseWorker) if inspect.isfunction(getattr(DatabaseWorker, name))}
    assert overridden - set(vars(db_worker.Worker)) == {"interrupt"}
    worker = DatabaseWorker()
    assert (worker.running, worker.running_task) == (True, False)
    assert callable(worker.configure_signals)
    assert {"enqueued_at", "status"} <= {field.name for field in DBTaskResult._meta.get_fields()}
