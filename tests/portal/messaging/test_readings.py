"""Messages that can't be saved, or that the service lists otherwise than before."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import Actor
from portal.gateway.client import client_for
from portal.messaging.coverage import check_days, coverage
from portal.messaging.models import Day, Message, Run
from portal.messaging.sync import read_front
from servicing.sandbox import Sandbox
from tests.conftest import browser_of
from tests.portal.messaging.conftest import START, emit
from tests.portal.messaging.test_index import list_ids
from tests.portal.pages import visible_text

pytestmark = pytest.mark.postgres

DAY = START.date()
ODD: list[tuple[Any, str]] = [
    (
        {"event": "payment.failed", "created_at": "2026-11-03 10:00:00 PST"},
        "payment.failed, 2026-11-03 10:00:00 PST",
    ),
    ({"uuid": None, "event": "payment.failed", "payload": {}}, "payment.failed"),
    ({"uuid": "", "status": "SUCCESS"}, "an object without event"),
    ({"uuid": " ", "event": "x"}, "x"),
    ({"uuid": {"id": 5}, "event": "x"}, "x"),
    ({"uuid": "m-1", "error_code": "E1042"}, "m-1"),
    (None, "null"),
    ("closed", '"closed"'),
    ([], "[]"),
]


def add_odd(service: Sandbox, body: Any, minute: int = 5) -> None:
    """Add something that is no message among those of `emit`."""
    at = START + timedelta(minutes=minute, seconds=30)
    service.world.message("payment.failed", {}, at=at, uuid=f"row-{minute}")
    service.world.replace_message(f"row-{minute}", body)


def sync(whole: bool = False) -> Run:
    call_command("sync_messages", whole=whole)
    return Run.objects.first() or Run()


def state_of_day() -> str:
    return coverage(DAY, DAY).bars[0].state


@pytest.mark.slow
@pytest.mark.parametrize(("body", "name"), ODD)
def test_a_message_without_a_usable_id_hides_no_other(service: Sandbox, body: Any, name: str) -> None:
    emit(service, 30)
    add_odd(service, body)
    for whole in (True, False):
        run = sync(whole)
        assert (Message.objects.count(), run.failure) == (30, "")
        assert (run.unusable, run.unusable_names) == (1, name)
    assert Day.objects.get(day=DAY).unusable == 1
    assert state_of_day() != "complete"
    check_days(client_for(Actor.system("test")), DAY, DAY)
    assert state_of_day() != "complete"
    shown = visible_text(browser_of(Role.VIEWER).get("/messages/").content.decode())
    assert f"1 without a usable ID, so not saved: {name}" in shown
    assert f"1 without a usable ID, so not shown: {name}" in shown


@pytest.mark.slow
def test_several_odd_messages_on_many_pages_are_counted(service: Sandbox) -> None:
    emit(service, 250)
    for minute in (3, 120, 121, 240):
        add_odd(service, None, minute)
    run = sync()
    assert (Message.objects.count(), run.failure, run.unusable) == (250, "", 4)


def test_a_file_names_messages_that_it_lacks(service: Sandbox) -> None:
    emit(service, 3)
    add_odd(service, None)
    for scope in ("&all=1", ""):
        answer = browser_of(Role.VIEWER).get(f"/messages/export/?format=jsonl{scope}")
        lines = [json.loads(line) for line in answer.getvalue().splitlines()]
        assert len(lines) == 4
        assert lines[-1]["Message"] == "INCOMPLETE: without a usable ID, so missing: 1 (null)"


def test_a_repaired_message_completes_its_day(service: Sandbox) -> None:
    emit(service, 5)
    add_odd(service, None)
    sync(whole=True)
    service.world.replace_message("row-5", {"uuid": "m-9", "event": "x"})
    run = sync(whole=True)
    assert (run.unusable, Message.objects.count(), state_of_day()) == (0, 6, "complete")


def listed(service: Sandbox, **changes: Any) -> dict[str, Any]:
    """Change how the service lists its only message."""
    (message,) = service.world.messages()
    service.world.replace_message(message["uuid"], message | changes)
    return message


@pytest.mark.slow
@pytest.mark.parametrize("read", ["sync", "list", "front", "check"])
def test_the_delivery_status_follows_each_reading(service: Sandbox, read: str) -> None:
    emit(service, 1, at=timezone.now(), status="FAILED")
    sync()
    viewer = browser_of(Role.VIEWER)
    assert "1 message not delivered." in visible_text(viewer.get("/").content.decode())
    message = listed(service, status="SUCCESS")
    match read:
        case "sync":
            sync(whole=True)
        case "list":
            viewer.get("/messages/")
        case "front":
            read_front(client_for(Actor.system("test")))
        case "check":
            Day.objects.all().delete()
            check_days(client_for(Actor.system("test")), None, None)
    saved = Message.objects.get()
    assert (saved.status, saved.received.status, saved.changed_payload) == ("SUCCESS", "SUCCESS", None)
    assert list_ids(viewer, "?status=FAILED&source=copy") == []
    assert list_ids(viewer, "?status=SUCCESS&source=copy") == [message["uuid"]]
    assert list_ids(viewer, '?source=copy&q={"status": "SUCCESS"}') == [message["uuid"]]
    assert "not delivered" not in visible_text(viewer.get("/").content.decode())
    (line,) = viewer.get("/messages/export/?all=1&format=jsonl&source=copy").getvalue().splitlines()
    assert json.loads(line)["Message status"] == "SUCCESS"


@pytest.mark.slow
def test_a_changed_payload_is_kept_beside_the_first(service: Sandbox) -> None:
    emit(service, 1)
    sync()
    stored_at = Message.objects.get().stored_at
    message = listed(service, payload={"uuid": "p-0", "amount": 999, "status": "FAILED"}, status="FAILED")
    for _ in range(2):
        sync(whole=True)
        saved = Message.objects.get()
        assert (saved.amount, saved.payment_status, saved.status) == (100, "SUCCEEDED", "FAILED")
        assert saved.received.payload == message["payload"]
        assert saved.later_payload == {"uuid": "p-0", "amount": 999, "status": "FAILED"}
        assert (saved.stored_at, state_of_day()) == (stored_at, "complete")
    viewer = browser_of(Role.VIEWER)
    assert list_ids(viewer, "?changed=changed") == [message["uuid"]]
    assert "Data check: the service later listed another payload" in visible_text(
        viewer.get(saved.get_absolute_url()).content.decode()
    )
    listed(service, payload=message["payload"], status="SUCCESS")
    sync(whole=True)
    assert Message.objects.get().changed_payload is None
    assert list_ids(viewer, "?changed=changed") == []


@pytest.mark.slow
@pytest.mark.parametrize("payload", [None, [], "gone", {}])
def test_a_payload_that_is_lost_is_kept(service: Sandbox, payload: Any) -> None:
    emit(service, 1)
    sync()
    message = listed(service, payload=payload)
    sync(whole=True)
    saved = Message.objects.get()
    assert (saved.received.payload, saved.later_payload) == (message["payload"], payload)
    assert saved.changed_payload is not None


def test_an_equal_reading_writes_nothing(service: Sandbox) -> None:
    emit(service, 3)
    sync()
    (first, *_) = service.world.messages()
    service.world.replace_message(first["uuid"], dict(reversed(first.items())))
    bodies = set(Message.objects.values_list("body", flat=True))
    sync(whole=True)
    assert set(Message.objects.values_list("body", flat=True)) == bodies
