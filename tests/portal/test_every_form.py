"""Every form either accepts any posted input or reports errors, without failing."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.forms import Form
from django.utils.datastructures import MultiValueDict
from hypothesis import HealthCheck
from hypothesis import given as for_any
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from portal import urls as _all_forms  # noqa: F401 - every area's forms are loaded with its addresses.
from portal.audit.models import Entry, WriteIntent
from portal.borrowers.profile_forms import IndividualProfile, ProfileForm
from portal.records.models import Borrower
from portal.ui.forms import StaffForm
from tests.drills.hostile import WORDS

pytestmark = pytest.mark.slow

PROFILE = {"known": {}, "version": "v", "url": "/edit/"}
OWNER = Borrower(uuid="b-1", name="Northwind LLC")


def profile() -> ProfileForm:
    """Return a profile form that announces an SSN and both reports, so that its send form has all fields."""
    announced = {"with_ssn": "on", "with_credit_report": "on", "with_asset_report": "on"}
    form = IndividualProfile(announced, **PROFILE)
    form.is_valid()
    return form


# Arguments of forms that need more than the posted data; add a new form here if it needs any.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "applications.PreferForm": {"offers": ["o-1", "o-2"]},
    "lookup.CorrectForm": {"record": OWNER},
    "audit.CorrectForm": {
        "intent": WriteIntent(operation="borrowers.create_commercial", method="POST"),
        "resolution": Entry(pk=1),
    },
    "audit.ResolveForm": {"intent": WriteIntent(operation="borrowers.create_commercial", method="POST")},
    "borrowers.PersonForm": {"number": 0},
    "borrowers.OnboardingSendForm": {
        "version": "v",
        "people": ["Ada Kim"],
        "must_explain": True,
        "zip_warnings": [],
        "phone_warnings": [],
    },
    "borrowers.ProfileSendForm": {"profile": profile(), "needs_approval": False, "is_repeated": True},
}
PARTS = ("", "_month", "_day", "_year", "_again")
values = st.text(max_size=40) | st.sampled_from([word for word in WORDS if len(word) < 4000])


def forms(base: type[Form] = StaffForm) -> Iterator[type[Form]]:
    """Yield every staff form, including subclasses at any depth."""
    for one in base.__subclasses__():
        yield one
        yield from forms(one)


def name_of(form: type[Form]) -> str:
    return f"{form.__module__.split('.')[1]}.{form.__name__}"


def arguments_for(form: type[Form]) -> dict[str, Any]:
    return PROFILE if issubclass(form, ProfileForm) else ARGUMENTS.get(name_of(form), {})


@pytest.mark.django_db
@pytest.mark.parametrize("form", list(forms()), ids=name_of)
@hypothesis_settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@for_any(data=st.data())
def test_a_form_accepts_or_rejects_any_input(form: type[Form], data: st.DataObject) -> None:
    fields = form(MultiValueDict(), **arguments_for(form)).fields  # Some forms add fields of their own.
    names = [f"{name}{part}" for name in fields for part in PARTS] or ["nothing"]
    posted = st.dictionaries(st.sampled_from(names), st.lists(values, min_size=1, max_size=2), max_size=8)
    bound = form(MultiValueDict(data.draw(posted)), **arguments_for(form))
    assert bound.is_valid() == (not bound.errors)
    str(bound).encode("utf-8", "surrogatepass")


@pytest.mark.django_db
@pytest.mark.parametrize("form", list(forms()), ids=name_of)
def test_fields_of_two_megabytes_are_rejected_by_their_length(form: type[Form]) -> None:
    text = "1-" * 1_000_000
    for name in form(MultiValueDict(), **arguments_for(form)).fields:
        bound = form(MultiValueDict({name: [text]}), **arguments_for(form))
        started = time.process_time()
        assert not bound.is_valid() or text not in map(str, bound.cleaned_data.values())
        assert time.process_time() - started < 1, name
