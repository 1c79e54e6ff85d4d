"""How the tests of documents fetch, and how a fetch ends."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from servicing import DocumentFetcher, DocumentRefused, Unavailable

SERVICE = "https://lender.example"
FILES = "files.lender.example"
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 1000


def here(service_url: str, **choices: Any) -> DocumentFetcher:
    """A fetcher of a service on this machine, as in development."""
    return DocumentFetcher(
        **{"hosts": [], "service_url": service_url, "allow_loopback_http": True, "time_limit": 10} | choices
    )


def out_there(**choices: Any) -> DocumentFetcher:
    """A fetcher of a service elsewhere; looking up any name is a failure."""
    return DocumentFetcher(**{"hosts": [FILES], "service_url": SERVICE, "resolve": nobody_asks} | choices)


def nobody_asks(host: str) -> Sequence[str]:
    raise AssertionError(f"{host} was looked up")


def leading_to(*addresses: str) -> Callable[[str], Sequence[str]]:
    return lambda host: addresses


def read(fetcher: DocumentFetcher, url: str) -> bytes:
    with fetcher.fetch(url) as document:
        return b"".join(document)


def refusal(fetcher: DocumentFetcher, url: str) -> str:
    with pytest.raises(DocumentRefused) as caught:
        read(fetcher, url)
    return caught.value.message


def trouble(fetcher: DocumentFetcher, url: str) -> str:
    with pytest.raises(Unavailable) as caught:
        read(fetcher, url)
    return caught.value.message
