"""Take the pictures of Help and README from a running demo: ``DEBUG=1 PORT=8000 python -m tests.pictures``.

Look at each new picture. Those of Help have only 16 colors, because the first visit of a page may load at most 130 kB.
"""

import os
import re
from io import BytesIO
from typing import Any

import django
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from portal.core.areas import help_pages
from portal.settings import BASE_DIR

WIDTH, HEIGHT = 700, 420
MENU_WIDTH = 216
COLORS = 16
# The username, the page or a list that links to it, the end of the page's URL, and the element at the top.
EXAMPLES = {
    "home": ("servicer", "/", "", "main"),
    "borrowers": ("servicer", "/borrowers/?q=coleridge", "borrowers/ID/", "main"),
    "onboarding": ("servicer", "/borrowers/new/", "", "main"),
    "applications": ("servicer", "/applications/", "applications/ID/", "main section:has(th[scope=row])"),
    "loans": ("servicer", "/loans/?q=bob", "loans/ID/", "main"),
    "credit_lines": ("servicer", "/lines/", "lines/ID/", "main"),
    "collections": ("servicer", "/collections/", "", "main"),
    "repayments": ("servicer", "/repayments/", "", "main"),
    "portfolio": ("servicer", "/portfolio/", "", "main"),
    "messaging": ("servicer", "/messages/", "", "main section:has(table) >> nth=-1"),
    "approvals": ("servicer", "/borrowers/?q=coleridge", "borrowers/ID/", "main section >> nth=0"),
    "admin": ("supervisor", "/admin/audit/pageview/", "", "main"),
    "audit": ("supervisor", "/audit/?borrower=coleridge", "", "main table"),
    "operations": ("servicer", "/status/", "", "main"),
}


README_WIDTH, README_HEIGHT = 1000, 640
README_COLORS = 128
# A borrower with two loans, a line, and no figure that is unknown.
BORROWER = "chaudhary+and+hathaway"
# The page or a list that links to it, the end of the page's URL, and the element at the top.
README_EXAMPLES = {
    "offers": ("/applications/?q=masonry", "applications/ID/", "main section:has(th[scope=row])"),
    "review": (f"/borrowers/?q={BORROWER}", "borrowers/ID/", "main"),
    "entry": ("/admin/audit/entry/?q=bob&result=confirmed", "audit/[0-9]+/", "main"),
    "summary": (f"/borrowers/?q={BORROWER}", "borrowers/ID/", "main"),
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        for address in [one.address for one in help_pages().values() if one.picture]:
            take_help_picture(browser, address)
        for scheme in ("light", "dark"):
            take_wide_picture(browser, scheme)
        for name in README_EXAMPLES:
            take_readme_picture(browser, name)
        browser.close()


def signed_in(browser: Browser, username: str, width: int, height: int, scheme: Any = "light") -> Page:
    page = browser.new_page(
        base_url=f"http://127.0.0.1:{os.environ.get('PORT', '8000')}",
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    page.goto("/sign-in/")
    page.fill("#id_login", username)
    page.fill("#id_password", "servicing-demo")
    page.keyboard.press("Enter")
    page.wait_for_url("/")
    return page


def follow(page: Page, start: str, target: str) -> None:
    """Open a page, or the first that it links to with this end of its address."""
    page.goto(start, wait_until="networkidle")
    if target:
        link = re.search(f'href="([^"]*/{target.replace("ID", "[0-9a-f-]{36}")})"', page.content())
        assert link, f"{start} has no link to {target}."
        page.goto(link[1], wait_until="networkidle")


def picture_of(page: Page, top: str, width: int, height: int, colors: int) -> Image.Image:
    """The part of the page that begins with an element, without the navigation."""
    box = page.locator(top).first.bounding_box()
    assert box, f"{page.url} lacks {top}."
    page_height = page.evaluate("document.documentElement.scrollHeight")
    area = {
        "x": MENU_WIDTH,
        "y": max(min(box["y"], page_height - height), 0),
        "width": width,
        "height": height,
    }
    return few_colors(page.screenshot(full_page=True, clip=area), colors)  # type: ignore[arg-type]


def few_colors(taken: bytes, colors: int) -> Image.Image:
    return Image.open(BytesIO(taken)).convert("RGB").quantize(colors, dither=Image.Dither.NONE)


def take_help_picture(browser: Browser, address: str) -> None:
    username, start, target, top = EXAMPLES[address]
    page = signed_in(browser, username, WIDTH + MENU_WIDTH, HEIGHT)
    follow(page, start, target)
    if address == "approvals":
        preview_change(page, "Coleridge Freight Lines LLC")
    picture = picture_of(page, top, WIDTH, HEIGHT, COLORS).convert("RGB")
    picture.save(BASE_DIR / f"static/help/{address}.webp", lossless=True, method=6, quality=100)
    page.context.close()


def take_wide_picture(browser: Browser, scheme: str) -> None:
    """A line of credit with its newest statement open."""
    page = signed_in(browser, "supervisor", 1440, 760, scheme)
    follow(page, f"/lines/?q={BORROWER}", "lines/ID/")
    page.get_by_role("link", name="Newest statement").click()
    page.wait_for_load_state("networkidle")
    few_colors(page.screenshot(), README_COLORS).save(BASE_DIR / f".readme/line-{scheme}.png", optimize=True)
    page.context.close()


def take_readme_picture(browser: Browser, name: str) -> None:
    start, target, top = README_EXAMPLES[name]
    page = signed_in(browser, "supervisor", README_WIDTH + MENU_WIDTH, README_HEIGHT)
    follow(page, start, target)
    match name:
        case "review":
            preview_change(page, "Chaudhary and Hathaway Partners LLP")
        case "summary":
            page.goto(f"{page.url}summary/", wait_until="networkidle")
    picture = picture_of(page, top, README_WIDTH, README_HEIGHT, README_COLORS)
    picture.save(BASE_DIR / f".readme/{name}.png", optimize=True)
    page.context.close()


def preview_change(page: Page, name: str) -> None:
    """Preview another legal name, which needs approval, without sending it."""
    page.goto(f"{page.url}edit/")
    page.fill("[name=first_name]", name)
    page.get_by_role("button", name="Review changes").click()
    page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    main()
