"""The database file: crashes, permissions, and concurrent use."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from servicing.sandbox.store import Record, Store

WRITER = """
import sys
from servicing.sandbox.store import Record, Store
store = Store(sys.argv[1])
for number in range(10**9):
    with store.write_transaction():
        store.insert(Record(kind="user", uuid=str(number), owner="", body={"uuid": str(number)}))
        store.insert(Record(kind="key_person", uuid=f"p{number}", owner=str(number), body={}))
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def record(uuid: str) -> Record:
    return Record(kind="user", uuid=uuid, owner="", body={"uuid": uuid})


@pytest.mark.slow
def test_kill_9_loses_no_acknowledged_write(path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(40)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout if line.strip()]
    writer.stdout.close()
    writer.wait()
    store = Store(path)
    stored = {int(record.uuid) for record in store.all("user")}
    assert stored >= set(acknowledged)
    assert len(store.all("key_person")) == len(stored)
    store.close()


def test_only_the_owner_can_read_the_file_and_its_journal(path: Path) -> None:
    store = Store(path)
    store.insert(record("1"))
    modes = {file.name: stat.S_IMODE(os.stat(file).st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)
    store.close()


def test_a_failed_transaction_is_rolled_back(path: Path) -> None:
    store = Store(path)

    def fail() -> None:
        with store.write_transaction():
            store.insert(record("1"))
            with store.write_transaction():
                store.insert(record("2"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.is_empty()
    store.close()


def test_a_read_transaction_ignores_later_writes(path: Path) -> None:
    reader, writer = Store(path), Store(path)
    with reader.read_transaction():
        assert reader.all("user") == []
        writer.insert(record("1"))
        assert reader.all("user") == []
    assert len(reader.all("user")) == 1
    reader.close()
    writer.close()


def test_concurrent_writers_lose_no_update(path: Path) -> None:
    stores = Store(path), Store(path)

    def count(store: Store) -> None:
        for _ in range(25):
            with store.write_transaction():
                store.save_setting("count", store.setting("count") + 1)

    threads = [threading.Thread(target=count, args=(store,)) for store in stores * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].setting("count") == 100
    for store in stores:
        store.close()


def test_records_are_found_by_kind_and_owner(path: Path) -> None:
    store = Store(path)
    store.insert(Record(kind="loan", uuid="a", owner="me", body={}))
    assert store.find("loan", "a", owner="me") is not None
    assert store.find("loan", "a", owner="you") is None
    assert store.find("line", "a") is None
    store.close()


def test_another_programs_database_is_not_changed(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="another program"):
        Store(path)
    assert path.read_bytes() == before


def test_private_data_is_hidden_in_the_repr() -> None:
    secret = Record(kind="user", uuid="1", owner="", body={}, private={"EIN": "123456789"})
    assert "123456789" not in repr(secret)
