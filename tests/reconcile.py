"""Compares what the portal shows of the demo's borrowers with figures worked out from the service's raw answers.

    python -m tests.reconcile

Nothing of the portal's own calculations is used: the answers are read as plain JSON, and the figures follow the
definitions of what is owed. Each difference is a line; the last line says how much was compared.
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
from pathlib import Path
from typing import Any

NOT_KNOWN = None
CLOSED = {"CLOSED", "PAID_OFF", "CHARGED_OFF", "CANCELED", "CANCELLED"}
ZERO = Decimal(0)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        from servicing.sandbox import Sandbox
        from servicing.sandbox.seed import seed

        with Sandbox(Path(folder) / "sandbox.sqlite3", auth="none", control=True) as sandbox:
            seed(sandbox.world)
            fill_portal(sandbox, Path(folder))
            raw = list(raw_accounts(sandbox))
            differences, compared = compare(raw, today_of(sandbox))
    for line in differences:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{compared:,} figures of {len(raw)} accounts compared, {len(differences)} differ.\n")
    sys.exit(bool(differences))


def prepare(folder: Path) -> None:
    """Set up Django with a database of its own."""
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
    """Import the IDs and profiles of the sandbox, and read every account."""
    from django.conf import settings
    from django.core.management import call_command

    from portal.audit.models import Actor
    from portal.live import account_records, read_live
    from portal.registry.models import Kind, Record

    settings.SERVICING_URL = sandbox.url
    for name in ("ids", "profiles"):
        command = [sys.executable, "-m", "servicing.sandbox", name, "--db", str(folder / "sandbox.sqlite3")]
        (folder / name).write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    call_command("import_ids", folder / "ids", profiles=folder / "profiles", verbosity=0)
    for account in Record.objects.filter(kind__in=(Kind.LOAN, Kind.LINE)):
        for record in account_records(account):
            read_live(Actor.system("reconcile"), record)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.loads(answer.read(), parse_float=Decimal)


def today_of(sandbox: Any) -> date:
    return date.fromisoformat(get(f"{sandbox.url}/_sandbox/date")["date"])


def raw_accounts(sandbox: Any) -> Iterator[dict[str, Any]]:
    """Each loan and line as the service answers."""
    for kind, path in (("loan", "loan/{}"), ("line", "loc/{}/statements")):
        for record in sandbox.world.store.all(kind):
            url = f"{sandbox.url}/v1/users/{record.owner}/{path.format(record.uuid)}"
            yield {"kind": kind, "uuid": record.uuid, "owner": record.owner, "answer": get(url)}


# --- The figures, from their definitions alone ---


def amount(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def day(value: Any) -> date | None:
    return date.fromisoformat(str(value)[:10]) if value else None


def figures(account: dict[str, Any], today: date) -> dict[str, Any]:
    answer = account["answer"]
    return loan_figures(answer, today) if account["kind"] == "loan" else line_figures(answer, today)


def loan_figures(loan: dict[str, Any], today: date) -> dict[str, Any]:
    """What is owed on a loan."""
    rows = sorted(map(installment, loan["installments"] or []), key=lambda row: row["due"] or date.max)
    unpaid = [row for row in rows if not row["paid"] and (row["total"] is None or row["total"] > 0)]
    late = [row for row in unpaid if row["due"] and row["due"] < today]
    coming = [row for row in unpaid if row["due"] and row["due"] >= today]
    past_due: Decimal | None = sum((row["total"] or ZERO for row in late), ZERO)
    if any(row["due"] is None for row in unpaid) or any(row["total"] is None for row in late):
        past_due = NOT_KNOWN
    elif not rows:
        start = day(loan["repayments_start_date"])
        past_due = ZERO if start and start > today else NOT_KNOWN
    if past_due == 0 and loan["delinquent"]:
        past_due = NOT_KNOWN
    remaining = [row["total"] for row in unpaid]
    return {
        "Past due": past_due,
        "Days past due": (today - late[0]["due"]).days if late and past_due is not None else None,
        "Remaining payments": sum(remaining, ZERO) if rows and None not in remaining else NOT_KNOWN,
        "Due next": coming[0]["due"] if coming else None,
        "Amount due next": coming[0]["total"] if coming else None,
        "is_closed": str(loan["status"]).upper() in CLOSED,
        "is_late": bool(late) or bool(loan["delinquent"]),
    }


def installment(row: dict[str, Any]) -> dict[str, Any]:
    if "PaymentNumber" in row:
        return {
            "due": day(row["PaymentDate"]),
            "total": amount(row["PaymentAmount"]),
            "paid": row["IsHistory"],
        }
    return {"due": day(row["due_date"]), "total": amount(row["total"]), "paid": row["status"] == "PAID"}


def line_figures(line: dict[str, Any], today: date) -> dict[str, Any]:
    """What is owed on a line, as the service reports it."""
    due, to_pay = day(line["payment_due_date"]), amount(line["payment_amount_due"])
    is_coming = bool(due and due >= today and to_pay)
    return {
        "Past due": amount(line["past_due_balance"]),
        "Days past due": line["days_past_due"],
        "Principal": amount(line["principal_balance"]),
        "Due next": due if is_coming else None,
        "Amount due next": to_pay if is_coming else None,
        "is_closed": False,
        "is_late": bool(amount(line["past_due_balance"]) or line["days_past_due"]),
    }


# --- What the portal shows ---


def compare(raw: list[dict[str, Any]], today: date) -> tuple[list[str], int]:
    """The differences between list files, pages and home and the figures, and how many were compared."""
    browser = signed_in()
    worked_out = {account["uuid"]: figures(account, today) for account in raw}
    found: list[str] = []
    compared = 0

    def check(where: str, name: str, shown: Any, expected: Any) -> None:
        nonlocal compared
        compared += 1
        if shown != expected:
            found.append(f"{where}: {name} is {shown}, worked out {expected}")

    for area, kind in (("loans", "loan"), ("lines", "line")):
        rows = {next(iter(row.values())): row for row in exported(browser, area)}
        for account in raw:
            if account["kind"] != kind:
                continue
            row, figure = rows[account["uuid"]], worked_out[account["uuid"]]
            for name, expected in figure.items():
                if name in row and name != "Days past due":
                    check(f"{area} CSV {account['uuid'][:8]}", name, typed(row[name], expected), expected)
            if figure["Past due"]:
                check(
                    f"{area} CSV {account['uuid'][:8]}",
                    "days",
                    typed(row["Days past due"], 0),
                    figure["Days past due"],
                )
            page = text_of(browser.get(f"/borrowers/{account['owner']}/{area}/{account['uuid']}/"))
            if figure["Past due"]:
                check(
                    f"{kind} page {account['uuid'][:8]}",
                    "past due",
                    dollars(figure["Past due"]) in page,
                    True,
                )
    borrowers = {row["ID"]: row for row in exported(browser, "borrowers")}
    home = text_of(browser.get("/"))
    for owner in sorted({account["owner"] for account in raw}):
        of_owner = [worked_out[one["uuid"]] for one in raw if one["owner"] == owner]
        open_ones = [figure for figure in of_owner if not figure["is_closed"]]
        known = [figure["Past due"] for figure in open_ones if figure["Past due"] is not None]
        whole = sum(known, ZERO)
        unknown = len(open_ones) - len(known)
        row, where = borrowers[owner], f"borrower {owner[:8]}"
        if open_ones:  # Nothing known to be past due beside something not known is not zero.
            expected = whole if whole or not unknown else NOT_KNOWN
            check(f"{where} CSV", "Past due", typed(row["Past due"], whole), expected)
        check(f"{where} CSV", "not known", int(row["Accounts with past due not known"] or 0), unknown)
        if whole:
            page = text_of(browser.get(f"/borrowers/{owner}/"))
            check(f"{where} page", "past due", dollars(whole) in page, True)
    late = [one["Past due"] for one in worked_out.values() if one["Past due"] and not one["is_closed"]]
    largest = max(late, default=ZERO)
    check("home", "largest past due", dollars(largest) in home, True)
    return found, compared


def signed_in() -> Any:
    from django.test import Client

    from portal.accounts.models import User

    user = User.objects.create(username="reconcile", role="viewer")
    browser = Client()
    browser.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return browser


def exported(browser: Any, area: str) -> list[dict[str, str]]:
    name = "export/" if area == "borrowers" else "export.csv"
    answer = browser.get(f"/{area}/{name}?all=1")
    lines = b"".join(answer.streaming_content).decode("utf-8-sig").splitlines()
    return list(csv.DictReader(lines))


def typed(text: str, like: Any) -> Any:
    """A cell as the type of what is expected; empty is not known."""
    if not text:
        return None
    if isinstance(like, date):
        return day(text)
    return Decimal(text) if re.fullmatch(r"-?[\d.]+", text) else text


def text_of(answer: Any) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))


def dollars(value: Decimal) -> str:
    return f"${value:,.2f}"


if __name__ == "__main__":
    main()
