#!/usr/bin/env python
"""Django's command-line utility for administrative tasks."""

import os
import sys


def main() -> None:
    """Run administrative tasks."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    if sys.argv[1:] in (["--version"], ["version"]):
        from servicing.version import __version__

        sys.stdout.write(f"{__version__}\n")
        return
    if sys.argv[1:2] == ["init"]:  # It writes the settings that every other command needs.
        os.environ |= {"DEBUG": "on", "ENV_FILE": os.devnull, "DATABASE_URL": "sqlite://:memory:"}
        os.environ["DATA_DIR"] = os.path.curdir
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    try:
        execute_from_command_line(sys.argv)
    except (DatabaseError, FileNotFoundError):
        from portal.core.database import find_connection_problem, find_folder_problem, find_setup_problem

        if not (problem := find_folder_problem() or find_connection_problem() or find_setup_problem()):
            raise
        sys.exit(problem)


if __name__ == "__main__":
    main()
