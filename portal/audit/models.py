"""The audit trail's tables: append-only entries, views of records, writes and their states, calls to the service."""

import ipaddress
import os
import pwd
import re
import uuid
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from django.core.exceptions import SuspiciousOperation
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.http import HttpRequest, UnreadablePostError
from django.urls import reverse

from portal.accounts.models import User
from portal.accounts.roles import Role
from servicing.masking import masked_text

_SAVE_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, kw_only=True)
class Actor:
    """The actor as stored in every row, so that name and role stay readable after the account is deleted."""

    id: int | None = None
    name: str
    role: str = ""
    ip: str | None = None
    user_agent: str = ""
    request_id: str = ""
    save_id: str = ""
    """Identifies one rendering of a form, however often it is posted; empty without one."""

    @classmethod
    def of(cls, request: HttpRequest, person: Any = None) -> "Actor":
        """The person behind a request, or *anonymous*; pass ``person`` if the request doesn't know them yet."""
        person = person or getattr(request, "user", None)
        user = person if isinstance(person, User) else None
        return cls(
            id=user.pk if user else None,
            name=masked_text(user.audit_name())[:300] if user else "anonymous",
            role=user.role if user else "",
            ip=_plain_address(request.META.get("REMOTE_ADDR", "")),
            user_agent=masked_text(request.headers.get("User-Agent", "")[:300])[:300],
            request_id=getattr(request, "request_id", ""),
            save_id=_save_id(request),
        )

    @classmethod
    def system(cls, task: str) -> "Actor":
        return cls(name="system", role="system", request_id=f"{task}-{uuid.uuid4().hex[:8]}")

    @classmethod
    def operator(cls, command: str, name: str = "") -> "Actor":
        """The person who runs a command: the given name, else their user name in the operating system."""
        try:
            name = name.strip() or pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # A container's user may have only a number.
            name = f"user {os.getuid()}"
        return replace(cls.system(command), name=f"{masked_text(name)[:280]} (command line)")


def _plain_address(text: str) -> str | None:
    """An IP address in the form that every database returns; None if the server listens on a socket file."""
    try:
        return str(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return None


def _save_id(request: HttpRequest) -> str:
    """The ID in the form that was posted; a body that can't be read has none."""
    try:
        found = _SAVE_ID.fullmatch(request.POST.get("save_id", ""))
    except (SuspiciousOperation, UnreadablePostError):
        return ""
    return found[0] if found else ""


class AppendOnlyQuerySet(models.QuerySet["Entry"]):
    """A read-only query set; ``chain.append`` adds entries."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("Audit entries are append-only.")

    update = delete = bulk_create = bulk_update = update_or_create = _refuse


class Entry(models.Model):
    """One audit entry. A write has one *attempt* and exactly one *outcome*, joined by the intent's ID."""

    class Phase(models.TextChoices):
        EVENT = "event"
        ATTEMPT = "attempt"
        OUTCOME = "outcome"

    at = models.DateTimeField(db_index=True)
    actor_id = models.BigIntegerField(null=True, db_index=True)
    actor_name = models.CharField(max_length=300)
    actor_role = models.CharField(max_length=20, choices=[*Role.choices, ("system", "System")], blank=True)
    ip = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=300, blank=True)
    request_id = models.CharField(max_length=60, blank=True, db_index=True)
    action = models.CharField(max_length=60, db_index=True)
    phase = models.CharField(max_length=10, choices=Phase.choices, default=Phase.EVENT)
    intent_id = models.UUIDField(null=True)
    result = models.CharField(max_length=20, blank=True)
    subject_kind = models.CharField(max_length=20, blank=True)
    subject_uuid = models.CharField(max_length=64, blank=True, db_index=True)
    subject_label = models.CharField(max_length=300, blank=True)
    borrower_uuid = models.CharField(max_length=64, blank=True, db_index=True)
    reason = models.CharField(max_length=500, blank=True)
    changes = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    detail = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    previous_hash = models.CharField(max_length=64, unique=True)
    hash = models.CharField(max_length=64, unique=True)
    hash_format = models.PositiveSmallIntegerField(db_default=1)
    # Outside of the hash.
    save_id = models.UUIDField(null=True, help_text="Of the form that was posted; it counts once.")

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "entries"
        indexes = [
            models.Index(fields=["intent_id"], name="entries_of_a_write"),
            models.Index(
                fields=["save_id"], name="entries_of_a_form", condition=models.Q(save_id__isnull=False)
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["intent_id", "phase"],
                condition=models.Q(intent_id__isnull=False) & ~models.Q(phase="event"),
                name="one_attempt_and_one_outcome",
            )
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor_name} {self.action} {self.phase}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert the entry; updates fail."""
        super().save(*args, **(kwargs | {"force_insert": True}))

    def get_absolute_url(self) -> str:
        return reverse("audit:detail", args=[self.pk])

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Fail: entries can't be deleted."""
        raise TypeError("Audit entries are append-only.")


