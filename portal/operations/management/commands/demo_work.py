"""Does a morning's work as the demo's staff, on the pages they use, so that every screen has something to show."""

import io
import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.test import Client

import servicing
from portal.accounts.models import User
from portal.collections.management.commands.demo_collections import control_sandbox
from portal.core.business_date import business_date
from portal.notes.models import Note
from portal.records import store
from portal.records.models import IS_LATE, Account, Application, Borrower, Kind


class Command(BaseCommand):
    """``manage.py demo_work``"""

    help = "Read the demo’s accounts on three dates, and do the staff’s work in between (DEBUG only)."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEBUG or settings.BUSINESS_DATE_FROM != "sandbox":
            raise CommandError("Demo data are for local use: they need DEBUG and the sandbox’s date.")
        if Note.objects.exists():
            return
        call_command("refresh_portfolio", rate=500, verbosity=0)
        # Before the book is written: a message has the day on which a payment was returned.
        call_command("sync_messages", stdout=io.StringIO())
        call_command("demo_collections")
        servicer, supervisor = Staff("servicer"), Staff("supervisor")
        today = business_date()
        late = Account.objects.filter(kind=Kind.LOAN).filter(IS_LATE).order_by("-past_due", "pk")[:3]
        worst, *others = [Borrower.objects.get(uuid=one.borrower_uuid) for one in late]

        note = {"text": "Call the owner’s cell phone, after 2 PM."}
        pin = {"pinned_until": today + timedelta(days=14)}
        servicer.post(f"/notes/new/borrower/{worst.uuid}/", note | pin)
        servicer.post(f"/notes/new/loan/{late[0].uuid}/", {"text": "Sent the payoff estimate by mail."})
        tasks = f"/notes/follow-ups/new/{worst.uuid}/"
        servicer.post(tasks, {"title": "Ask for the bank statement", "due": today})
        owner = User.objects.get(username="servicer").pk
        supervisor.post(tasks, {"title": "Agree on a payment plan", "due": today, "owner": owner})
        view = {"list": "loans:index", "query": "?delinquent=yes&sort=due"}
        supervisor.post("/views/save/", view | {"name": "Past due by due date", "is_shared": "on"})

        for record in Application.objects.filter(decision="APPROVED").order_by("pk")[:2]:
            if answer := store.last_answer(record, servicing.Application):
                offer = {"offer": answer.offers[0].uuid, "reason": "The borrower asked for it"}
                supervisor.post(f"{record.get_absolute_url()}prefer/", offer)
        for borrower, amount in zip(others, ("45000", "120000"), strict=False):
            loan = {"amount": amount, "submit_id": uuid4(), "confirmed": "yes"}
            servicer.post(f"/borrowers/{borrower.uuid}/applications/new/", loan)

        draft = re.search(
            r'action="(/borrowers/new/[0-9a-f-]{36}/business/)"', servicer.page("/borrowers/new/")
        )
        business = {"first_name": "Harbor Light Bakery LLC", "entity": "LIMITED_LIABILITY_COMPANY"}
        business |= {"email": "office@harborlight.example", "phone": "(207) 555-0143"}
        servicer.post(draft[1] if draft else "", business | {"act": "next"})
        name = str(others[0]).rpartition(" ")[0]
        servicer.edit(others[0], "ask", first_name=f"{name} Holdings LLC", reason="Articles of amendment")
        # The sandbox makes the change, and its answer is lost.
        control_sandbox("faults", {"operation": "borrowers.update", "cut_after_commit": True})
        servicer.edit(others[-1], "send", phone="(503) 555-0148", reason="By phone")
        # The last call must succeed, because the header shows its result.
        servicer.edit(worst, "send", phone="(509) 555-0162", reason="By phone")
        for person in (servicer, supervisor):
            person.sign_out()


class Staff:
    """A browser with a signed-in staff member."""

    def __init__(self, username: str) -> None:
        self.client = Client(headers={"host": "localhost"})
        self.client.force_login(User.objects.get(username=username))

    def sign_out(self) -> None:
        """End the session, so that the person finds only those of browsers."""
        self.client.logout()

    def page(self, url: str) -> str:
        return self.client.get(url).content.decode()

    def post(self, url: str, typed: dict[str, Any]) -> Any:
        """Post a form; a rejected one ends the command."""
        answer = self.client.post(url, typed)
        if answer.status_code >= 400 or answer.get("Location", "").startswith("/sign-in/"):
            raise CommandError(f"{url} answered {answer.status_code}.")
        return answer

    def edit(self, borrower: Borrower, act: str, reason: str, **changes: str) -> None:
        """Change a profile, review it, and send it or ask for approval."""
        url = f"/borrowers/{borrower.uuid}/edit/"
        form = form_fields(self.page(url)) | changes
        review = form_fields(self.post(url, form | {"action": "preview"}).content.decode())
        self.client.post(url, review | {"reason": reason, "action": act})


class Fields(HTMLParser):
    """The text and hidden fields of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        field = {name: value or "" for name, value in attrs}
        if tag == "input" and field.get("type") not in ("checkbox", "radio", "file") and "name" in field:
            self.found[field["name"]] = field.get("value", "")


def form_fields(page: str) -> dict[str, str]:
    """What a browser would post from an edit form."""
    reader = Fields()
    reader.feed(page.partition('id="edit-step"')[2])
    return reader.found
