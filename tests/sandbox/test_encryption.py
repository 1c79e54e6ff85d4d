"""The forms of encrypted values, over real HTTP, with values from openssl (see `tests/servicing/test_crypto.py`)."""

from typing import Any

import pytest

from tests.sandbox.conftest import OpenSandbox

SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
IV, CIPHERTEXT = "000102030405060708090a0b0c0d0e0f", "9e22b49bcee374322e83b1cdf934f722"
DEFAULT = "AAECAwQFBgcICQoLDA0OD54itJvO43QyLoOxzfk09yI="
FORMS = [
    ({}, DEFAULT),
    ({"value_iv": "after"}, "niK0m87jdDIug7HN+TT3IgABAgMEBQYHCAkKCwwNDg8="),
    ({"value_iv": ":"}, "AAECAwQFBgcICQoLDA0ODw==:niK0m87jdDIug7HN+TT3Ig=="),
    ({"values": "base64url", "value_iv": "after"}, "niK0m87jdDIug7HN-TT3IgABAgMEBQYHCAkKCwwNDg8"),
    ({"values": "base64url", "value_iv": "."}, "AAECAwQFBgcICQoLDA0ODw.niK0m87jdDIug7HN-TT3Ig"),
    ({"values": "hex"}, IV + CIPHERTEXT),
    ({"values": "hex", "value_iv": "--"}, f"{IV}--{CIPHERTEXT}"),
    ({"value_key": "hex"}, "AAECAwQFBgcICQoLDA0ODxuAK8gkya41twPzpwYm0WI="),
    (
        {"values": "hex", "value_iv": ":", "value_key": "sha256"},
        f"{IV}:50c7402d71ad823a98993bc711921fb7",
    ),
]


@pytest.mark.parametrize(("options", "encrypted"), FORMS)
def test_a_value_is_read_in_the_form_of_the_service(
    open_sandbox: OpenSandbox, business: dict[str, Any], options: dict[str, Any], encrypted: str
) -> None:
    service, caller = open_sandbox(secret=SECRET, **options)
    answer = caller.post("/v1/users", business | {"EIN": encrypted})
    assert answer.status_code == 200
    record = service.world.store.require("user", answer.json()["uuid"])
    assert record.private["EIN"] == "123456789"
    for _, other in FORMS:
        if other != encrypted:
            answer = caller.post("/v1/users", business | {"EIN": other})
            assert (answer.status_code, answer.json()) == (
                400,
                {"message": "EIN could not be decrypted to nine digits"},
            )


@pytest.mark.parametrize(
    "key",
    [
        {"field_key": SECRET},
        {"field_key": "M2YyYjhjMWU5ZDQ3NGE2MGIxYzU3ZThmOTBhMmQzNjQ=", "value_key": "base64"},
    ],
)
def test_values_can_have_a_key_of_their_own(open_sandbox: OpenSandbox, key: dict[str, Any]) -> None:
    service, caller = open_sandbox(**key)
    user = service.world.borrower()["uuid"]
    assert caller.put(f"/v1/users/{user}", {"ssn": DEFAULT}).status_code == 200
    assert caller.put(f"/v1/users/{user}", {"ssn": DEFAULT[:-8] + "AAAAAAA="}).status_code == 400
