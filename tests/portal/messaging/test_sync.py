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
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.signals import post_save
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import Actor, Entry
from portal.gateway import client as gateway
from portal.gateway.client import client_for
from portal.jobs.models import Job
from portal.jobs.queue import start_job, start_scheduled_jobs
from portal.messaging.coverage import coverage
from portal.messaging.models import Day, Message, Run
from portal.messaging.store import save_messages, service_zone
from portal.messaging.sync import Sync, read_front
from portal.operations.tasks import forget_old
from portal.ui import wording
from servicing import IncompleteList, Unavailable
from servicing.sandbox import Sandbox
from tests.conftest import browser_of
from tests.databases import forget_connections, locked
from tests.portal.messaging.conftest import START, emit, saved_ids, service_ids
from tests.portal.pages import visible_text

pytestmark = pytest.mark.postgres

DAY = timedelta(days=1)
RESULT = {"new": 12, "already here": 0, "total": 12, "gone": 0}
WITHOUT_DAYS = {"times": None, "ignored_parameters": ["start_date", "end_date"]}


def run_sync(report: Callable[[Run], object] = lambda run: None) -> Run:
    sync = Sync(Actor.system("test"), report=report, sleep=lambda seconds: None)
    run = sync.read_missing()
    assert run.added + run.already_here == run.claimed
    return run


def compare(
    since: date | None = None, until: date | None = None, report: Callable[[Run], object] = lambda run: None
) -> Run:
    sync = Sync(Actor.system("test"), report=report, sleep=lambda seconds: None, since=since, until=until)
    run = sync.compare()
    assert run.added + run.already_here == run.claimed
    return run


def states(*days: date) -> list[str]:
    return [bar.state for day in days for bar in coverage(day, day).bars]


def is_in_sync(sandbox: Sandbox) -> bool:
    """Assert it instead of returning False, so that a failure shows the difference."""
    saved = Message.objects.at_service().values_list("uuid", flat=True)
    assert sorted(saved) == sorted(service_ids(sandbox))
    return True


@pytest.mark.slow
def test_all_messages_are_saved_for_each_offset_unit(service: Sandbox) -> None:
    for days in (0, 1, 40, 500):
        emit(service, 230 if days == 1 else 3, at=START - days * DAY)
    run = run_sync()
    assert is_in_sync(service)
    assert (run.added, run.claimed, run.failure) == (239, 239, "")
    assert coverage(date(2026, 11, 2), date(2026, 11, 2)).bars[0].saved == 230


@pytest.mark.slow
def test_a_second_run_reads_only_the_first_page(service: Sandbox) -> None:
    emit(service, 300)
    run_sync()
    before = len(service.calls)
    assert run_sync().added == 0
    assert len(service.calls) - before == 1
    emit(service, 3, at=START + DAY)
    assert run_sync().added == 3
    assert Day.objects.get(day=(START + DAY).date()).claimed == 3
    assert is_in_sync(service)


@pytest.mark.slow
def test_a_run_reads_past_messages_that_no_unbroken_run_saved(service: Sandbox) -> None:
    emit(service, 150)
    run_sync()
    emit(service, 450, at=START + DAY)
    read_front_of(service, 20)
    assert (run_sync().added, is_in_sync(service)) == (430, True)


def read_front_of(service: Sandbox, number: int) -> None:
    """Save the first messages of the list, as the page does."""
    save_messages(client_for(Actor.system("test")).messages.list(limit=number).data)


@pytest.mark.slow
def test_messages_that_arrive_during_a_run_hide_no_others(service: Sandbox) -> None:
    emit(service, 350)

    reports = count()

    def arrive(run: Run) -> None:
        if next(reports) % 3 == 0 and Message.objects.count() < 300:
            service.world.message("payment.failed", {}, at=START + 12 * timedelta(hours=1))

    run_sync(arrive)
    run_sync()
    assert is_in_sync(service)


