"""Canceling background jobs."""

import pytest
from django.core.management import call_command
from django.test import Client as Browser

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import Actor, Entry
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx


@pytest.fixture
def address(portal_service: Sandbox, servicer: Browser) -> str:
    """Return the address that cancels the servicer's waiting job."""
    given.loan(portal_service, given.borrower(portal_service))
    maker = Actor(id=User.objects.get(username="servicer").pk, name="Servicer")
    return f"/jobs/{start_job(refresh_portfolio, by=maker).pk}/cancel/"


def test_a_canceled_job_never_starts(servicer: Browser, address: str) -> None:
    assert "Canceled" in servicer.post(address, follow=True).content.decode()
    call_command("work", batch=True)
    assert (Job.objects.get().state, Job.objects.get().attempts) == ("cancelled", 0)


def test_an_htmx_request_returns_the_job_region(servicer: Browser, address: str) -> None:
    region = servicer.post(address, headers=htmx("job")).content.decode()
    assert region.lstrip().startswith('<div class="sd-job" id="job"')
    assert "Canceled" in region


def test_only_the_end_is_announced(servicer: Browser, address: str) -> None:
    assert (
        "data-announce"
        not in servicer.get(address.removesuffix("cancel/"), headers=htmx("job")).content.decode()
    )
    region = servicer.post(address, headers=htmx("job")).content.decode()
    assert f'data-announce="{refresh_portfolio.label}: Canceled"' in region


def test_a_cancellation_is_recorded_once(servicer: Browser, address: str) -> None:
    for _ in range(2):
        servicer.post(address)
    entry = Entry.objects.get(action="operations.cancel")
    assert (entry.actor_name, entry.subject_label) == ("Servicer (servicer)", refresh_portfolio.label)


def test_a_viewer_cannot_cancel_a_job(viewer: Browser, address: str) -> None:
    assert viewer.post(address).status_code == 403
    assert "Cancel</button>" not in viewer.get(address.removesuffix("cancel/")).content.decode()


def test_another_servicer_cannot_cancel_the_job(portal_service: Sandbox, address: str) -> None:
    Job.objects.update(actor_id=4711)
    browser = browser_of(Role.SERVICER)
    refused = browser.post(address)
    assert (refused.status_code, Job.objects.get().state) == (403, "waiting")
    assert (
        "Someone else started this job. Requires the supervisor or administrator role"
        in refused.content.decode()
    )
    assert "Cancel</button>" not in browser.get(address.removesuffix("cancel/")).content.decode()


@pytest.mark.parametrize("role", [Role.SUPERVISOR, Role.ADMIN])
def test_supervisors_and_admins_can_cancel_any_job(portal_service: Sandbox, address: str, role: Role) -> None:
    browser_of(role).post(address)
    assert Job.objects.get().state == "cancelled"
