"""Keeps EIN and SSN out of free text: a form rejects certain ones, and asks once about any other nine digits.

Hides which fields are free text, and how an answer is recognized later without storing the digits.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError
from django.dispatch import Signal
from django.utils.crypto import salted_hmac

from servicing.masking import tax_numbers

REFUSAL = "Remove the SSN or EIN. It can’t be stored here."
QUESTION = "Is this an SSN or EIN? If so, remove it."
MAX_CHARACTERS = 10_000
"""The longest text that is searched."""
ANSWER = "keep_number"
"""The field in which a page posts digests of digits that are neither SSN nor EIN."""

number_found = Signal()
"""Sent with ``digest``, ``answered`` (whether this form has the answer) and ``field``.

A receiver returns whether the answer is on record.
"""


@dataclass(frozen=True)
class NumberProblem:
    """Why a text can't be saved; ``digests`` of the digits to ask about, empty if it is rejected."""

    text: str
    digests: str = ""


def number_problem(text: str, *, answers: str = "", field: str = "") -> NumberProblem | None:
    """Check whether a text can be saved. ``answers`` are the digests posted with it."""
    if holds_tax_number(text):
        return NumberProblem(REFUSAL)
    found = [one for one in tax_numbers(text) if not one.is_routing_number]
    digests = dict.fromkeys(digest_of(one.digits) for one in found)
    asked = [digest for digest in digests if not _is_on_record(digest, digest in answers.split(), field)]
    return NumberProblem(QUESTION, " ".join(asked)) if asked else None


def holds_tax_number(text: str) -> bool:
    """Whether a text certainly holds an EIN or SSN."""
    return any(one.is_certain for one in tax_numbers(text))


def digest_of(digits: str) -> str:
    """A digest of nine digits: the same for the same digits, without revealing them."""
    return salted_hmac("portal.ui.guard", digits, algorithm="sha256").hexdigest()


def _is_on_record(digest: str, answered: bool, field: str) -> bool:
    replies = number_found.send(None, digest=digest, answered=answered, field=field)
    return any(reply for _, reply in replies)


def is_free_text(field: forms.Field) -> bool:
    """Whether a field's value is saved as typed, file names included."""
    if isinstance(field, forms.FileField):
        return True
    is_other = isinstance(field, forms.JSONField) or isinstance(field.widget, forms.PasswordInput)
    return (
        isinstance(field, forms.CharField) and not is_other and not getattr(field, "takes_tax_numbers", False)
    )


class Question(NamedTuple):
    """What a field's error asks: a checkbox below it posts ``value`` as ``name``, so that it answers nothing else."""

    name: str
    value: str
    answer: str


class GuardedForm(forms.BaseForm):
    """Base of every form that people type into."""

    guards_text = True
    """False if nothing of the form is saved, as in a search."""
    asks_about_numbers = False
    """Whether its page can ask; if not, anything that may be an SSN or EIN is rejected."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.questions: dict[str, Question] = {}
        """By field."""

    def _clean_fields(self) -> None:
        super()._clean_fields()  # type: ignore[misc]
        for name, field in self.fields.items():
            # A text with an error isn't saved (drafts keep only texts without), and it may be of any length.
            if not self.guards_text or not is_free_text(field) or name in self.errors:
                continue
            if problem := self._number_problem(name, field):
                if problem.digests:
                    self.questions[name] = Question(ANSWER, problem.digests, "No, keep it")
                self.add_error(name, ValidationError(problem.text))

    def _number_problem(self, name: str, field: forms.Field) -> NumberProblem | None:
        bound = self[name]
        readable = getattr(field, "readable", str)
        text = bound.data.name if hasattr(bound.data, "name") else readable(bound.data or "")
        if len(text) > MAX_CHARACTERS:  # A field without a limit of its own.
            return NumberProblem(f"Up to {MAX_CHARACTERS:,} characters ({len(text):,} entered).")
        problem = number_problem(text, answers=self._answers, field=str(bound.label))
        if problem and problem.digests and getattr(field, "is_of_nine_digits", False):
            return None  # What the field itself takes is no reason to ask.
        can_ask = self.asks_about_numbers and not bound.is_hidden and not isinstance(field, forms.FileField)
        if problem and problem.digests and can_ask:
            return problem
        return NumberProblem(getattr(field, "refusal", REFUSAL)) if problem else None

    @property
    def _answers(self) -> str:
        given = self.data.getlist(ANSWER) if hasattr(self.data, "getlist") else [self.data.get(ANSWER, "")]
        return " ".join(map(str, given))
