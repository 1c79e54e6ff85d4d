"""The client's settings, previews, base URL and `repr`."""

import copy
import pickle
import traceback
from decimal import Decimal
from typing import Any

import pytest
from requests import Session
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import Retry

from servicing import Client, ConfigurationError, InvalidInput
from servicing.connections import checked_url
from servicing.crypto import FieldCipher
from servicing.sandbox import Sandbox

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


def session_with_adapter(adapter: BaseAdapter) -> Session:
    session = Session()
    session.mount("https://", adapter)
    return session


class OtherAdapter(BaseAdapter):
    """An adapter that is not an `HTTPAdapter`."""


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({}, "client id is missing"),
        ({"client_id": "desk"}, "secret is missing"),
        ({"client_id": "desk", "secret": "short"}, "16, 24 or 32"),
        ({"auth": "bearer"}, "token is missing"),
        (
            {"auth": "kerberos"},
            "auth must be one of hmac, bearer, header, basic, oauth2, none, not .kerberos.",
        ),
        ({"auth": "none", "field_key": "short"}, "16, 24 or 32"),
        ({"auth": "none", "message_filters": "header"}, "message_filters must be one of query, body"),
        (
            {"auth": "none", "offset_counts": "pages"},
            "offset_counts must be one of None, rows, pages0, pages1",
        ),
        ({"auth": "none", "time_zone": "Pacific"}, "time_zone must be a name such as America/New_York"),
        ({"auth": "none", "timeout": 0}, "timeout must be greater than zero"),
        ({"auth": "none", "timeout": (3, -1)}, "timeout must be greater than zero"),
        ({"auth": "none", "time_limit": 0}, "time_limit must be greater than zero"),
        ({"auth": "none", "timeout": (1,)}, "timeout must be one number, or two"),
        ({"auth": "none", "timeout": float("nan")}, "timeout must be greater than zero"),
        ({"auth": "none", "time_limit": float("inf")}, "time_limit must be greater than zero"),
        ({"auth": "none", "max_tries": 0}, "max_tries must be a whole number from 1 up"),
        ({"auth": "none", "max_tries": 2.5}, "max_tries must be a whole number from 1 up"),
        ({"auth": "none", "max_values": True}, "max_values must be a whole number from 1 up"),
        ({"auth": "none", "country": ""}, "country must not be empty"),
        ({"auth": "none", "message_content_type": "no"}, "message_content_type must be one of True, False"),
        ({"client_id": "desk", "secret": SECRET, "auth_headers": 5}, "must be four header names"),
        ({"auth": "none", "incorporation_field": " "}, "incorporation_field must not be empty"),
        ({"auth": "none", "verify": False}, "verify must be a file of certificates"),
        ({"auth": "none", "verify": "/nowhere.pem"}, "certificates in '/nowhere.pem' cannot be read"),
        ({"auth": "none", "cert": ("/nowhere.pem",)}, "client certificate in .* cannot be read"),
        ({"auth": "none", "session": Session(), "proxies": {"http": "http://p"}}, "give either, not both"),
        (
            {"auth": "none", "session": session_with_adapter(HTTPAdapter(max_retries=2))},
            "adapter must not retry",
        ),
        (
            {"auth": "none", "session": session_with_adapter(HTTPAdapter(max_retries=Retry(None, read=2)))},
            "adapter must not retry",
        ),
        ({"auth": "none", "session": session_with_adapter(OtherAdapter())}, "adapter must be an HTTPAdapter"),
        ({"auth": "none", "session": "ready"}, "session must be a requests.Session"),
        (
            {"auth": "none", "proxies": {"https": "socks5://proxy.example"}},
            "proxies must name an http or https",
        ),
        ({"auth": "none", "proxies": {"https": "http://"}}, "proxies must name an http or https"),
        ({"auth": "none", "proxies": "http://proxy.example"}, "proxies must name an http or https"),
        ({"auth": "none", "time_limit": 1e300}, "time_limit must be greater than zero and at most 86,400"),
        ({"auth": "none", "time_zone": None}, "time_zone must be a name such as"),
        (
            {"auth": "none", "envelope": "errors"},
            "envelope and list_envelope can’t be message, error, errors",
        ),
        ({"auth": "none", "list_envelope": "error"}, "such an answer is an error"),
        ({"auth": "none", "cert": ()}, "client certificate in .* cannot be read"),
    ],
)
def test_an_invalid_setting_raises_a_clear_error(choices: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        Client("https://lender.example", **choices)


def test_a_configuration_error_traceback_hides_the_secret() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Client("not an address", client_id="desk", secret=SECRET)

    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)][1:]
    assert "Client.__init__" in [frame.f_code.co_qualname for frame in frames]
    assert SECRET not in repr([frame.f_locals for frame in frames])


