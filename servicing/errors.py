"""Everything that can go wrong in a call, named for what happened and not for how it was noticed.

The tree::

    ServicingError
    ├── ConfigurationError       a setting cannot be used; found before any call
    ├── InvalidInput             refused by our own rules, every problem at once; nothing was sent
    ├── Unreadable               an encrypted field cannot be deciphered (never says why)
    ├── NotSent                  a write that certainly never left
    ├── Rejected                 the service refused, in its own words
    │   ├── NotFound             no such record, or not this borrower's
    │   ├── Forbidden            refused although freshly signed
    │   └── Conflict             the record changed meanwhile
    ├── Unauthenticated          the service does not accept who we say we are
    ├── Unavailable              a read got no usable answer, after every try
    ├── OutcomeUnknown           a write may or may not have been done
    ├── DocumentRefused          a document, or its link, is not safe to fetch or to pass on
    └── ProtocolError            an answer to a read that cannot be understood
        └── IncompleteList       a paged list that ended although records may be missing

No error holds a request body, and none is chained to an exception of the HTTP library, which would hold one.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class ServicingError(Exception):
    """Base of all errors of this package.

    `message` is one readable sentence or the service's own words; `reasons` holds those words one by one and
    is empty when the service said nothing. `operation`, `status` and `request_id` name the call. `retry_after`
    is the seconds that the service asked to wait, at most a day, or None.
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
        """Name what copies and pickles are made from; not every `__init__` takes `args`."""
        return _rebuilt, (type(self), *self.args), self.__dict__


def _rebuilt(kind: type[ServicingError], *args: object) -> ServicingError:
    return kind.__new__(kind, *args)


class ConfigurationError(ServicingError):
    """A setting cannot be used. The message names it and says what is allowed."""


class InvalidInput(ServicingError):
    """Refused by the client's own rules before anything was sent.

    `problems` maps each field, dotted for nested ones (`key_people.1.phone`), to its reasons.
    """

    def __init__(self, problems: Mapping[str, Sequence[str]]) -> None:
        self.problems = {field: list(reasons) for field, reasons in problems.items()}
        super().__init__(
            "; ".join(f"{field}: {' '.join(reasons)}" for field, reasons in self.problems.items())
        )


class Unreadable(ServicingError):
    """An encrypted value cannot be deciphered. Every cause gives this same error: it hints at nothing."""

    def __init__(self) -> None:
        super().__init__("The encrypted value cannot be read.")


class NotSent(ServicingError):
    """A write that certainly never left: connection refused, no such host, connect timeout."""


class Rejected(ServicingError):
    """The service refused; nothing was changed."""


class NotFound(Rejected):
    """The service knows no such record under this borrower."""


class Forbidden(Rejected):
    """The service refused a freshly signed call."""


class Conflict(Rejected):
    """The record was changed by someone else meanwhile."""


class Unauthenticated(ServicingError):
    """The service does not accept our credentials: client id, secret, token or clock is wrong."""


class Unavailable(ServicingError):
    """A read got no usable answer, although it was tried as often as it may be."""


class OutcomeUnknown(ServicingError):
    """A write left and may or may not have been done: no answer, a 5xx, or an answer that cannot be read."""


class DocumentRefused(ServicingError):
    """A document is not fetched, or not passed on, because it or its link is not safe. The message says why."""


class ProtocolError(ServicingError):
    """The answer to a read does not follow the interface."""


class IncompleteList(ProtocolError):
    """A paged list ended although records may be missing: pages repeat, or its total does not hold."""
