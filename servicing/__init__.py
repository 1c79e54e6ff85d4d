"""A typed client for the lending service: borrowers, their applications, credit, repayments, and messages."""

from msgspec import UNSET

from servicing.applications import Application, Decision, Offer
from servicing.borrowers import Borrower, KeyPerson, NewKeyPerson
from servicing.client import Client
from servicing.codec import Issue
from servicing.credit_lines import Statement, StatementDocument
from servicing.documents import Document, DocumentFetcher
from servicing.errors import (
    ConfigurationError,
    Conflict,
    DocumentRefused,
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
from servicing.loans import Loan
from servicing.messages import Message
from servicing.repayments import Repayment
from servicing.resource import Page, Pagination
from servicing.transport import Call, Gate, Outcome, Watcher
from servicing.values import Address, RemoteTime

__all__ = [
    "UNSET",
    "Address",
    "Application",
    "Borrower",
    "Call",
    "Client",
    "ConfigurationError",
    "Conflict",
    "Decision",
    "Document",
    "DocumentFetcher",
    "DocumentRefused",
    "Forbidden",
    "Gate",
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
]
