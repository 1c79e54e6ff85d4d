"""Signatures, compared with values calculated by openssl."""

import time_machine

from servicing.sandbox.signing import Signatures, body_digest

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
NEW_YEAR = "2026-01-01T00:00:00Z"
URL = "https://api.lender.example/v1/users?x=1%20a"
BODY = '{ "first_name": "O’Neil & Daughters",\n\t"n": [1, 2] }'.encode()
DIGEST = "fcbe1ef94459468c89831e6f743cca81"
HEADERS = {
    "X-Client-Id": "desk",
    "X-Signature": "e822b771e9ba3f8a0d1371b3416033db3a81a3e498ba7e1064fc6fd847ff1c81",
    "Epoch": "1767225600000",
    "Content-MD5": DIGEST,
}


def problem(body: bytes = BODY, **changed: str) -> str | None:
    headers = HEADERS | {name.replace("_", "-"): value for name, value in changed.items()}
    return Signatures("desk", SECRET).problem(URL, body, headers)


@time_machine.travel(NEW_YEAR, tick=False)
def test_a_correct_signature_is_accepted() -> None:
    assert problem() is None


@time_machine.travel(NEW_YEAR, tick=False)
def test_an_epoch_in_seconds_is_accepted() -> None:
    headers = HEADERS | {
        "X-Signature": "b7ce7d36459f11eccc3e4377aedef4ade9a2c747039d98169319b93a7d13c2d0",
        "Epoch": "1767225600",
        "Content-MD5": "",
    }
    signatures = Signatures("desk", SECRET)
    assert signatures.problem("https://api.lender.example/v1/users", b"", headers) is None


@time_machine.travel(NEW_YEAR, tick=False)
def test_a_change_to_any_signed_part_is_rejected() -> None:
    assert problem(BODY.replace(b"1", b"3")) == "The digest does not match the body"
    assert problem(Content_MD5="") == "The digest does not match the body"
    assert problem(X_Client_Id="somebody") == "The client is not known"
    assert problem(X_Signature=HEADERS["X-Signature"].upper()) == "The signature is not valid"
    assert problem(Epoch="1767225600001") == "The signature is not valid"
    assert problem(b"\xff") == "The body is not UTF-8 text"


@time_machine.travel("2026-01-01T00:01:00Z", tick=False)
def test_a_signature_is_valid_for_60_seconds() -> None:
    assert problem() is None


@time_machine.travel("2026-01-01T00:01:00.002Z", tick=False)
def test_an_expired_signature_is_rejected() -> None:
    assert problem() == "The signature has expired"


@time_machine.travel("2025-12-31T23:58:59Z", tick=False)
def test_a_signature_from_the_future_is_rejected() -> None:
    assert problem() == "The signature has expired"


def test_an_epoch_that_is_not_a_number_is_rejected() -> None:
    assert {problem(Epoch=epoch) for epoch in ("", "now", "-1", "1e9", "9" * 17)} == {
        "The signature has expired"
    }


def test_header_names_are_configurable() -> None:
    signatures = Signatures("desk", SECRET, ("client_id", "sign", "when", "md5"))
    with time_machine.travel(NEW_YEAR, tick=False):
        headers = dict(zip(("client_id", "sign", "when", "md5"), HEADERS.values(), strict=True))
        assert signatures.problem(URL, BODY, headers) is None


def test_the_digest_ignores_whitespace() -> None:
    white = "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    assert body_digest(f"a{white}b".encode()) == body_digest(b"ab")


def test_the_digest_keeps_other_invisible_characters() -> None:
    invisible = "\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2060"
    assert (
        len({body_digest(f"a{sign}b".encode()) for sign in invisible} | {body_digest(b"ab")})
        == len(invisible) + 1
    )
