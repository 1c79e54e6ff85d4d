"""Every screen with extreme data, wide and narrow: no text overlaps or is cut off."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import Page

import servicing
from portal.accounts.roles import Role
from portal.audit.models import WriteIntent
from portal.borrowers.page import TABS
from portal.notes.models import FollowUp, Note
from portal.records import store
from portal.records.models import Borrower, Kind, Source
from portal.records.sources import OPERATIONS
from servicing import Application, Loan, Repayment, Statement, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests.browser.axe import LAYOUT_SHIFT
from tests.conftest import browser_of

pytestmark = pytest.mark.browser

OWNER, LOAN, LINE, BARE = (f"0f0e0d0c-0000-4000-8000-00000000000{number}" for number in range(1, 5))
APPLICATION = "0f0e0d0c-0000-4000-8000-000000000009"
RIGHT_TO_LEFT, FLAGS = "שותפות יצוא הדרים ושמן זית של עמק יזרעאל בע״מ", "🏳️‍🌈👩‍👩‍👧‍👦" * 8
NAME = f"{'W' * 90} {RIGHT_TO_LEFT} {FLAGS}"
DIGITS = "9" * 30
MONEY = Decimal("999999999999999999.99")
STATUS = "WAITING_FOR_THE_SECOND_SIGNATURE_OF_THE_OTHER_BANK"
READ_BY = {operation.kind: operation.name for operation in OPERATIONS if operation.kind}

# A script that returns layout problems: sideways scrolling, overlapping or cut-off text, more than one
# primary button, and controls too small for a thumb. Text may be cut off if it scrolls or is shown in full
# on hover, and may overlap with a sticky element.
LAYOUT_PROBLEMS = """() => {
  const found = [];
  const seen = element => element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})
    && !element.closest('.visually-hidden, svg, option, .sd-skip');
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) {
    const over = [...document.querySelectorAll('body *')].filter(each =>
      seen(each) && each.getBoundingClientRect().right > innerWidth);
    const least = over.filter(each => !over.some(other => other !== each && each.contains(other)));
    const where = least.slice(0, 3).map(each => `${each.parentElement.className} > ${each.outerHTML.slice(0, 60)}`);
    found.push(`scrolls sideways to ${wide}: ${where}`);
  }
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()) && texts.length < 2000;) {
    const parent = node.parentElement;
    if (!node.data.trim() || !seen(parent)) continue;
    const edges = {left: 0, right: Infinity, top: -Infinity, bottom: Infinity};
    let holder = parent;
    for (; holder !== document.body; holder = holder.parentElement) {
      const style = getComputedStyle(holder);
      if (['sticky', 'fixed'].includes(style.position)) break;
      if (style.overflowX === 'visible') continue;
      const box = holder.getBoundingClientRect();
      for (const side of ['left', 'top']) edges[side] = Math.max(edges[side], box[side]);
      for (const side of ['right', 'bottom']) edges[side] = Math.min(edges[side], box[side]);
    }
    if (holder !== document.body) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const box = {left: Math.max(line.left, edges.left), right: Math.min(line.right, edges.right)};
      box.top = Math.max(line.top, edges.top);
      box.bottom = Math.min(line.bottom, edges.bottom);
      if (box.right - box.left > 2 && box.bottom - box.top > 4) texts.push([box, node]);
    }
  }
  texts.sort((one, other) => one[0].top - other[0].top);
  texts.forEach(([box, node], index) => {
    for (let next = index + 1; next < texts.length && texts[next][0].top < box.bottom - 4; next++) {
      const [other, its] = texts[next];
      const over = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      if (its !== node && over > 2) found.push(`text over text: ${node.data.trim()} / ${its.data.trim()}`);
    }
  });
  for (const each of document.querySelectorAll('body *')) {
    if (!seen(each) || !each.innerText?.trim()) continue;
    const style = getComputedStyle(each);
    const cut = ['hidden', 'clip'].includes(style.overflowX) && each.scrollWidth > each.clientWidth + 1;
    if (cut && each.clientWidth > 2 && !each.closest('[title]') && !each.querySelector('[title]'))
      found.push(`cut off: ${each.outerHTML.slice(0, 120)}`);
  }
  const filled = [...document.querySelectorAll('.sd-btn-primary')].filter(seen);
  if (filled.length > 1) found.push(`filled buttons: ${filled.map(each => each.innerText)}`);
  if (innerWidth > 700) return found;
  for (const each of document.querySelectorAll('a, button, summary, select, input:not([type=hidden])')) {
    if (!seen(each)) continue;
    const reach = getComputedStyle(each, '::after'), box = (each.closest('label') ?? each).getBoundingClientRect();
    const size = ['width', 'height'].map(side =>
      Math.max(box[side], reach.position === 'absolute' ? parseFloat(reach[side]) || 0 : 0));
    if (Math.min(...size) < 39.5) found.push(`${size.map(Math.round).join(' by ')} px: ${each.outerHTML.slice(0, 99)}`);
  }
  return found.map(one => one.replace(/\\s+/g, ' ').slice(0, 240));
}"""


def save_answer(model: Any, answer: Any, kind: Kind, **ids: str) -> None:
    text = dumps(answer)
    read = codec.decode_list(model, text) if isinstance(answer, list) else codec.decode(model, text)
    store.save(
        store.records_in_answer(READ_BY[kind], read, {"borrower_id": OWNER, **ids}), source=Source.SERVICE
    )


@pytest.fixture
def addresses(portal_service: Sandbox) -> list[str]:
    """The addresses of all screens: a borrower with extreme data, one with none, and the service down."""
    address = {"line_1": "W" * 80, "line_2": RIGHT_TO_LEFT, "city": NAME, "state": "ZZ", "zip": DIGITS}
    answer = {
        **portal_service.world.borrower(),
        "uuid": OWNER,
        "first_name": NAME,
        "phone": DIGITS,
        "email": f"{'w' * 60}@{'w' * 60}.example",
        "address": address,
        "entity": STATUS,
        "website": f"https://{'w' * 200}.example",
        "industry": FLAGS,
    }
    owner = store.save(store.observe(codec.decode(servicing.Borrower, dumps(answer))), source=Source.SERVICE)[
        0
    ]
    Borrower.objects.create(uuid=BARE)
    installments = [
        {"number": number, "due_date": "2026-03-08", "total": MONEY, "principal": MONEY, "interest": None}
        | {"fees": MONEY, "balance": MONEY, "status": [STATUS, None, "PAID"][number % 3], "paid_on": None}
        for number in range(1, 2001)
    ]
    terms = {
        "uuid": LOAN,
        "user_uuid": OWNER,
        "status": STATUS,
        "external_id": "x" * 300,
        "installments": installments,
    }
    save_answer(
        Loan, terms | {"amount": MONEY, "delinquent": True, "apr": Decimal(DIGITS)}, Kind.LOAN, loan_id=LOAN
    )
    balances = ("credit_limit", "principal_balance", "available_credit", "payoff_balance", "past_due_balance")
    statements = [{"billing_date": f"20{year}-01-15", "url": None} for year in range(10, 30)]
    figures = dict.fromkeys(balances, MONEY) | {"statements": statements, "days_past_due": 10**9}
    save_answer(Statement, {"uuid": LINE, **figures}, Kind.LINE, line_id=LINE)
    payment = {"status": STATUS, "amount": MONEY, "effective_date": "2026-03-08", "error_description": NAME}
    payments = [
        payment | {"uuid": f"r-{'x' * 60}-{number}", "payment_type": STATUS} for number in range(2000)
    ]
    save_answer(Repayment, payments, Kind.LOAN_REPAYMENTS, loan_id=LOAN)
    offers = [
        {"uuid": f"o-{number}", "lender": NAME, "amount": MONEY, "apr": DIGITS, "odd": FLAGS}
        for number in range(4)
    ]
    applied = {"uuid": APPLICATION, "status": STATUS, "amount": MONEY, "offers": offers}
    save_answer(Application, applied, Kind.APPLICATION, application_id=APPLICATION)
    day, by = timezone.localdate(), {"author_id": 1, "author_name": NAME}
    about = {"borrower_uuid": OWNER, "subject_kind": owner.kind, "subject_uuid": OWNER}
    Note.objects.create(**about, **by, text=f"{NAME} {DIGITS}", pinned_until=day)
    FollowUp.objects.create(
        borrower_uuid=OWNER, owner_id=1, owner_name=NAME, title=NAME, due=day - timedelta(days=1)
    )
    WriteIntent.objects.create(
        submit_id="w", label=NAME, state="unknown", borrower_uuid=OWNER, actor_name=NAME
    )
    portal_service.world.message(f"payment.{'x' * 90}", {"status": STATUS, "amount": MONEY, "note": NAME})
    portal_service.fail_next("*", times=None, status=503)
    lists = ("borrowers", "loans", "lines", "applications", "repayments", "messages", "collections")
    accounts = [
        f"loans/{LOAN}/?rows=all",
        f"lines/{LINE}/",
        f"applications/{APPLICATION}/",
        "summary/",
        "edit/",
    ]
    return [
        "/",
        *(f"/{name}/" for name in lists),
        *(f"/borrowers/{OWNER}/?tab={tab}" for tab in TABS),
        *(f"/borrowers/{OWNER}/{account}" for account in accounts),
        f"/borrowers/{BARE}/",
        f"/repayments/{payments[0]['uuid']}/",
        f"/search/?q={'W' * 90}",
        *("/audit/", "/admin/audit/entry/", "/admin/audit/remotecall/", "/status/", "/approvals/", "/help/"),
    ]


def test_no_screen_has_layout_problems(page: Page, addresses: list[str]) -> None:
    session = browser_of(Role.SUPERVISOR).cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "domain": "localhost", "path": "/"}]
    )
    problems = []
    for address in addresses:
        page.goto(address)
        page.wait_for_function("() => !document.querySelector('.htmx-request')")
        moved = page.evaluate(LAYOUT_SHIFT)
        if moved > 0.01:
            problems.append(f"{address} moves by {moved} while it loads")
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            problems += [f"{address} {width} {one}" for one in page.evaluate(LAYOUT_PROBLEMS)]
    assert not problems, "\n".join(problems)
