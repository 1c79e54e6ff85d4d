"""Creates a database for a benchmark: SQLite in a file, or PostgreSQL on the server of DATABASE_URL.

With BENCH_KEPT, the path of a folder, databases are not dropped, and the next run reuses their data. SQLite's files are
in that folder.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def benchmark_database(path: Path) -> Iterator[str]:
    """Create the portal's tables, empty unless BENCH_KEPT is set, for the block; yield the name of the engine."""
    os.environ |= {"DEBUG": "on", "ENV_FILE": os.devnull, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    import django
    from django.test.utils import override_settings

    django.setup()
    from django.db import connection

    before, testing = connection.settings_dict["NAME"], connection.settings_dict["TEST"]
    kept = os.environ.get("BENCH_KEPT")
    file = Path(kept) / path.name if kept else path
    name = f"bench_{path.stem if kept else os.getpid()}"
    testing["NAME"] = str(file) if connection.vendor == "sqlite" else name
    creation, keep = connection.creation, bool(kept)
    with override_settings(DEBUG=False, ALLOWED_HOSTS=["testserver"]):  # With DEBUG every query is stored.
        creation.create_test_db(verbosity=0, autoclobber=True, serialize=False, keepdb=keep)
        try:
            yield connection.display_name
        finally:
            creation.destroy_test_db(before, verbosity=0, keepdb=keep)


def skip_disk_waits() -> None:
    """Never wait for the disk, because lost rows can be generated again."""
    from django.db import connection

    settings = {
        "sqlite": [
            "PRAGMA journal_mode=MEMORY",
            "PRAGMA synchronous=OFF",
            "PRAGMA cache_size=-1000000",
            "PRAGMA mmap_size=2000000000",
        ],
        "postgresql": ["SET synchronous_commit=off", "SET maintenance_work_mem='512MB'"],
    }
    with connection.cursor() as cursor:
        for setting in settings[connection.vendor]:
            cursor.execute(setting)


def gather_statistics() -> None:
    """Analyze the tables, as a server does after a while."""
    from django.db import connection

    from portal.records.table_statistics import analyze

    analyze()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]  # only on PostgreSQL
