"""Checks the whole audit trail; with a file of checkpoints also that it was not rewritten."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from portal.audit import checkpoints, guard
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.verification import Verified, verify


class Command(BaseCommand):
    """``manage.py verify_audit [--checkpoints FILE [--sign]]``."""

    help = "Check the audit trail and name the first entry that was altered, removed, inserted or moved."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where checkpoints are kept, and whether to add one."""
        parser.add_argument(
            "--checkpoints",
            dest="path",
            type=Path,
            metavar="FILE",
            help="check against the signed checkpoints in FILE",
        )
        parser.add_argument(
            "--sign", action="store_true", help="add a checkpoint of now to FILE when all is well"
        )
        parser.add_argument(
            "--new-key", action="store_true", help="print a new AUDIT_CHECKPOINT_KEY and its public half"
        )

    def handle(self, *args: Any, path: Path | None = None, sign: bool, new_key: bool, **options: Any) -> None:
        """Check, tell, and leave an audit entry of the check; fail where something is wrong."""
        if new_key:
            self.print_new_key()
            return
        if sign and path is None:
            raise CommandError("--sign needs --checkpoints FILE, outside the database's machine if you can.")
        for weakness in guard.weaknesses(connection):
            self.stderr.write(self.style.WARNING(weakness))
        done = verify(kept(path))
        record(done)
        if done.found:
            raise CommandError(f"{done.found} {done.entries:,} entries before it hold.")
        self.stdout.write(f"{done.entries:,} entries, one unbroken chain.")
        if sign and path is not None:
            self.sign(done, path)

    def print_new_key(self) -> None:
        """To the terminal and nowhere else."""
        private, public = checkpoints.new_key()
        self.stdout.write(f"AUDIT_CHECKPOINT_KEY={private}")
        self.stdout.write(f"Its public half, for AUDIT_CHECKPOINT_FORMER_KEYS once it is replaced: {public}")

    def sign(self, done: Verified, path: Path) -> None:
        """Add a line to the file."""
        try:
            line = checkpoints.signed(done.last.id, done.last.hash)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except (checkpoints.Unusable, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Signed: entry {done.last.id:,} is the last one.")


def kept(path: Path | None) -> list[checkpoints.Checkpoint]:
    """The checkpoints of a file; none where there is no file yet."""
    if path is None or not path.exists():
        return []
    try:
        return list(checkpoints.read(path.read_text(encoding="utf-8").splitlines()))
    except (checkpoints.Unusable, OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path.name}: {error}") from None


def record(done: Verified) -> None:
    """The check is itself an entry, so that everybody can see when the trail was last checked, and how far."""
    append(
        Actor.system("verify"),
        "audit.verify",
        result="broken" if done.found else "unbroken",
        detail={"entries": done.entries, "last": done.last.id, "hash": done.last.hash}
        | ({"problem": str(done.found)} if done.found else {}),
    )
