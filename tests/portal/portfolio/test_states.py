"""What is written of each day: by hand, again from saved answers, after an interruption and after a correction."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from portal.accounts.roles import Role
from portal.collections.models import AccountOwner
from portal.core.business_date import business_date
from portal.jobs.execution import Progress
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.portfolio import tasks, writing
from portal.portfolio.models import (
    AccountState,
    BookDay,
    Bucket,
    BucketSum,
    Correction,
    Due,
    Forecast,
    OwnerSum,
    RollCell,
    Run,
)
from portal.records.models import Account, Answer, Kind, Snapshot
from tests.conftest import existing_user
from tests.portal.collections.conftest import advance
from tests.portal.portfolio.conftest import Book, five_accounts, installment, run_job

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]

TABLES = (AccountState, Due, BookDay, BucketSum, RollCell, Forecast, OwnerSum, Correction)
CURRENT, DUE_SINCE, LATE, CLOSED, ABSENT = "current", "due_since", "days_1_29", "closed", ""


def states(book: Book, name: str, days: int = 10) -> list[str]:
    """The bucket of an account on each day."""
    uuid = book.loans[name].uuid
    found = []
    for number in range(1, days + 1):
        rows = AccountState.objects.on(book.day(number)).filter(uuid=uuid)
        assert len(rows) <= 1
        found.append(rows[0].bucket if rows else ABSENT)
    return found


def contents(*without: str) -> dict[str, list[Any]]:
    """All rows of the book, without keys and when they were written."""
    left_out = {"id", "written_at", *without}
    return {
        table.__name__: sorted(
            [
                str({name: value for name, value in row.items() if name not in left_out})
                for row in table._default_manager.values()
            ]
        )
        for table in TABLES
    }


class KilledError(Exception):
    """The process ends here."""


class StopAfter(Progress):
    """What a job reports to, until its process is killed."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def resume(self, remaining: int) -> None:
        pass

    def step(self, count: int = 1, *, failed: int = 0, words: str = "") -> None:
        self.steps -= 1
        if self.steps < 0:
            raise KilledError


class TestFiveAccounts:
    def test_each_account_is_right_on_every_day(self, book: Book) -> None:
        five_accounts(book)
        assert states(book, "paid later") == [CURRENT] * 2 + [LATE] * 3 + [CURRENT] * 5
        assert states(book, "closed later") == [CURRENT] * 3 + [CLOSED] * 7
        assert states(book, "opened") == [ABSENT] * 2 + [CURRENT] * 8
        assert states(book, "returned") == [CURRENT] * 2 + [LATE] + [CURRENT] * 4 + [LATE] * 3
        # Its installment was due on day 5, and nobody could read it on day 6.
        assert states(book, "not read") == [CURRENT] * 5 + [DUE_SINCE] + [CURRENT] * 4

    def test_the_sums_are_those_of_the_rows(self, book: Book) -> None:
        five_accounts(book)
        assert BookDay.objects.filter(not_certain=0).count() == 10
        for number in range(1, 11):
            rows = AccountState.objects.on(book.day(number))
            for bucket in Bucket:
                one = BucketSum.objects.filter(day=book.day(number), bucket=bucket).first()
                of_bucket = list(rows.filter(bucket=bucket))
                assert (one.number if one else 0) == len(of_bucket)
                assert (one.principal if one else 0) == sum(row.principal or 0 for row in of_bucket)
                assert (one.past_due if one else 0) == sum(row.past_due or 0 for row in of_bucket)
        third = BucketSum.objects.get(day=book.day(3), bucket=Bucket.DAYS_1_29)
        assert (third.number, third.past_due, third.principal) == (2, Decimal(200), Decimal(2000))

    def test_what_was_due_is_known_and_whether_it_was_paid(self, book: Book) -> None:
        five_accounts(book)
        dues = Due.objects.order_by("day", "uuid").values_list("day", "amount")
        assert list(dues) == [(book.day(2), 100), (book.day(2), 100), (book.day(5), 100)]

    def test_the_same_days_are_written_at_once_from_saved_answers(self, book: Book) -> None:
        five_accounts(book)
        night_by_night = contents("last_answer_on")
        for table in TABLES:
            table._default_manager.all().delete()
        assert run_job().result == {"days": 10}
        at_once = contents("last_answer_on")
        assert at_once["AccountState"] == night_by_night["AccountState"]
        assert at_once["BucketSum"] == night_by_night["BucketSum"]
        assert at_once["RollCell"] == night_by_night["RollCell"]
        assert at_once["Due"] == night_by_night["Due"]

    def test_a_second_run_changes_nothing(self, book: Book) -> None:
        five_accounts(book)
        before = contents()
        assert run_job().result == {"days": 0}
        assert contents() == before


