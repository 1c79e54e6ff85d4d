"""Drafts of borrowers being onboarded, until they are sent, discarded or too old.

Hides how long a draft lives, how it changes while another window is open, and that its report is loaded separately. No
EIN or SSN is saved: they are typed on the last step and go only into the request. The rest is personal, and a report
may hold an SSN, so both are stored encrypted.
"""

import hashlib
import json
import secrets
import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.urls import reverse
from django.utils import timezone

from portal.accounts.encryption import EncryptedBinaryField, EncryptedField
from portal.borrowers.reports import Report
from portal.ui.guard import number_problem

# The most times that a draft can be sent and still be found.
MAX_SENDINGS = 50
MAX_VALUE_CHARACTERS = 1_000
"""The longest value that a draft keeps of a field; more is an error in every field."""
PAGES = "pages"
"""In a draft's data, the page that last saved each step."""
REPORT_FIELDS = ("asset_report", "asset_report_name", "asset_report_size", "asset_report_compressed")


class Step(models.TextChoices):
    """The onboarding steps in order."""

    BUSINESS = "business", "Business"
    ADDRESS = "address", "Address"
    PEOPLE = "people", "Key people"
    REPORTS = "reports", "Reports"
    REVIEW = "review", "Review and send"

    @property
    def number(self) -> int:
        return list(Step).index(self) + 1

    @property
    def before(self) -> "Step | None":
        return list(Step)[self.number - 2] if self.number > 1 else None

    @property
    def after(self) -> "Step | None":
        return list(Step)[self.number] if self.number < len(Step) else None


class Drafts(models.Manager["Draft"]):
    """Drafts without their reports, which are loaded only to be sent."""

    def get_queryset(self) -> models.QuerySet["Draft"]:
        return super().get_queryset().defer("asset_report")

    def forget_old(self) -> int:
        """Delete drafts that nobody changed for the retention time; return how many."""
        limit = timezone.now() - timedelta(days=settings.DRAFT_DAYS)
        forgotten, _ = self.filter(updated_at__lt=limit).delete()
        return forgotten


class DraftChanged(Exception):
    """A step was saved from another page since this one was opened; ``latest`` is the draft as saved there."""

    def __init__(self, latest: "Draft") -> None:
        super().__init__("the draft changed")
        self.latest = latest


