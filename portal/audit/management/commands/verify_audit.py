"""Checks the whole audit trail, also against its signed checkpoints, and signs how it ends."""

from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.template.defaultfilters import pluralize

from portal.audit import checkpoints, guard
from portal.audit.chain import append
from portal.audit.checkpoints import Checkpoints
from portal.audit.models import Actor, Entry
from portal.audit.verification import Verified, cross_check, verify

ACCEPTING = " If the database was restored on purpose, record that: manage.py verify_audit --accept REASON"


class Command(BaseCommand):
    """``manage.py verify_audit [--recent | --checkpoints FILE | --accept REASON | --new-key]``."""

    help = "Check the audit trail, name the first entry that is wrong, and sign the trail when all is well."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to check, and against which checkpoints."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--recent",
            action="store_true",
            help="check only what is newer than the last checkpoint, then sign; the worker does it every few minutes",
        )
        what.add_argument(
            "--checkpoints",
            dest="copy",
            type=Path,
            metavar="FILE",
            help="check against a copy of the checkpoints, and sign nothing",
        )
        what.add_argument(
            "--accept",
            dest="reason",
            metavar="REASON",
            help="record that the checkpoints name another trail on purpose, as after a restore",
        )
        what.add_argument(
            "--new-key", action="store_true", help="print a new AUDIT_CHECKPOINT_KEY and its public half"
        )

    def handle(
        self,
        *args: Any,
        recent: bool = False,
        copy: Path | None = None,
        reason: str | None = None,
        new_key: bool = False,
        **options: Any,
    ) -> None:
        """Check, say, and leave an audit entry of the check; fail where something is wrong."""
        if new_key:
            self.print_new_key()
            return
        if guard.is_owned(connection):
            self.stderr.write(self.style.WARNING(guard.OWNED))
        try:
            with nullcontext() if copy else checkpoints.locked():
                if reason is not None:
                    self.accept(reason.strip())
                if recent:
                    self.check_recent()
                else:
                    self.check_all(copy)
        except checkpoints.Unusable as problem:
            raise CommandError(str(problem)) from None

    def print_new_key(self) -> None:
        """To the terminal and nowhere else."""
        private, public = checkpoints.new_key()
        self.stdout.write(f"AUDIT_CHECKPOINT_KEY={private}")
        self.stdout.write(f"Its public half, for AUDIT_CHECKPOINT_FORMER_KEYS once it is replaced: {public}")

    def check_all(self, copy: Path | None) -> None:
        """The whole trail and what other tables know of it; signed unless it was compared with a copy."""
        checked, problems = inspect(copy)
        entry = record(checked, problems)
        if problems:
            raise CommandError(f"{' '.join(problems)} {checked.entries:,} entries hold.{hint(checked)}")
        self.stdout.write(f"{checked.entries:,} entries, one unbroken chain.")
        if copy is None:
            self.sign(entry)

    def check_recent(self) -> None:
        """From the last checkpoint on. What a check found wrong must first be found right by a whole check."""
        last = Entry.objects.filter(action="audit.verify").first()
        if last and last.result == "broken":
            raise CommandError(f"Not signed, because the last check failed. {last.detail.get('problem', '')}")
        kept = read(None)
        newest = Entry.objects.first()
        if newest and newest.pk in kept.by_entry and newest.hash == kept.by_entry[newest.pk].hash:
            self.stdout.write("Nothing new to sign.")
            return
        checked = verify(kept, since=max(kept.by_entry, default=0))
        if problems := [*chain_problems(checked), *guard.differences(connection)]:
            record(checked, problems)
            raise CommandError(f"{' '.join(problems)}{hint(checked)}")
        if newest:
            self.sign(Entry.objects.get(pk=checked.last.id))

    def accept(self, reason: str) -> None:
        """Sign that the trail is another one than the checkpoints say, and leave an entry of who said so and why."""
        if not reason:
            raise CommandError("Say why the checkpoints name another trail.")
        if problems := [*chain_problems(verify()), *guard.differences(connection)]:
            raise CommandError(" ".join([*problems, "That cannot be accepted: restore a sound copy."]))
        kept = read(None)
        if verify(kept).found is None:
            self.stdout.write("Nothing to accept: the checkpoints fit the trail.")
            return
        hashes = Entry.objects.filter(pk__lte=max(kept.by_entry, default=0)).values_list("pk", "hash")
        keeps = kept.kept_by({pk: digest for pk, digest in hashes.iterator() if pk in kept.by_entry})
        void = [one for one in sorted(kept.by_entry) if one > keeps]
        detail = {"keeps": keeps, "void": len(void), "first": void[:1], "last": void[-1:]}
        entry = append(Actor.system("verify"), "audit.accept", reason=reason[:500], detail=detail)
        checkpoints.sign(entry, keeps=keeps)
        self.stdout.write(
            f"Accepted: {len(void):,} checkpoint{pluralize(len(void))} no longer count{pluralize(len(void), 's,')}."
        )

    def sign(self, entry: Entry) -> None:
        """Sign the end of a trail that holds."""
        signed = checkpoints.sign(entry)
        self.stdout.write(f"Signed: entry {signed.pk:,} is the last one.")


def read(copy: Path | None) -> Checkpoints:
    """The checkpoints of this deployment, or of a copy, which must hold some."""
    kept = checkpoints.read(copy or checkpoints.default_file())
    if copy and not kept.by_entry:
        raise checkpoints.Unusable(f"{copy} is missing or empty.")
    return kept


def inspect(copy: Path | None) -> tuple[Verified, list[str]]:
    """What the whole check found; a file that cannot be used is a finding, and the chain is walked all the same."""
    try:
        kept, unusable = read(copy), []
    except checkpoints.Unusable as problem:
        kept, unusable = None, [str(problem)]
    checked = verify(kept)
    return checked, [*chain_problems(checked), *unusable, *guard.differences(connection), *cross_check()]


def hint(checked: Verified) -> str:
    """The one step after a restore, where that would explain what was found."""
    return ACCEPTING if checked.found and checked.found.may_be_accepted else ""


def chain_problems(checked: Verified) -> list[str]:
    return [str(checked.found)] if checked.found else []


def record(checked: Verified, problems: list[str]) -> Entry:
    """The check is itself an entry, so that pages and metrics say when the trail was last checked, and how far."""
    return append(
        Actor.system("verify"),
        "audit.verify",
        result="broken" if problems else "unbroken",
        detail={"entries": checked.entries, "last": checked.last.id, "hash": checked.last.hash}
        | ({"problem": " ".join(problems)} if problems else {}),
    )
