"""The local copy ends as exactly what the service has, whatever happens on the way."""

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import count
from random import Random
from string import ascii_letters
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from portal import gateway
from portal.accounts.roles import Role
from portal.audit.models import Actor, Entry
from portal.gateway import reading
from portal.jobs.models import Job
from portal.jobs.queue import start
from portal.messaging import sync
from portal.messaging.keeping import service_zone
from portal.messaging.models import Day, Message, Run
from portal.messaging.sync import Sync, begin, read_front
from portal.operations.tasks import forget_old
from servicing import Unavailable
from servicing.sandbox import Sandbox
from tests.conftest import browser_of
from tests.databases import forget_connections
from tests.portal.messaging.conftest import START, emit, kept, service_has

DAY = timedelta(days=1)


def synced(report: Callable[[Run], object] = lambda run: None, **stretch: date | None) -> Run:
    actor = Actor.system("test")
    run = Run.objects.create(by=actor.name, **stretch)
    return Sync(reading(actor), run, actor=actor, report=report, sleep=lambda seconds: None)()


def is_whole(sandbox: Sandbox) -> bool:
    """Asserted here, so that a failure says what is missing and what is too much."""
    assert sorted(kept()) == sorted(service_has(sandbox))
    return True


def test_everything_comes_whatever_offsets_count(service: Sandbox) -> None:
    for days in (0, 1, 40, 500):
        emit(service, 230 if days == 1 else 3, at=START - days * DAY)
    run = synced()
    assert is_whole(service)
    assert (run.added, run.claimed, run.failure) == (239, 239, "")
    assert Day.objects.get(day=date(2026, 11, 2)).claimed == 230


def test_a_second_run_reads_nothing_again(service: Sandbox) -> None:
    emit(service, 300)
    synced()
    before = len(service.calls)
    assert synced().added == 0
    assert [call for call in service.calls[before:] if call.query["limit"] != "1"] == []


def test_messages_that_arrive_during_the_walk_cost_no_old_one(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 100)
    emit(service, 350)

    def arrive(run: Run) -> None:
        if run.day and Message.objects.count() < 300:
            service.world.message("payment.failed", {}, at=START + 12 * timedelta(hours=1))

    synced(arrive)
    synced()
    assert is_whole(service)


def test_a_failure_in_the_middle_is_waited_for(service: Sandbox) -> None:
    emit(service, 250)
    synced_calls = iter(range(1000))

    def fail(run: Run) -> None:
        if next(synced_calls) == 0:
            service.fail_next("messages.list", times=3, status=500)

    assert synced(fail).added == 250
    assert is_whole(service)


def test_a_run_goes_on_where_one_ended_that_the_service_refused(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 100)
    emit(service, 600)

    def fail(run: Run) -> None:
        if run.added >= 300:
            service.fail_next("messages.list", times=None, status=500)

    with pytest.raises(Unavailable):
        synced(fail)
    service.heal()
    before, there = len(service.calls), Message.objects.count()
    assert (there >= 300, synced().added) == (True, 600 - there)
    assert is_whole(service)
    pages = [call for call in service.calls[before:] if call.query["limit"] != "1"]
    assert len(pages) < 8  # Six pages have all; the first three were not read again.
    assert "500" in Run.objects.order_by("id")[0].failure


def test_a_day_that_lost_messages_here_is_read_again(service: Sandbox) -> None:
    emit(service, 20)
    emit(service, 20, at=START - 9 * DAY)
    synced()
    Message.objects.filter(uuid__in=kept()[3:9]).delete()
    assert synced().added == 6
    assert is_whole(service)


def test_what_the_service_forgets_stays_here(service: Sandbox) -> None:
    emit(service, 5)
    synced()
    service.reset()
    emit(service, 2)
    synced()
    before = len(service.calls)
    synced()
    assert Message.objects.count() == 7
    assert [call for call in service.calls[before:] if call.query["limit"] != "1"] == []


def test_only_the_days_that_are_asked_for_are_read(service: Sandbox) -> None:
    for days in range(4):
        emit(service, 2, at=START - days * DAY)
    synced(since=date(2026, 11, 1), until=date(2026, 11, 2))
    assert set(Message.objects.values_list("day", flat=True)) == {date(2026, 11, 1), date(2026, 11, 2)}


def test_a_message_without_a_certain_time_stands_in_the_day_of_the_service(service: Sandbox) -> None:
    emit(service, 3, at=datetime(2026, 11, 3, 7, 30, tzinfo=UTC), zone="IST")  # The evening of the 2nd there.
    read_front(reading(Actor.system("test")))  # A guess; what the service says of the day comes later.
    synced()
    assert is_whole(service)
    days = {(row.day, row.at.astimezone(service_zone()).date()) for row in Message.objects.all()}
    assert days == {(date(2026, 11, 2), date(2026, 11, 2))}


