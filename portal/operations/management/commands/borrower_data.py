"""Writes everything that is kept of one borrower, for a person who asks for it."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any, Final

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import BinaryField, Model, Q, QuerySet

from portal.accounts.encryption import EncryptedField
from portal.approvals.models import Approval
from portal.audit.chain import append
from portal.audit.models import Actor, RemoteCall
from portal.home.models import Snooze
from portal.messaging.models import Message
from portal.messaging.query import borrower_condition
from portal.records.models import Account, Application, Borrower, KeyPerson, Repayment

RECORDS: Final = (KeyPerson, Application, Account, Repayment)
TEXT_FIELDS: Final = {RemoteCall: "path", Snooze: "key"}
"""The field of these models that has an ID within a text."""


class Command(BaseCommand):
    """``manage.py borrower_data UUID``"""

    help = "Write everything kept of one borrower as JSON, without encrypted values. The audit trail says so."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("uuid", help="the borrower's ID")

    def handle(self, *args: Any, uuid: str, **options: Any) -> None:
        found = {label: rows for label, rows in tables(uuid) if rows}
        if not found:
            raise CommandError(f"Nothing is kept of a borrower {uuid}.")
        append(
            Actor.operator("borrower_data"),
            "operations.borrower_data",
            subject_kind="borrower",
            subject_uuid=uuid,
            borrower_uuid=uuid,
            subject_label=str(Borrower.objects.filter(uuid=uuid).first() or uuid[:8]),
            detail={"rows": sum(map(len, found.values()))},
        )
        json.dump(found, self.stdout, cls=DjangoJSONEncoder, indent=1, ensure_ascii=False)
        self.stdout.write("")


def tables(uuid: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows of each table that are about a borrower, its people and its accounts."""
    ids = {uuid}
    for record in RECORDS:
        ids.update(record._default_manager.filter(borrower_uuid=uuid).values_list("uuid", flat=True))
    for model in apps.get_models():
        yield model._meta.label_lower, rows_of(model, uuid, ids)


def rows_of(model: type[Model], uuid: str, ids: set[str]) -> list[dict[str, Any]]:
    found = condition(model, uuid, ids)
    for field in model._meta.concrete_fields:
        # A row without an ID of its own, such as an earlier answer, belongs to the row that it refers to.
        if not found and field.related_model and (of_parent := condition(field.related_model, uuid, ids)):
            parents = field.related_model._default_manager.filter(of_parent)
            found = Q(**{f"{field.name}__in": parents})
    return list(readable(model._default_manager.filter(found))) if found else []


def condition(model: Any, uuid: str, ids: set[str]) -> Q:
    """The condition that a row is about the borrower; empty if its table isn't about borrowers."""
    if model is Message:
        return borrower_condition(uuid)
    names = {field.name for field in model._meta.concrete_fields}
    found = Q()
    for name in names:
        if name == "uuid" or name.endswith("_uuid"):
            found |= Q(**{f"{name}__in": ids})
    if text := TEXT_FIELDS.get(model):
        found |= reduce(or_, (Q(**{f"{text}__contains": one}) for one in sorted(ids)))
    return found


def readable(found: QuerySet[Any]) -> QuerySet[Any, dict[str, Any]]:
    """The rows without what is stored encrypted or as a file."""
    fields = found.model._meta.concrete_fields
    names = [field.attname for field in fields if not isinstance(field, EncryptedField | BinaryField)]
    if found.model is Approval:
        names.remove("sealed")
    return found.order_by("pk").values(*names)
