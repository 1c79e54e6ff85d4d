"""Messages that may say what became of a write with a lost answer."""

from collections.abc import Iterator
from datetime import timedelta

from portal.audit.evidence import CREATED_KIND, MAX_SEARCHED, Evidence
from portal.audit.models import WriteIntent
from portal.messaging.models import Message
from servicing import ServicingError

CLOCK_DIFFERENCE = timedelta(minutes=1)
"""How far the service's clock may be behind ours."""


def messages_since(intent: WriteIntent) -> Iterator[Evidence]:
    """The first messages from after the attempt that aren't about payments."""
    found = Message.objects.filter(recorded_at__gte=intent.created_at - CLOCK_DIFFERENCE)
    if intent.operation not in CREATED_KIND:
        found = found.filter(subject_uuid=intent.subject_uuid)
    for message in found.exclude(event__startswith="payment.").order_by("recorded_at", "id")[:MAX_SEARCHED]:
        try:
            payload = message.received.payload
        except ServicingError:
            continue
        if isinstance(payload, dict):
            yield Evidence(
                f"Message: {message.event}", message.recorded_at, message.get_absolute_url(), payload
            )
