"""What somebody decided not to be reminded of for a while."""

from django.db import models


class Snooze(models.Model):
    """One line of the attention list, hidden from everybody up to a day, and who says why."""

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
