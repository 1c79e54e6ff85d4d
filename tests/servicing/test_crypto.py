"""The field cipher, checked against values computed by `openssl`.

Each value comes from this command::

    (printf $IV | xxd -r -p; printf 123456789 | openssl enc -aes-256-cbc -K $KEY -iv $IV) | base64

with IV 000102…0f and KEY the hex of the secret's characters without dashes.
"""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import ConfigurationError, Unreadable
from servicing.crypto import FieldCipher, key_from_secret

pytestmark = pytest.mark.core

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
IV = bytes(range(16))
VECTORS = [
    pytest.param(SECRET, "123456789", "AAECAwQFBgcICQoLDA0OD54itJvO43QyLoOxzfk09yI=", id="AES-256"),
    pytest.param(SECRET, "987654321", "AAECAwQFBgcICQoLDA0ODxgwvAjDFjpg479mvud2irE=", id="other-text"),
    pytest.param(SECRET[:28], "123456789", "AAECAwQFBgcICQoLDA0OD9ba7KDEXszQ2mPmcPtP3l4=", id="AES-192"),
    pytest.param(SECRET[:18], "123456789", "AAECAwQFBgcICQoLDA0OD5serOnX04zuCMgr6RK+4hg=", id="AES-128"),
]
NOT_UTF8 = "AAECAwQFBgcICQoLDA0OD/7DU3kviuttxthvCARnK4A="
GOOD = VECTORS[0].values[2]


@pytest.fixture
def cipher() -> FieldCipher:
    return FieldCipher(key_from_secret(SECRET))


@pytest.mark.parametrize(("secret", "text", "encrypted"), VECTORS)
def test_encryption_matches_openssl(secret: str, text: str, encrypted: str) -> None:
    assert FieldCipher(key_from_secret(secret)).encrypt(text, iv=IV) == encrypted


@pytest.mark.parametrize(("secret", "text", "encrypted"), VECTORS)
def test_values_from_openssl_can_be_decrypted(secret: str, text: str, encrypted: str) -> None:
    assert FieldCipher(key_from_secret(secret)).decrypt(encrypted) == text


@given(st.text())
def test_any_encrypted_text_can_be_decrypted(text: str) -> None:
    cipher = FieldCipher(key_from_secret(SECRET))

    assert cipher.decrypt(cipher.encrypt(text)) == text


def test_the_same_text_encrypts_differently_each_time(cipher: FieldCipher) -> None:
    assert cipher.encrypt("123456789") != cipher.encrypt("123456789")


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param("", id="nothing"),
        pytest.param("not base64!", id="not-base64"),
        pytest.param("é", id="not-ascii"),
        pytest.param(GOOD[:20], id="cut-inside-the-iv"),
        pytest.param(GOOD[:24], id="no-whole-block"),
        pytest.param(GOOD[:-8] + "AAAAAAA=", id="bad-padding"),
        pytest.param(NOT_UTF8, id="not-text"),
    ],
)
def test_every_decryption_failure_raises_the_same_error(cipher: FieldCipher, damaged: str) -> None:
    with pytest.raises(Unreadable) as caught:
        cipher.decrypt(damaged)

    assert str(caught.value) == "The encrypted value cannot be read."
    assert caught.value.__context__ is None


def test_another_key_cannot_decrypt(cipher: FieldCipher) -> None:
    other_cipher = FieldCipher(key_from_secret(SECRET.replace("3", "4")))

    with pytest.raises(Unreadable):
        other_cipher.decrypt(GOOD)


@pytest.mark.parametrize("secret", ["", "short", SECRET + "0", "é" * 31])
def test_a_secret_of_the_wrong_length_is_rejected(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="16, 24 or 32") as caught:
        key_from_secret(secret)

    assert not secret or secret not in str(caught.value)


def test_a_key_of_the_wrong_length_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="5 bytes; it must have 16, 24 or 32"):
        FieldCipher(b"short")


