"""Compare what the portal shows for the demo's borrowers with figures from the service's raw answers.

    python -m tests.reconcile

:mod:`tests.owed` calculates from plain JSON with none of the portal's code. Lists, CSV files, pages, printed
summaries and home are compared. Each difference is printed, then the number of compared figures.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from html import unescape
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

from tests import owed


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        set_up_django(Path(folder))
        from servicing.sandbox import Sandbox
        from servicing.sandbox.seed import seed

        with Sandbox(Path(folder) / "sandbox.sqlite3", auth="none", control=True) as sandbox:
            seed(sandbox.world)
            fill_portal(sandbox, Path(folder))
            raw = list(raw_accounts(sandbox))
            found = compare(raw, today_of(sandbox))
    for line in found.differences:
        sys.stdout.write(f"{line}\n")
    number = len(found.differences)
    sys.stdout.write(f"{found.compared:,} figures of {len(raw)} accounts compared, {number} differ.\n")
    sys.exit(bool(number))


def set_up_django(folder: Path) -> None:
    """Set up Django with a new database."""
    os.environ |= {"DEBUG": "1", "DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "portal.settings"}
    os.environ |= {"SERVICING_AUTH": "none", "BUSINESS_DATE_FROM": "sandbox"}
    os.environ.pop("DATABASE_URL", None)
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.ALLOWED_HOSTS = ["testserver", *settings.ALLOWED_HOSTS]
    call_command("migrate", verbosity=0)


def fill_portal(sandbox: Any, folder: Path) -> None:
    """Import the IDs and profiles of the sandbox, and read every account from it."""
    from django.conf import settings
    from django.core.management import call_command

    from portal.audit.models import Actor
    from portal.gateway.reading import account_copies, read_live
    from portal.records.models import Account, Kind

    settings.SERVICING_URL = sandbox.url
    for name in ("ids", "profiles"):
        command = [sys.executable, "-m", "servicing.sandbox", name, "--db", str(folder / "sandbox.sqlite3")]
        (folder / name).write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    call_command("import_ids", folder / "ids", profiles=folder / "profiles", verbosity=0)
    for account in Account.objects.filter(kind__in=(Kind.LOAN, Kind.LINE)):
        for copy in account_copies(account):
            read_live(Actor.system("reconcile"), copy)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.loads(answer.read(), parse_float=Decimal)


def today_of(sandbox: Any) -> date:
    return date.fromisoformat(get(f"{sandbox.url}/_sandbox/date")["date"])


def raw_accounts(sandbox: Any) -> Iterator[dict[str, Any]]:
    """Yield the service's answer for each loan and line."""
    for kind, path in (("loan", "loan/{}"), ("line", "loc/{}/statements")):
        for record in sandbox.world.store.all(kind):
            url = f"{sandbox.url}/v1/users/{record.owner}/{path.format(record.uuid)}"
            yield {"kind": kind, "uuid": record.uuid, "owner": record.owner, "answer": get(url)}


# --- What the portal shows ---


OWED = ("Past due", "Days past due", "Aging", "Due next", "Amount due next")
NAMES = {
    "loan": (*OWED, "Amount", "Remaining payments", "Principal"),
    "line": (*OWED, "Limit", "Principal", "Principal as % of limit", "Available"),
}
HOME_ROW = re.compile(r'data-item="(?:loan|line):([^"]+)".*?<b class="sd-tnum[^"]*">([^<]+)</b>', re.DOTALL)
AREAS = {"loan": "loans", "line": "lines"}


class Comparison:
    """Counts comparisons and collects differences."""

    def __init__(self) -> None:
        self.compared, self.differences = 0, list[str]()

    def check(self, where: str, name: str, shown: Any, expected: Any) -> None:
        self.compared += 1
        if shown != expected:
            self.differences.append(f"{where}: {name} is {shown!r}, worked out {expected!r}")

    def check_contains(self, where: str, name: str, text: str, *expected: str) -> None:
        """Check that a text contains each expected text."""
        self.compared += 1
        for words in expected:
            if words not in text:
                self.differences.append(f"{where}: {name} lacks {words!r}")