@pytest.mark.slow
def test_a_temporary_failure_is_retried(service: Sandbox) -> None:
    emit(service, 250)
    reports = iter(range(1000))

    def fail(run: Run) -> None:
        if next(reports) == 0:
            service.fail_next("messages.list", times=3, status=500)

    assert run_sync(fail).added == 250
    assert is_in_sync(service)


@pytest.mark.slow
def test_a_run_continues_where_a_failed_one_stopped(service: Sandbox) -> None:
    emit(service, 600)

    def fail(run: Run) -> None:
        if run.added >= 300:
            service.fail_next("messages.list", times=None, status=500)

    with pytest.raises(Unavailable):
        run_sync(fail)
    service.heal()
    emit(service, 4, at=START + DAY)
    before, saved = len(service.calls), Message.objects.count()
    assert (saved >= 300, run_sync().added) == (True, 604 - saved)
    assert is_in_sync(service)
    pages = [call for call in service.calls[before:] if call.query["limit"] != "1"]
    assert len(pages) < 8  # All fit on seven pages; the first ones were read again only for what is new.
    assert "500" in Run.objects.order_by("id")[0].failure


@pytest.mark.slow
def test_a_list_that_shrank_since_a_failed_run_is_read_from_the_front(service: Sandbox) -> None:
    emit(service, 600)

    def fail(run: Run) -> None:
        if run.added >= 300:
            service.fail_next("messages.list", times=None, status=500)

    with pytest.raises(Unavailable):
        run_sync(fail)
    service.heal()
    for message in service.world.messages()[:250]:
        service.world.remove_message(message["uuid"])
    run_sync()
    assert service_ids(service) <= set(saved_ids())


@pytest.mark.slow
def test_a_comparison_reads_missing_messages(service: Sandbox, settings: LazySettings) -> None:
    settings.SERVICING_PAGE_SIZE = 10
    emit(service, 20)
    emit(service, 20, at=START - 9 * DAY)
    run_sync()
    Message.objects.filter(uuid__in=saved_ids()[12:18]).delete()
    Message.objects.filter(day=(START - 9 * DAY).date()).delete()
    assert (run_sync().added, compare().added) == (0, 26)
    assert is_in_sync(service)
    assert set(states(START.date(), (START - 3 * DAY).date(), (START - 9 * DAY).date())) == {"complete"}


@pytest.mark.slow
def test_messages_inserted_in_the_past_are_found(service: Sandbox) -> None:
    emit(service, 150, at=timezone.now() - DAY)
    run_sync()
    emit(service, 2, at=timezone.now() - 20 * DAY)
    assert run_sync().added == 0
    assert compare(since=timezone.localdate() - 29 * DAY).added == 2
    assert is_in_sync(service)


def test_messages_the_service_drops_stay_saved(service: Sandbox) -> None:
    emit(service, 5)
    run_sync()
    service.reset()
    emit(service, 2)
    run_sync()
    compare()
    assert Message.objects.count() == 7
    assert Message.objects.filter(gone_at__isnull=False).count() == 5


@pytest.fixture
def lost(service: Sandbox) -> str:
    """Return the ID of a saved message that the service replaced by another on the same day."""
    for days in range(3):
        emit(service, 13, at=START - days * DAY)
    assert run_sync().claimed == 39
    assert compare().claimed == 39
    lost = next(m for m in service.world.messages() if m["created_at"].startswith("2026-11-02"))
    service.world.remove_message(lost["uuid"])
    emit(service, 1, at=START - DAY)
    return str(lost["uuid"])


@pytest.mark.slow
def test_a_comparison_finds_a_replaced_message(service: Sandbox, lost: str) -> None:
    compared_at = Day.objects.get(day=date(2026, 11, 2)).compared_at
    run = compare()
    assert (run.added, run.already_here, run.claimed, run.gone) == (1, 38, 39, 1)
    assert [one.uuid for one in Message.objects.filter(gone_at__isnull=False)] == [lost]
    assert Message.objects.count() == 40
    assert is_in_sync(service)
    assert set(states(*(date(2026, 11, day) for day in (1, 2, 3)))) == {"complete"}
    later = Day.objects.get(day=date(2026, 11, 2)).compared_at
    assert compared_at
    assert later
    assert later > compared_at


