"""How a change of a borrower reaches the service: form, review, send once, follow.

Onboarding and profile edits are flows. Hides how a request that is repeated, blocked, rejected or not sent leads back
to the right page with what was typed.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from django.forms.boundfield import BoundField
from django.http import HttpResponse

from portal.audit.models import WriteIntent
from portal.audit.writes import AlreadySubmitted, Blocked, Write
from portal.borrowers.forms import LiveForm, SendForm
from portal.gateway.client import StaffRequest, client_for_write
from servicing import Client, InvalidInput, NotSent, Rejected


class Flow(ABC):
    """One change in one request. Subclasses define the pages and what is sent."""

    stays_on_review: ClassVar[type[Blocked]] = Blocked
    """The kind of block after which the review is shown again; others have an error page."""

    def __init__(self, request: StaffRequest) -> None:
        self.request = request

    @abstractmethod
    def show_review(self, final: Any = None, *, status: int = 200, **notice: Any) -> HttpResponse:
        """Show everything that would be sent, and the final form."""

    @abstractmethod
    def describe_write(self, final: Any) -> Write:
        """Describe the write for the audit trail."""

    @abstractmethod
    def call_service(self, client: Client, final: Any) -> None:
        """Send the one request."""

    @abstractmethod
    def show_rejection(self, error: InvalidInput | Rejected, final: Any) -> HttpResponse:
        """Show the form again with the reasons at their fields."""

    @abstractmethod
    def show_success(self, intent: WriteIntent) -> HttpResponse:
        """Redirect after a successful write."""

    @abstractmethod
    def follow(self, intent: WriteIntent) -> HttpResponse:
        """Redirect to the result of a write that this form already sent."""

    def send_once(self, final: SendForm) -> HttpResponse:
        """Send what was reviewed. Failures that can't be corrected here go to the error pages."""
        write = self.describe_write(final)
        try:
            self.call_service(client_for_write(self.request, write), final)
        except AlreadySubmitted as error:
            return self.follow(error.intent)
        except self.stays_on_review as error:
            return self.show_review(status=409, blocked_by=error.intent)
        except (InvalidInput, Rejected) as error:
            return self.show_rejection(error, final)
        except NotSent as error:
            return self.show_review(status=503, not_sent=error.message)
        return self.show_success(WriteIntent.objects.get(submit_id=write.submit_id))


def field_just_left(request: StaffRequest, forms: Iterable[LiveForm]) -> BoundField | None:
    """The field that HTMX wants checked; None for a date with empty boxes."""
    name = request.htmx.trigger_name or ""
    for field in (form[each] for form in forms for each in form.live_names):
        if field.html_name in (name, name.rpartition("_")[0]):
            return None if isinstance(field.data, list) and not all(field.data) else field
    return None
