"""Makes the database of a release, which a test then upgrades. Run it once for each release:

    python -m tests.released.make
    python docker/postgres.py -- python -m tests.released.make

It has an audit chain, a created borrower, a draft, accounts with saved copies, a waiting approval, a waiting job, a
note, a loan with an owner and a promise to pay. All of them come from forms. Never make a released file again.
"""

import gzip
import os
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        set_up_django(Path(folder))
        from django.conf import settings
        from django.core.management import call_command
        from django.db import connection

        from servicing import __version__
        from servicing.sandbox import Sandbox
        from tests.conftest import CLIENT_ID, SECRET

        with Sandbox(Path(folder) / "sandbox.sqlite3", client_id=CLIENT_ID, secret=SECRET) as sandbox:
            settings.SERVICING_URL = sandbox.url
            settings.SERVICING_CLIENT_ID, settings.SERVICING_SECRET = CLIENT_ID, SECRET
            fill(sandbox)
        copy = Path(folder) / "copy"
        call_command("backup", copy, verbosity=0)
        if connection.vendor == "sqlite":
            target = FOLDER / f"{__version__}.sqlite3.gz"
            target.write_bytes(gzip.compress(copy.read_bytes(), mtime=0))
        else:
            target = FOLDER / f"{__version__}.dump"
            target.write_bytes(copy.read_bytes())
        sys.stdout.write(f"{target.name}: {target.stat().st_size:,} bytes\n")


def set_up_django(folder: Path) -> None:
    """Set up Django with a new database, or with the one of ``DATABASE_URL``."""
    os.environ |= {"DEBUG": "1", "DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "portal.settings"}
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.ALLOWED_HOSTS = ["testserver", *settings.ALLOWED_HOSTS]
    call_command("migrate", verbosity=0)


def fill(sandbox: object) -> None:
    """Fill the database as a servicer and a supervisor do."""
    from portal.accounts.roles import Role
    from portal.approvals.models import Approval
    from portal.audit.models import Actor
    from portal.borrowers.models import Draft
    from portal.collections.models import AccountOwner, Promise
    from portal.core.business_date import business_date
    from portal.gateway.reading import account_copies, read_live
    from portal.jobs.queue import start_job
    from portal.lookup.tasks import refresh_portfolio
    from portal.notes.models import Note
    from tests import given
    from tests.conftest import browser_of
    from tests.portal.borrowers.editor import Editor
    from tests.portal.borrowers.wizard import BUSINESS, Wizard

    servicer, supervisor = browser_of(Role.SERVICER), browser_of(Role.SUPERVISOR)
    Wizard(servicer).fill().send()
    Wizard(servicer).post("business", BUSINESS | {"first_name": "Lindqvist Bakery"})
    owner = given.borrower(sandbox)
    loan, line = given.loan(sandbox, owner), given.line(sandbox, owner)
    for record in (loan, line):
        for copy in account_copies(record):
            read_live(Actor.system("release"), copy)
    editor = Editor(servicer, owner)
    editor.post(
        editor.review_fields(first_name="Bay Bakery LLC") | {"reason": "Articles of amendment"}, "ask"
    )
    servicer.post(f"/notes/new/borrower/{owner.uuid}/", {"text": "Asked for a new schedule."})
    promise = {"person": "Someone else", "channel": "phone", "outcome": "promised", "amount": "100"}
    promise |= {"day": business_date().isoformat(), "note": "Pays by wire.", "confirmed_amount": "100"}
    servicer.post(f"/collections/contacts/loan/{loan.uuid}/log/", promise)
    servicer.post("/collections/take/", {"uuid": [loan.uuid]})
    start_job(refresh_portfolio, rate=4)
    supervisor.get("/messages/")
    models = (Draft, Approval, Note, Promise, AccountOwner)
    assert [model.objects.count() for model in models] == [1] * len(models)


if __name__ == "__main__":
    main()
