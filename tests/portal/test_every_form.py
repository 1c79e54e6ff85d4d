"""Whatever is posted to any form of the portal, it answers: it is in order, or it says what is not."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.forms import Form
from django.utils.datastructures import MultiValueDict
from hypothesis import HealthCheck
from hypothesis import given as for_any
from hypothesis import settings as effort
from hypothesis import strategies as st

from portal import urls as _all_forms  # noqa: F401 - every area's forms are loaded with its addresses.
from portal.audit.models import WriteIntent
from portal.borrowers.profile_forms import IndividualProfile, ProfileForm
from portal.registry.models import Kind, Record
from portal.ui.forms import StaffForm
from tests.faults.hostile import WORDS

PROFILE = {"known": {}, "version": "v", "url": "/edit/"}
OWNER = Record(kind=Kind.BORROWER, uuid="b-1", label="Northwind LLC")


def profile() -> ProfileForm:
    """A profile whose sending asks for everything there is."""
    announced = {"with_ssn": "on", "with_credit_report": "on", "with_asset_report": "on"}
    form = IndividualProfile(announced, **PROFILE)
    form.is_valid()
    return form


# What the forms need beside what is posted; a new form with needs of its own is named here.
NEEDS: dict[str, dict[str, Any]] = {
    "applications.PreferForm": {"offers": ["o-1", "o-2"]},
    "lookup.CorrectForm": {"record": OWNER},
    "audit.ResolveForm": {"intent": WriteIntent(operation="borrowers.create_commercial", method="POST")},
    "borrowers.PersonForm": {"number": 0},
    "borrowers.OnboardingSendForm": {
        "version": "v",
        "people": ["Ada Kim"],
        "must_explain": True,
        "zip_warnings": [],
    },
    "borrowers.ProfileSendForm": {"profile": profile(), "needs_approval": False, "is_repeated": True},
}
PARTS = ("", "_month", "_day", "_year", "_again")
values = st.text(max_size=40) | st.sampled_from([word for word in WORDS if len(word) < 4000])


def forms(base: type[Form] = StaffForm) -> Iterator[type[Form]]:
    """Every form of staff, the deepest included."""
    for one in base.__subclasses__():
        yield one
        yield from forms(one)


def name_of(form: type[Form]) -> str:
    return f"{form.__module__.split('.')[1]}.{form.__name__}"


def needs(form: type[Form]) -> dict[str, Any]:
    return PROFILE if issubclass(form, ProfileForm) else NEEDS.get(name_of(form), {})


@pytest.mark.django_db
@pytest.mark.parametrize("form", list(forms()), ids=name_of)
@effort(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@for_any(data=st.data())
def test_a_form_answers_to_anything(form: type[Form], data: st.DataObject) -> None:
    fields = form(MultiValueDict(), **needs(form)).fields  # Some forms add fields of their own.
    names = [f"{name}{part}" for name in fields for part in PARTS] or ["nothing"]
    posted = st.dictionaries(st.sampled_from(names), st.lists(values, min_size=1, max_size=2), max_size=8)
    made = form(MultiValueDict(data.draw(posted)), **needs(form))
    assert made.is_valid() == (not made.errors)
    str(made).encode("utf-8", "surrogatepass")
