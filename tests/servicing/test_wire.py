"""Broken connections, mutated answers and oversized ones, through the client library alone."""

import pytest

from tests.drills import wire

pytestmark = pytest.mark.slow


def test_broken_connections_never_cause_a_wrong_outcome() -> None:
    findings = wire.drill(mutants=100)

    assert findings.wrong == []
    assert findings.calls == 2 * (2 * len(wire.ALL) + 100)


def test_oversized_answers_do_not_exhaust_memory() -> None:
    for name, megabytes, error in wire.bombs():
        assert (name, error) == (name, "ProtocolError")
        assert megabytes < wire.MAX_BOMB_MEGABYTES
