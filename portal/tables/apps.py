from django.apps import AppConfig


class ListsConfig(AppConfig):
    """Lists of records, and their saved views."""

    name = "portal.tables"
    label = "saved_views"
