"""Syncing messages: after failures, kills and concurrent runs, the saved copy matches the service."""

import json
import os
import signal
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from itertools import count
from random import Random
from string import ascii_letters
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.signals import post_save
from django.utils import timezone

from portal import gateway
from portal.accounts.roles import Role
from portal.audit.models import Actor, Entry
from portal.gateway import client_for
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.messaging import sync
from portal.messaging.coverage import coverage, messages_state
from portal.messaging.models import Day, Message, Run
from portal.messaging.store import service_zone
from portal.messaging.sync import Sync, read_front
from portal.operations.tasks import forget_old
from servicing import IncompleteList, Unavailable
from servicing.sandbox import Sandbox
from tests.conftest import browser_of
from tests.databases import forget_connections, locked
from tests.portal.messaging.conftest import START, emit, saved_ids, service_ids

DAY = timedelta(days=1)
RESULT = {"new": 12, "already here": 0, "total": 12, "gone": 0}
WITHOUT_DAYS = {"times": None, "ignored_parameters": ["start_date", "end_date"]}


def run_sync(
    report: Callable[[Run], object] = lambda run: None,
    *,
    read_before: datetime | None = None,
    **stretch: date | None,
) -> Run:
    sync = Sync(
        Actor.system("test"),
        report=report,
        sleep=lambda seconds: None,
        read_before=read_before,
        **stretch,
    )
    run = sync.read_missing()
    assert run.added + run.already_here == run.claimed
    return run


def is_in_sync(sandbox: Sandbox) -> bool:
    """Assert it instead of returning False, so that a failure shows the difference."""
    saved = Message.objects.at_service().values_list("uuid", flat=True)
    assert sorted(saved) == sorted(service_ids(sandbox))
    return True


def test_all_messages_are_saved_for_each_offset_unit(service: Sandbox) -> None:
    for days in (0, 1, 40, 500):
        emit(service, 230 if days == 1 else 3, at=START - days * DAY)
    run = run_sync()
    assert is_in_sync(service)
    assert (run.added, run.claimed, run.failure) == (239, 239, "")
    assert Day.objects.get(day=date(2026, 11, 2)).claimed == 230


def test_a_second_run_reads_no_message_again(service: Sandbox) -> None:
    emit(service, 300)
    run_sync()
    before = len(service.calls)
    assert run_sync().added == 0
    assert [call for call in service.calls[before:] if call.query["limit"] != "1"] == []


def test_messages_that_arrive_during_a_run_hide_no_others(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 100)
    emit(service, 350)

    def arrive(run: Run) -> None:
        if run.day and Message.objects.count() < 300:
            service.world.message("payment.failed", {}, at=START + 12 * timedelta(hours=1))

    run_sync(arrive)
    run_sync()
    assert is_in_sync(service)


def test_a_temporary_failure_is_retried(service: Sandbox) -> None:
    emit(service, 250)
    reports = iter(range(1000))

    def fail(run: Run) -> None:
        if next(reports) == 0:
            service.fail_next("messages.list", times=3, status=500)

    assert run_sync(fail).added == 250
    assert is_in_sync(service)


def test_a_run_continues_where_a_failed_one_stopped(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 100)
    emit(service, 600)

    def fail(run: Run) -> None:
        if run.added >= 300:
            service.fail_next("messages.list", times=None, status=500)

    with pytest.raises(Unavailable):
        run_sync(fail)
    service.heal()
    before, saved = len(service.calls), Message.objects.count()
    assert (saved >= 300, run_sync().added) == (True, 600 - saved)
    assert is_in_sync(service)
    day = "2026-11-03"  # Other days are read in turn, depending on the date.
    calls = [call for call in service.calls[before:] if call.query.get("start_date") in (None, day)]
    pages = [call for call in calls if call.query["limit"] != "1"]
    assert len(pages) < 8  # All fit on six pages; the first three were not read again.
    assert "500" in Run.objects.order_by("id")[0].failure


def test_a_day_with_missing_messages_is_read_again(service: Sandbox) -> None:
    emit(service, 20)
    emit(service, 20, at=START - 9 * DAY)
    run_sync()
    Message.objects.filter(uuid__in=saved_ids()[3:9]).delete()
    assert run_sync().added == 6
    assert is_in_sync(service)


def test_messages_the_service_drops_stay_saved(service: Sandbox) -> None:
    emit(service, 5)
    run_sync()
    service.reset()
    emit(service, 2)
    run_sync()
    before = len(service.calls)
    run_sync()
    assert Message.objects.count() == 7
    assert Message.objects.filter(gone_at__isnull=False).count() == 5
    assert [call for call in service.calls[before:] if call.query["limit"] != "1"] == []


