"""Models and errors keep their data when copied or pickled."""

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import servicing
from servicing import Client, InvalidInput, NotFound, ServicingError, Unreadable
from servicing.codec import Model
from servicing.sandbox import Sandbox

pytestmark = pytest.mark.core

WAYS: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ),
]


def nested_models(model: Model) -> list[Model]:
    """A model and its nested models."""
    values = [getattr(model, name) for name in model.__struct_fields__]
    found = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return [model, *(part for item in found if isinstance(item, Model) for part in nested_models(item))]


def model_contents(model: Model) -> list[object]:
    return [(part, part.raw, dict(part.extra), part.issues) for part in nested_models(model)]


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_model_keeps_raw_extra_and_issues(
    service_client: Client, sandbox: Sandbox, way: Callable[[Any], Any]
) -> None:
    world = sandbox.world
    borrower = world.borrower()["uuid"]
    loan, line = world.loan(borrower)["uuid"], world.line(borrower)["uuid"]
    world.statement(line, "2026-05-04")
    world.repayment(loan)
    world.message("payment.succeeded", {"amount": 1})
    odd = {"created_at": 7, "product": [1], "payment_amount_due": "much", "email": {}, "surprise": {"a": [1]}}
    sandbox.fail_next("*", times=None, changes=odd)
    answers: list[Model] = [
        service_client.borrowers.update(borrower, email="new@harbor.example"),
        service_client.applications.submit(borrower, amount=Decimal(12000)),
        service_client.loans.get(borrower, loan),
        service_client.credit_lines.statement(borrower, line),
        *service_client.repayments.of_loan(borrower, loan),
        *service_client.messages.list(),
    ]

    assert all(answer.issues and "surprise" in answer.extra for answer in answers)
    assert [model_contents(way(answer)) for answer in answers] == [
        model_contents(answer) for answer in answers
    ]


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_page_keeps_its_records_and_pagination(
    service_client: Client, sandbox: Sandbox, way: Callable[[Any], Any]
) -> None:
    sandbox.world.message("payment.succeeded", {"amount": 1})
    page = service_client.messages.list()
    duplicate = way(page)

    assert [model_contents(record) for record in duplicate] == [model_contents(record) for record in page]
    assert model_contents(duplicate.pagination) == model_contents(page.pagination)


def catch_error(call: Callable[[], object]) -> ServicingError:
    with pytest.raises(ServicingError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_error_keeps_its_attributes(service_client: Client, way: Callable[[Any], Any]) -> None:
    missing = catch_error(lambda: service_client.loans.get("b-1", "l-1"))
    wrong = catch_error(lambda: service_client.borrowers.update("b-1", phone="1", email="?"))

    assert isinstance(missing, NotFound)
    assert isinstance(wrong, InvalidInput)
    for error in (missing, wrong, Unreadable()):
        duplicate = way(error)
        assert (type(duplicate), str(duplicate), duplicate.args) == (type(error), str(error), error.args)
        assert vars(duplicate) == vars(error)


@pytest.mark.parametrize("way", WAYS)
def test_every_error_class_can_be_copied(way: Callable[[Any], Any]) -> None:
    exported = [getattr(servicing, name) for name in servicing.__all__]
    classes = [
        error_class
        for error_class in exported
        if isinstance(error_class, type) and issubclass(error_class, ServicingError)
    ]

    assert len(classes) > 10
    for error_class in set(classes) - {InvalidInput, Unreadable}:
        error = error_class(
            "No.", reasons=["One", "Two"], operation="loans.get", status=409, request_id="r-1"
        )
        assert vars(way(error)) == vars(error)
        assert str(way(error)) == "r-1 loans.get: No."
