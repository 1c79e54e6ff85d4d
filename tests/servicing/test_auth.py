"""Request signatures, checked against values computed by `openssl`.

The digest is `printf '{"amount":25000.00,"note":"twowords"}' | openssl dgst -md5`; a signature is
`printf "$URL$DIGEST$EPOCH" | openssl dgst -sha256 -hmac "$SECRET"`.
"""

import hashlib
from collections.abc import Callable

import pytest
import requests

from servicing import ConfigurationError
from servicing.auth import BasicAuth, BearerAuth, HmacAuth, NoAuth, SeveralSignatures, body_digest

pytestmark = pytest.mark.core

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
WRITE = "https://lender.example/v1/users/b-1/loans/applications"
READ = "https://lender.example/v1/webhooks/endpoints/messages"
BODY = b'{"amount": 25000.00,\n "note": "two\xe2\x80\xa8 words"}'


def hmac_auth(**options: object) -> HmacAuth:
    return HmacAuth("desk", SECRET, clock=lambda: 1767225600.0, **options)


def prepared_post(auth: requests.auth.AuthBase) -> requests.PreparedRequest:
    return requests.Request("POST", WRITE, data=BODY, auth=auth).prepare()


def prepared_get(auth: requests.auth.AuthBase) -> requests.PreparedRequest:
    query = {"event": "payment.succeeded", "limit": "100"}
    return requests.Request("GET", READ, params=query, auth=auth).prepare()


def test_a_body_signature_matches_openssl() -> None:
    request = prepared_post(hmac_auth())

    assert request.headers["X-Client-Id"] == "desk"
    assert request.headers["Epoch"] == "1767225600000"
    assert request.headers["Content-MD5"] == "a4399a206b213625b34faef6ae3eed81"
    assert request.headers["X-Signature"] == (
        "565f88a65dc2abb94079cac85534b03e42cd4dfac59ec3a54ecd60cb66f45001"
    )


def test_signing_does_not_change_the_body() -> None:
    assert prepared_post(hmac_auth()).body == BODY


def test_a_request_without_a_body_has_an_empty_digest() -> None:
    request = prepared_get(hmac_auth())

    assert request.headers["Content-MD5"] == ""
    assert request.headers["X-Signature"] == (
        "d38ef6b056c6e97083b1f9b875087f4a5997f27f96860b4d10a059d5815ba9b3"
    )


def test_epoch_can_be_in_seconds() -> None:
    request = prepared_get(hmac_auth(epoch_unit="s"))

    assert request.headers["Epoch"] == "1767225600"
    assert request.headers["X-Signature"] == (
        "f850774d95cc5addb3d5759e5ca952297b36096421d0c2c375972679c33b1ee2"
    )


def test_header_names_can_be_changed() -> None:
    request = prepared_get(hmac_auth(header_names=["client_id", "signature", "time_stamp", "md5"]))

    assert request.headers["client_id"] == "desk"
    assert {"signature", "time_stamp", "md5"} <= set(request.headers)


def test_text_is_digested_as_utf8() -> None:
    assert body_digest('{ "city": "San\u00a0\u00e9Jos\u00e9" }') == "46153683d0cbc0d082a3abde938331cb"


SPACES = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def test_the_digest_ignores_only_listed_white_space() -> None:
    all_characters = "".join(chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000)
    without_spaces = "".join(character for character in all_characters if character not in SPACES)

    assert body_digest(all_characters) == hashlib.md5(without_spaces.encode()).hexdigest()


def test_bearer_auth_sends_the_token() -> None:
    assert prepared_post(BearerAuth("t-123")).headers["Authorization"] == "Bearer t-123"


def test_no_auth_adds_no_headers() -> None:
    assert set(prepared_post(NoAuth()).headers) == {"Content-Length"}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: HmacAuth("", SECRET), "client id is missing"),
        (lambda: HmacAuth("desk", ""), "secret is missing"),
        (lambda: HmacAuth("de\nsk", SECRET), "client id can contain only printable ASCII"),
        (lambda: HmacAuth("desk", SECRET, header_names=["A", "B", "C"]), "must be four header names"),
        (lambda: HmacAuth("desk", SECRET, header_names=["A", "B", "C", "D: x"]), "must be four header names"),
        (lambda: HmacAuth("desk", SECRET, epoch_unit="min"), "must be ms or s, not 'min'"),
        (lambda: BearerAuth(""), "token is missing"),
        (lambda: BearerAuth(" t"), "token can contain only printable ASCII"),
    ],
)
def test_an_invalid_setting_raises_a_clear_error(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        make()


def test_several_signatures_have_header_names_of_their_own() -> None:
    scheme = hmac_auth()
    other = scheme.with_choices(auth_headers=("Client", "Signature", "Seconds", "Digest"), epoch_unit="s")

    request = prepared_get(SeveralSignatures(scheme, other))

    assert (request.headers["Epoch"], request.headers["Seconds"]) == ("1767225600000", "1767225600")
    assert request.headers == {**prepared_get(scheme).headers, **prepared_get(other).headers}


def test_other_choices_keep_the_clock_unless_it_is_given() -> None:
    later = hmac_auth().with_choices(clock=lambda: 1767225601.0)

    assert prepared_get(later).headers["Epoch"] == "1767225601000"
    assert prepared_get(later.with_choices(epoch_unit="s")).headers["Epoch"] == "1767225601"


@pytest.mark.parametrize(
    ("client_id", "secret", "words"),
    [
        ("", SECRET, "The client id is missing."),
        ("de:sk", SECRET, "can’t contain “:” with auth=basic."),
        ("desk", "", "The secret is missing; auth=basic needs it."),
    ],
)
def test_a_user_and_password_are_checked(client_id: str, secret: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        BasicAuth(client_id, secret)
