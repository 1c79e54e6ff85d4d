"""Reading every known account again."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.utils import timezone

from portal.audit.models import Actor, Entry, RemoteCall
from portal.live import reading
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(portal_service: Sandbox) -> Record:
    """A borrower with a loan and a line of which only the uuids are known."""
    record = given.borrower(portal_service)
    given.account(Kind.LOAN, record, portal_service.world.loan(record.uuid)["uuid"])
    given.account(Kind.LINE, record, portal_service.world.line(record.uuid)["uuid"])
    return record


def refresh(**options: object) -> str:
    out = StringIO()
    call_command("refresh_portfolio", rate=1000, stdout=out, **options)
    return out.getvalue()


def test_accounts_and_their_repayments_are_read(portal_service: Sandbox, owner: Record) -> None:
    assert "4 refreshed, 0 failed" in refresh()
    assert {call.operation for call in portal_service.calls} == {
        "loans.get", "credit_lines.statement", "repayments.of_loan", "repayments.of_line",
    }  # fmt: skip
    assert reading.coverage() == reading.coverage(Kind.LINE, Kind.LINE_REPAYMENTS) == (2, 2)
    assert set(RemoteCall.objects.values_list("actor_name", flat=True)) == {"system"}


def test_what_was_just_read_is_left_alone(portal_service: Sandbox, owner: Record) -> None:
    refresh()
    assert "0 refreshed" in refresh()


def test_what_failed_is_read_the_next_time(portal_service: Sandbox, owner: Record) -> None:
    portal_service.fail_next("loans.get", status=500)
    assert "4 refreshed, 1 failed" in refresh()
    loan = Record.objects.get(kind=Kind.LOAN)
    assert loan.failing_since
    Record.objects.update(asked_at=None)
    assert "1 refreshed, 0 failed" in refresh()
    loan.refresh_from_db()
    assert (loan.failing_since, loan.failure) == (None, "")


@pytest.mark.django_db(transaction=True)
def test_no_panel_is_drawn_between_the_time_of_a_failure_and_the_rest_of_it(
    portal_service: Sandbox, owner: Record
) -> None:
    loan = Record.objects.get(kind=Kind.LOAN)

    def saved(execute: Callable[..., Any], *arguments: Any) -> Any:
        answer = execute(*arguments)
        if arguments[0].startswith("UPDATE"):
            moments.append(tuple(read_by_another_process(loan)))
        return answer

    moments: list[tuple[bool, bool]] = []
    portal_service.fail_next("loans.get", status=500)
    with connection.execute_wrapper(saved):
        assert not reading.read_live(Actor(name="Maya Chen"), loan)
    assert moments
    assert all(has_time == has_failure for has_time, has_failure in moments)


def read_by_another_process(record: Record) -> Iterator[bool]:
    """Whether the record has the time of a failure, and since when it fails, as another connection sees it."""
    with ThreadPoolExecutor(1) as pool:
        (found,) = pool.submit(
            lambda: [*Record.objects.filter(pk=record.pk).values_list("failed_at", "failing_since")]
        ).result()
        pool.submit(connections.close_all).result()
    return (moment is not None for moment in found)


def test_what_is_due_is_found_at_the_same_cost_however_many_accounts_there_are(
    portal_service: Sandbox, owner: Record, django_assert_num_queries: Any
) -> None:
    for number in range(20):
        given.account(Kind.LOAN, owner, f"loan-{number}")
    long_ago = timezone.now()
    assert len(reading.due_for_refresh([Kind.LOAN], older_than=long_ago)) == 42
    with django_assert_num_queries(2):
        assert len(reading.due_for_refresh([Kind.LOAN], older_than=long_ago)) == 42


def test_one_kind_alone(portal_service: Sandbox, owner: Record) -> None:
    assert "2 refreshed" in refresh(kind="loan")
    assert {call.operation for call in portal_service.calls} == {"loans.get", "repayments.of_loan"}


def test_the_run_is_in_the_trail(portal_service: Sandbox, owner: Record) -> None:
    refresh()
    entry = Entry.objects.get(action="lookup.refresh_portfolio")
    assert entry.detail == {"read": 4, "failed": 0}


def test_an_impossible_rate_is_said(portal_service: Sandbox) -> None:
    with pytest.raises(CommandError, match="--rate must be above 0"):
        call_command("refresh_portfolio", rate=0)
