"""The app of records and answers."""

from django.apps import AppConfig


class RecordsConfig(AppConfig):
    """What is on file. The label is that of version 1.0, by which tables and migrations are named."""

    name = "portal.records"
    label = "registry"
