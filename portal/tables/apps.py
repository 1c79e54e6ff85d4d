from django.apps import AppConfig


class TablesConfig(AppConfig):
    """Lists of records, and their saved views."""

    name = "portal.tables"
    label = "saved_views"
