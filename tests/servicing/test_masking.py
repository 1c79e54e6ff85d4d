"""What is recorded, previewed or printed never shows an EIN, SSN, date of birth, credential or report."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing.masking import HIDDEN, Sensitive, masked, masked_text, scrub


@pytest.mark.parametrize(
    "name", ["EIN", "ein", "ssn", "SSN", "dob", "Authorization", "X-Signature", "Cookie"]
)
def test_a_sensitive_field_is_hidden_at_any_depth(name: str) -> None:
    assert masked({"people": [{name: "123"}]}) == {"people": [{name: HIDDEN}]}


def test_an_absent_value_is_shown_as_absent() -> None:
    assert masked({"ssn": None}) == {"ssn": None}


def test_a_report_is_shown_by_its_size() -> None:
    assert masked({"asset_report_json_gzip": "H4sI" * 300}) == {
        "asset_report_json_gzip": "[1,200 characters]"
    }
    assert masked({"credit_report_xml_gzip": {"odd": "shape"}}) == {"credit_report_xml_gzip": HIDDEN}


@pytest.mark.parametrize("text", ["123-45-6789", "12-3456789", "123456789"])
def test_what_looks_like_an_identifier_is_hidden_in_running_text(text: str) -> None:
    assert masked({"message": f"SSN {text}."}) == {"message": f"SSN {HIDDEN}."}


@pytest.mark.parametrize(
    "text", ["5125550142", "78701-1234", "2026-05-01", "a123456789", "4e2d-123456789-b", "12345678"]
)
def test_other_numbers_stay(text: str) -> None:
    assert masked_text(text) == text


def test_a_banks_reference_with_nine_digits_stays() -> None:
    assert masked({"ach_id": "123456789"}) == {"ach_id": "123456789"}


def test_what_is_nested_too_deep_to_be_recorded_is_cut() -> None:
    deep = json.loads("[" * 500 + "]" * 500)

    assert "[nested too deep]" in json.dumps(masked(deep))


def test_nothing_is_too_deep_to_be_scrubbed() -> None:
    deep: Any = json.loads('{"a":' * 900 + '{"ssn": "123456789"}' + "}" * 900)
    scrub(deep)

    for _ in range(900):
        deep = deep["a"]
    assert deep == {"ssn": HIDDEN}


@given(
    st.recursive(
        st.sampled_from(["123-45-6789", "fine"]) | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["ssn", "Dob", "EIN", "x"]), inner),
    )
)
def test_masking_leaves_what_it_is_given_as_it_was(value: Any) -> None:
    before = json.dumps(value)

    assert "6789" not in json.dumps(masked(value))
    assert json.dumps(value) == before


def test_sensitive_text_is_text_that_does_not_print_itself() -> None:
    secret = Sensitive("3f2b8c1e")

    assert secret == "3f2b8c1e"
    assert f"{secret!r} {[secret]}" == "[hidden] [[hidden]]"
