"""One document per person at a time, whichever process creates it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.utils import timezone

from portal.gateway import StaffRequest, error_page
from portal.jobs.models import Job
from portal.summaries.models import BackgroundPrint, Turn

# Longer than a request may take for a document; after that, its process must have died.
TURN_LIMIT = timedelta(seconds=90)
RETRY_SECONDS = 5


class Busy(Exception):
    """The person has a document under way already; ``earlier`` is it, if a job creates it."""

    def __init__(self, earlier: BackgroundPrint | None = None) -> None:
        super().__init__("one document at a time")
        self.earlier = earlier

    def page(self, request: StaffRequest) -> HttpResponse:
        """The refusal on screen."""
        response = error_page(request, "summaries/busy.html", 429, {"earlier": self.earlier})
        response["Retry-After"] = str(RETRY_SECONDS)
        return response


@contextmanager
def turn(person_id: int, background: type[BackgroundPrint]) -> Iterator[None]:
    """Create one document inside, or start a job that does; :class:`Busy` while another one is under way."""
    now = timezone.now()
    turns = Turn.objects.filter(person_id=person_id)
    turns.exclude(taken_at__range=(now - TURN_LIMIT, now)).delete()  # also where a clock was set back
    try:
        with transaction.atomic():
            Turn.objects.create(person_id=person_id, taken_at=now)
    except IntegrityError:
        raise Busy from None
    try:
        if earlier := background._default_manager.filter(actor_id=person_id, job__state__in=Job.OPEN).first():
            raise Busy(earlier)
        yield
    finally:
        turns.filter(taken_at=now).delete()
