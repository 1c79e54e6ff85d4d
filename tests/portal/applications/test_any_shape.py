"""Every screen of an application renders, whatever the service sends."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client as Browser
from hypothesis import HealthCheck, settings
from hypothesis import given as for_any
from hypothesis import strategies as st

from portal.accounts.roles import Role
from portal.records.models import Application, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.applications.answers import UUID, application_data, offer, save_application

pytestmark = pytest.mark.slow

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", " ", "0", "-1", "1e30", "NaN", "2026-02-30", "2026-12-01", "\0", "{{ x }}", "<b>", "\u202e"]
    )
    | st.text()
)
ANY_VALUE = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def distort(sample: dict[str, Any], *, keep: tuple[str, ...] = ()) -> st.SearchStrategy[dict[str, Any]]:
    """Generate copies with extra fields, in which fields not in ``keep`` may be null, missing or anything."""
    fields = {
        name: st.just(value) | st.none() | ANY_VALUE for name, value in sample.items() if name not in keep
    }
    unchanged = {name: sample[name] for name in keep}
    return st.builds(
        lambda changed, extra: extra | changed | unchanged,
        st.fixed_dictionaries({}, optional=fields),
        st.dictionaries(st.text(), ANY_VALUE, max_size=2),
    )


OFFERS = st.lists(distort(offer(0)) | st.builds(offer, st.integers(0, 9)) | ANY_VALUE, max_size=6)
STATUS = distort({"decision": "APPROVED", "details": None, "name": "REJECTED"})
APPLICATIONS = st.builds(
    lambda application, offers, status: application | {"offers": offers, "status": status},
    distort(application_data(), keep=("uuid",)),
    OFFERS | ANY_VALUE,
    STATUS | ANY_VALUE,
)


@pytest.fixture
def browser(portal_service: Sandbox) -> Browser:
    browser = browser_of(Role.SERVICER)
    browser.cookies["js"] = "1"
    return browser


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service)


def open_every_screen(browser: Browser, record: Application) -> str:
    """Check that all pages, panels and exports with the application respond, and return its page."""
    address = record.get_absolute_url()
    pages = [
        address,
        f"{address}?raw=1&sort=-explanation&offer=A&offer=B",
        f"{address}prefer/",
        "/applications/",
        f"/borrowers/{record.borrower_uuid}/applications/new/",
    ]
    assert [browser.get(page).status_code for page in pages] == [200] * 5
    assert (
        browser.get(f"{address}?sort=apr&rows=differing&empty=1", headers=htmx("offers")).status_code == 200
    )
    for file in (f"{address}offers/?all=1", "/applications/export/?all=1"):
        response: Any = browser.get(file)
        assert b"".join(response)
    return browser.get(address).content.decode()


@for_any(application=APPLICATIONS)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_application_is_shown(browser: Browser, borrower: Borrower, application: dict[str, Any]) -> None:
    assert application["uuid"] in open_every_screen(browser, save_application(borrower, application))


@for_any(nulls=st.sets(st.sampled_from(sorted(set(offer()) - {"uuid"}))))
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_offers_with_any_null_fields_are_shown(browser: Browser, borrower: Borrower, nulls: set[str]) -> None:
    offers = [offer(0), offer(1, **dict.fromkeys(nulls))]
    assert "2 of 2 offers" in open_every_screen(
        browser, save_application(borrower, application_data(*offers))
    )


def test_two_thousand_offers_are_shown(browser: Browser, borrower: Borrower) -> None:
    offers = [offer(0, uuid=f"51aa7f20-0000-4000-8000-{n:012}", apr=n) for n in range(2000)]
    details = {"reasons": [f"Reason {n}" for n in range(2000)]}
    assert " of 2000 offers" in open_every_screen(
        browser, save_application(borrower, application_data(*offers, details=details))
    )


@pytest.mark.parametrize(
    "amount", [10**17, 10**30, "1e20", "1e-30", "-0", "0.00005", Decimal("9999999999999999.99")]
)
def test_extreme_amounts_are_shown(browser: Browser, borrower: Borrower, amount: Any) -> None:
    shown = open_every_screen(
        browser,
        save_application(borrower, application_data(offer(0, amount=amount, term=amount), amount=amount)),
    )
    assert "1 of 1 offers" in shown


def test_deeply_nested_values_say_that_there_is_more(browser: Browser, borrower: Borrower) -> None:
    deep: Any = "core"
    for _ in range(200):
        deep = {"in": [deep]}
    shown = open_every_screen(
        browser, save_application(borrower, application_data(offer(0, explanation=deep), details=deep, n=1))
    )
    assert "<dd>in 1 in: 1 more inside</dd>" in shown


@pytest.mark.parametrize("uuid", [UUID.format(2), "c-1", "C_40e91d7"])
def test_ids_of_any_format_are_shown(browser: Browser, borrower: Borrower, uuid: str) -> None:
    assert uuid in open_every_screen(
        browser, save_application(borrower, application_data(offer(0), uuid=uuid))
    )
