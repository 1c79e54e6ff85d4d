"""One look at a page with axe: both themes, a desk and a phone."""

from pathlib import Path

from playwright.sync_api import Page

SCRIPT = Path(__file__).with_name("axe.min.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What theme and width can change; the rest is judged once.
LOOKS = ["color-contrast", "target-size", "scrollable-region-focusable"]
FACES = [("light", 1440), ("dark", 1440), ("dark", 390), ("light", 390)]

_DRESS = """async theme => {
  document.documentElement.dataset.bsTheme = theme;
  const timed = document.getAnimations().filter(each => each.timeline instanceof DocumentTimeline);  // others never end
  await Promise.all(timed.map(each => each.finished.catch(() => null)));
}"""


def complaints(page: Page) -> list[str]:
    """What axe finds on the page as it stands, and whether it scrolls sideways, in every face."""
    page.evaluate(SCRIPT)
    found = []
    for number, (theme, width) in enumerate(FACES):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(_DRESS, theme)
        violations = page.evaluate("rules => axe.run({runOnly: rules})", LOOKS if number else TAGS)[
            "violations"
        ]
        found += [
            f"{theme} {width} {rule['id']}: {node['html']}" for rule in violations for node in rule["nodes"]
        ]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{width}: scrolls sideways")
    return found
