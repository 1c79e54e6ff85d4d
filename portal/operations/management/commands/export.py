"""Writes a list to a file, for scheduled reports: the rows and columns that a person sees on screen."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q
from django.http import StreamingHttpResponse
from django.test import RequestFactory
from django.urls import resolve, reverse

from portal.accounts.models import User
from portal.tables.models import SavedView

LISTS = ["borrowers", "applications", "loans", "credit_lines", "repayments", "collections"]
FORMATS = ["csv", "jsonl", "xlsx"]


class Command(BaseCommand):
    """``manage.py export --list loans --view NAME --as USERNAME``"""

    help = "Write a list or a saved view to a file. The audit trail names the person in --as."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--list", choices=LISTS, required=True)
        parser.add_argument(
            "--view", default="", help="a saved view, their own or shared (default: all rows)"
        )
        parser.add_argument("--format", choices=FORMATS, default="csv")
        parser.add_argument(
            "--as", dest="username", required=True, help="the person whose columns, views and role apply"
        )
        parser.add_argument(
            "--output", type=Path, help="a file, replaced when complete (default: standard output)"
        )

    def handle(self, *args: Any, username: str, output: Path | None, **options: Any) -> None:
        person = User.objects.filter(username=username, is_active=True).first()
        if person is None:
            raise CommandError(f"No active account is named {username}.")
        if output and output.is_dir():
            raise CommandError(f"{output} is a folder. Name a file.")
        listed = options["list"]
        query = _query_of(f"{listed}:index", options["view"], person) if options["view"] else ""
        address = f"{reverse(f'{listed}:export')}?all=1&format={options['format']}&{query}"
        request = RequestFactory().get(
            address, headers={"User-Agent": "manage.py export"}, REMOTE_ADDR="", SERVER_NAME="localhost"
        )
        request.user = person
        view = resolve(request.path)
        try:
            answer = cast(StreamingHttpResponse, view.func(request, *view.args, **view.kwargs))
        except PermissionDenied as error:
            raise CommandError(f"{username} can’t export this list. {error}") from None
        if output is None:
            sys.stdout.buffer.writelines(cast(Any, answer.streaming_content))
            return
        unfinished = output.with_name(f"{output.name}.part")
        try:
            with open(os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                file.writelines(cast(Any, answer.streaming_content))
            unfinished.replace(output)
        except OSError as problem:
            raise CommandError(f"{output} cannot be written: {problem.strerror}.") from None
        self.stdout.write(f"Written: {output}, {output.stat().st_size:,} bytes.")


def _query_of(name: str, view: str, person: User) -> str:
    """The query string of a saved view; a person's own view comes before a shared one."""
    visible = SavedView.objects.filter(Q(owner=person) | Q(is_shared=True), list=name, name=view)
    found = visible.filter(owner=person).first() or visible.first()
    if found is None:
        raise CommandError(f"{person.username} has no view named {view} in this list.")
    return found.query
