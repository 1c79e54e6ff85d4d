"""Helpers that fetch a document and return its bytes or the error message."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from servicing import DocumentFetcher, DocumentRefused, Unavailable

SERVICE = "https://lender.example"
FILES = "files.lender.example"
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 1000


def local_fetcher(service_url: str, **options: Any) -> DocumentFetcher:
    """A fetcher of a service on this machine, as in development."""
    return DocumentFetcher(
        **{"hosts": [], "service_url": service_url, "allow_loopback_http": True, "time_limit": 10} | options
    )


def remote_fetcher(**options: Any) -> DocumentFetcher:
    """A fetcher of a remote service; looking up any name fails the test."""
    return DocumentFetcher(**{"hosts": [FILES], "service_url": SERVICE, "resolve": fail_on_lookup} | options)


def fail_on_lookup(host: str) -> Sequence[str]:
    raise AssertionError(f"{host} was looked up")


def resolve_to(*addresses: str) -> Callable[[str], Sequence[str]]:
    return lambda host: addresses


def read_document(fetcher: DocumentFetcher, url: str) -> bytes:
    with fetcher.fetch(url) as document:
        return b"".join(document)


def refusal_message(fetcher: DocumentFetcher, url: str) -> str:
    with pytest.raises(DocumentRefused) as caught:
        read_document(fetcher, url)
    return caught.value.message


def unavailable_message(fetcher: DocumentFetcher, url: str) -> str:
    with pytest.raises(Unavailable) as caught:
        read_document(fetcher, url)
    return caught.value.message