@pytest.mark.slow
def test_coverage_says_when_a_day_was_compared_message_by_message(service: Sandbox, lost: str) -> None:
    """Equal numbers don't show that a message was replaced."""
    browser, query = browser_of(Role.VIEWER), "?source=copy&start_date=2026-11-01&end_date=2026-11-03"
    now = wording.clock(timezone.now())
    page = browser.get(f"/messages/{query}").content.decode()
    assert "Compared message by message" in page
    Day.objects.update(compared_at=timezone.now() - 40 * DAY)
    page = visible_text(browser.get(f"/messages/{query}").content.decode())
    assert now not in page.partition("Compared message by message")[2].partition("Messages by day")[0]
    assert wording.clock(timezone.now() - 40 * DAY) in page
    # The new message is saved, the old one is not known to be gone: more than were compared.
    emit(service, 1, at=START - DAY)
    read_front_of(service, 30)
    assert states(date(2026, 11, 2)) == ["unchecked"]


@pytest.mark.slow
def test_late_messages_do_not_hide_removed_ones(service: Sandbox, settings: LazySettings) -> None:
    settings.SERVICING_PAGE_SIZE = 10
    emit(service, 60)
    run_sync()
    for message in service.world.messages()[40:43]:
        service.world.remove_message(message["uuid"])
    emit(service, 5, at=START + timedelta(seconds=30))
    emit(service, 5, at=START + timedelta(minutes=50, seconds=30))
    assert (compare().gone, is_in_sync(service)) == (3, True)


@pytest.mark.slow
@pytest.mark.parametrize("days", [-500, 40])
def test_days_without_messages_at_the_service_are_compared(service: Sandbox, days: int) -> None:
    emit(service, 4, at=timezone.now() + days * DAY)
    dropped = service_ids(service)
    emit(service, 5)
    run_sync()
    for uuid in dropped:
        service.world.remove_message(uuid)
    run = compare()
    assert (run.added, run.already_here, run.claimed, run.gone) == (0, 5, 5, 4)
    assert is_in_sync(service)


def test_a_message_that_returns_is_no_longer_gone(service: Sandbox) -> None:
    emit(service, 3)
    run_sync()
    body = service.world.messages()[0]
    service.world.remove_message(body["uuid"])
    assert (compare().gone, Message.objects.get(uuid=body["uuid"]).gone_at is None) == (1, False)
    emit(service, 1, uuid=body["uuid"])
    run = compare()
    assert (run.added, run.already_here, run.claimed, run.gone) == (0, 3, 3, 0)
    assert is_in_sync(service)


@pytest.mark.slow
@pytest.mark.parametrize("work", [run_sync, compare])
def test_messages_removed_during_a_run_hide_no_others(service: Sandbox, work: Callable[..., Run]) -> None:
    emit(service, 650)
    chance, removed = Random(1), []

    def remove(run: Run) -> None:
        if len(removed) < 28:
            for message in chance.sample(service.world.messages(), 7):
                removed.append(message["uuid"])
                service.world.remove_message(message["uuid"])

    work(report=remove)
    assert len(removed) == 28
    assert service_ids(service) <= set(saved_ids())
    compare()
    assert is_in_sync(service)
    assert states(date(2026, 11, 3)) == ["complete"]


def test_messages_saved_outside_a_run_are_compared(service: Sandbox) -> None:
    emit(service, 5)
    read_front(client_for(Actor.system("test")))
    Message.objects.filter(uuid=saved_ids()[0]).update(uuid="never-at-the-service")
    run = compare()
    assert (run.added, run.claimed, run.gone) == (1, 5, 1)
    assert is_in_sync(service)


