"""How long earlier answers are kept: as many days as the setting says, of each record the newest one always."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from portal.registry.models import Snapshot


def forget_old_snapshots() -> int:
    """Delete the snapshots that are older, and say how many; what a record said last before now stays."""
    limit = timezone.now() - timedelta(days=settings.SNAPSHOT_DAYS)
    newer = Snapshot.objects.filter(record=OuterRef("record"), at__gt=OuterRef("at"))
    forgotten, _ = Snapshot.objects.filter(Exists(newer), at__lt=limit).delete()
    return forgotten