def compare(raw: list[dict[str, Any]], today: date) -> Comparison:
    """Compare lists, files, pages, printed summaries and home with the raw answers."""
    found, browser = Comparison(), signed_in()
    accounts = [one | {"figures": owed.figures(one["kind"], one["answer"], today)} for one in raw]
    for kind, area in AREAS.items():
        files, rows = export_rows(browser, area), list_rows(browser, area)
        for one in (one for one in accounts if one["kind"] == kind):
            compare_account(found, browser, one, files[one["uuid"]], rows[one["uuid"]])
    borrowers = export_rows(browser, "borrowers")
    names = {uuid: row["Name"] for uuid, row in borrowers.items()}
    for owner in names:
        of_owner = [one for one in accounts if one["owner"] == owner]
        compare_borrower(found, browser, of_owner, borrowers[owner])
    compare_home(found, browser, accounts)
    return found


def compare_account(
    found: Comparison, browser: Any, one: dict[str, Any], file: dict[str, str], row: str
) -> None:
    """Compare one account in the CSV file, in the list and on its page."""
    figures, where = one["figures"], f"{one['kind']} {one['uuid'][:8]}"
    for name in NAMES[one["kind"]]:
        found.check(f"CSV, {where}", name, file[name], csv_text(figures[name]))
    late = [] if figures["Past due"] == 0 else [dollars(figures["Past due"])]
    due = [dollars(figures["Amount due next"])] if figures["Due next"] else []
    rest = ("Remaining payments",) if one["kind"] == "loan" else ("Principal", "Available")
    found.check_contains(
        f"list, {where}", "row", row, *late, *due, *(dollars(figures[name]) for name in rest)
    )
    page = text_of(browser.get(f"/borrowers/{one['owner']}/{AREAS[one['kind']]}/{one['uuid']}/"))
    if one["kind"] == "loan":
        labels = {name: name for name in ("Past due", "Principal")} | {
            "Left to pay, with interest": "Remaining payments"
        }
    else:
        balance = "Past due" if late else "Past due balance"
        labels = {balance: "Past due", "Principal": "Principal", "Available credit": "Available"}
    for label, name in labels.items():
        found.check_contains(f"page, {where}", name, page, f"{label} {dollars(figures[name])}")
    if due:
        found.check_contains(f"page, {where}", "Due next", page, f"Due next {due[0]}")


def compare_borrower(
    found: Comparison, browser: Any, accounts: list[dict[str, Any]], file: dict[str, str]
) -> None:
    """Compare one borrower in the CSV file, on its page and in the printed summary."""

    uuid = file["ID"]
    amount, unknown = owed.borrower_past_due([one["figures"] for one in accounts])
    found.check(f"CSV, borrower {uuid[:8]}", "Past due", file["Past due"], csv_text(amount))
    found.check(
        f"CSV, borrower {uuid[:8]}", "not known", file["Accounts with past due not known"], str(unknown or "")
    )
    total = dollars(amount) if amount else "Not known" if unknown else ""
    if total:
        page = text_of(browser.get(f"/borrowers/{uuid}/"))
        found.check_contains(f"page, borrower {uuid[:8]}", "Past due", page, f"Past due {total}")
    from portal.records.models import Borrower

    printed = summary_text(Borrower.objects.get(uuid=uuid))
    if total:
        found.check_contains(
            f"PDF, borrower {uuid[:8]}", "Past due", printed, without_spaces(f"Past due: {total}")
        )
    for one in accounts:
        found.check_contains(f"PDF, {one['kind']} {one['uuid'][:8]}", "row", printed, printed_row(one))


def printed_row(one: dict[str, Any]) -> str:
    """Return an account's figures in the order of the printed summary."""
    figures = one["figures"]
    names = ("Principal", "Remaining payments") if one["kind"] == "loan" else ("Available",)
    days = "—" if figures["Days past due"] is None else str(figures["Days past due"])
    due = (
        f"{dollars(figures['Amount due next'])}{shown_day(figures['Due next'])}"
        if figures["Due next"]
        else "None"
    )
    return without_spaces("".join([*(dollars(figures[name]) for name in (*names, "Past due")), days, due]))


