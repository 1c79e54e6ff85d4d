"""Forms for staff: fields that explain errors in the lending service's terms, and a summary of them all.

Hides how hostile input is made harmless, how a repeated post is recognized, and how reasons from the library or the
service reach the field they concern.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID, uuid4

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.forms.boundfield import BoundField
from django.forms.renderers import TemplatesSetting
from django.utils.datastructures import MultiValueDict

from portal.core.business_date import business_date
from portal.ui.guard import GuardedForm, Question
from servicing import rules

# --- Fields ---

REPLACEMENT = "\ufffd"
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
AMOUNT_PATTERN = re.compile(r"(?:\$ ?(?=[-−]))?([-−]?) ?\$? ?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(\.[0-9]+)?")
DATE_PATTERN = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})")
REQUIRED = "Enter %(the_field)s."


class TextField(forms.CharField):
    """A text. A subclass may name a rule of the lending service that returns reasons against it."""

    default_error_messages = {"required": REQUIRED}
    accepted = ""
    """Shown with a check mark under a valid field while another one is invalid."""

    def __init__(self, *, max_length: int = 200, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.limit = max_length

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\t", " ")

    def validate(self, value: str) -> None:
        super().validate(value)
        if len(value) > self.limit:
            raise ValidationError(f"Up to {self.limit:,} characters ({len(value):,} entered).")
        if REPLACEMENT in value:
            raise ValidationError("Contains an unreadable character. Type it again.")
        if value:
            raise_errors(self.rule(value))

    @staticmethod
    def rule(text: str) -> list[str]:
        return []


class PersonNameField(TextField):
    rule = staticmethod(rules.name_problems)
    accepted = "Accepted"


class EmailField(TextField):
    widget = forms.TextInput(attrs={"inputmode": "email", "autocomplete": "off", "spellcheck": "false"})
    rule = staticmethod(rules.email_problems)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=rules.MAX_EMAIL_CHARACTERS, **kwargs)


class PhoneField(TextField):
    """Takes any US format and returns ten digits; shown as (512) 555-0143."""

    widget = forms.TextInput(attrs={"type": "tel", "autocomplete": "off", "data-phone": ""})
    rule = staticmethod(rules.phone_problems)

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        return rules.normalize_phone(text) if text else ""

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str) and re.fullmatch("[0-9]{10}", value):
            return f"({value[:3]}) {value[3:6]}-{value[6:]}"
        return value


class MoneyField(forms.Field):
    """Takes an amount in US dollars as people write it, such as $25,000.00, and returns a Decimal."""

    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "class": "sd-num"})
    default_error_messages = {
        "required": REQUIRED,
        "invalid": "Enter an amount in dollars, such as 25,000 or 25,000.00.",
    }

    def to_python(self, value: Any) -> Decimal | None:
        text = str(value or "").strip()
        if not text:
            return None
        if len(text) > 40 or not (found := AMOUNT_PATTERN.fullmatch(text)):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        sign, dollars, cents = found.groups(default="")
        if len(cents) > len(".00"):  # “25.000” may mean thousands.
            raise ValidationError(rules.TOO_MANY_DECIMALS)
        return Decimal(sign.replace("−", "-") + dollars.replace(",", "") + cents)

    def validate(self, value: Decimal | None) -> None:
        super().validate(value)
        if value is not None:
            raise_errors(rules.amount_problems(value))

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Decimal):
            return value
        return f"{value:,.2f}" if value == round(value, 2) else f"{value:,}"


class DayBoxes(forms.MultiWidget):
    """Month, day and year in three boxes. Also reads an ISO date posted under the field's own name."""

    template_name = "ui/day_boxes.html"
    use_fieldset = True

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        parts = (("Month", 2), ("Day", 2), ("Year", 4))
        super().__init__({label.lower(): self._box(label, size) for label, size in parts}, attrs)

    @staticmethod
    def _box(label: str, size: int) -> forms.TextInput:
        hints = {"inputmode": "numeric", "autocomplete": "off", "placeholder": label}
        return forms.TextInput(hints | {"aria-label": label, "maxlength": str(size)})

    def decompress(self, value: Any) -> list[str]:
        found = DATE_PATTERN.fullmatch(str(value or ""))
        year, month, day = found.groups() if found else ("", "", "")
        return [month, day, year]

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Any:
        return data.get(name) or super().value_from_datadict(data, files, name)