def test_messages_of_one_second_are_all_kept(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.messaging.keeping._salt", lambda uuid: 7)
    for _ in range(5):
        emit(service, 1)
    synced()
    assert is_whole(service)


def test_an_identifier_that_no_index_can_hold_stops_nothing(service: Sandbox) -> None:
    chance = Random(1)  # An index would shrink what repeats itself.
    long = ["".join(chance.choices(ascii_letters, k=9000)) for _ in range(2)]
    emit(service, 3)
    for uuid in (*long, "a/b", "nul\0"):
        emit(service, 1, uuid=uuid)
    for _ in range(2):
        synced()
        assert sorted(
            json.loads(body)["uuid"] for body in Message.objects.values_list("body", flat=True)
        ) == sorted(service_has(service))


def test_what_is_new_costs_one_call_while_nothing_is(service: Sandbox) -> None:
    client = reading(Actor.system("test"))
    emit(service, 230)
    assert (read_front(client), read_front(client)) == (230, 0)
    before = len(service.calls)
    service.world.message("payment.failed", {})
    assert read_front(client) == 1
    assert len(service.calls) - before <= 3
    assert is_whole(service)


def test_a_page_too_large_to_be_read_is_read_in_smaller_ones(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("servicing.transport.MAX_ANSWER_BYTES", 40_000)
    emit(service, 150)
    assert synced().added == 150
    assert is_whole(service)


@pytest.mark.parametrize("service", ["pages"], indirect=True)
class TestCommand:
    def test_it_says_how_far_it_is_and_leaves_an_audit_entry(
        self, service: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        emit(service, 12)
        call_command("sync_messages", since=date(2026, 11, 1))
        assert "2026-11-03: 12 of 12 missing" in capsys.readouterr().out
        assert Entry.objects.get(action="messaging.sync").detail == {"new": 12, "failure": ""}

    @pytest.mark.parametrize(
        "options", [{"since": date(2026, 2, 2), "until": date(2026, 2, 1)}, {"interval": 0.0}]
    )
    def test_what_makes_no_sense_is_refused(self, service: Sandbox, options: dict[str, Any]) -> None:
        with pytest.raises(CommandError):
            call_command("sync_messages", **options)
        assert service.calls == []

    def test_a_button_starts_it_in_the_background(self, service: Sandbox) -> None:
        emit(service, 12)
        browser = browser_of(Role.SERVICER)
        answer = browser.post("/messages/sync/")
        assert "Reading messages that are missing" in browser.get(answer["Location"]).content.decode()
        call_command("work", batch=True)
        job = Job.latest("messaging.sync")
        assert job
        assert (job.state, job.result, job.done, job.total) == (Job.State.DONE, {"new": 12}, 12, 12)
        assert is_whole(service)
        assert browser_of(Role.VIEWER).post("/messages/sync/").status_code == 403

    def test_one_that_makes_way_says_so_and_goes_on(
        self, service: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("portal.jobs.running.SLICE", timedelta(0))
        emit(service, 12)
        browser = browser_of(Role.SERVICER)
        browser.post("/messages/sync/")
        other = start(forget_old)
        for _ in range(2):
            call_command("work", batch=True)
        other.refresh_from_db()
        job = Job.latest("messaging.sync")
        assert job
        assert (other.state, job.state, job.attempts, job.result) == ("done", "done", 1, {"new": 12})
        early, whole = Run.objects.order_by("id")
        assert (early.failure, whole.failure) == ("It made way, and goes on by itself.", "")
        assert is_whole(service)

    def test_a_service_that_is_gone_is_said(self, service: Sandbox) -> None:
        service.fail_next("messages.list", status=403, times=None)
        with pytest.raises(CommandError, match="goes on where this one stopped"):
            call_command("sync_messages")
        assert begin(Actor.system("x"), since=None, until=None, report=print).run.is_alive


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
def test_killed_at_twenty_moments_and_begun_again_it_ends_as_what_the_service_has(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"BATCH": 50, "WALK_LIMIT": 20, "LIMITS": (20, 5, 1)}.items():
        monkeypatch.setattr(sync, name, value)
    chance = Random(20261121)
    for _ in range(20):
        for days in (0, 1, 9):
            emit(service, 20, at=START - days * DAY)
        assert is_killed_within(chance.randint(1, 120), synced)
    assert Message.objects.count() < 20 * 3 * 20
    synced()
    assert is_whole(service)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
def test_two_at_once_end_as_what_the_service_has(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "BATCH", 20)
    monkeypatch.setattr("portal.messaging.sync.WALK_LIMIT", 20)
    for days in (0, 1, 9):
        emit(service, 100, at=START - days * DAY)
    children = [apart(synced) for _ in range(2)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert is_whole(service)
    assert list(Run.objects.values_list("failure", flat=True)) == ["", ""]


def is_killed_within(statement: int, work: Callable[[], object]) -> bool:
    """Do it in a process of its own, which dies without a warning at its so-manieth look into the database."""
    numbers = count(1)

    def bomb(execute: Callable[..., Any], *told: Any) -> Any:
        if next(numbers) == statement:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(*told)

    def deadly() -> None:
        with connection.execute_wrapper(bomb):
            work()

    return os.waitstatus_to_exitcode(os.waitpid(apart(deadly), 0)[1]) == -signal.SIGKILL


def apart(work: Callable[[], object]) -> int:
    """Do it in a process of its own, whose end tells whether that went well."""
    forget_connections()
    gateway.client.cache_clear()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child
