"""Take the pictures for Help from a running demo: ``DEBUG=1 PORT=8000 python -m tests.pictures``.

Look at each new picture. They have only 16 colors, because the first visit of a page may load at most 130 kB.
"""

import os
import re
from io import BytesIO

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


def main() -> None:
    (BASE_DIR / "static/help").mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        for address in [one.address for one in help_pages().values() if one.picture]:
            take_picture(browser, address)
        browser.close()


def take_picture(browser: Browser, address: str) -> None:
    username, start, target, top = EXAMPLES[address]
    page = browser.new_page(
        base_url=f"http://127.0.0.1:{os.environ.get('PORT', '8000')}",
        viewport={"width": WIDTH + MENU_WIDTH, "height": HEIGHT},
        reduced_motion="reduce",
    )
    page.goto("/sign-in/")
    page.fill("#id_login", username)
    page.fill("#id_password", "servicing-demo")
    page.keyboard.press("Enter")
    page.wait_for_url("/")
    page.goto(start, wait_until="networkidle")
    if target:
        link = re.search(f'href="([^"]*/{target.replace("ID", "[0-9a-f-]{36}")})"', page.content())
        assert link, f"The demo has nothing to show for {address}."
        page.goto(link[1], wait_until="networkidle")
    if address == "approvals":
        request_approval(page)
    box = page.locator(top).first.bounding_box()
    assert box, f"{address} lacks {top}."
    page_height = page.evaluate("document.documentElement.scrollHeight")
    area = {"x": MENU_WIDTH, "y": min(box["y"], page_height - HEIGHT), "width": WIDTH, "height": HEIGHT}
    picture = Image.open(BytesIO(page.screenshot(full_page=True, clip=area))).convert("RGB")  # type: ignore[arg-type]
    reduced = picture.quantize(COLORS, dither=Image.Dither.NONE).convert("RGB")
    reduced.save(BASE_DIR / f"static/help/{address}.webp", lossless=True, method=6, quality=100)
    page.context.close()


def request_approval(page: Page) -> None:
    """Preview a change that needs approval, without sending it."""
    page.goto(f"{page.url}edit/")
    page.fill("[name=first_name]", "Coleridge Freight Lines LLC")
    page.get_by_role("button", name="Review changes").click()
    page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    main()
