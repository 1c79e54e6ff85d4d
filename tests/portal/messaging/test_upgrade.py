"""The upgrade from version 1.0, whose messages had their time in their key and no columns for what is found in them."""

import re
from datetime import UTC, datetime
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client as Browser

from portal.jobs.models import Job
from portal.messaging.models import Message, Run
from servicing.sandbox import Sandbox
from tests.portal.messaging.conftest import START, emit
from tests.portal.messaging.test_index import list_ids
from tests.portal.messaging.test_sync import run_sync

upgrade = import_module("portal.messaging.migrations.0007_fill_rows")


@pytest.fixture
def earlier(portal_service: Sandbox) -> list[str]:
    """Save messages as version 1.0 did, and return their IDs, newest first."""
    emit(portal_service, 3)
    run_sync()
    for number, message in enumerate(Message.objects.all()):
        second = int(message.recorded_at.timestamp())
        values = {"id": second << 31 | number, "payload": None, "recorded_text": "", "search_text": "x\nǂabc"}
        Message.objects.filter(pk=message.pk).update(recorded_at=datetime.now(UTC), **values)
    Run.objects.update(is_unbroken=False, newest=[], reached=None)
    return [one["uuid"] for one in portal_service.world.messages()]


def test_saved_messages_are_found_after_the_upgrade(
    viewer: Browser, portal_service: Sandbox, earlier: list[str]
) -> None:
    for _ in range(2):
        upgrade.fill_messages(apps, connection.schema_editor())
    assert list_ids(viewer, "?source=copy") == earlier
    for query in ('{"payload": {"amount": 101}}', "loc succeeded"):
        found = list_ids(viewer, f"?q={query}&start_date={START.date()}")
        assert found == (earlier[1:2] if "101" in query else earlier)
    assert [one.created_at for one in Message.objects.all()] == [
        one.received.created_at for one in Message.objects.all()
    ]


def test_a_payload_that_is_a_list_does_not_hold_up_the_upgrade(earlier: list[str]) -> None:
    message = Message.objects.earliest("id")
    body = re.sub(r'"payload": ?\{[^}]*\}', '"payload":[1]', message.body)
    assert body != message.body
    Message.objects.filter(pk=message.pk).update(body=body)
    upgrade.fill_messages(apps, connection.schema_editor())
    message.refresh_from_db()
    assert (message.payload, "\n1\n" in message.search_text) == (None, True)
    assert Message.objects.filter(payload__isnull=True).count() == 1


def test_the_first_sync_after_the_upgrade_reads_only_what_is_new(
    portal_service: Sandbox, earlier: list[str]
) -> None:
    Run.objects.create(by="sync", ended_at=datetime.now(UTC))
    for step in (upgrade.fill_messages, upgrade.mark_unbroken_run):
        step(apps, connection.schema_editor())
    run = Run.objects.get(is_unbroken=True)
    assert run.newest == earlier
    before = len(portal_service.calls)
    assert run_sync().added == 0
    assert len(portal_service.calls) - before == 1


def test_a_waiting_comparison_is_done_after_the_upgrade(db: None) -> None:
    Job.objects.create(
        name="messaging.sync", key="messaging.sync", arguments={"read_before": "2026-11-01T00:00:00+00:00"}
    )
    upgrade.convert_others(apps, connection.schema_editor())
    job = Job.objects.get()
    assert (job.name, job.key, job.arguments) == (
        "messaging.compare",
        "messaging.compare",
        {"all_days": True},
    )