class PageView(models.Model):
    """How often a person opened a page about one thing within ten minutes; kept for ``PAGE_VIEW_DAYS``."""

    actor_id = models.BigIntegerField()
    actor_name = models.CharField(max_length=300)
    actor_role = models.CharField(max_length=20, choices=[*Role.choices, ("system", "System")], blank=True)
    request_id = models.CharField(max_length=60, blank=True, help_text="Of the first view.")
    page = models.CharField(max_length=60)
    subject_kind = models.CharField(max_length=20, blank=True)
    subject_uuid = models.CharField(max_length=64)
    subject_label = models.CharField(max_length=300, blank=True)
    borrower_uuid = models.CharField(max_length=64, blank=True)
    detail = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)
    shown = models.CharField(max_length=64, blank=True, help_text="The digest of the answer they saw last.")

    class Meta:
        ordering = ["-last_at", "-id"]
        indexes = [
            models.Index(fields=["subject_uuid", "actor_id", "first_at"], name="views_of_a_subject"),
            models.Index(fields=["borrower_uuid", "last_at"], name="views_of_a_borrower"),
            models.Index(fields=["actor_id", "last_at"], name="views_by_a_person"),
            models.Index(fields=["last_at"], name="latest_views"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name}, {self.count} times"


class WriteIntent(models.Model):
    """One intended change at the service, committed before the call and given one outcome after it."""

    class State(models.TextChoices):
        SENDING = "sending", "Sending"
        CONFIRMED = "confirmed", "Confirmed"
        REJECTED = "rejected", "Rejected"
        NOT_SENT = "not_sent", "Not sent"
        UNKNOWN = "unknown", "Outcome unknown"
        RELEASED = "released", "Not carried out"

    OPEN = [State.SENDING, State.UNKNOWN]
    WITHOUT_EFFECT = [State.REJECTED, State.NOT_SENT, State.RELEASED]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submit_id = models.CharField(max_length=64, unique=True)
    fingerprint = models.CharField(max_length=64, blank=True)
    record_key = models.CharField(
        max_length=90, blank=True, db_default="", help_text="The remote record that it changes."
    )
    operation = models.CharField(max_length=60)
    state = models.CharField(max_length=10, choices=State.choices, default=State.SENDING, db_index=True)
    label = models.CharField(max_length=300)
    reason = models.CharField(max_length=500, blank=True)
    subject_kind = models.CharField(max_length=20, blank=True)
    subject_uuid = models.CharField(max_length=64, blank=True)
    borrower_uuid = models.CharField(max_length=64, blank=True, db_index=True)
    actor_id = models.BigIntegerField(null=True, db_index=True)
    actor_name = models.CharField(max_length=300)
    request_id = models.CharField(max_length=60, db_index=True)
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=500)
    request_body = models.JSONField(null=True, encoder=DjangoJSONEncoder, help_text="Masked.")
    status = models.PositiveSmallIntegerField(null=True)
    message = models.TextField(blank=True, help_text="The service's own words.")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint"],
                condition=models.Q(state__in=["sending", "unknown"]) & ~models.Q(fingerprint=""),
                name="one_open_intent_for_equal_creations",
            ),
            models.UniqueConstraint(
                fields=["record_key"],
                condition=models.Q(state="sending") & ~models.Q(record_key=""),
                name="one_write_at_a_time_to_a_record",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.label}: {self.get_state_display()}"

    def get_absolute_url(self) -> str:
        return reverse("audit:write", args=[self.pk])

    @property
    def borrower_url(self) -> str:
        """The page of its borrower; empty without one."""
        return reverse("borrowers:detail", args=[self.borrower_uuid]) if self.borrower_uuid else ""


class RemoteCall(models.Model):
    """One call to the service, with masked bodies, for support. It isn't part of the chain."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    operation = models.CharField(max_length=60, db_index=True)
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=500)
    outcome = models.CharField(max_length=20, db_index=True)
    status = models.PositiveSmallIntegerField(null=True)
    duration_ms = models.PositiveIntegerField()
    tries = models.PositiveSmallIntegerField(default=1)
    request_id = models.CharField(max_length=60, db_index=True)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=300, blank=True)
    intent_id = models.UUIDField(null=True)
    error = models.TextField(blank=True)
    request_body = models.TextField(blank=True)
    answer_body = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["intent_id"], name="calls_of_a_write")]

    def __str__(self) -> str:
        return f"{self.operation} {self.status or self.outcome}"

    @property
    def origin_request_id(self) -> str:
        """The reference of the request or task that made the call: the call's own ID without its last part."""
        return self.request_id.rpartition("-")[0] or self.request_id

    @property
    def short_path(self) -> str:
        """The path with each uuid cut to its first eight characters."""
        return re.sub(r"(?<=/)([0-9a-f]{8})-[0-9a-f-]{27}(?=/|$)", r"\1", self.path)


class Outage(models.Model):
    """Circuit-breaker state: one row while the service is down."""

    since = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0, help_text="So many in a row got no answer.")
    ask_again_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.tries} tries without an answer"
