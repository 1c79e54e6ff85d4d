"""A request gets the page or the region it asks for; acts say what they did; the frame names the place."""

import json
import re

import pytest
from django.conf import LazySettings
from django.http import HttpRequest, HttpResponse
from django.test import Client as Browser
from django.urls import include, path

from portal import urls
from portal.ui.htmx import finish_action, toast
from tests.conftest import htmx


def test_a_request_for_a_region_gets_only_that_region(viewer: Browser) -> None:
    fragment = viewer.get("/borrowers/", headers=htmx("borrower-rows"))
    assert fragment.content.decode().strip().startswith('<div id="borrower-rows"')
    assert "sd-header" not in fragment.content.decode()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        htmx("another-region"),
        htmx("borrower-rows") | {"HX-Boosted": "true"},
        htmx("borrower-rows") | {"HX-History-Restore-Request": "true"},
    ],
)
def test_every_other_request_gets_the_page(viewer: Browser, headers: dict[str, str]) -> None:
    page = viewer.get("/borrowers/", headers=headers)
    assert "sd-header" in page.content.decode()


def test_answers_are_kept_by_no_cache_and_vary_with_htmx(viewer: Browser) -> None:
    page = viewer.get("/borrowers/")
    assert page.headers["Cache-Control"] == "no-store"
    assert {"HX-Request", "HX-Target"} <= set(page.headers["Vary"].split(", "))


# A view like any act of the portal: it says what it did and answers.
def act(request: HttpRequest) -> HttpResponse:
    toast(request, "Saved <it>", url="/audit/")
    return finish_action(request, "/ui/", event=request.GET.get("event"))


urlpatterns = [*urls.urlpatterns, path("act/", act), path("ui/", include("portal.ui.urls"))]


@pytest.mark.urls(__name__)
def test_an_act_without_htmx_goes_on_and_says_so_there(servicer: Browser) -> None:
    answer = servicer.post("/act/?event=thing:saved", follow=True)
    assert answer.redirect_chain == [("/ui/", 303)]
    assert '<b>Saved &lt;it&gt;</b><a href="/audit/">Open the audit entry</a>' in answer.content.decode()
    assert "Saved" not in servicer.get("/ui/").content.decode()


@pytest.mark.urls(__name__)
def test_an_act_with_htmx_stays_and_tells_the_page(servicer: Browser) -> None:
    answer = servicer.post("/act/?event=thing:saved", headers=htmx("x"))
    assert answer.status_code == 204
    told = {"text": "Saved <it>", "url": "/audit/", "link": "Open the audit entry", "bad": False}
    assert json.loads(answer.headers["HX-Trigger"]) == {
        "thing:saved": {},
        "dialog:close": {},
        "toasts": {"value": [told]},
    }


@pytest.mark.urls(__name__)
def test_an_act_with_htmx_and_no_event_leads_on(servicer: Browser) -> None:
    answer = servicer.post("/act/", headers=htmx("x"))
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (200, "/ui/")
    assert "Saved" in servicer.get("/ui/").content.decode()


def test_the_frame_names_environment_zone_and_place(viewer: Browser) -> None:
    html = viewer.get("/borrowers/").content.decode()
    assert ">SANDBOX<" in html or ">LIVE<" in html
    assert re.search("Times shown in Eastern (Standard|Daylight) Time", html)
    assert re.search(r'<a href="/borrowers/" data-go="b" aria-current="page">', html)


def test_areas_that_a_person_may_not_enter_are_absent(viewer: Browser, auditor: Browser) -> None:
    assert 'data-go="t"' not in viewer.get("/").content.decode()
    assert 'data-go="t"' in auditor.get("/").content.decode()


def test_only_those_who_may_onboard_can_press_the_button(viewer: Browser, servicer: Browser) -> None:
    assert 'href="/borrowers/new/' not in viewer.get("/loans/").content.decode()
    assert 'href="/borrowers/new/' in servicer.get("/loans/").content.decode()


def test_a_product_has_the_name_that_its_setting_says(
    viewer: Browser, anonymous: Browser, settings: LazySettings
) -> None:
    settings.PRODUCT_NAME = settings.ORGANIZATION = "Harbor & Sons Servicing"
    for browser, address in [(viewer, "/loans/"), (anonymous, "/sign-in/"), (viewer, "/nowhere/")]:
        page = browser.get(address).content.decode()
        assert page.count("Harbor &amp; Sons Servicing") >= 2
        assert "Servicing Desk" not in page


def test_the_organization_is_named_on_screen_and_at_sign_in_where_it_is_not_the_product(
    viewer: Browser, anonymous: Browser, settings: LazySettings
) -> None:
    pages = [(viewer, "/loans/"), (anonymous, "/sign-in/")]
    settings.ORGANIZATION = "Harbor & Sons Lending"
    assert all("Harbor &amp; Sons Lending" in b.get(address).content.decode() for b, address in pages)
    settings.PRODUCT_NAME = settings.ORGANIZATION = "Harbor Desk"
    counts = [b.get(address).content.decode().count("Harbor Desk") for b, address in pages]
    settings.ORGANIZATION = "Harbor Lending"
    assert [b.get(address).content.decode().count("Harbor") for b, address in pages] == [
        n + 1 for n in counts
    ]
