from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """Printed documents. Their acts in the trail and their jobs begin with ``summaries``."""

    name = "portal.documents"
