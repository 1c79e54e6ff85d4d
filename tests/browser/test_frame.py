"""The frame of every page in a browser: header, navigation, filters, search and panels."""

import pytest
from playwright.sync_api import Page, expect

from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
LISTS = ["/borrowers/", "/loans/", "/lines/", "/applications/", "/repayments/"]


@pytest.fixture
def borrower(page: Page, portal_service: Sandbox) -> str:
    """The address of one of thirty borrowers with accounts."""
    for number in range(30):
        owner = given.borrower(portal_service, first_name=f"Harbor Bakery {number:02} LLC")
        given.loan(portal_service, owner)
        given.line(portal_service, owner)
    return owner.get_absolute_url()


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, PHONE])
def test_the_header_stays_when_a_long_page_is_scrolled(
    page: Page, borrower: str, size: dict[str, int]
) -> None:
    page.set_viewport_size(size)
    page.goto("/borrowers/")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    assert page.evaluate("scrollY") > size["height"] / 3
    assert page.locator(".sd-header").evaluate("header => header.getBoundingClientRect().top") == 0


def test_a_short_window_has_a_one_row_header(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 225})
    page.goto("/")
    assert page.locator(".sd-header").evaluate("header => header.offsetHeight") <= 56


@pytest.mark.parametrize("url", LISTS)
def test_a_list_row_is_visible_on_a_phone(page: Page, borrower: str, url: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(url)
    expect(page.locator(".sd-filters")).to_be_visible()
    if url in ("/applications/", "/repayments/"):
        expect(page.get_by_role("heading", name="None on file")).to_be_in_viewport()
    else:
        expect(page.locator(".sd-list tbody tr").first).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_a_figure_is_visible_below_a_long_name_on_a_phone(page: Page, portal_service: Sandbox) -> None:
    name = "Hollingsworth-Vandermeer, Castellanos, Abernathy and Thibodeaux Consulting Engineers " * 2
    owner = given.borrower(portal_service, first_name=name.strip(), email=f"{'office' * 8}@example.com")
    given.loan(portal_service, owner)
    page.set_viewport_size(PHONE)
    page.goto(owner.get_absolute_url())
    expect(page.locator(".sd-position .sd-figure-2:visible").first).to_be_in_viewport(ratio=1)


def test_forced_colors_mark_the_selection(page: Page, borrower: str) -> None:
    page.emulate_media(forced_colors="active")
    page.goto(f"{borrower}?tab=loans")
    read_colors = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
    for place in (page.locator(".sd-nav"), page.locator(".sd-tabs")):
        current, other = place.locator("a[aria-current]"), place.locator("a:not([aria-current])").first
        colors = [current.evaluate(read_colors), other.evaluate(read_colors)]
        assert colors[0][0] != colors[1][0]
        assert colors[0][1] != colors[1][1]
    page.goto("/loans/?choose=1")
    box = page.get_by_role("checkbox", checked=True).first
    assert box.evaluate(read_colors)[0] != page.locator("body").evaluate(read_colors)[0]


def test_filters_are_in_a_drawer_on_a_phone(page: Page, borrower: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto("/borrowers/")
    expect(page.locator("select[name=state]")).to_be_hidden()
    page.get_by_role("button", name="Filters").click()
    page.locator("#filters").get_by_label("Past due").check()
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Show results").click()
    expect(page.locator("select[name=state]")).to_be_hidden()
    expect(page.get_by_role("button", name="Filters (1)")).to_be_visible()


def test_list_actions_are_behind_a_button_on_a_phone(page: Page, borrower: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto("/borrowers/")
    page.get_by_role("button", name="List actions").click()
    expect(page.get_by_role("link", name="Print summaries")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Print summaries")).to_be_hidden()


def test_focused_main_content_has_no_outline(page: Page) -> None:
    page.goto("/approvals/")
    main, outline = page.locator("#main"), "main => getComputedStyle(main).outlineStyle"
    page.mouse.click(800, 850)
    expect(main).to_be_focused()
    assert main.evaluate(outline) == "none"
    page.goto("/approvals/")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(main).to_be_focused()
    assert main.evaluate(outline) == "none"


@pytest.mark.parametrize("width", [701, 730, 763, 1024])
def test_borrower_tabs_do_not_widen_the_page(page: Page, borrower: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(borrower)
    expect(page.locator(".sd-tabs a").last).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, PHONE])
def test_ctrl_k_opens_search(page: Page, borrower: str, size: dict[str, int]) -> None:
    page.set_viewport_size(size)
    page.goto("/loans/")
    page.keyboard.press("Control+k")
    page.keyboard.type("Harbor Bakery 07")
    expect(page.get_by_role("option", name="Harbor Bakery 07 LLC")).to_be_visible()


def test_a_button_opens_search_on_a_phone(page: Page, borrower: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto("/loans/")
    expect(page.get_by_role("combobox", name="Search")).to_be_hidden()
    page.get_by_role("link", name="Search", exact=True).click()
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()


def test_a_short_page_does_not_scroll(page: Page) -> None:
    page.goto("/approvals/")
    assert page.evaluate("document.documentElement.scrollHeight") == 900
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_in_viewport(ratio=1)
