"""What staff have typed of a borrower that is being onboarded, until it is sent, discarded or too old.

Hides how long a draft lives and that its report is not read from the database with the rest. No draft ever holds an
EIN or an SSN: they are typed on the last step and go no further than the request.
"""

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone


class Step(models.TextChoices):
    """The steps of onboarding, in their order."""

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
    """Drafts without their reports, which are read when they are sent."""

    def get_queryset(self) -> models.QuerySet["Draft"]:
        return super().get_queryset().defer("asset_report")

    def forget_old(self) -> int:
        """Delete what nobody has touched for as long as drafts are kept, and say how many."""
        limit = timezone.now() - timedelta(days=settings.DRAFT_DAYS)
        forgotten, _ = self.filter(updated_at__lt=limit).delete()
        return forgotten


class Draft(models.Model):
    """One borrower in the making. Only its owner sees it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="drafts")
    submit_id = models.UUIDField(default=uuid.uuid4, help_text="Makes every page of this draft send once.")
    step = models.CharField(
        max_length=10, choices=Step.choices, default=Step.BUSINESS, help_text="Where to resume."
    )
    data = models.JSONField(default=dict, help_text="For each step the typed text of its forms.")
    refusal = models.JSONField(default=dict, help_text="Why the last sending was refused.")
    asset_report = models.BinaryField(null=True, help_text="Compressed.")
    asset_report_name = models.CharField(max_length=255, blank=True)
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
        """Where to resume."""
        return self.url(Step(self.step))

    @property
    def title(self) -> str:
        """The legal name, as far as there is one."""
        return self.typed(Step.BUSINESS)[0].get("first_name", "").strip()[:300] or "Unnamed borrower"

    def typed(self, step: Step) -> list[dict[str, str]]:
        """For each form of a step what was typed, as it was typed."""
        return self.data.get(step) or [{}]

    @property
    def step_label(self) -> str:
        """The name of the step to resume at."""
        return Step(self.step).label

    @property
    def is_kept(self) -> bool:
        """Whether there is a row of it yet."""
        return not self._state.adding

    def url(self, step: Step) -> str:
        """The address of one of its steps."""
        return reverse("borrowers:draft", args=[self.pk, step.value])