def compare_home(found: Comparison, browser: Any, accounts: list[dict[str, Any]]) -> None:
    """Compare the past due title and accounts on the home page, including their order."""
    late = [one for one in accounts if one["figures"]["is_late"]]
    amounts = [one["figures"]["Past due"] for one in late]
    answer = browser.get("/?show=past_due")
    page, known = text_of(answer), sum((one for one in amounts if one is not None), owed.ZERO)
    unknown = f" ({amounts.count(None)} not known)" if None in amounts else ""
    found.check_contains("home", "title", page, f"{dollars(known)} past due on {len(late)} accounts{unknown}")
    worst = sorted(amounts, key=lambda one: (one is not None, one or 0), reverse=True)
    shown = dict(HOME_ROW.findall(answer.content.decode()))
    found.check("home", "order", list(shown.values()), [dollars(one) for one in worst[: len(shown)]])
    for one in late:
        if one["uuid"] in shown:
            expected = dollars(one["figures"]["Past due"])
            found.check("home", f"{one['kind']} {one['uuid'][:8]}", shown[one["uuid"]], expected)


def signed_in() -> Any:
    from django.test import Client

    from portal.accounts.models import User

    columns = ["amount", "remaining", "past_due", "days", "due", "principal", "status"]
    user = User.objects.create(username="reconcile", role="viewer", list_columns={"loans": columns})
    browser = Client()
    browser.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return browser


def export_rows(browser: Any, area: str) -> dict[str, dict[str, str]]:
    """Return the rows of a list's CSV file by ID."""
    answer = browser.get(f"/{area}/{'export/' if area == 'borrowers' else 'export.csv'}?all=1")
    lines = b"".join(answer.streaming_content).decode("utf-8-sig").splitlines()
    return {row.get("Loan") or row.get("Line") or row["ID"]: row for row in csv.DictReader(lines)}


def list_rows(browser: Any, area: str) -> dict[str, str]:
    """Return the text of each row of a list by ID."""
    found: dict[str, str] = {}
    for page in count(1):
        parts = browser.get(f"/{area}/?size=100&page={page}").content.decode().split("<tr data-row>")[1:]
        rows = {
            re.findall(r'value="([^"]+)"', part)[0]: words_of(part.partition("</tr>")[0]) for part in parts
        }
        if not rows.keys() - found.keys():
            return found
        found |= rows
    return found


def summary_text(owner: Any) -> str:
    """Return the text of a borrower's printed summary, without spaces."""
    from django.utils import timezone
    from pypdf import PdfReader

    from portal.core.business_date import business_date
    from portal.documents import borrower_summary
    from portal.documents.document import Stamp
    from portal.documents.options import Options
    from portal.documents.pdf import render

    copies = borrower_summary.account_copies_of(owner)
    paper = borrower_summary.document(owner, copies, Options(), today=business_date())
    pages = PdfReader(BytesIO(render(paper.html(Stamp(timezone.now(), "reconcile"))))).pages
    printed = without_spaces("".join(page.extract_text() for page in pages))
    return printed.replace("beforepartialpayments", "")


def csv_text(value: Any) -> str:
    """Return a figure as CSV writes it."""
    return "" if value is None else f"{value:.2f}" if isinstance(value, Decimal) else str(value)


def text_of(answer: Any) -> str:
    return words_of(answer.content.decode())


def words_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def without_spaces(text: str) -> str:
    return "".join(text.split())


def dollars(value: Decimal | None) -> str:
    if value is None:
        return "Not known"
    return f"{'−' if value < 0 else ''}${abs(value):,.2f}"


def shown_day(day: date) -> str:
    return f"{day:%b} {day.day}, {day.year}"


if __name__ == "__main__":
    main()
