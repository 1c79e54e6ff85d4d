"""Keeps the name under which tables, permissions and audit entries of documents are stored."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """Printed documents. Stored names begin with ``summaries``."""

    name = "portal.documents"
    label = "summaries"
