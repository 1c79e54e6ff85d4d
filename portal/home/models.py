"""Snoozed items and pinned views of the home page."""

from django.conf import settings
from django.db import models

from portal.tables.models import SavedView


class Snooze(models.Model):
    """An item that is hidden for everyone until a day, with the reason."""

    key = models.CharField(max_length=100, unique=True, help_text="Which line; see portal.home.attention.")
    label = models.CharField(max_length=300)
    until = models.DateField(help_text="The day on which it comes back.")
    reason = models.CharField(max_length=200)
    by_id = models.BigIntegerField()
    by_name = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["until", "id"]

    def __str__(self) -> str:
        return self.label


class Pin(models.Model):
    """A saved view that somebody pinned to their home page."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    view = models.ForeignKey(SavedView, on_delete=models.CASCADE)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "view"], name="one_pin_per_view")]

    def __str__(self) -> str:
        return str(self.view)
