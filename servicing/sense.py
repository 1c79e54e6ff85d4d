"""Data-sense checks: what does not add up in the service's own answers. Hints for people; nothing is refused for one.

A rule measures by how much objects are off and is broken when that exceeds its tolerance. Where a value that it needs
is missing it measures nothing and so does not apply. The rules of a kind of object stand together, under its name.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from servicing.applications import Application, Offer
from servicing.values import calendar_day, exact, same_word

NOTHING: Final = Decimal(0)


class Rule(NamedTuple):
    """One thing that should hold."""

    id: str
    text: str
    """What is off when it does not hold, in a few words for staff."""
    severity: Literal["notice", "warn"]
    tolerance: Decimal
    """By how much objects may be off: dollars, points of a rate, days or cases."""
    measure: Callable[..., Decimal | int | None]
    """By how much they are off; None where the rule does not apply."""


def broken(rules: Iterable[Rule], *objects: object) -> list[Rule]:
    """The rules that do not hold for these objects, in their order."""
    measured = ((rule, rule.measure(*objects)) for rule in rules)
    return [rule for rule, off in measured if off is not None and off > rule.tolerance]


def excess(value: Decimal | None, limit: Decimal | None) -> Decimal | None:
    """By how much a value exceeds a limit; None where either is missing."""
    return None if value is None or limit is None else value - limit


# Applications


def of_application(application: Application) -> list[Rule]:
    """What is off about an application itself."""
    return broken(APPLICATION_RULES, application)


def _is_decided(application: Application, word: str) -> bool | None:
    decision = application.status.decision if application.status else None
    return None if decision is None else same_word(decision, word)


def _approved_without_offers(application: Application) -> int | None:
    is_approved = _is_decided(application, "APPROVED")
    return None if is_approved is None else int(is_approved and not application.offers)


def _rejected_with_offers(application: Application) -> int | None:
    is_rejected = _is_decided(application, "REJECTED")
    return None if is_rejected is None else int(is_rejected and bool(application.offers))


def _report_without_consent(application: Application) -> int | None:
    consent = application.credit_score_consent
    return None if consent is None else int(not consent and application.credit_report_id is not None)


APPLICATION_RULES: Final = (
    Rule("application.no_offers", "Approved without offers", "notice", NOTHING, _approved_without_offers),
    Rule("application.rejected", "Rejected with offers", "warn", NOTHING, _rejected_with_offers),
    Rule("application.consent", "Credit report without consent", "warn", NOTHING, _report_without_consent),
)


# Offers, each with the application it answers


def of_offer(offer: Offer, application: Application) -> list[Rule]:
    """What is off about an offer."""
    return broken(OFFER_RULES, offer, application)


def _other_product(offer: Offer, application: Application) -> int | None:
    if not offer.product or not application.product:
        return None
    return int(not same_word(offer.product, application.product))


def _maturity_before_start(offer: Offer, _: Application) -> int | None:
    maturity = calendar_day(offer.maturity_date)
    return (offer.start_date - maturity).days if offer.start_date and maturity else None


def _interest_off(offer: Offer, _: Application) -> Decimal | None:
    """Installments less amount, against the interest that is told; an interest-only period changes the sum."""
    installment, interest = exact(offer.installment), exact(offer.interest_amount)
    if installment is None or interest is None or offer.term is None or offer.amount is None:
        return None
    return None if offer.interest_only_period else abs(installment * offer.term - offer.amount - interest)


OFFER_RULES: Final = (
    Rule(
        "offer.amount", "Above the requested amount", "notice", NOTHING,
        lambda offer, application: excess(offer.amount, application.amount),
    ),
    Rule("offer.product", "Not the product applied for", "notice", NOTHING, _other_product),
    Rule(
        "offer.fee", "Fee above the amount", "warn", NOTHING,
        lambda offer, _: excess(offer.origination_fee, offer.amount),
    ),
    Rule(
        "offer.apr", "APR below interest rate", "warn", Decimal("0.01"),
        lambda offer, _: excess(offer.interest_rate, offer.apr),
    ),
    Rule("offer.interest", "Interest does not add up", "notice", Decimal("2.00"), _interest_off),
    Rule("offer.maturity", "Matures before it starts", "warn", NOTHING, _maturity_before_start),
)  # fmt: skip
