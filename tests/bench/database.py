"""Makes a database quick to fill, and leaves it as a server has it after a while."""


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

    from portal.core.database import analyze

    analyze()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    close_connections()


def close_connections() -> None:
    """Close those of PostgreSQL's pool too."""
    from django.db import connection

    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]  # only on PostgreSQL