@pytest.mark.slow
def test_the_list_is_compared_if_dates_are_ignored(service: Sandbox, settings: LazySettings) -> None:
    settings.SERVICING_PAGE_SIZE = 20
    for days in (0, 1, 40):
        emit(service, 30, at=START - days * DAY)
    emit(service, 4, zone="IST")
    service.fail_next("messages.list", **WITHOUT_DAYS)
    run = run_sync()
    assert (run.added, run.claimed) == (94, 94)
    run = compare()
    assert (run.already_here, run.claimed, run.filters_ignored) == (94, 94, True)
    assert is_in_sync(service)
    emit(service, 2, at=START + DAY)
    service.world.remove_message(service.world.messages()[9]["uuid"])
    run = compare(since=date(2026, 11, 1))
    assert (run.added, run.gone) == (2, 1)
    assert is_in_sync(service)
    assert states(date(2026, 11, 2)) == ["complete"]


@pytest.mark.slow
def test_only_the_front_of_the_list_is_compared_if_dates_are_ignored(service: Sandbox) -> None:
    emit(service, 30)
    emit(service, 400, at=START - 40 * DAY)
    service.fail_next("messages.list", **WITHOUT_DAYS)
    assert compare(since=START.date()).claimed < 330


@pytest.mark.parametrize("stretch", [{}, {"since": date(2026, 11, 1), "until": date(2026, 11, 3)}])
def test_ignored_dates_are_noticed_despite_ambiguous_times(
    service: Sandbox, stretch: dict[str, date]
) -> None:
    for days in (0, 1, 40):
        emit(service, 5, at=START - days * DAY, zone="IST")
    service.fail_next("messages.list", **WITHOUT_DAYS)
    assert compare(**stretch).filters_ignored
    run_sync()
    assert is_in_sync(service)


@pytest.mark.slow
@pytest.mark.parametrize("work", [run_sync, compare])
def test_a_run_fails_if_all_parameters_are_ignored(service: Sandbox, work: Callable[[], Run]) -> None:
    emit(service, 90)
    parameters = ["start_date", "end_date", "event", "limit", "offset"]
    service.fail_next("messages.list", times=None, ignored_parameters=parameters)
    with pytest.raises(IncompleteList, match="25 of 90"):
        work()
    assert "25 of 90" in Run.objects.get().failure


def test_only_the_requested_days_are_compared(service: Sandbox) -> None:
    for days in range(4):
        emit(service, 2, at=START - days * DAY)
    compare(since=date(2026, 11, 1), until=date(2026, 11, 2))
    assert set(Message.objects.values_list("day", flat=True)) == {date(2026, 11, 1), date(2026, 11, 2)}


def test_an_ambiguous_time_is_resolved_by_the_services_day(service: Sandbox) -> None:
    emit(service, 3, at=datetime(2026, 11, 3, 7, 30, tzinfo=UTC), zone="IST")  # Still the 2nd there.
    run_sync()  # This guesses the day, and the comparison corrects it.
    compare()
    assert is_in_sync(service)
    days = {(row.day, row.recorded_at.astimezone(service_zone()).date()) for row in Message.objects.all()}
    assert days == {(date(2026, 11, 2), date(2026, 11, 2))}


def test_messages_with_unusable_ids_are_saved(service: Sandbox) -> None:
    chance = Random(1)  # Random, because an index would compress repeated text.
    long = ["".join(chance.choices(ascii_letters, k=9000)) for _ in range(2)]
    emit(service, 3)
    for uuid in (*long, "a/b", "nul\0"):
        emit(service, 1, uuid=uuid)
    for work in (run_sync, compare):
        work()
        assert sorted(
            json.loads(body)["uuid"] for body in Message.objects.values_list("body", flat=True)
        ) == sorted(service_ids(service))


@pytest.mark.slow
def test_new_messages_are_read_in_at_most_three_calls(service: Sandbox) -> None:
    client = client_for(Actor.system("test"))
    emit(service, 230)
    assert (read_front(client), read_front(client)) == (230, 0)
    before = len(service.calls)
    service.world.message("payment.failed", {})
    assert read_front(client) == 1
    assert len(service.calls) - before <= 3
    assert is_in_sync(service)


