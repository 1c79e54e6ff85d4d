"""Fingerprints of fetched statement documents, never their bytes, so that a later change shows."""

from django.db import models


class Fingerprint(models.Model):
    """One version of a line's statement for a date, at its position among those of that date."""

    line_uuid = models.CharField(max_length=64)
    billing_date = models.DateField()
    position = models.PositiveSmallIntegerField(default=1)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["first_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["line_uuid", "billing_date", "position", "sha256"], name="one_fingerprint_per_content"
            )
        ]

    def __str__(self) -> str:
        return f"{self.billing_date} {self.sha256[:8]}"