class TestRun:
    def test_another_worker_continues_where_a_lost_one_stopped(
        self, book: Book, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        five_accounts(book)
        whole = contents("last_answer_on")
        for table in TABLES:
            table._default_manager.all().delete()
        monkeypatch.setattr(writing, "BATCH_SIZE", 2)
        first = start_job(tasks.write_days)
        Run.objects.create(first_day=book.day(1), last_day=book.day(10))
        keys = list(Account.objects.filter(kind=Kind.LOAN).order_by("pk").values_list("pk", flat=True))
        batch = writing.read_accounts(0, 2)
        writing.write_states(batch, book.day(1), book.day(10))
        Run.objects.update(last_key=keys[1])
        writing.write_day(book.day(1), is_last=False)
        Job.objects.filter(pk=first.pk).delete()
        BookDay.objects.all().delete()
        for table in (BucketSum, RollCell):
            table._default_manager.all().delete()
        run_job()
        assert contents("last_answer_on")["AccountState"] == whole["AccountState"]
        assert contents()["BucketSum"] == whole["BucketSum"]
        assert not Run.objects.exists()

    def test_a_job_killed_half_way_and_run_twice_writes_the_same(
        self, book: Book, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        five_accounts(book)
        for table in TABLES:
            table._default_manager.all().delete()
        run_job()
        whole = contents()
        for table in TABLES:
            table._default_manager.all().delete()
        monkeypatch.setattr(writing, "BATCH_SIZE", 2)
        # It stops after the first batch of accounts, then among the days, and two workers have it last.
        for steps in (1, 4, 9):
            with pytest.raises(KilledError):
                writing.write_days(StopAfter(steps))
        assert Run.objects.count() == 1
        assert run_job().result == {"days": 10}
        assert contents() == whole
        assert run_job().result == {"days": 0}
        assert contents() == whole

    def test_the_job_starts_once_a_day_is_over(self, book: Book) -> None:
        book.add("one", installment(book.day(20)))
        book.read()
        tasks.write_after_midnight()
        assert not Job.objects.filter(name="portfolio.write_days").exists()
        advance(book.sandbox, 1)
        tasks.write_after_midnight()
        assert Job.objects.filter(name="portfolio.write_days").count() == 1
        run_job()
        Job.objects.all().delete()
        tasks.write_after_midnight()
        assert not Job.objects.exists()

    def test_without_accounts_nothing_is_written(self, book: Book) -> None:
        advance(book.sandbox, 2)
        assert run_job().result == {"days": 0}
        assert not BookDay.objects.exists()

    def test_days_on_which_nobody_worked_are_written_later(self, book: Book) -> None:
        book.add("one", installment(book.day(2)))
        book.end_day()
        advance(book.sandbox, 4)
        assert run_job().result == {"days": 4}
        assert states(book, "one", 5) == [CURRENT, CURRENT, DUE_SINCE, DUE_SINCE, DUE_SINCE]


class TestDays:
    def test_an_answer_after_midnight_is_not_of_the_day_before(self, book: Book) -> None:
        book.add("one", installment(book.day(1)))
        book.end_day()
        advance(book.sandbox, 1)
        book.say("one", installment(book.day(1), paid_on=book.day(3)))
        book.read()
        run_job()
        assert states(book, "one", 2) == [CURRENT, DUE_SINCE]
        book.pass_days(1)
        assert states(book, "one", 3) == [CURRENT, DUE_SINCE, CURRENT]

    def test_buckets_grow_older_without_a_new_answer(self, book: Book) -> None:
        book.add("one", installment(book.day(1)))
        book.read()
        advance(book.sandbox, 1)
        book.end_day()
        book.pass_days(100)
        found = states(book, "one", 95)
        assert found.index("days_30_59") == 30
        assert found.index("days_60_89") == 60
        assert found.index("days_90") == 90

    def test_of_days_written_later_an_owner_is_the_one_before_them(self, book: Book) -> None:
        book.add("one", installment(book.day(20)))
        book.read()
        uuid = book.loans["one"].uuid
        servicer, supervisor = (
            existing_user(role.value, role=role) for role in (Role.SERVICER, Role.SUPERVISOR)
        )
        AccountOwner.objects.create(account_uuid=uuid, owner=servicer)
        book.pass_days(3)
        AccountOwner.objects.filter(account_uuid=uuid).update(owner=supervisor)
        book.pass_days(2)
        book.pass_days(1)
        found = [AccountState.objects.on(book.day(number)).get().owner_id for number in range(1, 7)]
        assert found == [None, None, servicer.pk, servicer.pk, supervisor.pk, supervisor.pk]

    def test_an_archived_account_leaves_the_book(self, book: Book) -> None:
        book.add("one", installment(book.day(20)))
        book.add("other", installment(book.day(20)))
        book.end_day()
        Account.objects.filter(pk=book.loans["one"].pk).update(archived_at=timezone.now() - timedelta(days=1))
        book.end_day()
        assert states(book, "one", 2) == [CURRENT, ABSENT]
        assert RollCell.objects.get(day=book.day(2), now="archived").number == 1

    def test_a_later_correction_changes_no_earlier_day(self, book: Book) -> None:
        book.add("one", installment(book.day(1)))
        for _ in range(4):
            book.end_day()
        before = contents()
        book.say("one", installment(book.day(1), paid_on=book.day(1)))
        book.end_day()
        after = contents("to_day", "good_through", "answer_at")
        assert set(contents()["BucketSum"]) >= set(before["BucketSum"])
        assert states(book, "one", 5) == [CURRENT, LATE, LATE, LATE, CURRENT]
        assert after["Correction"]
        corrected = Correction.objects.get()
        assert (corrected.first_day, corrected.last_day) == (book.day(2), book.day(4))

    def test_a_day_that_can_not_be_told_is_a_gap(self, book: Book) -> None:
        """Version 1.0 didn't save when a text came first."""
        book.add("one", installment(book.day(1)))
        book.read()
        advance(book.sandbox, 6)
        book.say("one", installment(book.day(1), paid_on=book.day(1)))
        book.read()
        advance(book.sandbox, 1)
        Answer.objects.update(first_at=None, first_on=None)
        Snapshot.objects.update(first_at=None, first_on=None)
        run_job()
        assert states(book, "one", 7) == [CURRENT, *["not_certain"] * 5, CURRENT]
        gaps = BookDay.objects.filter(not_certain__gt=0).values_list("day", flat=True)
        assert list(gaps.order_by("day")) == [book.day(number) for number in range(2, 7)]

    def test_an_account_without_a_figure_is_not_known_and_never_zero(self, book: Book) -> None:
        book.add("one", delinquent=True)
        book.end_day()
        row = AccountState.objects.get()
        assert (row.bucket, row.past_due) == (Bucket.NOT_KNOWN, None)
        assert BucketSum.objects.get().past_due_known == 0

    def test_an_account_that_was_never_read_is_on_file(self, book: Book) -> None:
        book.add("one", installment(book.day(20)))
        book.end_day()
        book.add("unread", installment(book.day(20)))
        Account.objects.update(created_at=timezone.now() - timedelta(days=1))
        book.end_day(unreadable="unread")
        row = AccountState.objects.get(uuid=book.loans["unread"].uuid)
        assert (row.bucket, row.principal, row.last_answer_on) == (Bucket.NOT_KNOWN, None, None)


def test_no_day_in_the_future_is_written(book: Book) -> None:
    book.add("one", installment(book.day(20)))
    for _ in range(3):
        book.end_day()
    newest: date = BookDay.objects.latest("day").day
    assert newest == business_date() - timedelta(days=1)
