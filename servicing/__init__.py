"""A typed client for the lending service: borrowers, their applications, credit, repayments, and messages.

`README.md` in this folder shows how to use it. Section numbers in docstrings are those of the interface document.
`UNSET` (from msgspec) leaves an optional field out of a request; None clears it, where that is allowed.
"""

from msgspec import UNSET

from servicing.applications import Application, Decision, Offer
from servicing.borrowers import Borrower, KeyPerson, NewKeyPerson
from servicing.client import Client
from servicing.codec import Issue
from servicing.credit_lines import Statement, StatementDocument
from servicing.documents import Document, DocumentFetcher
from servicing.errors import (
    Busy,
    ConfigurationError,
    Conflict,
    DocumentRefused,
    Forbidden,
    IncompleteList,
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
from servicing.first_day import Finding, FirstDay
from servicing.loans import Loan
from servicing.messages import Message
from servicing.repayments import Repayment
from servicing.resource import Page, Pagination
from servicing.transport import AnswerNotSaved, Call, Gate, Outcome, Watcher
from servicing.values import Address, RemoteTime
from servicing.version import __version__

__all__ = [
    "UNSET",
    "Address",
    "AnswerNotSaved",
    "Application",
    "Borrower",
    "Busy",
    "Call",
    "Client",
    "ConfigurationError",
    "Conflict",
    "Decision",
    "Document",
    "DocumentFetcher",
    "DocumentRefused",
    "Finding",
    "FirstDay",
    "Forbidden",
    "Gate",
    "IncompleteList",
    "InvalidInput",
    "Issue",
    "KeyPerson",
    "Loan",
    "Message",
    "NewKeyPerson",
    "NotFound",
    "NotSent",
    "Offer",
    "Outcome",
    "OutcomeUnknown",
    "Page",
    "Pagination",
    "ProtocolError",
    "Rejected",
    "RemoteTime",
    "Repayment",
    "ServicingError",
    "Statement",
    "StatementDocument",
    "Unauthenticated",
    "Unavailable",
    "Unreadable",
    "Watcher",
    "__version__",
]
