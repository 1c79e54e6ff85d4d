"""Comparing words of the interface."""

import pytest

from servicing.figures import is_closed_status
from servicing.rules import known_spelling
from servicing.values import is_same_word
from servicing.words import normal_word


@pytest.mark.parametrize(
    "text",
    ["past_due", "past-due", "Past Due", " PAST  DUE ", "past–due", "past - due", "Past_Due", "_past_due_"],
)
def test_words_are_compared_in_one_form(text: str) -> None:
    assert normal_word(text) == "PAST_DUE"
    assert is_same_word(text, "PAST_DUE")
    assert is_closed_status(text, {"PAST_DUE"})
    assert is_closed_status("PAST_DUE", {text})


@pytest.mark.parametrize("text", [None, "", " "])
def test_nothing_is_no_word(text: str | None) -> None:
    assert normal_word(text) == ""
    assert not is_same_word(text, "PAST_DUE")
    assert not is_closed_status(text, {"PAID_OFF"})


@pytest.mark.parametrize("text", ["failed-after-success", "Failed after success", "FAILED_AFTER_SUCCESS"])
def test_known_words_get_their_spelling(text: str) -> None:
    assert known_spelling(text) == "FAILED_AFTER_SUCCESS"


def test_unknown_words_stay_as_sent() -> None:
    assert known_spelling("Held by-bank") == "Held by-bank"
    assert not is_same_word("PASTDUE", "PAST_DUE")
