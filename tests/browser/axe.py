"""One look at a page with axe: light on a desk by every rule, dark on a phone by those that both can change."""

from pathlib import Path

from playwright.sync_api import Page

SCRIPT = Path(__file__).with_name("axe.min.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS = ["color-contrast", "target-size", "scrollable-region-focusable"]
FACES = [("light", 1440, TAGS), ("dark", 390, LOOKS)]

# Of what passes nothing is described: that is most of the work.
_RUN = "rules => axe.run({runOnly: rules, resultTypes: ['violations'], selectors: false})"
_DRESS = """async theme => {
  document.documentElement.dataset.theme = theme;
  scrollTo(0, 0);  // else something stands half below the header, wherever the width before left it
  const timed = document.getAnimations().filter(each => each.timeline instanceof DocumentTimeline);  // others never end
  await Promise.all(timed.map(each => each.finished.catch(() => null)));
}"""

SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => { for (const each of list.getEntries()) sum += each.value; })
    .observe({type: 'layout-shift', buffered: true});
  requestAnimationFrame(() => requestAnimationFrame(() => done(sum)));
})"""
"""How far what is on the page moved by itself: the sum of layout shifts."""


def complaints(page: Page) -> list[str]:
    """What axe finds on the page as it stands, and whether it scrolls sideways, in both faces."""
    page.evaluate(SCRIPT)
    found = []
    for theme, width, rules in FACES:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(_DRESS, theme)
        violations = page.evaluate(_RUN, rules)["violations"]
        found += [
            f"{theme} {width} {rule['id']}: {node['html']}" for rule in violations for node in rule["nodes"]
        ]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{width}: scrolls sideways")
    return found
