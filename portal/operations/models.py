"""Permanent counts for the metrics over all processes: how often, and in which range of durations."""

from django.db import models


class Tally(models.Model):
    """How often one kind of thing ended in one way within one range of durations. It only grows."""

    kind = models.CharField(max_length=20, help_text="A request, or a call of the lending service.")
    name = models.CharField(max_length=100, help_text="The view, or the operation.")
    outcome = models.CharField(max_length=20)
    span = models.PositiveIntegerField(
        help_text="Took this many milliseconds at most; the longest has no end."
    )
    count = models.PositiveBigIntegerField(default=0)
    milliseconds = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "outcome", "span"], name="one_tally_of_each")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.outcome}: {self.count}"
