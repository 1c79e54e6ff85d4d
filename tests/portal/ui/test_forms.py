"""What fields read and refuse, and how a form says why."""

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


class Amount(WriteForm):
    amount = MoneyField()
    note = TextField(required=False, max_length=20)


def filled(**values: str) -> Amount:
    return Amount({"submit_id": str(uuid4()), "amount": "1", **values})


@pytest.mark.parametrize(
    ("typed", "amount"),
    [("$25,000.00", "25000.00"), ("25000", "25000"), (" 1,234.5 ", "1234.5"), ("$ 7", "7")],
)
def test_an_amount_is_read_as_people_write_it(typed: str, amount: str) -> None:
    form = filled(amount=typed)
    assert form.is_valid()
    assert form.cleaned_data["amount"] == Decimal(amount)


@pytest.mark.parametrize(
    "typed", ["-5", "−5", "0", "1e400", "NaN", "1,23", "٣", "1.999", "9" * 30, "9" * 10_000, "", "five", "$"]
)
def test_an_amount_that_is_none_is_refused(typed: str) -> None:
    assert filled(amount=typed).errors["amount"]


def test_a_day_is_read_from_three_boxes_and_from_iso_text() -> None:
    boxes = DayField().widget.value_from_datadict({"x_month": "4", "x_day": " 9", "x_year": "1987"}, {}, "x")
    assert DayField().clean(boxes) == date(1987, 4, 9)
    assert DayField(widget=DayInput).clean("1987-04-09") == date(1987, 4, 9)
    assert DayField(required=False).clean(["", "", ""]) is None


@pytest.mark.parametrize(
    "typed",
    [["2", "30", "2026"], ["", "1", "2026"], "12/31/2026", "٢٠٢٦-١-١", ["a" * 10_000, "1", "1"], "0000-1-1"],
)
def test_a_day_that_does_not_exist_is_refused(typed: Any) -> None:
    with pytest.raises(forms.ValidationError):
        DayField().clean(typed)


def test_a_known_day_fills_its_boxes() -> None:
    class Born(StaffForm):
        born = DayField()

    html = str(Born(initial={"born": date(1987, 4, 9)})["born"].as_widget())
    assert re.findall('value="([0-9]+)"', html) == ["04", "09", "1987"]


def test_a_phone_number_goes_out_as_ten_digits_and_comes_back_readable() -> None:
    form = SampleForm({"phone": "+1 512.555.0143"})
    form.is_valid()
    assert form.cleaned_data["phone"] == "5125550143"
    assert 'value="(512) 555-0143"' in str(SampleForm(initial={"phone": "5125550143"})["phone"])


def test_a_secret_is_read_once_and_never_drawn_again() -> None:
    form = SampleForm({"ssn": "123-45-6789"})
    assert "6789" not in str(form) + repr(form) + str(form.errors)
    assert form.cleaned_data["ssn"] == "123456789"
    refused = SampleForm({"ssn": "123-45-678"})
    assert refused.errors["ssn"] == ["Enter all 9 digits (8 entered)."]
    assert "678" not in str(refused)


@pytest.mark.parametrize("typed", ["x" * 10_000, "nul\x00", f"half {HALF_PAIR}", "\ufffd", "\u202eevil"])
def test_hostile_text_is_refused_with_a_reason_and_the_form_drawn_again(typed: str) -> None:
    data = QueryDict(mutable=True)
    for name in SampleForm.base_fields:
        data[name] = typed
    form = SampleForm(data)
    refused = set(form.errors)
    assert {"first_name", "last_name", "email", "phone", "amount", "dob", "ssn", "title", "entity"} <= refused
    str(form).encode()


@for_any(
    st.dictionaries(st.sampled_from([*SampleForm.base_fields, "dob_month", "dob_day", "dob_year"]), st.text())
)
def test_whatever_is_posted_the_form_answers(data: dict[str, str]) -> None:
    form = SampleForm(data)
    assert not form.is_valid()
    assert form.error_summary is not None
    str(form).encode()


def test_reasons_are_full_and_all_at_once() -> None:
    summary = SampleForm({"last_name": "Raman2", "phone": "512 555 019"}).error_summary
    assert summary is not None
    texts = " ".join(item.text for item in summary.items)
    assert "Person 2, Last name: “2” at position 6" in texts
    assert "Person 2, Phone: Enter all 10 digits (9 entered)." in texts
    assert summary.title.endswith("fields of person 2. Nothing was sent.")


def test_each_reason_leads_to_its_field() -> None:
    form = SampleForm({"dob": "x", "entity": "x"}, prefix="p1")
    html = str(form)
    assert form.error_summary is not None
    for item in form.error_summary.items:
        assert f'id="{item.target}"' in html, item


def test_a_submit_id_survives_a_refusal_and_a_lost_one_is_replaced() -> None:
    kept = str(uuid4())
    assert f'value="{kept}"' in str(Amount({"submit_id": kept})["submit_id"])
    lost = Amount({"submit_id": "x", "amount": "1"})
    assert not lost.is_valid()
    new = re.search('value="([0-9a-f-]{36})"', str(lost["submit_id"]))
    assert new
    assert lost.error_summary is not None
    assert "This form expired" in lost.error_summary.items[0].text


def test_two_drawings_of_a_form_have_two_submit_ids() -> None:
    assert Amount()["submit_id"].value() != Amount()["submit_id"].value()


def test_problems_of_the_library_land_on_their_fields() -> None:
    class Where(StaffForm):
        problem_fields = {"address.zip": "zip_code"}
        zip_code = TextField()

    form = Where({"zip_code": "9404"})
    form.add_problems({"address.zip": ["4 digits entered."], "key_people": ["At least one is needed."]})
    assert form.errors["zip_code"] == ["4 digits entered."]
    assert form.non_field_errors() == ["key_people: At least one is needed."]


def test_the_words_of_the_service_stand_in_quotes() -> None:
    form = filled()
    form.add_rejection("amount <too> high", f"and {HALF_PAIR}")
    assert not form.is_valid()
    html = render_to_string("ui/forms.html#error-summary", {"summary": form.error_summary})
    assert "<q>amount &lt;too&gt; high</q>" in html
    assert form.error_summary is not None
    assert form.error_summary.title == "The service rejected this. Nothing was sent."
    html.encode()


def test_one_summary_speaks_for_several_forms() -> None:
    assert summarize_errors([filled(), SampleForm()]) is None
    summary = summarize_errors([filled(amount=""), SampleForm({}, prefix="b")], "Nothing was saved.")
    assert summary is not None
    assert summary.title.endswith("fields. Nothing was saved.")


def test_a_warning_or_a_tick_stands_where_no_error_is() -> None:
    form = SampleForm({"first_name": "Priya", "email": "priya@northwind.example"})
    form.warn("email", "Also on another borrower.")
    assert "Accepted" in form["first_name"].as_field_group()
    assert "sd-note-warn" in form["email"].as_field_group()
    assert 'aria-describedby="id_email_helptext"' in str(form["email"])
