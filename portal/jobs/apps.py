"""Reports an invalid task backend at startup, before Django's own checks fail on it."""

from importlib import import_module

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Background jobs."""

    name = "portal.jobs"

    def ready(self) -> None:
        """Load the engine, which stops the start with a message if there is none."""
        import_module("portal.jobs.engine")
