"""Messages that need attention."""

from datetime import timedelta
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse

from portal.accounts.models import User
from portal.core.business_date import business_date
from portal.messaging.models import DELIVERED, Message
from portal.records.query import midnight
from portal.ui import wording
from portal.ui.attention import Item, Items, Snoozed
from portal.ui.paging import MAX_COUNTED

RECENT_DAYS = 7


def undelivered_messages(snoozed: Snoozed, _user: User) -> Items:
    """Undelivered messages of the last days as one item, which a new message replaces with a new one."""
    since = business_date() - timedelta(days=RECENT_DAYS)
    # Most messages were delivered. The status index skips them, while "not equal" would read each.
    others = Q(status__gt="", status__lt=DELIVERED) | Q(status__gt=DELIVERED)
    found = Message.objects.listed().filter(others, recorded_at__gte=midnight(since))

    def item(newest: Message) -> Item:
        count = found[:MAX_COUNTED].count()
        statuses = sorted(found.order_by("status").values_list("status", flat=True).distinct())
        query = urlencode({"source": "copy", "status": statuses, "start_date": since}, doseq=True)
        return Item(
            key=_key(newest),
            state="warn",
            icon="webhook",
            fact=f"{count:,} message{'' if count == 1 else 's'} not delivered.",
            rest=f"Newest: {wording.event(newest.event) or 'no event'}",
            meta=f"since {wording.day(since)}, from the local copy",
            when=newest.created_at.at if newest.created_at else None,
            url=f"{reverse('messaging:index')}?{query}",
            verb="Show messages",
        )

    return Items([one for one in found[:1] if _key(one) not in snoozed], item, group="system")


def _key(newest: Message) -> str:
    return f"messages:{newest.pk}"
