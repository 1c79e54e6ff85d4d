"""A database of its own for a benchmark: SQLite in a file, or PostgreSQL on the server that DATABASE_URL names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own(path: Path) -> Iterator[str]:
    """The portal's tables, empty, for as long as the block lasts; the name of the engine."""
    os.environ |= {"DEBUG": "on", "ENV_FILE": os.devnull, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    import django
    from django.test.utils import override_settings

    django.setup()
    from django.db import connection

    before, testing = connection.settings_dict["NAME"], connection.settings_dict["TEST"]
    testing["NAME"] = str(path) if connection.vendor == "sqlite" else f"bench_{os.getpid()}"
    with override_settings(DEBUG=False, ALLOWED_HOSTS=["testserver"]):  # Otherwise every query is kept.
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        try:
            yield connection.display_name
        finally:
            connection.creation.destroy_test_db(before, verbosity=0)


def hurry() -> None:
    """What this connection sows can be sown again: it need not wait for a disk."""
    from django.db import connection

    wishes = {
        "sqlite": ["PRAGMA journal_mode=MEMORY", "PRAGMA synchronous=OFF", "PRAGMA cache_size=-1000000"],
        "postgresql": ["SET synchronous_commit=off", "SET maintenance_work_mem='512MB'"],
    }
    with connection.cursor() as cursor:
        for wish in wishes[connection.vendor]:
            cursor.execute(wish)


def settle() -> None:
    """End the hurry, and leave the tables as a server has them after a while: looked through, with statistics."""
    from django.db import connection

    is_server = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if is_server else "ANALYZE")
    connection.close()
    if is_server:
        connection.close_pool()