@pytest.fixture
def lost(service: Sandbox) -> str:
    """Return the ID of a saved message that the service replaced by another on the same day."""
    for days in range(3):
        emit(service, 13, at=START - days * DAY)
    assert run_sync().claimed == 39
    lost = next(m for m in service.world.messages() if m["created_at"].startswith("2026-11-02"))
    service.world.remove_message(lost["uuid"])
    emit(service, 1, at=START - DAY)
    return str(lost["uuid"])


def test_a_full_comparison_finds_a_replaced_message(service: Sandbox, lost: str) -> None:
    run = run_sync(read_before=timezone.now())
    assert (run.added, run.already_here, run.claimed, run.gone) == (1, 38, 39, 1)
    assert [one.uuid for one in Message.objects.filter(gone_at__isnull=False)] == [lost]
    assert Message.objects.count() == 40
    assert is_in_sync(service)
    assert {bar.state for bar in coverage(date(2026, 11, 1), date(2026, 11, 3), messages_state()).bars} == {
        "complete"
    }


def test_a_full_comparison_works_after_the_clock_was_set_back(
    service: Sandbox, lost: str, settings: LazySettings
) -> None:
    settings.MESSAGE_FULL_SYNC_MINUTES = 0
    with time_machine.travel(timezone.now() - timedelta(hours=1)):
        assert run_sync(read_before=timezone.now()).gone == 1


def test_late_messages_do_not_hide_removed_ones(service: Sandbox, settings: LazySettings) -> None:
    settings.SERVICING_PAGE_SIZE = 10
    emit(service, 60)
    run_sync()
    for message in service.world.messages()[40:43]:
        service.world.remove_message(message["uuid"])
    emit(service, 5, at=START + timedelta(seconds=30))
    emit(service, 5, at=START + timedelta(minutes=50, seconds=30))
    assert (run_sync().gone, is_in_sync(service)) == (3, True)


def test_a_run_compares_days_last_read_over_a_day_ago(service: Sandbox, lost: str) -> None:
    Day.objects.update(read_at=timezone.now() - timedelta(hours=25))
    assert run_sync().gone == 1
    assert is_in_sync(service)


@pytest.mark.parametrize("days", [-500, 40])
def test_days_without_messages_at_the_service_are_compared(service: Sandbox, days: int) -> None:
    emit(service, 4, at=timezone.now() + days * DAY)
    dropped = service_ids(service)
    emit(service, 5)
    run_sync()
    for uuid in dropped:
        service.world.remove_message(uuid)
    run = run_sync(read_before=timezone.now())
    assert (run.added, run.already_here, run.claimed, run.gone) == (0, 5, 5, 4)
    assert is_in_sync(service)


def test_a_message_that_returns_is_no_longer_gone(service: Sandbox) -> None:
    emit(service, 3)
    run_sync()
    body = service.world.messages()[0]
    service.world.remove_message(body["uuid"])
    assert (run_sync().gone, Message.objects.get(uuid=body["uuid"]).gone_at is None) == (1, False)
    emit(service, 1, uuid=body["uuid"])
    run = run_sync()
    assert (run.added, run.already_here, run.claimed, run.gone) == (0, 3, 3, 0)
    assert is_in_sync(service)


def test_messages_removed_during_a_run_hide_no_others(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 100)
    emit(service, 650)
    chance, removed = Random(1), []

    def remove(run: Run) -> None:
        if run.day and len(removed) < 28:
            for message in chance.sample(service.world.messages(), 7):
                removed.append(message["uuid"])
                service.world.remove_message(message["uuid"])

    run = run_sync(remove)
    assert (len(removed), run.claimed) == (28, 622)
    assert is_in_sync(service)
    assert coverage(date(2026, 11, 3), date(2026, 11, 3), messages_state()).bars[0].state == "complete"


def test_messages_saved_outside_a_run_are_compared(service: Sandbox) -> None:
    emit(service, 5)
    read_front(client_for(Actor.system("test")))
    Message.objects.filter(uuid=saved_ids()[0]).update(uuid="never-at-the-service")
    run = run_sync()
    assert (run.added, run.claimed, run.gone) == (1, 5, 1)
    assert is_in_sync(service)


def test_all_messages_are_read_if_dates_are_ignored(service: Sandbox, settings: LazySettings) -> None:
    settings.SERVICING_PAGE_SIZE = 20
    for days in (0, 1, 40):
        emit(service, 30, at=START - days * DAY)
    emit(service, 4, zone="IST")
    service.fail_next("messages.list", **WITHOUT_DAYS)
    run = run_sync()
    assert (run.added, run.claimed, run.filters_ignored) == (94, 94, True)
    assert is_in_sync(service)
    before = len(service.calls)
    assert run_sync().already_here == 94
    assert [call for call in service.calls[before:] if call.query["limit"] != "1"] == []
    emit(service, 2, at=START + DAY)
    service.world.remove_message(service.world.messages()[9]["uuid"])
    run = run_sync()
    assert (run.added, run.claimed, run.gone) == (2, 95, 1)
    assert is_in_sync(service)
    assert coverage(date(2026, 11, 2), date(2026, 11, 2), messages_state()).bars[0].state == "complete"


