"""Keeps the former name of this app, under which tables, permissions and audit entries are stored."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """Printed documents, whose stored names begin with ``summaries``."""

    name = "portal.documents"
    label = "summaries"
