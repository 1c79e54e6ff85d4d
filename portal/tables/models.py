"""Saved views: a list's filters under a name, for one person or for everyone."""

from django.conf import settings
from django.db import models
from django.urls import reverse

from portal.core.areas import areas, navigation


def list_names() -> dict[str, str]:
    """The names of the lists with saved views, by the names of their addresses."""
    found = {one.url_name: one.label for one in navigation() if one.url_name.endswith(":index")}
    return found | {name: label for area in areas() for name, label in area.lists.items()}


class SavedView(models.Model):
    """The saved state of a list, which is its query string."""

    list = models.CharField(max_length=50, help_text="The name of its address, such as borrowers:index.")
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2000, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "list", "name"], name="one_saved_view_per_name")
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """The address of the list in this state."""
        return f"{reverse(self.list)}?{self.query}"

    @property
    def list_name(self) -> str:
        return list_names().get(self.list, "")
