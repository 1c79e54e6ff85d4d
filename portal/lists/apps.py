from django.apps import AppConfig


class ListsConfig(AppConfig):
    """Lists of records, and the views of them that people saved."""

    name = "portal.lists"
    label = "saved_views"
