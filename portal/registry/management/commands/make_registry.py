"""Makes a registry of any size, to try searches and lists on it."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.registry.making import make
from portal.registry.models import Record


class Command(BaseCommand):
    """``manage.py make_registry --borrowers 1000000``"""

    help = "Invent borrowers with their people and accounts: under DEBUG, or into an empty registry."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--borrowers", type=int, required=True, help="how many")

    def handle(self, *args: Any, borrowers: int, **options: Any) -> None:
        if not settings.DEBUG and Record.objects.exists():
            raise CommandError("This registry holds records, and nothing invented comes among them.")
        make(borrowers, tell=lambda made: self.stdout.write(f"{made:,} borrowers"))
