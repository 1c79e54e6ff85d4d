"""Where the code of a printed document leads. All that is known of the document stands in its audit entry."""

from django.db import models
from django.urls import reverse

from portal.audit.models import Entry


class Printed(models.Model):
    """One document that was handed out, by the code that its pages carry."""

    code = models.CharField(max_length=24, primary_key=True)
    entry = models.OneToOneField(Entry, on_delete=models.PROTECT)

    class Meta:
        verbose_name_plural = "printed"

    def __str__(self) -> str:
        return self.code

    def get_absolute_url(self) -> str:
        """The page that tells what it is."""
        return reverse("summaries:verify", args=[self.code])
