"""What happens each day: payments succeed or fail, lines are billed, next payments are planned.

Decides deterministically which payments fail: of each account's payments, every 17th fails and every 23rd is
returned after it succeeded, unless the payment's own ``outcome`` says otherwise. Payments are spread over the day.
"""

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Literal

from servicing.sandbox import amortization, ledger
from servicing.sandbox.clock import SERVICE_ZONE, stamp
from servicing.sandbox.store import Record

if TYPE_CHECKING:
    from servicing.sandbox.world import World

RETURN_REASONS = (
    "R01 - Insufficient funds",
    "R02 - Account closed",
    "R03 - No account or unable to locate account",
    "R08 - Payment stopped",
    "R29 - Corporate customer advises not authorized",
)
PAYMENTS_PER_FAILURE = 17
PAYMENTS_PER_RETURN = 23
DAYS_UNTIL_RETURN = 3
DAYS_UNTIL_RETRY = 6
PaymentOutcome = Literal["succeed", "fail", "return"]


def pass_day(world: "World") -> None:
    """Advance the service by one day."""
    world.clock.pass_days(1)
    now = world.clock.now()
    today = now.date().isoformat()
    midnight = datetime.combine(now, time.min, now.tzinfo)
    payments = sorted(
        world.store.due("repayment", today), key=lambda one: one.private.get("outcome") == "fail"
    )
    for number, payment in enumerate(payments, 1):
        _process_payment(world, payment, midnight + (now - midnight) * number / (len(payments) + 1))
    for line in world.store.due("line", today):
        world.keep_statement(line, ledger.bill_line(line, now.date()))
    for user in world.store.due("user", today):
        user.private |= ledger.due_on_field(None)
        world.store.update(user)
        world.report_user(user.body, at=now)
    for account in world.store.all("loan") + world.store.all("line"):
        ledger.update_account(account, now.date())
        plan_payment(world, account, now)
        world.store.update(account)


def _process_payment(world: "World", payment: Record, now: datetime) -> None:
    """Complete, fail or return a payment that is due today."""
    number = world.account(payment.owner).private["payments"] + 1
    outcome = payment.private.get("outcome") or _outcome(number)
    if payment.body["status"] == "SUCCEEDED" or outcome == "fail":
        bounce_payment(world, payment, now)
    elif outcome == "return":
        settle_payment(world, payment, now, returns_on=now.date() + timedelta(days=DAYS_UNTIL_RETURN))
    else:
        settle_payment(world, payment, now)


def _outcome(number: int) -> PaymentOutcome:
    """The outcome of an account's payment with this number."""
    if number % PAYMENTS_PER_FAILURE == 0:
        return "fail"
    return "return" if number % PAYMENTS_PER_RETURN == 0 else "succeed"


def settle_payment(
    world: "World",
    payment: Record,
    moment: datetime,
    *,
    zone: str | None = "US/Pacific",
    returns_on: date | None = None,
) -> None:
    """Complete a scheduled payment: credit its account and record a message."""
    on = moment.astimezone(SERVICE_ZONE).date()
    account = world.account(payment.owner)
    payment.body["status"] = amortization.next_status(payment.body["status"], "succeed")
    split = ledger.apply_payment(account, payment.body["amount"], on).as_dict()
    payment.body |= split | {
        "ending_balance": ledger.principal_left(account),
        "completion_date": on.isoformat(),
        "ach_batch_id": f"{on:%Y%m%d}",
        "ach_id": payment.uuid[-12:],
    }
    payment.private |= {"split": split} | ledger.due_on_field(returns_on)
    account.private["payments"] += 1
    _save_payment(world, payment, account, moment, zone)


def bounce_payment(
    world: "World",
    payment: Record,
    moment: datetime,
    *,
    zone: str | None = "US/Pacific",
    reason: str | None = None,
) -> None:
    """Fail a scheduled payment, or return a completed one, which the account then owes again."""
    account = world.account(payment.owner)
    was_completed = payment.body["status"] == "SUCCEEDED"
    payment.body["status"] = amortization.next_status(
        payment.body["status"], "reverse" if was_completed else "fail"
    )
    payment.body["error_description"] = (
        reason or RETURN_REASONS[account.private["payments"] % len(RETURN_REASONS)]
    )
    if was_completed:
        payment.body["payment_type"] = "RETURNED"
    if "split" in payment.private:
        split = amortization.Split(**payment.private.pop("split"))
        ledger.reverse_payment(account, split, moment.astimezone(SERVICE_ZONE).date())
    payment.private |= ledger.due_on_field(None)
    account.private["payments"] += 1
    _save_payment(world, payment, account, moment, zone)


def _save_payment(
    world: "World", payment: Record, account: Record, moment: datetime, zone: str | None
) -> None:
    """Save the payment and its account, and record a message unless ``zone`` is None."""
    if account.private["planned"] == payment.uuid:
        account.private["planned"] = None
    world.store.update(payment)
    world.store.update(account)
    if zone is not None:
        event = f"payment.{payment.body['status'].lower()}"
        payload = payment.body | {"initiation_date": stamp(moment)}
        world.message(event, payload, at=moment, zone=zone)


def plan_payment(world: "World", account: Record, moment: datetime) -> None:
    """Schedule the next payment of an account with autopay, if none is scheduled."""
    today = moment.astimezone(SERVICE_ZONE).date()
    due, amount = ledger.next_payment(account)
    if due is None or account.private["planned"]:
        return
    on = due if due > today else today + timedelta(days=DAYS_UNTIL_RETRY)
    payment = world.repayment(account.uuid, amount=amount, status="SCHEDULED", effective_date=on)
    account.private["planned"] = payment["uuid"]
    world.message("payment.scheduled", payment, at=moment)