class DayField(forms.Field):
    """A calendar day, which no time zone moves."""

    widget: Any = DayBoxes
    default_error_messages = {
        "required": "Enter a date.",
        "invalid": "Enter month, day and year in digits, such as 4 / 19 / 1987.",
        "no_such_day": "That date doesn’t exist. Check month, day and year.",
    }

    def to_python(self, value: Any) -> date | None:
        if isinstance(value, list):
            month, day, year = (str(part or "").strip() for part in value)
            value = f"{year}-{month}-{day}" if month or day or year else ""
        if not value:
            return None
        if not (found := DATE_PATTERN.fullmatch(str(value).strip())):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        try:
            return date(*map(int, found.groups()))
        except ValueError:
            raise ValidationError(self.error_messages["no_such_day"], code="no_such_day") from None


class DayInput(forms.DateInput):
    """The browser's date picker, for filters and for days near today."""

    input_type = "date"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs, format="%Y-%m-%d")


class NearDayInput(DayInput):
    """A date picker with buttons for the most common choices."""

    template_name = "ui/near_day.html"

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        today = business_date()
        days = {"Tomorrow": 1, "Monday": 7 - today.weekday(), "One week": 7}
        # On a Sunday, tomorrow is Monday; on a Monday, next Monday is in a week.
        unique = {number: words for words, number in reversed(days.items())}
        quick_days = [(words, today + timedelta(number)) for number, words in sorted(unique.items())]
        context = super().get_context(name, value, attrs)
        context["widget"]["quick_days"] = quick_days
        return context


class SecretInput(forms.TextInput):
    """An input whose value goes to the server and never comes back in a page."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        keep_out = {"autocomplete": "off", "inputmode": "numeric", "spellcheck": "false", "data-secret": ""}
        super().__init__(keep_out | (attrs or {}))

    def format_value(self, value: Any) -> None:
        return None


class SecretDigitsField(TextField):
    """An EIN or SSN: nine digits that must be typed again whenever the form is shown again."""

    widget = SecretInput
    takes_tax_numbers = True
    default_error_messages = {"required": f"{REQUIRED} It’s never stored, so enter it each time."}

    def __init__(self, *, rule: Callable[[str], list[str]], **kwargs: Any) -> None:
        super().__init__(max_length=40, **kwargs)
        self.digits_rule = rule

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        if text:
            raise_errors(self.digits_rule(text))
        return rules.nine_digits(text) if text else ""


class ChoiceField(forms.ChoiceField):
    default_error_messages = {
        "required": "Choose %(a_field)s.",
        "invalid_choice": "Choose an option from the list.",
    }


class RadioCards(forms.RadioSelect):
    """A card for each choice, with a line about its meaning."""

    template_name = "ui/radio_cards.html"

    def __init__(self, meanings: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.meanings = meanings or {}

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return super().create_option(name, value, *args, **kwargs) | {
            "meaning": self.meanings.get(str(value), "")
        }


class SubmitIdField(forms.UUIDField):
    """Identifies one rendering of a form, so that posting it again sends nothing twice."""

    widget = forms.HiddenInput
    default_error_messages = {
        "required": "This form expired. Check the fields and send again.",
        "invalid": "This form expired. Check the fields and send again.",
    }

    def __init__(self) -> None:
        super().__init__(initial=uuid4)

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return UUID(str(data))
        except ValueError:
            return initial


def raise_errors(reasons: Sequence[str]) -> None:
    if reasons:
        raise ValidationError(list(reasons))


# --- Forms ---


class StaffBoundField(BoundField):
    """A field with one line below it: error, warning, check mark or hint."""

    @property
    def aria_describedby(self) -> str:
        note = self.help_text or self.warnings or self.accepted
        ending = "_error" if self.errors else "_helptext" if note else ""
        return f"{self.auto_id}{ending}" if ending and not self.is_hidden else ""

    @property
    def warnings(self) -> list[str]:
        return list(getattr(self.form, "warnings", {}).get(self.name, []))

    @property
    def question(self) -> Question | None:
        questions: dict[str, Question] = getattr(self.form, "questions", {})
        return questions.get(self.name)

    @property
    def accepted(self) -> str:
        passed = self.form.is_bound and self.data and not self.errors
        return getattr(self.field, "accepted", "") if passed else ""


class StaffRenderer(TemplatesSetting):
    bound_field_class = StaffBoundField


@dataclass(frozen=True)
class SummaryItem:
    """One reason; ``target`` is the HTML id of the field it concerns, or empty."""

    text: str
    target: str


@dataclass(frozen=True)
class ErrorSummary:
    """The summary above a rejected form. ``quotes`` are the lending service's own words."""

    title: str
    items: list[SummaryItem]
    quotes: list[str]