class Draft(models.Model):
    """One borrower being onboarded. Only its owner sees it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="drafts")
    submit_id = models.UUIDField(default=uuid.uuid4, help_text="Makes every page of this draft send once.")
    step = models.CharField(
        max_length=10, choices=Step.choices, default=Step.BUSINESS, help_text="Where to resume."
    )
    data = EncryptedField(default=dict, help_text="For each step the typed text of its forms.")
    refusal = EncryptedField(default=dict, help_text="Why the last sending was refused.")
    asset_report = EncryptedBinaryField(null=True, help_text="Compressed.")
    asset_report_name = EncryptedField(default=str, blank=True)
    asset_report_size = models.PositiveIntegerField(default=0)
    asset_report_compressed = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True, db_index=True)

    objects = Drafts()

    class Meta:
        ordering = ["-updated_at"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return self.url(Step(self.step))

    def url(self, step: Step) -> str:
        return reverse("borrowers:draft", args=[self.pk, step.value])

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> "Draft":
        found = super().from_db(db, field_names, values, **options)
        if "data" in field_names and found.data is None:  # The key was replaced, so it must be typed again.
            found.data, found.refusal = {}, {}
            found.asset_report_name, found.asset_report_size, found.asset_report_compressed = "", 0, 0
        return found

    @property
    def title(self) -> str:
        """The legal name, if it was typed."""
        return self.typed(Step.BUSINESS)[0].get("first_name", "").strip()[:300] or "Unnamed borrower"

    @property
    def step_label(self) -> str:
        return Step(self.step).label

    @property
    def is_saved(self) -> bool:
        return not self._state.adding

    def typed(self, step: Step) -> list[dict[str, str]]:
        """The text as typed in each form of a step."""
        return self.data.get(step) or [{}]

    def page_version(self, step: Step) -> str:
        """A version of a step for a page that shows it: what is saved, and the page itself."""
        return f"{self._digest(step)}.{secrets.token_hex(4)}"

    def _digest(self, step: Step) -> str:
        report = (self.asset_report_name, self.asset_report_size) if step == Step.REPORTS else None
        text = json.dumps([self.data.get(step), report], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _has_moved(self, step: Step, opened: str) -> bool:
        """Whether another page saved the step since a page of this version was opened."""
        digest, _, page = opened.partition(".")
        return bool(opened) and digest != self._digest(step) and page != self.data.get(PAGES, {}).get(step)

    def copy(self) -> "Draft":
        """Another new draft with the same contents."""
        own = {name: getattr(self, name) for name in ("owner_id", "step", "data", *REPORT_FIELDS)}
        return Draft.objects.create(pk=(new := uuid.uuid4()), submit_id=uuid.uuid5(new, ""), **own)

    def save_step(
        self,
        step: Step,
        rows: Iterable[Mapping[str, str]],
        *,
        resume_at: Step,
        report: Report | None = None,
        opened: str = "",
    ) -> "Draft":
        """Save what was typed on a step without EIN and SSN, and clear the service's rejections of it.

        Raises ``Draft.DoesNotExist`` if the draft was sent or discarded in between; saving doesn't bring it back.
        Raises :class:`DraftChanged` if another page saved the step since the page of version ``opened``.
        """
        with transaction.atomic():
            drafts = Draft.objects.select_for_update()
            if self.is_saved:
                latest, is_new = drafts.get(pk=self.pk), False
            else:
                first = {"owner": self.owner, "submit_id": uuid.uuid5(self.pk, "")}
                latest, is_new = drafts.get_or_create(pk=self.pk, defaults=first)
            short = [{k: v[:MAX_VALUE_CHARACTERS] for k, v in row.items()} for row in rows]
            kept = [{k: v for k, v in row.items() if not number_problem(v)} for row in short]
            if not is_new and kept != latest.data.get(step) and latest._has_moved(step, opened):
                raise DraftChanged(latest)
            latest.data[step] = kept
            if opened:
                latest.data[PAGES] = {**latest.data.get(PAGES, {}), step: opened.partition(".")[2][:8]}
            latest.refusal = {
                part: [row for row in found if row[0] != step] for part, found in latest.refusal.items()
            }
            latest.step = resume_at
            if report:
                latest.asset_report, latest.asset_report_name = report.compressed, report.name
                latest.asset_report_size = report.size
                latest.asset_report_compressed = len(report.compressed)
            latest.save()
        return latest

    def save_refusal(self, refusal: dict[str, list[Any]], *, resume_at: Step) -> None:
        """Save why the service or the client rejected it."""
        self.refusal, self.step, self.submit_id = refusal, resume_at, self._next_submit_id()
        self.save(update_fields=["refusal", "step", "submit_id", "updated_at"])

    def renew_submit_id(self) -> None:
        """Let it be sent again after an attempt without effect."""
        self.submit_id = self._next_submit_id()
        self.save(update_fields=["submit_id"])

    def _next_submit_id(self) -> uuid.UUID:
        """A submit ID derived from the draft's ID, so that the write can be found after the draft is gone."""
        return uuid.uuid5(self.pk, str(self.submit_id))


def submit_ids(draft_id: uuid.UUID) -> list[str]:
    """The submit IDs under which a draft may have been sent, one for each time."""
    ids = [uuid.uuid5(draft_id, "")]
    while len(ids) < MAX_SENDINGS:
        ids.append(uuid.uuid5(draft_id, str(ids[-1])))
    return [str(one) for one in ids]