# From openssl too, with the key, the text form and the place of the IV that each line names.
CIPHERTEXT = "9e22b49bcee374322e83b1cdf934f722"
IV_HEX = IV.hex()
VARIANTS = [
    ("text", "base64", "after", "niK0m87jdDIug7HN+TT3IgABAgMEBQYHCAkKCwwNDg8="),
    ("text", "base64", ":", "AAECAwQFBgcICQoLDA0ODw==:niK0m87jdDIug7HN+TT3Ig=="),
    ("text", "base64url", "before", "AAECAwQFBgcICQoLDA0OD54itJvO43QyLoOxzfk09yI"),
    ("text", "base64url", "after", "niK0m87jdDIug7HN-TT3IgABAgMEBQYHCAkKCwwNDg8"),
    ("text", "base64url", ".", "AAECAwQFBgcICQoLDA0ODw.niK0m87jdDIug7HN-TT3Ig"),
    ("text", "hex", "before", IV_HEX + CIPHERTEXT),
    ("text", "hex", "after", CIPHERTEXT + IV_HEX),
    ("text", "hex", "--", f"{IV_HEX}--{CIPHERTEXT}"),
    ("hex", "base64", "before", "AAECAwQFBgcICQoLDA0ODxuAK8gkya41twPzpwYm0WI="),
    ("sha256", "hex", ":", f"{IV_HEX}:50c7402d71ad823a98993bc711921fb7"),
]


@pytest.mark.parametrize(("key", "encoding", "iv", "encrypted"), VARIANTS)
def test_every_key_form_and_place_of_the_iv_matches_openssl(
    key: Any, encoding: Any, iv: str, encrypted: str
) -> None:
    cipher = FieldCipher(key_from_secret(SECRET, key), encoding=encoding, iv=iv)
    assert cipher.encrypt("123456789", iv=IV) == encrypted
    assert cipher.decrypt(encrypted) == "123456789"


def test_a_base64_key_may_use_either_alphabet_and_no_padding() -> None:
    key = bytes(range(224, 256))
    for text in (
        base64.b64encode(key),
        base64.urlsafe_b64encode(key),
        base64.urlsafe_b64encode(key).rstrip(b"="),
    ):
        assert key_from_secret(text.decode(), "base64") == key


def test_hex_is_read_in_capitals_and_base64url_with_padding() -> None:
    key = key_from_secret(SECRET)
    assert FieldCipher(key, encoding="hex").decrypt((IV_HEX + CIPHERTEXT).upper()) == "123456789"
    assert FieldCipher(key, encoding="base64url").decrypt(GOOD) == "123456789"


@pytest.mark.parametrize(
    ("encoding", "iv", "text"),
    [
        ("hex", "before", f"{IV_HEX} {CIPHERTEXT}"),
        ("hex", "before", IV_HEX),
        ("hex", "before", (IV_HEX + CIPHERTEXT)[:-1]),
        ("hex", "after", CIPHERTEXT),
        ("hex", ":", f"{IV_HEX[:-2]}:{CIPHERTEXT}"),
        ("hex", ":", f"{IV_HEX}00:{CIPHERTEXT}"),
        ("hex", ":", IV_HEX + CIPHERTEXT),
        ("hex", ":", f"{IV_HEX}:{CIPHERTEXT}:"),
        ("base64url", "after", VARIANTS[0][3]),
        ("base64", "after", VARIANTS[0][3].replace("+", "-")),
    ],
)
def test_another_form_or_an_iv_of_the_wrong_length_is_unreadable(encoding: Any, iv: str, text: str) -> None:
    with pytest.raises(Unreadable, match=r"^The encrypted value cannot be read\.$"):
        FieldCipher(key_from_secret(SECRET), encoding=encoding, iv=iv).decrypt(text)


@pytest.mark.parametrize(
    ("encoding", "iv"),
    [("base32", "before"), ("hex", ""), ("hex", "aa"), ("base64", "+"), ("base64url", "-")],
)
def test_an_unusable_form_is_refused(encoding: Any, iv: str) -> None:
    with pytest.raises(ConfigurationError, match="value_"):
        FieldCipher(key_from_secret(SECRET), encoding=encoding, iv=iv)


@pytest.mark.parametrize(
    ("secret", "key", "why"),
    [
        ("0g" * 16, "hex", "is not hex"),
        ("00" * 15, "hex", "spells 15 bytes in hex"),
        ("not base64!", "base64", "is not base64"),
        (SECRET, "md5", "value_key must be one of text, hex, base64, sha256"),
        ("é" * 16, "hex", "is not hex"),
    ],
)
def test_a_secret_that_spells_no_key_is_refused(secret: str, key: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        key_from_secret(secret, key)
