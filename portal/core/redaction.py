"""Keeps EIN, SSN and passwords out of error pages and logs, wherever an exception or a message carries them.

Bodies of remote calls are masked by field where they are made. This is the safety net: anything that looks like a tax
number is masked in any text, and error pages show neither local variables nor posted values, not even under DEBUG.
"""

import logging
from collections.abc import ItemsView
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.safestring import SafeString, mark_safe
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

from servicing.masking import masked_text

_REJECTIONS = (PermissionDenied, SuspiciousOperation, MultiPartParserError)


class LogFilter(logging.Filter):
    """Masks tax numbers in finished log lines and tracebacks, and leaves out tracebacks of rejected requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the record in place; no record is dropped."""
        record.msg, record.args = masked_text(record.getMessage()), ()
        if record.exc_info and isinstance(record.exc_info[1], _REJECTIONS):
            record.exc_info = None
        if record.exc_info and not record.exc_text:
            record.exc_text = masked_text(logging.Formatter().formatException(record.exc_info))
        return True


class ReporterFilter(SafeExceptionReporterFilter):
    """Leaves posted values and local variables out of error reports."""

    def get_post_parameters(self, request: HttpRequest | None) -> MultiValueDict[str, Any]:
        posted = QueryDict(mutable=True)
        for name in getattr(request, "POST", ()):
            posted[name] = self.cleansed_substitute
        return posted

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: Any
    ) -> ItemsView[str, Any]:
        """No variables: a local variable may hold anything that was typed."""
        return {}.items()


class Reporter(ExceptionReporter):
    """Masks the whole text of error reports."""

    def get_traceback_html(self) -> SafeString:
        """The masked debug page."""
        return mark_safe(masked_text(super().get_traceback_html()))  # noqa: S308  (Django made it safe)

    def get_traceback_text(self) -> SafeString:
        """The masked text for logs and mail."""
        return mark_safe(masked_text(super().get_traceback_text()))  # noqa: S308  (plain text)
