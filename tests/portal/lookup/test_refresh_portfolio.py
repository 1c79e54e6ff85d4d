"""The command that refreshes every account on file."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.utils import timezone

from portal.audit.models import Actor, Entry, RemoteCall
from portal.gateway import reading
from portal.records.models import Account, Answer, Application, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.applications.answers import save_application

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.fixture
def owner(portal_service: Sandbox) -> Borrower:
    """Return a borrower with a loan and a line of which only the IDs are on file."""
    record = given.borrower(portal_service)
    given.account(Kind.LOAN, record, portal_service.world.loan(record.uuid)["uuid"])
    given.account(Kind.LINE, record, portal_service.world.line(record.uuid)["uuid"])
    return record


def refresh(**options: object) -> str:
    out = StringIO()
    call_command("refresh_portfolio", rate=1000, stdout=out, **options)
    return out.getvalue()


@pytest.mark.slow
def test_accounts_and_repayments_are_refreshed(portal_service: Sandbox, owner: Borrower) -> None:
    reads = given.reads_of(Kind.LOAN, Kind.LINE)
    assert f"{len(reads)} refreshed, 0 failed" in refresh()
    assert {call.operation for call in portal_service.calls} == {*reads}
    assert reading.coverage() == reading.coverage(Kind.LINE, Kind.LINE_REPAYMENTS) == (2, 2)
    assert set(RemoteCall.objects.values_list("actor_name", flat=True)) == {"system"}


@pytest.mark.slow
def test_of_applications_only_those_for_lines_are_refreshed(portal_service: Sandbox) -> None:
    """The service can't return an application for a loan again."""
    record = given.borrower(portal_service)
    for created in (
        portal_service.world.loan_application(record.uuid, amount="25000.00"),
        portal_service.world.line_application(record.uuid),
    ):
        save_application(record, created)
    Application.objects.update(checked_at=None)
    portal_service.calls.clear()
    assert "1 refreshed, 0 failed" in refresh()
    assert [call.operation for call in portal_service.calls] == ["applications.get_for_line"]
    assert reading.coverage(Kind.APPLICATION) == (1, 1)


def test_recently_refreshed_records_are_skipped(portal_service: Sandbox, owner: Borrower) -> None:
    refresh()
    assert "0 refreshed" in refresh()
    long_ago = timezone.now() - timedelta(hours=24, seconds=1)
    Account.objects.filter(kind=Kind.LOAN).update(checked_at=long_ago)
    Answer.objects.filter(kind=Kind.LOAN).update(asked_at=long_ago)
    assert "1 refreshed" in refresh()


@pytest.mark.slow
def test_a_failed_record_is_retried_on_the_next_run(portal_service: Sandbox, owner: Borrower) -> None:
    portal_service.fail_next("loans.get", status=500)
    assert f"{len(given.reads_of(Kind.LOAN, Kind.LINE))} refreshed, 1 failed" in refresh()
    loan = Account.objects.get(kind=Kind.LOAN)
    assert loan.answer.failing_since
    assert "500" in loan.answer.failure
    first = loan.answer.failing_since
    portal_service.fail_next("loans.get", status=500)
    assert "1 refreshed, 1 failed" in refresh()
    loan.answer.refresh_from_db()
    assert (loan.answer.failing_since, loan.answer.failed_at > first) == (first, True)
    Answer.objects.update(asked_at=None)
    assert "1 refreshed, 0 failed" in refresh()
    loan.refresh_from_db()
    assert (loan.answer.failing_since, loan.answer.failure) == (None, "")


@pytest.mark.django_db(transaction=True)
def test_a_failure_is_saved_all_at_once(portal_service: Sandbox, owner: Borrower) -> None:
    loan = Account.objects.get(kind=Kind.LOAN)
    Answer.objects.create(kind=Kind.LOAN, uuid=loan.uuid)

    def record_state(execute: Callable[..., Any], *arguments: Any) -> Any:
        answer = execute(*arguments)
        if arguments[0].startswith("UPDATE"):
            states.append(tuple(read_from_another_connection(loan)))
        return answer

    states: list[tuple[bool, bool]] = []
    portal_service.fail_next("loans.get", status=500)
    with connection.execute_wrapper(record_state):
        assert not reading.read_live(Actor(name="Maya Chen"), reading.LiveCopy(loan))
    assert states
    assert all(has_time == has_failure for has_time, has_failure in states)


def read_from_another_connection(record: Account) -> Iterator[bool]:
    """Return whether `failed_at` and `failing_since` are set, as another connection sees them."""
    with ThreadPoolExecutor(1) as pool:
        (times,) = pool.submit(
            lambda: [
                *Answer.objects.filter(uuid=record.uuid, kind=record.kind).values_list(
                    "failed_at", "failing_since"
                )
            ]
        ).result()
        pool.submit(connections.close_all).result()
    return (time is not None for time in times)


@pytest.mark.slow
def test_finding_due_copies_takes_two_queries_for_each_list(
    portal_service: Sandbox, owner: Borrower, django_assert_num_queries: Any
) -> None:
    for number in range(20):
        given.account(Kind.LOAN, owner, f"loan-{number}")
    now, reads = timezone.now(), len(given.reads_of(Kind.LOAN))
    assert len(reading.due_for_refresh([Kind.LOAN], older_than=now)) == 21 * reads
    with django_assert_num_queries(2 * reads - 1):  # One for the accounts.
        assert len(reading.due_for_refresh([Kind.LOAN], older_than=now)) == 21 * reads


def test_the_kind_option_limits_the_refresh(portal_service: Sandbox, owner: Borrower) -> None:
    reads = given.reads_of(Kind.LOAN)
    assert f"{len(reads)} refreshed" in refresh(kind="loan")
    assert {call.operation for call in portal_service.calls} == {*reads}


def test_a_run_is_recorded(portal_service: Sandbox, owner: Borrower) -> None:
    refresh()
    entry = Entry.objects.get(action="lookup.refresh_portfolio")
    assert entry.detail == {"read": len(given.reads_of(Kind.LOAN, Kind.LINE)), "failed": 0}


def test_an_invalid_rate_is_reported(portal_service: Sandbox) -> None:
    with pytest.raises(CommandError, match="--rate must be above 0"):
        call_command("refresh_portfolio", rate=0)