@pytest.mark.parametrize("stretch", [{}, {"since": date(2026, 11, 1), "until": date(2026, 11, 3)}])
def test_ignored_dates_are_noticed_despite_ambiguous_times(
    service: Sandbox, stretch: dict[str, date]
) -> None:
    for days in (0, 1, 40):
        emit(service, 5, at=START - days * DAY, zone="IST")
    service.fail_next("messages.list", **WITHOUT_DAYS)
    assert run_sync(**stretch).filters_ignored
    assert is_in_sync(service)


def test_a_run_fails_if_all_parameters_are_ignored(service: Sandbox) -> None:
    emit(service, 90)
    parameters = ["start_date", "end_date", "event", "limit", "offset"]
    service.fail_next("messages.list", times=None, ignored_parameters=parameters)
    with pytest.raises(IncompleteList, match="25 of 90"):
        run_sync()
    assert "25 of 90" in Run.objects.get().failure


def test_only_the_requested_days_are_read(service: Sandbox) -> None:
    for days in range(4):
        emit(service, 2, at=START - days * DAY)
    run_sync(since=date(2026, 11, 1), until=date(2026, 11, 2))
    assert set(Message.objects.values_list("day", flat=True)) == {date(2026, 11, 1), date(2026, 11, 2)}


def test_an_ambiguous_time_is_resolved_by_the_services_day(service: Sandbox) -> None:
    emit(service, 3, at=datetime(2026, 11, 3, 7, 30, tzinfo=UTC), zone="IST")  # Still the 2nd there.
    read_front(client_for(Actor.system("test")))  # This guesses the day, and the run corrects it.
    run_sync()
    assert is_in_sync(service)
    days = {(row.day, row.recorded_at.astimezone(service_zone()).date()) for row in Message.objects.all()}
    assert days == {(date(2026, 11, 2), date(2026, 11, 2))}


