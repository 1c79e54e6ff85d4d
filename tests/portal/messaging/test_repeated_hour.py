"""The hour that comes twice when clocks go back: a start is its first occurrence, an end its second."""

from datetime import UTC, datetime

import pytest
import time_machine
from django.conf import LazySettings
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.messaging.store import save_messages
from servicing import Message, codec
from tests.conftest import browser_of
from tests.portal.audit.test_reading import list_entries
from tests.portal.messaging.test_index import list_ids

TIMES = {
    "a": "00:59:30 PDT",
    "b": "01:15:00 PDT",
    "c": "01:15:00 PST",
    "d": "01:30:59 PST",
    "e": "01:31:00 PST",
}


@pytest.fixture
def viewer(db: None, settings: LazySettings) -> Browser:
    settings.SERVICING_TIME_ZONE = "US/Pacific"
    rows = [codec.to_json({"uuid": uuid, "created_at": f"2026-11-01 {at}"}) for uuid, at in TIMES.items()]
    save_messages([codec.decode(Message, row) for row in rows])
    return browser_of(Role.VIEWER)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("01:00", "01:30", ["d", "c", "b"]),
        ("01:16", "01:31", ["e", "d", "c"]),
        ("00:59", "00:59", ["a"]),
        ("00:00", "01:14", ["b", "a"]),
        ("02:00", "02:30", []),
    ],
)
def test_messages_of_a_repeated_hour_are_found(
    viewer: Browser, start: str, end: str, found: list[str]
) -> None:
    days = "start_date=2026-11-01&end_date=2026-11-01"
    assert list_ids(viewer, f"?source=copy&{days}&start_time={start}&end_time={end}") == found


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [("01:00", "01:30", ["edt", "est"]), ("01:20", "01:40", ["est"]), ("00:30", "00:59", ["first"])],
)
def test_entries_of_a_repeated_hour_are_found(db: None, start: str, end: str, found: list[str]) -> None:
    moments = {"first": (4, 50), "edt": (5, 15), "est": (6, 15), "later": (7, 0)}  # New York, in UTC.
    for name, (hour, minute) in moments.items():
        with time_machine.travel(datetime(2026, 11, 1, hour, minute, tzinfo=UTC)):
            append(Actor.system("test"), "notes.add", subject_label=f"entry {name}", reason="")
    shown = list_entries(browser_of(Role.ADMIN), **{"from": f"2026-11-01T{start}", "to": f"2026-11-01T{end}"})
    assert [name for name in moments if f"entry {name}" in shown] == found
