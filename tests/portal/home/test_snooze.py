"""Putting a line of the first page's list aside: for everybody, with a reason, up to a day."""

from datetime import date, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import Entry, WriteIntent
from portal.home.models import Snooze
from portal.registry.models import Record
from servicing.sandbox import Sandbox
from tests import given


def days_from_now(days: int) -> date:
    return timezone.localdate() + timedelta(days=days)


def unknown_write(owner: Record, by: str = "servicer") -> WriteIntent:
    return WriteIntent.objects.create(
        submit_id=f"{by}-once",
        operation="applications.submit",
        state=WriteIntent.State.UNKNOWN,
        label="an application for $40,000.00",
        borrower_uuid=owner.uuid,
        actor_id=User.objects.get(username=by).pk,
        actor_name=by,
        request_id="r-1",
        method="POST",
        path="/",
    )


def facts(browser: Browser, query: str = "") -> list[str]:
    """The lines of the list as they read."""
    cache.clear()
    return [item.sentence for item, _ in browser.get(f"/{query}").context["items"]]


class TestSnooze:
    def put_aside(self, browser: Browser, key: str, **fields: Any) -> Any:
        day = days_from_now(fields.pop("days", 3))
        return browser.post(
            f"/attention/snooze/?item={key}", {"until": day, "reason": "they pay on Friday"} | fields
        )

    @pytest.fixture
    def key(self, portal_service: Sandbox, servicer: Browser) -> str:
        return f"write:{unknown_write(given.borrower(portal_service)).pk}"

    def test_a_line_that_was_put_aside_leaves_everybodys_list(
        self, servicer: Browser, viewer: Browser, key: str
    ) -> None:
        assert self.put_aside(servicer, key).status_code == 303
        assert facts(servicer) == facts(viewer) == []
        page = servicer.get("/?show=snoozed").content.decode()
        assert "they pay on Friday" in page

    def test_it_leaves_one_audit_entry_with_its_reason(self, servicer: Browser, key: str) -> None:
        self.put_aside(servicer, key)
        entry = Entry.objects.get(action="home.snooze")
        assert entry.reason == "they pay on Friday"
        assert entry.subject_label == "Outcome unknown: an application for $40,000.00"

    def test_it_comes_back_on_its_day(self, servicer: Browser, key: str) -> None:
        self.put_aside(servicer, key)
        Snooze.objects.update(until=timezone.localdate())
        assert len(facts(servicer)) == 1

    def test_it_comes_back_when_somebody_wants_it(self, servicer: Browser, key: str) -> None:
        self.put_aside(servicer, key)
        assert servicer.post("/attention/wake/", {"item": key}).status_code == 303
        assert len(facts(servicer)) == 1
        assert Entry.objects.filter(action="home.wake").count() == 1

    @pytest.mark.parametrize(
        "wrong", [{"days": 0}, {"days": -1}, {"days": 31}, {"reason": ""}, {"until": "x"}]
    )
    def test_a_wrong_day_or_no_reason_is_refused(
        self, servicer: Browser, key: str, wrong: dict[str, Any]
    ) -> None:
        assert self.put_aside(servicer, key, **wrong).status_code == 422
        assert not Snooze.objects.exists()

    def test_a_line_that_is_not_there_cannot_be_put_aside(self, servicer: Browser) -> None:
        assert self.put_aside(servicer, "write:none").status_code == 404

    def test_it_needs_the_role(self, viewer: Browser, key: str) -> None:
        assert self.put_aside(viewer, key).status_code == 403
        assert viewer.post("/attention/wake/", {"item": key}).status_code == 403
        assert "/attention/snooze/" not in viewer.get("/").content.decode()