def test_messages_of_the_same_second_are_all_saved(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.messaging.store._key_suffix", lambda uuid: 7)
    for _ in range(5):
        emit(service, 1)
    run_sync()
    assert is_in_sync(service)


def test_messages_with_unusable_ids_are_saved(service: Sandbox) -> None:
    chance = Random(1)  # Random, because an index would compress repeated text.
    long = ["".join(chance.choices(ascii_letters, k=9000)) for _ in range(2)]
    emit(service, 3)
    for uuid in (*long, "a/b", "nul\0"):
        emit(service, 1, uuid=uuid)
    for _ in range(2):
        run_sync()
        assert sorted(
            json.loads(body)["uuid"] for body in Message.objects.values_list("body", flat=True)
        ) == sorted(service_ids(service))


def test_new_messages_are_read_in_at_most_three_calls(service: Sandbox) -> None:
    client = client_for(Actor.system("test"))
    emit(service, 230)
    assert (read_front(client), read_front(client)) == (230, 0)
    before = len(service.calls)
    service.world.message("payment.failed", {})
    assert read_front(client) == 1
    assert len(service.calls) - before <= 3
    assert is_in_sync(service)


def test_an_oversized_page_is_read_in_smaller_ones(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servicing.transport.MAX_ANSWER_BYTES", 40_000)
    emit(service, 150)
    assert run_sync().added == 150
    assert is_in_sync(service)


@pytest.mark.parametrize("service", ["pages"], indirect=True)
class TestCommand:
    def test_the_command_reports_its_progress_and_is_recorded(
        self, service: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        emit(service, 12)
        call_command("sync_messages", since=date(2026, 11, 1))
        output = capsys.readouterr().out
        assert "2026-11-03: 12 of 12 missing" in output
        assert "Done: 12 new, 0 already saved, 12 in all." in output
        counts = {"new": 12, "already_here": 0, "total": 12, "gone": 0}
        assert Entry.objects.get(action="messaging.sync").detail == {"failure": "", **counts}

    @pytest.mark.parametrize(
        "options", [{"since": date(2026, 2, 2), "until": date(2026, 2, 1)}, {"interval": 0.0}]
    )
    def test_invalid_options_are_rejected(self, service: Sandbox, options: dict[str, Any]) -> None:
        with pytest.raises(CommandError):
            call_command("sync_messages", **options)
        assert service.calls == []

    def test_a_button_starts_a_background_job(self, service: Sandbox) -> None:
        emit(service, 12)
        browser = browser_of(Role.SERVICER)
        answer = browser.post("/messages/sync/")
        assert "Sync messages" in browser.get(answer["Location"]).content.decode()
        call_command("work", batch=True)
        job = Job.latest("messaging.sync")
        assert job
        assert (job.state, job.result, job.done, job.total) == (Job.State.DONE, RESULT, 12, 12)
        assert is_in_sync(service)
        assert browser_of(Role.VIEWER).post("/messages/sync/").status_code == 403

    def test_a_job_yields_to_others_and_continues(
        self, service: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("portal.jobs.execution.MIN_SLICE", timedelta(0))
        emit(service, 12)
        browser = browser_of(Role.SERVICER)
        browser.post("/messages/sync/")
        other = start_job(forget_old)
        for _ in range(2):
            call_command("work", batch=True)
        other.refresh_from_db()
        job = Job.latest("messaging.sync")
        assert job
        assert (other.state, job.state, job.attempts, job.result) == ("done", "done", 1, RESULT)
        early, whole = Run.objects.order_by("id")
        assert (early.failure, whole.failure) == ("Stopped. The next run continues there.", "")
        assert is_in_sync(service)

    def test_a_retry_counts_what_the_first_attempt_found_gone(self, service: Sandbox, lost: str) -> None:
        def reject(instance: Run, **_: Any) -> None:
            if instance.gone:
                service.fail_next("messages.list", status=403, times=None)

        browser_of(Role.SERVICER).post("/messages/sync/", {"whole": "1"})
        post_save.connect(reject, sender=Run)
        call_command("work", batch=True)
        post_save.disconnect(reject, sender=Run)
        service.heal()
        job = Job.latest("messaging.sync")
        assert job
        assert (job.state, job.attempts) == ("waiting", 1)
        Job.objects.update(due_at=timezone.now())
        call_command("work", batch=True)
        job.refresh_from_db()
        assert (job.state, job.result) == ("done", {"new": 1, "already here": 38, "total": 39, "gone": 1})

    def test_a_service_failure_is_reported(self, service: Sandbox) -> None:
        service.fail_next("messages.list", status=403, times=None)
        with pytest.raises(CommandError, match="continues where this one stopped"):
            call_command("sync_messages")
        assert Sync(Actor.system("x"), report=print).run.is_alive


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
def test_a_run_killed_twenty_times_still_completes(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    monkeypatch.setattr(sync, "BATCH", 50)
    settings.SERVICING_PAGE_SIZE = 20
    chance = Random(20261121)
    for _ in range(20):
        for days in (0, 1, 9):
            emit(service, 20, at=START - days * DAY)
        assert is_killed_within(chance.randint(1, 120), run_sync)
    assert Message.objects.count() < 20 * 3 * 20
    run_sync()
    assert is_in_sync(service)


@pytest.mark.django_db(transaction=True)
def test_a_batch_waits_for_a_locked_database(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "BATCH", 20)
    emit(service, 300)
    pauses: list[float] = []
    with ExitStack() as other:

        def hold(run: Run) -> None:
            if run.added == 100 and not pauses:
                other.enter_context(locked())

        def let_go(seconds: float) -> None:
            pauses.append(seconds)
            other.close()

        run = Sync(Actor.system("test"), report=hold, sleep=let_go).read_missing()
    assert pauses == [1]
    assert (run.added, run.failure) == (300, "")
    assert is_in_sync(service)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
def test_two_concurrent_runs_complete(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    monkeypatch.setattr(sync, "BATCH", 20)
    settings.SERVICING_PAGE_SIZE = 20
    for days in (0, 1, 9):
        emit(service, 100, at=START - days * DAY)
    children = [start_child(run_sync) for _ in range(2)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert is_in_sync(service)
    assert list(Run.objects.values_list("failure", flat=True)) == ["", ""]


def is_killed_within(statement: int, work: Callable[[], object]) -> bool:
    """Run in a child process that is killed at the given SQL statement, and return whether it was."""
    numbers = count(1)

    def kill_at_statement(execute: Callable[..., Any], *args: Any) -> Any:
        if next(numbers) == statement:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(*args)

    def work_until_killed() -> None:
        with connection.execute_wrapper(kill_at_statement):
            work()

    return os.waitstatus_to_exitcode(os.waitpid(start_child(work_until_killed), 0)[1]) == -signal.SIGKILL


def start_child(work: Callable[[], object]) -> int:
    """Run in a child process, and return its ID; its exit code says whether that succeeded."""
    forget_connections()
    gateway.client.cache_clear()
    child = os.fork()
    if child == 0:
        code = 1
        # A pool's threads may wait for a lock that another thread held at the fork.
        connection.settings_dict["OPTIONS"].pop("pool", None)
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return child
