"""Snoozing an item of the attention list: for everyone, with a reason, until a date."""

from datetime import date, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import Entry, WriteIntent
from portal.home.models import Snooze
from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from tests import given


def days_from_now(days: int) -> date:
    return timezone.localdate() + timedelta(days=days)


def unknown_write(owner: Borrower, by: str = "servicer") -> WriteIntent:
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


def attention_items(browser: Browser, query: str = "") -> list[str]:
    """The sentences of the attention list."""
    cache.clear()
    return [item.sentence for item, _ in browser.get(f"/{query}").context["items"]]


class TestSnooze:
    def snooze(self, browser: Browser, key: str, **fields: Any) -> Any:
        day = days_from_now(fields.pop("days", 3))
        return browser.post(
            f"/attention/snooze/?item={key}", {"until": day, "reason": "they pay on Friday"} | fields
        )

    @pytest.fixture
    def key(self, portal_service: Sandbox, servicer: Browser) -> str:
        return f"write:{unknown_write(given.borrower(portal_service)).pk}"

    @pytest.mark.slow
    def test_a_snoozed_item_leaves_everyones_list(self, servicer: Browser, viewer: Browser, key: str) -> None:
        assert self.snooze(servicer, key).status_code == 303
        assert attention_items(servicer) == attention_items(viewer) == []
        page = servicer.get("/?show=snoozed").content.decode()
        assert "they pay on Friday" in page

    def test_snoozing_records_the_reason_in_the_audit_trail(self, servicer: Browser, key: str) -> None:
        self.snooze(servicer, key)
        entry = Entry.objects.get(action="home.snooze")
        assert entry.reason == "they pay on Friday"
        assert entry.subject_label == "Outcome unknown: an application for $40,000.00"

    @pytest.mark.slow
    def test_a_snoozed_item_returns_on_its_date(self, servicer: Browser, key: str) -> None:
        self.snooze(servicer, key)
        Snooze.objects.update(until=timezone.localdate())
        assert len(attention_items(servicer)) == 1

    @pytest.mark.slow
    def test_waking_an_item_returns_it_to_the_list(self, servicer: Browser, key: str) -> None:
        self.snooze(servicer, key)
        assert servicer.post("/attention/wake/", {"item": key}).status_code == 303
        assert len(attention_items(servicer)) == 1
        assert Entry.objects.filter(action="home.wake").count() == 1

    @pytest.mark.parametrize(
        "wrong", [{"days": 0}, {"days": -1}, {"days": 31}, {"reason": ""}, {"until": "x"}]
    )
    def test_an_invalid_date_or_missing_reason_is_rejected(
        self, servicer: Browser, key: str, wrong: dict[str, Any]
    ) -> None:
        assert self.snooze(servicer, key, **wrong).status_code == 422
        assert not Snooze.objects.exists()

    def test_an_unlisted_item_cannot_be_snoozed(self, servicer: Browser) -> None:
        assert self.snooze(servicer, "write:none").status_code == 404

    def test_a_viewer_cannot_snooze_or_wake_items(self, viewer: Browser, key: str) -> None:
        assert self.snooze(viewer, key).status_code == 403
        assert viewer.post("/attention/wake/", {"item": key}).status_code == 403
        assert "/attention/snooze/" not in viewer.get("/").content.decode()