class StaffForm(GuardedForm, forms.Form):
    """Base of all forms. Whatever is posted can be validated, stored and shown again."""

    default_renderer = StaffRenderer
    use_required_attribute = False
    asks_about_numbers = True
    subject = ""
    """What distinguishes the form from others on the page, such as "person 2"."""
    problem_fields: ClassVar[dict[str, str]] = {}
    """The library's names (``address.zip``) of fields that have another name here."""
    nothing_happened = ""

    def __init__(self, data: Any = None, files: Any = None, **kwargs: Any) -> None:
        super().__init__(_clean_data(data), files, **{"label_suffix": ""} | kwargs)
        self.warnings: dict[str, list[str]] = {}
        self.quotes: list[str] = []

    def warn(self, field: str, text: str) -> None:
        """Show a warning under a field without rejecting it."""
        self.warnings.setdefault(field, []).append(text)

    def add_error(self, field: str | None, error: Any) -> None:
        """Add an error. One about a missing value names its field."""
        if field and getattr(error, "code", None) == "required":
            label = _label_in_sentence(str(self[field].label))
            article = "an" if label[:1] in "aeiou" else "a"
            the_field = label if label[-1:].isdigit() else f"the {label}"
            error.params = {"the_field": the_field, "a_field": f"{article} {label}"}
        super().add_error(field, error)

    def add_problems(self, problems: Mapping[str, Iterable[str]]) -> None:
        """Add the problems of an ``InvalidInput`` to the fields they concern, the rest to the form."""
        for name, reasons in problems.items():
            field = self.problem_fields.get(name, name)
            known = field in self.fields
            for reason in reasons:
                self.add_error(field if known else None, reason if known else f"{name}: {reason}")

    def add_rejection(self, *messages: str) -> None:
        """Quote the lending service's reasons for a rejection above the form."""
        self.errors.setdefault("__all__", self.error_class(renderer=self.renderer))
        self.quotes.extend(map(replace_unstorable, messages))

    @property
    def error_summary(self) -> ErrorSummary | None:
        return summarize_errors([self])


class WriteForm(StaffForm):
    """A form that changes something at the lending service; it carries a submit ID."""

    submit_id = SubmitIdField()
    nothing_happened = "Nothing was sent."


def summarize_errors(bound: Iterable[StaffForm], nothing_happened: str = "") -> ErrorSummary | None:
    refused = [form for form in bound if form.is_bound and (form.errors or form.quotes)]
    if not refused:
        return None
    items = [item for form in refused for item in _summary_items(form)]
    quotes = [quote for form in refused for quote in form.quotes]
    fields = len({item.target for item in items if item.target})
    subjects = {form.subject for form in refused}
    of_whom = f" of {subjects.pop()}" if len(subjects) == 1 and refused[0].subject else ""
    happened = nothing_happened or refused[0].nothing_happened
    return ErrorSummary(f"{_summary_title(fields, of_whom, quotes)} {happened}".strip(), items, quotes)


def _summary_title(fields: int, of_whom: str, quotes: list[str]) -> str:
    if not fields:
        return "The service rejected this." if quotes else "This can’t be accepted."
    return f"Fix {fields} field{'' if fields == 1 else 's'}{of_whom}."


def _summary_items(form: StaffForm) -> Iterable[SummaryItem]:
    for name in (NON_FIELD_ERRORS, *form.fields):  # In the order of the page, not of validation.
        field = form[name] if name in form.fields and not form[name].is_hidden else None
        label = str(field.label) if field else ""
        for reason in form.errors.get(name, ()):
            is_named = not label or re.search(rf"\b{re.escape(_label_in_sentence(label))}\b", str(reason))
            subject = ", ".join(filter(None, [form.subject.capitalize(), "" if is_named else label]))
            text = f"{subject}: {reason}" if subject else str(reason)
            yield SummaryItem(text, field.id_for_label or field.auto_id if field else "")


def _label_in_sentence(label: str) -> str:
    """A label as it reads within a sentence: "ZIP code" and "legal business name"."""
    first, *others = label.partition(" (")[0].split(" ")
    return " ".join([first if first.isupper() else first.lower(), *others])


def _clean_data(data: Any) -> Any:
    """The data, with characters that no database or page can hold replaced by a mark that text fields reject."""
    if isinstance(data, MultiValueDict):
        strange = {key: values for key, values in data.lists() if any(map(_is_unstorable, values))}
        copy = data.copy() if strange else data
        for key, values in strange.items():
            copy.setlist(key, [replace_unstorable(value) for value in values])
        return copy
    if isinstance(data, Mapping):
        return {key: replace_unstorable(value) for key, value in data.items()}
    return data


def replace_unstorable(value: Any) -> Any:
    return UNSTORABLE.sub(REPLACEMENT, value) if isinstance(value, str) else value


def _is_unstorable(value: Any) -> bool:
    return isinstance(value, str) and bool(UNSTORABLE.search(value))
