"""Models and errors in caches, task queues and other processes: copies and pickles keep everything."""

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

WAYS: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ),
]


def parts(model: Model) -> list[Model]:
    """A model and those nested in it."""
    values = [getattr(model, name) for name in model.__struct_fields__]
    found = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return [model, *(part for item in found if isinstance(item, Model) for part in parts(item))]


def contents(model: Model) -> list[object]:
    return [(part, part.raw, dict(part.extra), part.issues) for part in parts(model)]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_keeps_what_it_was_read_from(
    lending: Client, sandbox: Sandbox, way: Callable[[Any], Any]
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
        lending.borrowers.update(borrower, email="new@harbor.example"),
        lending.applications.submit(borrower, amount=Decimal(12000)),
        lending.loans.get(borrower, loan),
        lending.credit_lines.statement(borrower, line),
        *lending.repayments.of_loan(borrower, loan),
        *lending.messages.list(),
    ]

    assert all(answer.issues and "surprise" in answer.extra for answer in answers)
    assert [contents(way(answer)) for answer in answers] == [contents(answer) for answer in answers]


@pytest.mark.parametrize("way", WAYS)
def test_a_page_keeps_its_records_and_where_it_stands(
    lending: Client, sandbox: Sandbox, way: Callable[[Any], Any]
) -> None:
    sandbox.world.message("payment.succeeded", {"amount": 1})
    page = lending.messages.list()
    twin = way(page)

    assert [contents(record) for record in twin] == [contents(record) for record in page]
    assert contents(twin.pagination) == contents(page.pagination)


def raised(call: Callable[[], object]) -> ServicingError:
    with pytest.raises(ServicingError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_an_error_keeps_its_words_and_its_call(lending: Client, way: Callable[[Any], Any]) -> None:
    missing = raised(lambda: lending.loans.get("b-1", "l-1"))
    wrong = raised(lambda: lending.borrowers.update("b-1", phone="1", email="?"))

    assert isinstance(missing, NotFound)
    assert isinstance(wrong, InvalidInput)
    for error in (missing, wrong, Unreadable()):
        twin = way(error)
        assert (type(twin), str(twin), twin.args) == (type(error), str(error), error.args)
        assert vars(twin) == vars(error)


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_error_can_be_copied(way: Callable[[Any], Any]) -> None:
    offered = [getattr(servicing, name) for name in servicing.__all__]
    kinds = [kind for kind in offered if isinstance(kind, type) and issubclass(kind, ServicingError)]

    assert len(kinds) > 10
    for kind in set(kinds) - {InvalidInput, Unreadable}:
        error = kind("No.", reasons=["One", "Two"], operation="loans.get", status=409, request_id="r-1")
        assert vars(way(error)) == vars(error)
        assert str(way(error)) == "r-1 loans.get: No."
