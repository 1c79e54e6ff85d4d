"""A short version of the wire drill; `python -m tests.faults wire` runs it at length."""

from tests.faults import wire


def test_no_broken_connection_makes_the_client_report_a_wrong_outcome() -> None:
    findings = wire.drill(mutants=100)

    assert findings.wrong == []
    assert findings.calls == 2 * (2 * len(wire.ALL) + 100)


def test_no_answer_exhausts_the_memory() -> None:
    for name, megabytes, error in wire.bombs():
        assert (name, error) == (name, "ProtocolError")
        assert megabytes < wire.MAX_BOMB_MEGABYTES
