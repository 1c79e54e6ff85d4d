"""A typed client for the lending service: borrowers, their applications, credit, repayments, and messages."""

from servicing.errors import (
    ConfigurationError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    Rejected,
    ServicingError,
    Unauthenticated,
    Unavailable,
    Unreadable,
)

__all__ = [
    "ConfigurationError",
    "Conflict",
    "Forbidden",
    "InvalidInput",
    "NotFound",
    "NotSent",
    "OutcomeUnknown",
    "ProtocolError",
    "Rejected",
    "ServicingError",
    "Unauthenticated",
    "Unavailable",
    "Unreadable",
]
