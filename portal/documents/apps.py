from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """Printed documents. Their acts in the trail begin with ``summaries``."""

    name = "portal.documents"
