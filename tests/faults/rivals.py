"""Lets two people change one record at once, and loses the answers of approved changes.

The portal runs in its own process behind the proxy, which delays and cuts answers. Afterwards the saved copy, the
approval and the pages are compared with the service.
"""

import random
import threading
import time
from datetime import timedelta
from typing import Any

import requests
from django.utils import timezone

from portal.approvals.models import Approval
from portal.audit.models import WriteIntent
from portal.audit.writes import close_stale_writes
from portal.registry.models import Record
from tests import given
from tests.databases import forget_connections
from tests.faults.answers import RemoteBrowser
from tests.faults.killing import Portal
from tests.faults.proxy import ProxiedSandbox
from tests.faults.writes import Verdict
from tests.portal.borrowers.editor import UPDATE, Editor, fields, html

AGAIN = {"again": "on"}
LOST: dict[str, dict[str, Any]] = {
    "cut before": {"cut_before": True},
    "cut after commit": {"cut_after_commit": True},
    "500 after commit": {"status": 500, "commit": True},
    "killed": {"delay": 2},
}


def race_changes(service: ProxiedSandbox, rounds: int) -> Verdict:
    """Let two people change the same borrower at once, and lose some answers."""
    portal, chance, found = Portal(service.url, APPROVAL_ACTS="none"), random.Random(20261122), Verdict()
    forget_connections()
    portal.start()
    try:
        people: list[Any] = [RemoteBrowser(portal, name) for name in ("first", "second")]
        for number in range(rounds):
            _race(service, people, chance, number, found)
        found.doubled += [f"two changes were sent at once: {change}" for change in service.proxy.overlaps]
    finally:
        portal.kill()
        service.heal()
    return found


def _race(
    service: ProxiedSandbox, people: list[Any], chance: random.Random, number: int, found: Verdict
) -> None:
    record = given.borrower(service)
    editors = [Editor(person, record) for person in people]
    previews = [
        one.review_fields(email=f"{who}-{number}@race.example") | {"reason": "At once"}
        for who, one in enumerate(editors)
    ]
    lost = [chance.random() < 0.3 for _ in editors]
    for is_lost in lost:
        service.fail_next(UPDATE, delay=chance.uniform(0, 0.4), cut_after_commit=is_lost)
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one, form=form: results.append(_result_of(one.post(form, "send"))))
        for one, form in zip(editors, previews, strict=True)
    ]
    for thread in threads:
        thread.start()
        time.sleep(chance.uniform(0, 0.1))
    for thread in threads:
        thread.join()
    service.heal()
    _check_race(service, record, results, found)
    last = f"last-{number}@race.example"
    if editors[0].send(AGAIN, email=last).status_code != 303:
        found.stuck.append(f"after {results} the borrower cannot be changed any more")
    elif service.world.user(record.uuid)["email"] != last or last not in _saved_copy(record):
        found.untrue.append(f"after {results} and one more change the copy is not what the service has")


def _result_of(answer: Any) -> str:
    """What became of a change, by where its form leads."""
    is_unknown = "/audit/writes/" in answer.headers.get("Location", "")
    results = {303: "unknown" if is_unknown else "confirmed", 409: "busy"}
    return results.get(answer.status_code, f"status {answer.status_code}")


def _check_race(service: ProxiedSandbox, record: Record, results: list[str], found: Verdict) -> None:
    if len(results) < 2 or set(results) - {"confirmed", "busy", "unknown"}:
        found.untrue.append(f"two changes at once end as {results}")
    intents = WriteIntent.objects.filter(subject_uuid=record.uuid)
    states = sorted(intents.values_list("state", flat=True))
    if any(states.count(state) != results.count(state) for state in ("confirmed", "unknown")):
        found.lost.append(f"two changes at once end as {results} and are {states}")
    if "sending" in states:
        found.stuck.append("a change is still being sent after its answer")
    current = service.world.user(record.uuid)["email"]
    if "confirmed" in results and "unknown" not in results and current not in _saved_copy(record):
        found.untrue.append(f"the service has {current}, and the copy does not")


def _saved_copy(record: Record) -> str:
    return str(Record.objects.get(pk=record.pk).answer)


def lose_approved_answers(service: ProxiedSandbox, rounds: int) -> Verdict:
    """Lose answers of approved changes: the approval must say so, and resend only on request."""
    found = Verdict()
    for name in LOST:
        for _ in range(rounds):
            portal = Portal(service.url, APPROVAL_ACTS="legal_name")
            forget_connections()
            portal.start()
            try:
                _lose_answer(service, portal, name, found)
            finally:
                portal.kill()
                service.heal()
    return found


def _lose_answer(service: ProxiedSandbox, portal: Portal, name: str, found: Verdict) -> None:
    maker: Any = RemoteBrowser(portal, "maker")
    checker = RemoteBrowser(portal, "checker")
    editor = Editor(maker, given.borrower(service))
    new = {"first_name": "Bay Bakery LLC"}
    asked = editor.post(editor.review_fields(**new) | {"reason": "Articles of amendment"}, "ask")
    if asked.status_code != 303:
        found.untrue.append(f"{name}: asking for approval answers {asked.status_code}")
        return
    approval = Approval.objects.get(subject_uuid=editor.record.uuid)
    checker.post(f"{approval.get_absolute_url()}decide/", {"decision": "approve", "comment": ""})

    def send(given: dict[str, str]) -> Any:
        return editor.post(fields(html(maker.get(approval.send_url))) | given, "send")

    form, before = fields(html(maker.get(approval.send_url))), len(service.calls)
    service.fail_next(UPDATE, **LOST[name])
    if name == "killed":
        _send_and_kill(service, portal, editor, form, before)
        _make_stale()
    else:
        editor.post(form, "send")
    service.heal()
    intent = WriteIntent.objects.filter(subject_uuid=editor.record.uuid).first()
    maker.get(approval.get_absolute_url())
    approval.refresh_from_db()
    if intent is None or (approval.state, approval.intent_id) != ("unknown", intent.pk):
        found.lost.append(f"{name}: the approval is {approval.state}, not tied to its write")
        return
    for place in (approval.get_absolute_url(), approval.send_url):
        page = html(maker.get(place))
        if "Nothing has been sent yet" in page or intent.get_absolute_url() not in page:
            found.untrue.append(f"{name}: {place} does not say that a write may have been done")
    calls = len(service.calls)
    if send({}).status_code != 422 or len(service.calls) != calls:
        found.doubled.append(f"{name}: sent again without being asked to")
    if send(AGAIN).status_code != 303:
        found.stuck.append(f"{name}: it cannot be sent again on purpose")
    approval.refresh_from_db()
    if approval.state != "sent" or service.world.user(editor.record.uuid)["first_name"] != new["first_name"]:
        found.untrue.append(f"{name}: the approval is {approval.state} after the second sending")


def _send_and_kill(
    service: ProxiedSandbox, portal: Portal, editor: Editor, form: dict[str, str], before: int
) -> None:
    def send_form() -> None:
        try:
            editor.post(form, "send")
        except requests.RequestException:
            pass

    sender = threading.Thread(target=send_form)
    sender.start()
    while len(service.calls) == before and sender.is_alive():
        time.sleep(0.01)
    portal.kill()
    sender.join()
    portal.start()


def _make_stale() -> None:
    """Move the write past its deadline."""
    past = timezone.now() - timedelta(minutes=5)
    WriteIntent.objects.filter(state=WriteIntent.State.SENDING).update(created_at=past)
    Approval.objects.update(decided_at=past - timedelta(minutes=1))
    close_stale_writes()
