"""How days pass: payments come in or bounce, lines are billed, next payments are planned.

Hides who is unlucky: every so many payments of an account one fails, and one is returned after it came in.
"""

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from servicing.sandbox import ledger, lending
from servicing.sandbox.clock import SERVICE_ZONE, stamp
from servicing.sandbox.store import Record

if TYPE_CHECKING:
    from servicing.sandbox.world import World

REASONS = (
    "R01 - Insufficient funds",
    "R02 - Account closed",
    "R03 - No account or unable to locate account",
    "R08 - Payment stopped",
    "R29 - Corporate customer advises not authorized",
)
EVERY_FAILS = 17
EVERY_RETURNS = 23
DAYS_UNTIL_RETURN = 3
DAYS_UNTIL_RETRY = 6


def pass_day(world: "World") -> None:
    """Everything that one more day brings."""
    world.clock.pass_days(1)
    now = world.clock.now()
    for payment in world.store.due("repayment", now.date().isoformat()):
        _happen(world, payment, now)
    for line in world.store.due("line", now.date().isoformat()):
        world.keep_statement(line, ledger.bill(line, now.date()))
    for account in world.store.all("loan") + world.store.all("line"):
        ledger.age(account, now.date())
        plan_payment(world, account, now)
        world.store.update(account)


def _happen(world: "World", payment: Record, now: datetime) -> None:
    """A payment's day has come."""
    turn = world.account(payment.owner).private["payments"] + 1
    if payment.body["status"] == "SUCCEEDED" or turn % EVERY_FAILS == 0:
        bounce(world, payment, now)
    elif turn % EVERY_RETURNS == 0:
        settle(world, payment, now, returns_on=now.date() + timedelta(days=DAYS_UNTIL_RETURN))
    else:
        settle(world, payment, now)


def settle(
    world: "World",
    payment: Record,
    moment: datetime,
    *,
    zone: str | None = "US/Pacific",
    returns_on: date | None = None,
) -> None:
    """A scheduled payment comes in: the account is credited, a message recorded."""
    on = moment.astimezone(SERVICE_ZONE).date()
    account = world.account(payment.owner)
    payment.body["status"] = lending.moved(payment.body["status"], "succeed")
    split = ledger.pay(account, payment.body["amount"], on).as_dict()
    payment.body |= split | {
        "ending_balance": ledger.principal_left(account),
        "completion_date": on.isoformat(),
        "ach_batch_id": f"{on:%Y%m%d}",
        "ach_id": payment.uuid[-12:],
    }
    payment.private |= {"split": split} | ledger.due_on(returns_on)
    account.private["payments"] += 1
    _conclude(world, payment, account, moment, zone)


def bounce(
    world: "World",
    payment: Record,
    moment: datetime,
    *,
    zone: str | None = "US/Pacific",
    reason: str | None = None,
) -> None:
    """A scheduled payment fails, or one that came in is returned: then the account owes it again."""
    account = world.account(payment.owner)
    came_in = payment.body["status"] == "SUCCEEDED"
    payment.body["status"] = lending.moved(payment.body["status"], "reverse" if came_in else "fail")
    payment.body["error_description"] = reason or REASONS[account.private["payments"] % len(REASONS)]
    if came_in:
        payment.body["payment_type"] = "RETURNED"
    if "split" in payment.private:
        split = lending.Split(**payment.private.pop("split"))
        ledger.take_back(account, split, moment.astimezone(SERVICE_ZONE).date())
    payment.private |= ledger.due_on(None)
    account.private["payments"] += 1
    _conclude(world, payment, account, moment, zone)


def _conclude(world: "World", payment: Record, account: Record, moment: datetime, zone: str | None) -> None:
    """Keep both records and, unless there is no zone to tell it in, record a message."""
    if account.private["planned"] == payment.uuid:
        account.private["planned"] = None
    world.store.update(payment)
    world.store.update(account)
    if zone is not None:
        event = f"payment.{payment.body['status'].lower()}"
        payload = payment.body | {"initiation_date": stamp(moment)}
        world.message(event, payload, at=moment, zone=zone)


def plan_payment(world: "World", account: Record, moment: datetime) -> None:
    """Where payments are drawn automatically, enter the next one once it is known."""
    today = moment.astimezone(SERVICE_ZONE).date()
    due, amount = ledger.next_payment(account)
    if due is None or account.private["planned"]:
        return
    on = due if due > today else today + timedelta(days=DAYS_UNTIL_RETRY)
    payment = world.repayment(account.uuid, amount=amount, status="SCHEDULED", effective_date=on)
    account.private["planned"] = payment["uuid"]
    world.message("payment.scheduled", payment, at=moment)
