from django.apps import AppConfig


class ListsConfig(AppConfig):
    """Lists of records, and their saved views."""

    name = "portal.lists"
    label = "saved_views"
