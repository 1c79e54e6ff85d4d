"""The errors of a call, named for what happened.

The tree::

    ServicingError
    ├── ConfigurationError       a setting cannot be used; raised before any call
    ├── InvalidInput             the client's own rules rejected the input, every problem at once; nothing was sent
    ├── Unreadable               an encrypted field cannot be decrypted; never says why
    ├── NotSent                  a write was certainly not sent
    │   └── Busy                 the service had too many requests and did not take it
    ├── Rejected                 the service rejected the call, in its own words
    │   ├── NotFound             no such record, or not this borrower's
    │   ├── Forbidden            rejected although the signature is fresh
    │   └── Conflict             the record was changed by someone else
    ├── Unauthenticated          the service does not accept the credentials
    ├── Unavailable              a read got no usable answer in any try
    ├── OutcomeUnknown           a write may or may not have been carried out
    ├── DocumentRefused          a document, or its link, is not safe to fetch or to pass on
    └── ProtocolError            the answer to a read does not follow the interface
        └── IncompleteList       a paged list ended although records may be missing

No error contains a request body or is chained to an exception of the HTTP library, which would contain one.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class ServicingError(Exception):
    """Base of all errors of this package.

    `message` is a sentence, or the service's own reasons; `reasons` lists those, and is empty if there are none.
    `operation`, `status` and `request_id` identify the call. `retry_after` is the seconds that the service asks to
    wait, at most a day, or None.
    """

    def __init__(
        self,
        message: str = "",
        *,
        reasons: Sequence[str] = (),
        operation: str = "",
        status: int | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reasons = tuple(reasons)
        self.operation = operation
        self.status = status
        self.request_id = request_id
        self.retry_after: float | None = None

    def __str__(self) -> str:
        call = " ".join(part for part in (self.request_id, self.operation) if part)
        return f"{call}: {self.message}" if call else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild copies and pickles without `__init__`, because not every `__init__` takes `args`."""
        return _rebuild, (type(self), *self.args), self.__dict__


def _rebuild(kind: type[ServicingError], *args: object) -> ServicingError:
    return kind.__new__(kind, *args)


class ConfigurationError(ServicingError):
    """A setting cannot be used. The message names it and says what is allowed."""


class InvalidInput(ServicingError):
    """The client's own rules rejected the input before anything was sent.

    `problems` maps each field, dotted if nested (`key_people.1.phone`), to its reasons.
    """

    def __init__(self, problems: Mapping[str, Sequence[str]]) -> None:
        self.problems = {field: list(reasons) for field, reasons in problems.items()}
        super().__init__(
            "; ".join(f"{field}: {' '.join(reasons)}" for field, reasons in self.problems.items())
        )


class Unreadable(ServicingError):
    """An encrypted value cannot be decrypted. The error is the same for every cause."""

    def __init__(self) -> None:
        super().__init__("The encrypted value cannot be read.")


class NotSent(ServicingError):
    """A write was certainly not sent: connection refused, no such host, connect timeout."""


class Busy(NotSent):
    """The service had too many requests and did not take a write (429). `advice` says when to try again."""

    advice = "Try again in a moment."


class Rejected(ServicingError):
    """The service rejected the call; nothing was changed."""


class NotFound(Rejected):
    """The service knows no such record under this borrower."""


class Forbidden(Rejected):
    """The service rejected a call with a fresh signature."""


class Conflict(Rejected):
    """The record was changed by someone else in the meantime."""


class Unauthenticated(ServicingError):
    """The service does not accept the credentials: client ID, secret, token or clock is wrong."""


class Unavailable(ServicingError):
    """A read got no usable answer in any of its tries."""


class OutcomeUnknown(ServicingError):
    """A write was sent and may or may not have been carried out: no answer, a 5xx, or an unreadable answer."""


class DocumentRefused(ServicingError):
    """A document was not fetched, or not passed on, because it or its link is not safe. The message says why."""


class ProtocolError(ServicingError):
    """The answer to a read does not follow the interface, or is an error in spite of its status."""


class IncompleteList(ProtocolError):
    """A paged list ended although records may be missing: pages repeat, or there are fewer than its total."""
