"""News: a message about an account is a reason to read the account, soon and once."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from portal.audit.models import Actor, Outage
from portal.gateway import reading
from portal.gateway.client import client_for
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from portal.messaging.models import BankAccount, Message, PendingRead
from portal.messaging.news import request_reads
from portal.messaging.sync import read_front
from portal.messaging.tasks import read_news, start_reading_news
from portal.records.models import Account, Answer, Kind, Repayment
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.jobs.scripted import run_taken

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]
ACTOR = Actor(name="Maya Chen")
READS = given.reads_of(Kind.LOAN)


@pytest.fixture
def sandbox(portal_service: Sandbox, settings: LazySettings) -> Sandbox:
    settings.READS_PER_MINUTE = 60_000
    return portal_service


def read(account: Account) -> Account:
    """Read an account and its repayments as of ten minutes ago."""
    for copy in reading.account_copies(account):
        assert reading.read_live(ACTOR, copy)
    earlier = timezone.now() - timedelta(minutes=10)
    Account.objects.filter(uuid=account.uuid).update(checked_at=earlier, answer_at=earlier)
    Answer.objects.filter(uuid=account.uuid).update(last_at=earlier)
    account.refresh_from_db()
    return account


def loan_on_file(sandbox: Sandbox, **terms: Any) -> Account:
    return read(given.loan(sandbox, given.borrower(sandbox), **terms))


def tell(sandbox: Sandbox, payment: dict[str, Any], *, minutes_ago: float = 1, **more: Any) -> None:
    """Have the service record a message about a payment, and read the front of its list."""
    at = timezone.now() - timedelta(minutes=minutes_ago)
    sandbox.world.message("payment.succeeded", payment, at=at, **more)
    read_front(client_for(ACTOR))


def operations_of_run(sandbox: Sandbox) -> list[str]:
    """Do what a worker does, and return the operations that it called."""
    before = len(sandbox.calls)
    start_reading_news()
    for job in Job.objects.filter(name=read_news.name, state=Job.State.WAITING):
        run_taken(job)
    return [call.operation for call in sandbox.calls[before:]]


def make_due() -> None:
    """Let five minutes pass."""
    earlier = timezone.now() - timedelta(minutes=5)
    PendingRead.objects.filter(due_at__isnull=False).update(due_at=earlier)
    PendingRead.objects.filter(read_at__isnull=False).update(read_at=earlier)


def test_a_message_about_a_payment_reads_its_account_once(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00", status="SCHEDULED")
    read(loan)
    sandbox.world.amend(payment["uuid"], status="SUCCEEDED")
    for _ in range(3):
        tell(sandbox, payment)
    assert operations_of_run(sandbox) == READS
    assert Repayment.objects.get(uuid=payment["uuid"]).status == "SUCCEEDED"
    assert operations_of_run(sandbox) == []


def test_a_message_that_names_an_account_reads_it(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    sandbox.world.message("loan.updated", {"uuid": loan.uuid}, at=timezone.now())
    read_front(client_for(ACTOR))
    assert operations_of_run(sandbox) == READS


def test_a_payment_that_is_not_on_file_is_found_by_its_bank_account(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    known = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    later = sandbox.world.repayment(loan.uuid, amount="80.00")
    assert later["borrower_bank_account_uuid"] == known["borrower_bank_account_uuid"]
    tell(sandbox, later)
    assert operations_of_run(sandbox) == READS
    assert Repayment.objects.get(uuid=later["uuid"]).account == loan
    assert operations_of_run(sandbox) == []


@pytest.mark.slow
def test_at_most_five_accounts_of_a_bank_account_are_read(sandbox: Sandbox) -> None:
    owner = given.borrower(sandbox)
    for _ in range(6):
        loan = given.loan(sandbox, owner)
        payment = sandbox.world.repayment(loan.uuid, amount="75.00")
        read(loan)
    tell(sandbox, payment | {"uuid": "not-on-file"})
    assert operations_of_run(sandbox) == READS * 5


def test_a_bank_account_that_staff_linked_reads_the_accounts_of_that_borrower(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    BankAccount.objects.create(pk="bank-1", borrower_uuid=loan.borrower_uuid, linked_by="Maya Chen")
    tell(sandbox, {"uuid": "not-on-file", "borrower_bank_account_uuid": "bank-1"})
    assert operations_of_run(sandbox) == READS


def test_an_unknown_payment_reads_nothing_until_its_account_is_known(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    tell(sandbox, payment)
    assert operations_of_run(sandbox) == []
    # The refresh of all accounts finds the payment; another message of it is news about a known account.
    Account.objects.update(checked_at=None)
    Answer.objects.update(last_at=None)
    job = start_job(refresh_portfolio, rate=1000)
    late = timezone.now() + timedelta(minutes=1)
    sandbox.world.message("payment.failed", payment, at=late)
    read_front(client_for(ACTOR))
    assert operations_of_run(sandbox) == []
    run_taken(job)
    assert operations_of_run(sandbox) == READS


def test_a_message_older_than_the_copy_reads_nothing(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment, minutes_ago=12)
    assert operations_of_run(sandbox) == []
    # Their clock and ours may differ by up to a minute.
    tell(sandbox, payment, minutes_ago=10.5)
    assert operations_of_run(sandbox) == READS


def test_a_message_older_than_only_one_of_two_copies_is_news(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    Account.objects.filter(pk=loan.pk).update(checked_at=timezone.now())
    tell(sandbox, payment, minutes_ago=5)
    assert operations_of_run(sandbox) == READS


def test_what_a_person_asks_for_is_read_at_once(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment)
    assert operations_of_run(sandbox) == READS
    tell(sandbox, payment | {"status": "FAILED"})
    assert operations_of_run(sandbox) == []  # News waits for five minutes.
    assert request_reads(Account.objects.filter(pk=loan.pk)) == 1
    assert operations_of_run(sandbox) == READS


def test_a_message_of_an_uncertain_time_is_news(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment, minutes_ago=600, zone="IST")
    assert operations_of_run(sandbox) == READS


def test_a_message_of_an_uncertain_time_long_before_the_copy_queues_nothing(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment, minutes_ago=4 * 24 * 60, zone="IST")
    assert Message.objects.get().created_at.at is None
    assert operations_of_run(sandbox) == []


def test_an_archived_account_is_skipped(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment)
    Account.objects.filter(pk=loan.pk).update(archived_at=timezone.now())
    assert operations_of_run(sandbox) == []
    tell(sandbox, payment | {"status": "FAILED"})
    assert not PendingRead.objects.filter(due_at__isnull=False).exists()


def test_an_account_that_a_page_read_since_is_not_read_again(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment)
    for copy in reading.account_copies(loan):
        reading.read_live(ACTOR, copy)
    assert operations_of_run(sandbox) == []


@pytest.mark.slow
def test_an_account_is_read_for_news_at_most_once_in_five_minutes(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment)
    assert operations_of_run(sandbox) == READS
    tell(sandbox, payment | {"status": "FAILED"}, minutes_ago=-1)
    assert operations_of_run(sandbox) == []
    make_due()
    assert operations_of_run(sandbox) == READS


def test_a_payment_missing_in_the_list_is_looked_for_once_more(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    known = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, known | {"uuid": "late-payment"})
    assert operations_of_run(sandbox) == READS
    assert operations_of_run(sandbox) == []
    make_due()
    assert operations_of_run(sandbox) == READS
    make_due()
    assert operations_of_run(sandbox) == []


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"body": b"{}"}, {"body": b'{"error": "Backend timeout"}'}]
)
def test_a_failed_or_empty_answer_is_no_read(sandbox: Sandbox, fault: dict[str, Any]) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment)
    sandbox.fail_next("loans.get", times=None, **fault)
    operations_of_run(sandbox)
    assert PendingRead.objects.get().due_at
    sandbox.heal()
    make_due()
    assert operations_of_run(sandbox) == READS
    assert PendingRead.objects.get().due_at is None


def test_news_waits_while_the_service_is_out(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment)
    now = timezone.now()
    Outage.objects.create(pk=1, since=now, tries=6, ask_again_at=now + timedelta(hours=1))
    assert operations_of_run(sandbox) == []
    assert not Job.objects.filter(name=read_news.name).exists()
    Outage.objects.all().delete()
    assert operations_of_run(sandbox) == READS


@pytest.mark.slow
def test_the_newest_news_is_read_first_and_none_is_forgotten(sandbox: Sandbox) -> None:
    loans = [loan_on_file(sandbox) for _ in range(4)]
    payments = [sandbox.world.repayment(loan.uuid, amount="75.00") for loan in loans]
    for loan in loans:
        read(loan)
    for minutes, place in ((3, 0), (1, 1), (4, 2), (2, 3)):
        sandbox.world.message(
            "payment.succeeded", payments[place], at=timezone.now() - timedelta(minutes=minutes)
        )
    read_front(client_for(ACTOR))
    before = len(sandbox.calls)
    operations_of_run(sandbox)
    order = [call.path.split("/")[-1] for call in sandbox.calls[before:] if call.operation == "loans.get"]
    assert order == [loans[place].uuid for place in (1, 3, 0, 2)]


def test_reading_keeps_the_pace(sandbox: Sandbox, settings: LazySettings) -> None:
    settings.READS_PER_MINUTE = 1200
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00")
    read(loan)
    tell(sandbox, payment)
    started = timezone.now()
    assert operations_of_run(sandbox) == READS
    assert timezone.now() - started >= timedelta(seconds=2 * 60 / 1200)


def test_a_payload_changes_no_record(sandbox: Sandbox) -> None:
    loan = loan_on_file(sandbox)
    payment = sandbox.world.repayment(loan.uuid, amount="75.00", status="SCHEDULED")
    read(loan)
    tell(sandbox, payment | {"status": "FAILED", "amount": Decimal("999.00")})
    record = Repayment.objects.get(uuid=payment["uuid"])
    assert (record.status, record.amount) == ("SCHEDULED", Decimal("75.00"))
    operations_of_run(sandbox)
    record.refresh_from_db()
    assert (record.status, record.amount) == ("SCHEDULED", Decimal("75.00"))
    assert Message.objects.get().amount == Decimal("999.00")
