"""The points that the interface leaves open, as decided for one service."""

from collections.abc import Sequence
from dataclasses import dataclass

from servicing.errors import ConfigurationError

OFFSETS = ("pages", "pages-from-1", "rows")
"""What the message list's offset can count; ``pages`` start from 0."""
FILTERS = ("both", "query", "body")
"""Where the message list can read its parameters."""
TOTALS = ("pagination", "beside", "meta", "bare")
"""Where the message list can report its total; a ``bare`` list has none."""
ERRORS = ("message", "oauth", "list", "ok")
"""The forms of an error."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a service can decide anew for each request."""

    offset: str = OFFSETS[0]
    filters: str = FILTERS[0]
    page_cap: int = 1000
    refuses_larger_pages: bool = True
    json_type_breaks_reads: bool = True
    unknown_path_status: int = 404
    message_total: str = TOTALS[0]
    errors: str = ERRORS[0]
    wrap: str = ""
    wrap_lists: str = ""
    wrap_errors: str = ""

    def __post_init__(self) -> None:
        require_choice("offset", self.offset, OFFSETS)
        require_choice("filters", self.filters, FILTERS)
        require_choice("message_total", self.message_total, TOTALS)
        require_choice("errors", self.errors, ERRORS)
        if self.page_cap < 1:
            raise ConfigurationError("page_cap must be 1 or more.")


def require_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise `ConfigurationError` if a value is not one of the choices."""
    if value not in allowed:
        raise ConfigurationError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