def test_the_repr_of_a_client_hides_its_secrets() -> None:
    with Client("https://lender.example", client_id="desk", secret=SECRET) as client:
        assert SECRET not in repr(client) + repr(vars(client)) + repr(vars(client.borrowers))


def test_the_field_key_is_passed_to_the_cipher(sandbox: Sandbox) -> None:
    keys: list[bytes] = []

    class RecordingCipher(FieldCipher):
        def __init__(self, key: bytes) -> None:
            keys.append(key)
            super().__init__(key)

    Client(sandbox.url, auth="none", field_key="0123456789abcdef", cipher=RecordingCipher).close()

    assert keys == [b"0123456789abcdef"]


def test_a_preview_shows_the_masked_write_and_sends_nothing(service_client: Client, sandbox: Sandbox) -> None:
    call = service_client.preview(
        lambda it: it.borrowers.update("b-1", email="new@example.com", ssn="123-45-6789", asset_report=b"{}")
    )

    assert call.operation == "borrowers.update"
    assert call.body == {
        "email": "new@example.com",
        "ssn": "[hidden]",
        "asset_report_json_gzip": "[32 characters]",
    }
    assert sandbox.calls == []


def test_a_preview_validates_its_input(service_client: Client) -> None:
    with pytest.raises(InvalidInput):
        service_client.preview(lambda it: it.applications.submit("b-1", amount=Decimal(0)))


def test_a_read_cannot_be_previewed(service_client: Client, sandbox: Sandbox) -> None:
    with pytest.raises(TypeError, match="no write to preview"):
        service_client.preview(lambda it: it.messages.list())


def test_a_base_url_with_the_version_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="must end before /v1"):
        Client("https://lender.example/api/v1/", auth="none")


@pytest.mark.parametrize(
    "host",
    [
        "a..b",
        "a" * 70,
        ".".join(["a" * 60] * 5),
        "a b",
        "-lender.example",
        "lender-.example",
        "",
        "[::1",
        "256.1.1.1",
        "1.2.3.4.5",
        "@lender.example",
        "lender.example?",
        "lender.example#",
    ],
)
def test_a_base_url_with_an_invalid_host_is_rejected(host: str) -> None:
    with pytest.raises(ConfigurationError, match="must look like"):
        Client(f"https://{host}", auth="none")


@pytest.mark.parametrize("address", [None, 8000, b"https://lender.example"])
def test_a_base_url_that_is_not_text_is_rejected(address: Any) -> None:
    with pytest.raises(ConfigurationError, match="must look like"):
        Client(address, auth="none")


@pytest.mark.parametrize(
    "host", ["lender.example.", "my_service", "[::1]:8443", "127.0.0.1:80", "bücher.example"]
)
def test_a_base_url_with_a_valid_host_is_accepted(host: str) -> None:
    Client(f"https://{host}", auth="none").close()
    assert checked_url(f"https://{host}/") == f"https://{host}"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_client_cannot_be_copied_or_pickled(duplicate: Any) -> None:
    with Client("https://lender.example", auth="none") as client, pytest.raises(TypeError, match="secrets"):
        duplicate(client)
