"""Checks the whole audit trail, also against its signed checkpoints, and signs its end."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from portal.audit import checkpoints, guard, integrity
from portal.audit.models import Actor


class Command(BaseCommand):
    """``manage.py verify_audit [--recent | --checkpoints FILE | --accept REASON [--by NAME] | --new-key]``."""

    help = "Check the audit trail, report the first bad entry, and sign the trail if it is intact."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add what to check, and against which checkpoints."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--recent",
            action="store_true",
            help="check only entries after the last checkpoint, then sign; the worker does this every few minutes",
        )
        what.add_argument(
            "--checkpoints",
            dest="copy",
            type=Path,
            metavar="FILE",
            help="check against a copy of the checkpoint file; sign nothing",
        )
        what.add_argument(
            "--accept",
            dest="reason",
            metavar="REASON",
            help="record why the checkpoints differ from the trail, such as after a restore",
        )
        what.add_argument(
            "--new-key", action="store_true", help="print a new AUDIT_CHECKPOINT_KEY and its public half"
        )
        parser.add_argument(
            "--by",
            default="",
            metavar="NAME",
            help="who accepts (default: the operating system user)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, print the result, and fail if something is wrong."""
        if options["new_key"]:
            private, public = checkpoints.new_key()
            self.stdout.write(f"AUDIT_CHECKPOINT_KEY={private}")
            self.stdout.write(
                f"Its public half, for AUDIT_CHECKPOINT_FORMER_KEYS once it is replaced: {public}"
            )
            return
        reason = options["reason"]
        if reason is not None and not reason.strip():
            raise CommandError("Give the reason the checkpoints differ from the trail.")
        if guard.owns_audit_table(connection):
            self.stderr.write(self.style.WARNING(guard.OWNER_WARNING))
        try:
            if reason:
                self.stdout.write(
                    integrity.accept_trail(reason.strip(), Actor.operator("verify", options["by"]))
                )
            for words in integrity.check_trail(options["copy"], only_new=options["recent"]):
                self.stdout.write(words)
        except (checkpoints.UnusableCheckpoints, integrity.TrailBroken) as problem:
            raise CommandError(str(problem)) from None
