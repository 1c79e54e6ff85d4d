"""Full pages and htmx regions, responses to actions, and the frame around each page."""

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
def test_other_requests_get_the_whole_page(viewer: Browser, headers: dict[str, str]) -> None:
    page = viewer.get("/borrowers/", headers=headers)
    assert "sd-header" in page.content.decode()


def test_pages_are_not_cached_and_vary_by_htmx_headers(viewer: Browser) -> None:
    page = viewer.get("/borrowers/")
    assert page.headers["Cache-Control"] == "no-store"
    assert {"HX-Request", "HX-Target"} <= set(page.headers["Vary"].split(", "))


# A view that ends like the portal's own actions do: with a toast and a response.
def perform_action(request: HttpRequest) -> HttpResponse:
    toast(request, "Saved <it>", url="/audit/")
    return finish_action(request, "/ui/", event=request.GET.get("event"))


urlpatterns = [*urls.urlpatterns, path("act/", perform_action), path("ui/", include("portal.ui.urls"))]


@pytest.mark.urls(__name__)
def test_an_action_without_htmx_redirects_and_shows_a_toast(servicer: Browser) -> None:
    response = servicer.post("/act/?event=thing:saved", follow=True)
    assert response.redirect_chain == [("/ui/", 303)]
    assert '<b>Saved &lt;it&gt;</b><a href="/audit/">Open the audit entry</a>' in response.content.decode()
    assert "Saved" not in servicer.get("/ui/").content.decode()


@pytest.mark.urls(__name__)
def test_an_action_with_htmx_triggers_events_on_the_page(servicer: Browser) -> None:
    response = servicer.post("/act/?event=thing:saved", headers=htmx("x"))
    assert response.status_code == 204
    expected_toast = {"text": "Saved <it>", "url": "/audit/", "link": "Open the audit entry", "bad": False}
    assert json.loads(response.headers["HX-Trigger"]) == {
        "thing:saved": {},
        "dialog:close": {},
        "toasts": {"value": [expected_toast]},
    }


@pytest.mark.urls(__name__)
def test_an_action_with_htmx_and_no_event_redirects(servicer: Browser) -> None:
    response = servicer.post("/act/", headers=htmx("x"))
    assert (response.status_code, response.headers["HX-Redirect"]) == (200, "/ui/")
    assert "Saved" in servicer.get("/ui/").content.decode()


def test_the_frame_shows_environment_time_zone_and_current_area(viewer: Browser) -> None:
    html = viewer.get("/borrowers/").content.decode()
    assert ">SANDBOX<" in html or ">LIVE<" in html
    assert re.search("Times shown in Eastern (Standard|Daylight) Time", html)
    assert re.search(r'<a href="/borrowers/" data-go="b" aria-current="page">', html)


@pytest.mark.slow
def test_navigation_hides_areas_the_user_cannot_open(viewer: Browser, auditor: Browser) -> None:
    assert 'data-go="t"' not in viewer.get("/").content.decode()
    assert 'data-go="t"' in auditor.get("/").content.decode()


def test_a_viewer_does_not_see_the_new_borrower_button(viewer: Browser, servicer: Browser) -> None:
    assert 'href="/borrowers/new/' not in viewer.get("/loans/").content.decode()
    assert 'href="/borrowers/new/' in servicer.get("/loans/").content.decode()


def test_pages_use_the_configured_product_name(
    viewer: Browser, anonymous: Browser, settings: LazySettings
) -> None:
    settings.PRODUCT_NAME = settings.ORGANIZATION = "Harbor & Sons Servicing"
    for browser, address in [(viewer, "/loans/"), (anonymous, "/sign-in/"), (viewer, "/nowhere/")]:
        page = browser.get(address).content.decode()
        assert page.count("Harbor &amp; Sons Servicing") >= 2
        assert "Servicing Desk" not in page


def test_the_organization_is_shown_if_it_differs_from_the_product(
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