@pytest.mark.slow
@pytest.mark.parametrize("work", [run_sync, compare])
def test_an_oversized_page_is_read_in_smaller_ones(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, work: Callable[[], Run]
) -> None:
    monkeypatch.setattr("servicing.transport.MAX_ANSWER_BYTES", 40_000)
    emit(service, 150)
    assert work().added == 150
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
        assert "Done: 12 new, 0 already saved, 12 read." in output
        counts = {"new": 12, "already_here": 0, "total": 12, "gone": 0}
        assert Entry.objects.get(action="messaging.sync").detail == {"failure": "", **counts}

    @pytest.mark.parametrize(
        "options", [{"since": date(2026, 2, 2), "until": date(2026, 2, 1)}, {"interval": 0.0}]
    )
    def test_invalid_options_are_rejected(self, service: Sandbox, options: dict[str, Any]) -> None:
        with pytest.raises(CommandError):
            call_command("sync_messages", **options)
        assert service.calls == []

    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_a_button_compares_the_chosen_days(self, service: Sandbox, lost: str) -> None:
        browser = browser_of(Role.SERVICER)
        for query, gone in (("?start_date=2026-11-03", 0), ("?end_date=2026-11-02", 1)):
            assert browser.post(f"/messages/sync/{query}", {"whole": "1"}).status_code == 303
            call_command("work", batch=True)
            job = Job.latest("messaging.compare")
            assert job
            assert (job.state, job.result["gone"]) == ("done", gone)
        assert is_in_sync(service)

    def test_the_last_30_days_are_compared_each_night(self, service: Sandbox) -> None:
        for days in (3, 29, 30):
            emit(service, 1, at=timezone.now() - days * DAY)
        start_scheduled_jobs()
        call_command("work", batch=True)
        compared = Day.objects.filter(compared_at__isnull=False)
        assert compared.count() == 30
        assert is_in_sync(service)

    @pytest.mark.slow
    def test_a_retry_counts_what_the_first_attempt_found_gone(self, service: Sandbox, lost: str) -> None:
        def reject(instance: Run, **_: Any) -> None:
            if instance.gone:
                service.fail_next("messages.list", status=403, times=None)

        browser_of(Role.SERVICER).post("/messages/sync/", {"whole": "1"})
        post_save.connect(reject, sender=Run)
        call_command("work", batch=True)
        post_save.disconnect(reject, sender=Run)
        service.heal()
        job = Job.latest("messaging.compare")
        assert job
        assert (job.state, job.attempts) == ("waiting", 1)
        Job.objects.update(due_at=timezone.now())
        call_command("work", batch=True)
        job.refresh_from_db()
        assert (job.state, job.result["new"], job.result["gone"]) == ("done", 1, 1)
        assert is_in_sync(service)

    def test_a_service_failure_is_reported(self, service: Sandbox) -> None:
        service.fail_next("messages.list", status=403, times=None)
        with pytest.raises(CommandError, match="continues where this one stopped"):
            call_command("sync_messages")
        assert Sync(Actor.system("x"), report=print).run.is_alive


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("service", "work"), [("pages", run_sync), ("rows", compare)], indirect=["service"])
def test_a_run_killed_twenty_times_still_completes(
    service: Sandbox, settings: LazySettings, work: Callable[[], Run]
) -> None:
    settings.SERVICING_PAGE_SIZE = 20
    chance = Random(20261121)
    for _ in range(20):
        for days in (0, 1, 9):
            emit(service, 20, at=START - days * DAY)
        assert is_killed_within(chance.randint(1, 40), work)
    assert Message.objects.count() < 20 * 3 * 20
    work()
    assert is_in_sync(service)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages"], indirect=True)
def test_a_page_waits_for_a_locked_database(service: Sandbox) -> None:
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


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", ["pages", "rows"], indirect=True)
@pytest.mark.parametrize("work", [run_sync, compare])
def test_two_concurrent_runs_complete(
    service: Sandbox, settings: LazySettings, work: Callable[[], Run]
) -> None:
    settings.SERVICING_PAGE_SIZE = 20
    for days in (0, 1, 9):
        emit(service, 100, at=START - days * DAY)
    children = [start_child(work) for _ in range(2)]
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
