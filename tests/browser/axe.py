"""Check a page with axe: all rules in light desktop mode, the appearance rules in dark phone mode too."""

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

SCRIPT = Path(__file__).with_name("axe.min.js").read_text()
ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
APPEARANCE_RULES = ["color-contrast", "target-size", "scrollable-region-focusable"]
MODES = [("light", 1440, ALL_RULES), ("dark", 390, APPEARANCE_RULES)]

# Only violations are described, because describing the passes takes most of the time.
_RUN_AXE = "rules => axe.run({runOnly: rules, resultTypes: ['violations'], selectors: false})"
_APPLY_THEME = """async theme => {
  document.documentElement.dataset.theme = theme;
  scrollTo(0, 0);  // else something stands half below the header, wherever the width before left it
  const timed = document.getAnimations().filter(each => each.timeline instanceof DocumentTimeline);  // others never end
  await Promise.all(timed.map(each => each.finished.catch(() => null)));
}"""

LAYOUT_SHIFT = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => { for (const each of list.getEntries()) sum += each.value; })
    .observe({type: 'layout-shift', buffered: true});
  requestAnimationFrame(() => requestAnimationFrame(() => done(sum)));
})"""
"""A script that returns the sum of the page's layout shifts."""


def find_problems(page: Page, modes: Sequence[tuple[str, int, list[str]]] = MODES) -> list[str]:
    """Return the violations that axe finds in these modes, and whether the page scrolls sideways."""
    page.evaluate(SCRIPT)
    problems = []
    for theme, width, rules in modes:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(_APPLY_THEME, theme)
        violations = page.evaluate(_RUN_AXE, rules)["violations"]
        problems += [
            f"{theme} {width} {rule['id']}: {node['html']}" for rule in violations for node in rule["nodes"]
        ]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            problems.append(f"{width}: scrolls sideways")
    return problems
