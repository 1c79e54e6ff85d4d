"""The local copy ends as exactly what the service has, whatever happens on the way."""

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
from tests.portal.messaging.conftest import START, emit, kept, service_has

DAY = timedelta(days=1)
RESULT = {"new": 12, "already here": 0, "total": 12, "gone": 0}
WITHOUT_DAYS = {"times": None, "ignored_parameters": ["start_date", "end_date"]}


def synced(
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
    done = sync.read_missing()
    assert done.added + done.already_here == done.claimed
    return done


def is_whole(sandbox: Sandbox) -> bool:
    """Asserted here, so that a failure says what is missing and what is too much."""
    here = Message.objects.at_service().values_list("uuid", flat=True)
    assert sorted(here) == sorted(service_has(sandbox))
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


def test_messages_that_arrive_while_iterating_lose_no_older_one(
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
    day = "2026-11-03"  # Other days are walked in turn, depending on the date.
    calls = [call for call in service.calls[before:] if call.query.get("start_date") in (None, day)]
    pages = [call for call in calls if call.query["limit"] != "1"]
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
    assert Message.objects.filter(gone_at__isnull=False).count() == 5
    assert [call for call in service.calls[before:] if call.query["limit"] != "1"] == []


@pytest.fixture
def lost(service: Sandbox) -> str:
    """The message that the service lost of an old day, all of which is saved; it got another one for it."""
    for days in range(3):
        emit(service, 13, at=START - days * DAY)
    assert synced().claimed == 39
    lost = next(m for m in service.world.messages() if m["created_at"].startswith("2026-11-02"))
    service.world.remove_message(lost["uuid"])
    emit(service, 1, at=START - DAY)
    return str(lost["uuid"])


def test_one_message_removed_and_one_added_are_found_by_comparing_all(service: Sandbox, lost: str) -> None:
    run = synced(read_before=timezone.now())
    assert (run.added, run.already_here, run.claimed, run.gone) == (1, 38, 39, 1)
    assert [one.uuid for one in Message.objects.filter(gone_at__isnull=False)] == [lost]
    assert Message.objects.count() == 40
    assert is_whole(service)
    assert {bar.state for bar in coverage(date(2026, 11, 1), date(2026, 11, 3), messages_state()).bars} == {
        "complete"
    }


def test_comparing_all_does_so_after_the_clock_was_set_back(
    service: Sandbox, lost: str, settings: LazySettings
) -> None:
    settings.MESSAGE_FULL_SYNC_MINUTES = 0
    with time_machine.travel(timezone.now() - timedelta(hours=1)):
        assert synced(read_before=timezone.now()).gone == 1


def test_late_messages_of_a_day_hide_none_that_it_lost(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "LIMITS", (10, 5, 1))
    emit(service, 60)
    synced()
    for message in service.world.messages()[40:43]:
        service.world.remove_message(message["uuid"])
    emit(service, 5, at=START + timedelta(seconds=30))
    emit(service, 5, at=START + timedelta(minutes=50, seconds=30))
    assert (synced().gone, is_whole(service)) == (3, True)


def test_and_by_every_sync_once_the_last_comparison_is_a_day_old(service: Sandbox, lost: str) -> None:
    Day.objects.update(read_at=timezone.now() - timedelta(hours=25))
    assert synced().gone == 1
    assert is_whole(service)


@pytest.mark.parametrize("days", [-500, 40])
def test_days_are_compared_of_which_the_service_has_nothing_left(service: Sandbox, days: int) -> None:
    emit(service, 4, at=timezone.now() + days * DAY)
    dropped = service_has(service)
    emit(service, 5)
    synced()
    for uuid in dropped:
        service.world.remove_message(uuid)
    run = synced(read_before=timezone.now())
    assert (run.added, run.already_here, run.claimed, run.gone) == (0, 5, 5, 4)
    assert is_whole(service)


def test_a_message_that_comes_back_is_gone_no_longer(service: Sandbox) -> None:
    emit(service, 3)
    synced()
    body = service.world.messages()[0]
    service.world.remove_message(body["uuid"])
    assert (synced().gone, Message.objects.get(uuid=body["uuid"]).gone_at is None) == (1, False)
    emit(service, 1, uuid=body["uuid"])
    run = synced()
    assert (run.added, run.already_here, run.claimed, run.gone) == (0, 3, 3, 0)
    assert is_whole(service)


def test_messages_that_are_removed_during_the_walk_cost_no_other(
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

    run = synced(remove)
    assert (len(removed), run.claimed) == (28, 622)
    assert is_whole(service)
    assert coverage(date(2026, 11, 3), date(2026, 11, 3), messages_state()).bars[0].state == "complete"


def test_what_others_saved_is_compared_before_it_counts_as_complete(service: Sandbox) -> None:
    emit(service, 5)
    read_front(client_for(Actor.system("test")))
    Message.objects.filter(uuid=kept()[0]).update(uuid="never-at-the-service")
    run = synced()
    assert (run.added, run.claimed, run.gone) == (1, 5, 1)
    assert is_whole(service)


def test_a_service_that_ignores_days_is_read_whole(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "MESSAGES_PER_PAGE", 20)
    monkeypatch.setattr(sync, "LIMITS", (20, 5, 1))
    for days in (0, 1, 40):
        emit(service, 30, at=START - days * DAY)
    emit(service, 4, zone="IST")
    service.fail_next("messages.list", **WITHOUT_DAYS)
    run = synced()
    assert (run.added, run.claimed, run.filters_ignored) == (94, 94, True)
    assert is_whole(service)
    before = len(service.calls)
    assert synced().already_here == 94
    assert [call for call in service.calls[before:] if call.query["limit"] != "1"] == []
    emit(service, 2, at=START + DAY)
    service.world.remove_message(service.world.messages()[9]["uuid"])
    run = synced()
    assert (run.added, run.claimed, run.gone) == (2, 95, 1)
    assert is_whole(service)
    assert coverage(date(2026, 11, 2), date(2026, 11, 2), messages_state()).bars[0].state == "complete"


@pytest.mark.parametrize("stretch", [{}, {"since": date(2026, 11, 1), "until": date(2026, 11, 3)}])
def test_ignored_days_are_noticed_although_no_message_has_a_certain_one(
    service: Sandbox, stretch: dict[str, date]
) -> None:
    for days in (0, 1, 40):
        emit(service, 5, at=START - days * DAY, zone="IST")
    service.fail_next("messages.list", **WITHOUT_DAYS)
    assert synced(**stretch).filters_ignored
    assert is_whole(service)


def test_a_service_that_reads_no_parameter_at_all_ends_the_sync_with_its_reason(service: Sandbox) -> None:
    emit(service, 90)
    everything = ["start_date", "end_date", "event", "limit", "offset"]
    service.fail_next("messages.list", times=None, ignored_parameters=everything)
    with pytest.raises(IncompleteList, match="25 of 90"):
        synced()
    assert "25 of 90" in Run.objects.get().failure


def test_only_the_days_that_are_asked_for_are_read(service: Sandbox) -> None:
    for days in range(4):
        emit(service, 2, at=START - days * DAY)
    synced(since=date(2026, 11, 1), until=date(2026, 11, 2))
    assert set(Message.objects.values_list("day", flat=True)) == {date(2026, 11, 1), date(2026, 11, 2)}


def test_a_message_without_a_certain_time_stands_in_the_day_of_the_service(service: Sandbox) -> None:
    emit(service, 3, at=datetime(2026, 11, 3, 7, 30, tzinfo=UTC), zone="IST")  # The evening of the 2nd there.
    read_front(client_for(Actor.system("test")))  # A guess; what the service says of the day comes later.
    synced()
    assert is_whole(service)
    days = {(row.day, row.recorded_at.astimezone(service_zone()).date()) for row in Message.objects.all()}
    assert days == {(date(2026, 11, 2), date(2026, 11, 2))}


def test_messages_of_one_second_are_all_kept(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.messaging.store._key_suffix", lambda uuid: 7)
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
    client = client_for(Actor.system("test"))
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
        said = capsys.readouterr().out
        assert "2026-11-03: 12 of 12 missing" in said
        assert "Done: 12 new, 0 already saved, 12 in all." in said
        counts = {"new": 12, "already_here": 0, "total": 12, "gone": 0}
        assert Entry.objects.get(action="messaging.sync").detail == {"failure": "", **counts}

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
        assert "Sync messages" in browser.get(answer["Location"]).content.decode()
        call_command("work", batch=True)
        job = Job.latest("messaging.sync")
        assert job
        assert (job.state, job.result, job.done, job.total) == (Job.State.DONE, RESULT, 12, 12)
        assert is_whole(service)
        assert browser_of(Role.VIEWER).post("/messages/sync/").status_code == 403

    def test_one_that_makes_way_says_so_and_goes_on(
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
        assert is_whole(service)

    def test_a_second_attempt_also_counts_what_the_first_found_gone(
        self, service: Sandbox, lost: str
    ) -> None:
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

    def test_a_service_that_is_gone_is_said(self, service: Sandbox) -> None:
        service.fail_next("messages.list", status=403, times=None)
        with pytest.raises(CommandError, match="continues where this one stopped"):
            call_command("sync_messages")
        assert Sync(Actor.system("x"), report=print).run.is_alive


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
def test_killed_at_twenty_moments_and_begun_again_it_ends_as_what_the_service_has(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"BATCH": 50, "MESSAGES_PER_PAGE": 20, "LIMITS": (20, 5, 1)}.items():
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
def test_a_batch_waits_while_another_program_holds_the_database(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert is_whole(service)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
def test_two_at_once_end_as_what_the_service_has(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "BATCH", 20)
    monkeypatch.setattr("portal.messaging.sync.MESSAGES_PER_PAGE", 20)
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
