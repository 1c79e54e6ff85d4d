"""What form fields accept and reject, and how forms show the errors."""

import re
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django import forms
from django.http import QueryDict
from django.template.loader import render_to_string
from hypothesis import given as for_any
from hypothesis import strategies as st

from portal.ui.forms import DayField, DayInput, MoneyField, StaffForm, TextField, WriteForm, summarize_errors
from portal.ui.views import SampleForm

HALF_PAIR = "\ud800"


class AmountForm(WriteForm):
    amount = MoneyField()
    note = TextField(required=False, max_length=20)


def amount_form(**values: str) -> AmountForm:
    return AmountForm({"submit_id": str(uuid4()), "amount": "1", **values})


@pytest.mark.parametrize(
    ("typed", "amount"),
    [("$25,000.00", "25000.00"), ("25000", "25000"), (" 1,234.5 ", "1234.5"), ("$ 7", "7")],
)
def test_common_amount_formats_are_accepted(typed: str, amount: str) -> None:
    form = amount_form(amount=typed)
    assert form.is_valid()
    assert form.cleaned_data["amount"] == Decimal(amount)


@pytest.mark.parametrize(
    "typed", ["-5", "−5", "0", "1e400", "NaN", "1,23", "٣", "1.999", "9" * 30, "9" * 10_000, "", "five", "$"]
)
def test_invalid_amounts_are_rejected(typed: str) -> None:
    assert amount_form(amount=typed).errors["amount"]


def test_dates_are_read_from_three_boxes_or_iso_text() -> None:
    boxes = DayField().widget.value_from_datadict({"x_month": "4", "x_day": " 9", "x_year": "1987"}, {}, "x")
    assert DayField().clean(boxes) == date(1987, 4, 9)
    assert DayField(widget=DayInput).clean("1987-04-09") == date(1987, 4, 9)
    assert DayField(required=False).clean(["", "", ""]) is None


@pytest.mark.parametrize(
    "typed",
    [["2", "30", "2026"], ["", "1", "2026"], "12/31/2026", "٢٠٢٦-١-١", ["a" * 10_000, "1", "1"], "0000-1-1"],
)
def test_invalid_dates_are_rejected(typed: Any) -> None:
    with pytest.raises(forms.ValidationError):
        DayField().clean(typed)


def test_an_initial_date_fills_its_boxes() -> None:
    class BirthForm(StaffForm):
        born = DayField()

    html = str(BirthForm(initial={"born": date(1987, 4, 9)})["born"].as_widget())
    assert re.findall('value="([0-9]+)"', html) == ["04", "09", "1987"]


def test_phone_numbers_clean_to_ten_digits_and_display_formatted() -> None:
    form = SampleForm({"phone": "+1 512.555.0143"})
    form.is_valid()
    assert form.cleaned_data["phone"] == "5125550143"
    assert 'value="(512) 555-0143"' in str(SampleForm(initial={"phone": "5125550143"})["phone"])


def test_an_ssn_is_never_rendered() -> None:
    form = SampleForm({"ssn": "123-45-6789"})
    assert "6789" not in str(form) + repr(form) + str(form.errors)
    assert form.cleaned_data["ssn"] == "123456789"
    rejected = SampleForm({"ssn": "123-45-678"})
    assert rejected.errors["ssn"] == ["Enter all 9 digits (8 entered)."]
    assert "678" not in str(rejected)


@pytest.mark.parametrize("typed", ["x" * 10_000, "nul\x00", f"half {HALF_PAIR}", "\ufffd", "\u202eevil"])
def test_hostile_text_is_rejected_and_the_form_renders(typed: str) -> None:
    data = QueryDict(mutable=True)
    for name in SampleForm.base_fields:
        data[name] = typed
    form = SampleForm(data)
    errors = set(form.errors)
    assert {"first_name", "last_name", "email", "phone", "amount", "dob", "ssn", "title", "entity"} <= errors
    str(form).encode()


@pytest.mark.slow
@for_any(
    st.dictionaries(st.sampled_from([*SampleForm.base_fields, "dob_month", "dob_day", "dob_year"]), st.text())
)
def test_any_posted_data_renders_a_form_with_errors(data: dict[str, str]) -> None:
    form = SampleForm(data)
    assert not form.is_valid()
    assert form.error_summary is not None
    str(form).encode()


def test_the_error_summary_names_each_field_and_problem() -> None:
    summary = SampleForm({"last_name": "Raman2", "phone": "512 555 019"}).error_summary
    assert summary is not None
    texts = " ".join(item.text for item in summary.items)
    assert "Person 2, Last name: Names can’t contain digits (“2”)." in texts
    assert "Person 2, Phone: Enter all 10 digits (9 entered)." in texts
    assert summary.title.endswith("fields of person 2. Nothing was sent.")


def test_the_error_summary_links_to_its_fields() -> None:
    form = SampleForm({"dob": "x", "entity": "x"}, prefix="p1")
    html = str(form)
    assert form.error_summary is not None
    for item in form.error_summary.items:
        assert f'id="{item.target}"' in html, item


def test_a_submit_id_survives_rejection_and_an_invalid_one_is_replaced() -> None:
    kept = str(uuid4())
    assert f'value="{kept}"' in str(AmountForm({"submit_id": kept})["submit_id"])
    form = AmountForm({"submit_id": "x", "amount": "1"})
    assert not form.is_valid()
    new = re.search('value="([0-9a-f-]{36})"', str(form["submit_id"]))
    assert new
    assert form.error_summary is not None
    assert "This form expired" in form.error_summary.items[0].text


def test_each_form_gets_its_own_submit_id() -> None:
    assert AmountForm()["submit_id"].value() != AmountForm()["submit_id"].value()


def test_library_problems_are_shown_on_their_fields() -> None:
    class AddressForm(StaffForm):
        problem_fields = {"address.zip": "zip_code"}
        zip_code = TextField()

    form = AddressForm({"zip_code": "9404"})
    form.add_problems({"address.zip": ["4 digits entered."], "key_people": ["At least one is needed."]})
    assert form.errors["zip_code"] == ["4 digits entered."]
    assert form.non_field_errors() == ["key_people: At least one is needed."]


def test_service_messages_are_quoted() -> None:
    form = amount_form()
    form.add_rejection("amount <too> high", f"and {HALF_PAIR}")
    assert not form.is_valid()
    html = render_to_string("ui/forms.html#error-summary", {"summary": form.error_summary})
    assert "<q>amount &lt;too&gt; high</q>" in html
    assert form.error_summary is not None
    assert form.error_summary.title == "The service rejected this. Nothing was sent."
    html.encode()


def test_one_summary_covers_several_forms() -> None:
    assert summarize_errors([amount_form(), SampleForm()]) is None
    summary = summarize_errors([amount_form(amount=""), SampleForm({}, prefix="b")], "Nothing was saved.")
    assert summary is not None
    assert summary.title.endswith("fields. Nothing was saved.")


def test_valid_fields_show_a_check_mark_or_a_warning() -> None:
    form = SampleForm({"first_name": "Priya", "email": "priya@northwind.example"})
    form.warn("email", "Also on another borrower.")
    assert "Accepted" in form["first_name"].as_field_group()
    assert "sd-note-warn" in form["email"].as_field_group()
    assert 'aria-describedby="id_email_helptext"' in str(form["email"])
