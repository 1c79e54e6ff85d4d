"""The message list: live from the service, and from the saved copy."""

import json
import re
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Entry, Outage, RemoteCall
from portal.messaging.models import BankAccount, Day, Message
from portal.messaging.store import service_today, service_zone
from portal.records.models import Borrower, Kind, Repayment
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.messaging.conftest import START, emit
from tests.portal.pages import visible_text

DAY = timedelta(days=1)


def add_message(sandbox: Sandbox, event: str = "payment.succeeded", day: int = 3, **payload: Any) -> str:
    at = datetime(2026, 11, day, 18, tzinfo=UTC)
    created = sandbox.world.message(event, {"uuid": "p-1", "product": "LOC"} | payload, at=at)
    return str(created["uuid"])


def rows(browser: Browser, query: str = "", target: str = "messages") -> HttpResponse:
    return browser.get(f"/messages/{query}", headers=htmx(target))


def text(browser: Browser, query: str = "") -> str:
    return rows(browser, query).content.decode()


def list_ids(browser: Browser, query: str = "") -> list[str]:
    """Return the IDs in the list, in order."""
    return [part.partition('"')[0] for part in text(browser, query).split('data-message="')[1:]]


class TestLive:
    def test_the_list_shows_the_services_messages(self, viewer: Browser, portal_service: Sandbox) -> None:
        add_message(portal_service, amount=310, status="SUCCEEDED")
        page = viewer.get("/messages/").content.decode()
        for words in ("Payment succeeded", "$310.00", "Succeeded", "1 message", "at the service"):
            assert words in page

    def test_a_time_without_a_certain_zone_is_shown_as_sent(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        for hour, zone in ((17, "US/Pacific"), (16, "IST"), (15, "US/Pacific")):
            emit(portal_service, 1, at=datetime(2026, 11, 2, hour, 9, tzinfo=UTC), zone=zone)
        expected = ["12:09 PM", "21:39:00 IST", "10:09 AM"]
        for source in ("", "?source=copy"):
            page = text(viewer, source)
            assert page.count('<tr class="sd-group">') == 1
            times = re.findall(r'title="[^"]*"(?: aria-current="true")?>([^<]*)</a></th>', page)
            assert sorted(times) == sorted(expected)
            assert source or times == expected
            call_command("sync_messages", verbosity=0)
        uuid = Message.objects.order_by("-id")[0].uuid
        assert "2026-11-02 21:39:00 IST" in viewer.get(f"/messages/{uuid}/").content.decode()

    def test_uncertain_times_of_other_days_have_their_own_heading(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        for day in (9, 8, 4):
            emit(portal_service, 1, at=datetime(2026, 11, day, 10, tzinfo=UTC), zone="IST")
        page = text(viewer)
        assert re.findall(r'colspan="5">([^<]*)</th>', page) == [
            "Monday, Nov 9, 2026",
            "Wednesday, Nov 4, 2026",
        ]
        assert ">2026-11-08 15:30:00 IST<" in page

    def test_filters_are_sent_to_the_service(self, viewer: Browser, portal_service: Sandbox) -> None:
        rows(viewer, "?start_date=2026-11-02&end_date=2026-11-05&event=payment.failed&limit=50")
        (call,) = portal_service.calls
        assert call.query == {
            "start_date": "2026-11-02",
            "end_date": "2026-11-05",
            "event": "payment.failed",
            "limit": "50",
        }

    def test_each_view_makes_one_call(self, viewer: Browser, portal_service: Sandbox) -> None:
        viewer.get("/messages/")
        assert (len(portal_service.calls), RemoteCall.objects.count()) == (1, 1)

    def test_with_javascript_the_page_calls_no_service(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        viewer.cookies["js"] = "1"
        page = viewer.get("/messages/").content.decode()
        assert 'hx-trigger="load"' in page
        assert "Loading" in page
        assert portal_service.calls == []

    @pytest.mark.slow
    def test_paging_shows_each_message_once(self, service: Sandbox) -> None:
        emit(service, 130)
        browser, wanted = browser_of(Role.VIEWER), [one["uuid"] for one in service.world.messages()]
        for size in (25, 50, 100):
            pages = [
                list_ids(browser, f"?limit={size}&page={number}") for number in range(1, 130 // size + 2)
            ]
            assert [uuid for page in pages for uuid in page] == wanted

    @pytest.mark.parametrize(
        "fault", [{"status": 500}, {"html": True}, {"status": 400, "message": "limit is too large"}]
    )
    def test_a_failure_is_shown_above_the_last_messages(
        self, viewer: Browser, portal_service: Sandbox, fault: dict[str, object]
    ) -> None:
        uuid = add_message(portal_service)
        rows(viewer)
        portal_service.fail_next("messages.list", **fault)
        page = text(viewer)
        assert "Messages couldn’t be loaded" in page
        assert str(fault.get("message", "")) in page
        assert uuid in page
        assert "No message" not in page

    @pytest.mark.slow
    def test_without_javascript_a_slow_service_is_not_awaited(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        uuid = add_message(portal_service)
        rows(viewer)
        later = add_message(portal_service)
        portal_service.fail_next("messages.list", delay=2)
        page = viewer.get("/messages/").content.decode()
        assert "Messages couldn’t be loaded" in page
        assert (uuid in page, later in page) == (True, False)

    def test_an_empty_list_differs_from_no_matches(self, viewer: Browser, portal_service: Sandbox) -> None:
        assert "No messages yet" in text(viewer)
        assert "No messages match" in text(viewer, "?event=payment.failed")

    def test_the_filter_shows_event_labels(self, viewer: Browser, portal_service: Sandbox) -> None:
        page = " ".join(viewer.get("/messages/?event=payment.failed_after_success").content.decode().split())
        assert "Event: Payment returned after posting</summary>" in page
        assert '<span title="payment.failed_after_success">Payment returned after posting</span>' in page
        chips = page.partition('aria-label="Active filters"')[2]
        assert "Event: Payment returned after posting" in chips.partition("</div>")[0]

    def test_a_burst_of_one_event_is_one_row(self, viewer: Browser, portal_service: Sandbox) -> None:
        uuids = [
            add_message(portal_service, day=4),
            *[add_message(portal_service, "loan.frozen", day=2) for _ in range(3)],
        ]
        emit(portal_service, 12)
        page = text(viewer)
        assert "12 payments succeeded</span>, 1:00 PM – 1:11 PM" in " ".join(page.split())
        assert 'title="1:11:00 PM">1:11 PM</a>' in page
        assert (page.count("<details>"), "loans frozen" in page) == (1, False)
        assert len(list_ids(viewer)) == 16
        inside = list_ids(viewer)[5]
        assert inside not in uuids
        assert "<details open>" in text(viewer, f"?source=copy&message={inside}")
        assert "<details open>" not in text(viewer, f"?source=copy&message={uuids[0]}")

    def test_a_new_event_becomes_a_filter_option(self, viewer: Browser, portal_service: Sandbox) -> None:
        add_message(portal_service, "loan.frozen")
        text(viewer)
        assert 'value="loan.frozen"' in viewer.get("/messages/").content.decode()


class TestBadInput:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            ("start_date=2026-02-30", "That date doesn’t exist"),
            ("start_date=yesterday", "That date doesn’t exist"),
            ("start_date=0001-01-01", "Nothing is on file from before 1970"),
            ("start_date=1899-12-31", "Nothing is on file from before 1970"),
            ("start_date=2026-11-02&end_date=2026-11-01", "The end is before the start"),
            ("start_time=10:00", "Choose a day"),
            ("limit=0", "25, 50 or 100"),
            ("limit=-1", "25, 50 or 100"),
            ("limit=1000000000", "25, 50 or 100"),
            ("limit=many", "25, 50 or 100"),
            ("event=" + "x" * 101, "Not a valid value"),
            ("status=%00", "Not a valid value"),
            ("q=%7B%22payload%22%3A", "Not valid JSON"),
            ("q=%7B%22a%22%3A%5B1%5D%7D", "Lists can’t be searched"),
            ("q=ab", "at least 3 characters"),
            ("least=ten", "Enter an amount"),
            ("least=5&most=4", "Must be at least"),
            ("borrower=Nobody+at+all", "No borrower on file matches"),
            ("order=sideways", "not one of the available choices"),
        ],
    )
    def test_an_invalid_filter_shows_its_reason_and_the_list(
        self, viewer: Browser, portal_service: Sandbox, query: str, reason: str
    ) -> None:
        uuid = add_message(portal_service, amount=310)
        rows(viewer)
        answer = rows(viewer, f"?{query}")
        assert (answer.status_code, uuid in answer.content.decode()) == (422, True)
        assert reason in answer.content.decode()

    @pytest.mark.parametrize("query", ["least=ten", "q=ab", "start_time=10:00", "borrower=Nobody+at+all"])
    def test_an_invalid_field_is_marked(self, viewer: Browser, portal_service: Sandbox, query: str) -> None:
        assert 'aria-invalid="true"' not in text(viewer)
        assert 'aria-invalid="true"' in viewer.get(f"/messages/?{query}").content.decode()

    @pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 30, "beyond_x", "before_5", "beyond_" + "9" * 30])
    @pytest.mark.parametrize("source", ["", "copy"])
    def test_an_invalid_page_is_no_error(
        self, viewer: Browser, portal_service: Sandbox, source: str, page: str
    ) -> None:
        add_message(portal_service)
        assert rows(viewer, f"?source={source}&page={page}").status_code == 200


@pytest.mark.postgres
class TestCopy:
    @pytest.fixture(autouse=True)
    def _synced(self, portal_service: Sandbox) -> None:
        statuses = ("SUCCEEDED", "FAILED", "SCHEDULED")
        for number in range(40):
            portal_service.world.message(
                f"payment.{statuses[number % 3].lower()}",
                {
                    "uuid": f"p-{number}",
                    "product": ("LOAN", "LOC")[number % 2],
                    "status": statuses[number % 3],
                    "amount": 10 * number,
                    "nested": {"kind": "Ångström" if number % 5 == 0 else "other", "on": number % 4 == 0},
                },
                status=("SUCCESS", "FAILED")[number % 4 == 1],
                at=START - number * timedelta(hours=7),
            )
        call_command("sync_messages", verbosity=0)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("query", "keeps"),
        [
            ("status=FAILED", lambda m: m["status"] == "FAILED"),
            (
                "event=payment.failed&event=payment.scheduled",
                lambda m: m["event"] != "payment.succeeded",
            ),
            ("product=LOAN&payment=FAILED", lambda m: m["payload"]["status"] == "FAILED" and is_loan(m)),
            ("least=100&most=200", lambda m: 100 <= m["payload"]["amount"] <= 200),
            ("q=angstrom&start_date=2026-10-01", lambda m: m["payload"]["nested"]["kind"] != "other"),
            (
                'q={"payload":{"nested":{"on":true},"amount":80.0}}&start_date=2026-10-01',
                lambda m: m["payload"]["amount"] == 80,
            ),
            ("q=$240.00", lambda m: m["payload"]["amount"] == 240),
            ("q=240", lambda m: m["payload"]["amount"] == 240),
            ("q=240.0&order=", lambda m: m["payload"]["amount"] == 240),
            ("id=p-7", lambda m: m["payload"]["uuid"] == "p-7"),
            (
                "start_date=2026-11-02&end_date=2026-11-02&start_time=05:00&end_time=12:00&source=copy",
                lambda m: "2026-11-02 05" <= m["created_at"] <= "2026-11-02 12:00:99",
            ),
        ],
    )
    def test_each_filter_matches_the_service(
        self, viewer: Browser, portal_service: Sandbox, query: str, keeps: Any
    ) -> None:
        wanted = [one["uuid"] for one in portal_service.world.messages() if keeps(one)]
        assert wanted
        assert list_ids(viewer, f"?{query}&limit=50") == wanted
        assert list_ids(viewer, f"?{query}&limit=50&order=oldest") == wanted[::-1]

    def test_paging_forward_and_back_shows_each_message_once(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        wanted = [one["uuid"] for one in portal_service.world.messages()]
        first = rows(viewer, "?source=copy")
        second_query = parse_page_link(first.content.decode(), "next")
        second = rows(viewer, second_query)
        assert list_ids(viewer, "?source=copy") + list_ids(viewer, second_query) == wanted
        assert "26 to 40 of 40" in second.content.decode()
        assert list_ids(viewer, parse_page_link(second.content.decode(), "prev")) == wanted[:25]

    def test_the_summary_says_where_each_filter_ran(self, viewer: Browser, portal_service: Sandbox) -> None:
        Message.objects.filter(uuid=portal_service.world.messages()[3]["uuid"]).delete()
        page = viewer.get("/messages/?start_date=2026-01-01&status=FAILED").content.decode()
        shown = visible_text(page)
        assert "The service has 40 by date; 39 saved, 1 missing ." in shown
        assert "Messages 10" in shown

    def test_a_page_runs_at_most_eighteen_queries(
        self,
        viewer: Browser,
        portal_service: Sandbox,
        settings: LazySettings,
        django_assert_max_num_queries: Any,
    ) -> None:
        settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
        owner = given.borrower(portal_service)
        payload = {"uuid": "p-41", "borrower_bank_account_uuid": "account-1", "status": "SUCCEEDED"}
        portal_service.world.message("payment.succeeded", payload, at=START)
        call_command("sync_messages", verbosity=0)
        BankAccount.objects.create(uuid="account-1", borrower_uuid=owner.uuid, linked_by="servicer")
        Repayment.objects.create(uuid="p-3", account=given.account(Kind.LOAN, owner, "l-1"))
        viewer.get("/messages/?source=copy")
        # A message is about something that is not on file: it is looked for in each of the five tables.
        with django_assert_max_num_queries(18):
            page = viewer.get("/messages/?source=copy").content.decode()
        assert page.count(str(owner)) == 2
        Borrower.objects.filter(pk=owner.pk).update(name="")
        assert (
            text(viewer, "?source=copy").count(owner.uuid) == 2
        )  # On file without a name, as after an import.

    def test_an_incomplete_search_is_reported(
        self, viewer: Browser, portal_service: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "40 messages" in text(viewer, "?link=unlinked")
        monkeypatch.setattr("portal.messaging.query.MAX_SEARCHED", 5)
        for order in ("newest", "oldest"):
            page = text(viewer, f"?link=unlinked&order={order if order == 'oldest' else ''}")
            assert f"Only the {order} 5 messages from these days were searched" in page
            assert "5+ messages" in page

    def test_counts_are_exact_up_to_the_limit(
        self, viewer: Browser, portal_service: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for most, words in ((21, "20 messages"), (20, "20+ messages")):
            for module in ("query", "explorer"):
                monkeypatch.setattr(f"portal.messaging.{module}.MAX_COUNTED", most)
            assert f'data-announce="{words}' in text(viewer, "?product=LOAN")

    def test_a_page_past_the_end_differs_from_an_empty_list(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        for query in ("?page=9", "?product=LOAN&page=beyond_1_26"):
            assert "This page no longer exists" in text(viewer, query)

    def test_a_day_with_missing_messages_turns_amber(self, viewer: Browser, portal_service: Sandbox) -> None:
        query = "?source=copy&start_date=2026-11-01&end_date=2026-11-03"
        call_command("sync_messages", whole=True, verbosity=0)
        assert "sd-bar-missing" not in text(viewer, query)
        day = Day.objects.get(day=date(2026, 11, 2))
        Message.objects.filter(day=day.day).first().delete()
        assert text(viewer, query).count('class="sd-bar-missing"') == 1
        assert f"{day.claimed} reported, {day.claimed - 1} saved" in text(viewer, query)

    def test_exports_match_the_filters(self, viewer: Browser, portal_service: Sandbox) -> None:
        wanted = [one for one in portal_service.world.messages() if one["status"] == "FAILED"]
        lines = viewer.get("/messages/export/?status=FAILED&all=1&format=jsonl").getvalue().decode()
        assert [json.loads(line)["As received"] for line in lines.splitlines()] == json.loads(
            json.dumps(wanted, default=int)
        )
        live = viewer.get("/messages/export/?event=payment.failed&all=1&format=jsonl").getvalue().decode()
        assert live.count("\n") == 13
        entry = Entry.objects.filter(action="messaging.export").last()
        assert entry
        assert entry.detail["rows"] == len(wanted)

    def test_a_message_links_to_its_neighbors(self, viewer: Browser, portal_service: Sandbox) -> None:
        uuids = [one["uuid"] for one in portal_service.world.messages() if one["status"] == "FAILED"]
        page = text(viewer, f"?status=FAILED&message={uuids[1]}").replace("&amp;", "&")
        for key, uuid in (("k", uuids[0]), ("j", uuids[2])):
            link = page.partition(f' data-key="{key}"')[0].rpartition("<a ")[2]
            assert f'href="?status=FAILED&message={uuid}"' in link

    def test_new_messages_are_counted(self, viewer: Browser, portal_service: Sandbox) -> None:
        since = urlencode({"since": Message.objects.latest("stored_at").stored_at.isoformat()})
        add_message(portal_service, "payment.failed", day=20)
        add_message(portal_service, "payment.succeeded", day=20)
        assert "2 new, show" in rows(viewer, f"?{since}", "message-news").content.decode()
        assert (
            "1 new, show" in rows(viewer, f"?event=payment.failed&{since}", "message-news").content.decode()
        )
        portal_service.fail_next("messages.list", status=403)
        assert "Not responding" in rows(viewer, f"?{since}", "message-news").content.decode()


@pytest.mark.postgres
class TestText:
    """Text of the last 30 days or the chosen period, IDs and amounts of any age."""

    ID = "7D1F60C2-8A55-4E0E-9F0B-3A5C1E2D4B66"

    @pytest.fixture(autouse=True)
    def uuids(self, portal_service: Sandbox) -> list[str]:
        """Save messages of today, and of 40 and 400 days ago; return their IDs."""
        now = datetime.now(UTC)
        payload = {"uuid": self.ID.lower(), "amount": 1240.50, "memo": "spring rent", "fee": 7}
        for days in (0, 40, 400):
            portal_service.world.message("payment.succeeded", payload, at=now - days * DAY)
        call_command("sync_messages", verbosity=0)
        return [one["uuid"] for one in portal_service.world.messages()]

    @pytest.mark.parametrize(
        "typed", ["$1,240.50", "1240.5", "1240.50", "1,240.50", ID, ID.lower(), ID.replace("-", "")]
    )
    def test_ids_and_amounts_have_any_age(self, viewer: Browser, uuids: list[str], typed: str) -> None:
        assert list_ids(viewer, f"?{urlencode({'q': typed})}") == uuids
        assert list_ids(viewer, f"?{urlencode({'q': typed, 'status': 'FAILED'})}") == []

    @pytest.mark.parametrize(
        "typed", ["spring rent", '{"payload": {"memo": "Spring Rent", "fee": 7.00}}', "7"]
    )
    def test_text_is_searched_in_30_days_or_the_period(
        self, viewer: Browser, uuids: list[str], typed: str
    ) -> None:
        query = {"q": typed}
        assert list_ids(viewer, f"?{urlencode(query)}") == uuids[:1]
        assert "Text is searched in the last 30 days" in text(viewer, f"?{urlencode(query)}")
        query["start_date"] = f"{datetime.now(UTC) - 50 * DAY:%Y-%m-%d}"
        assert list_ids(viewer, f"?{urlencode(query)}") == uuids[:2]
        assert "Text is searched in the last 30 days" not in text(viewer, f"?{urlencode(query)}")

    @pytest.mark.parametrize("typed", [ID, ID.lower(), ID.replace("-", ""), f" {ID} "])
    def test_the_id_filter_takes_any_spelling(self, viewer: Browser, uuids: list[str], typed: str) -> None:
        assert list_ids(viewer, f"?{urlencode({'id': typed})}") == uuids


def read_page_link(browser: Browser, query: str, rel: str) -> str:
    """Return the address of the next or previous page."""
    page = text(browser, query).replace("&amp;", "&")
    return page.partition(f'rel="{rel}"')[0].rpartition('href="')[2].partition('"')[0]


def service_ids(sandbox: Sandbox) -> list[str]:
    return [one["uuid"] for one in sandbox.world.messages()]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("service", ["rows"], indirect=True)
def test_paging_the_copy_is_stable_across_an_outage(service: Sandbox) -> None:
    emit(service, 130)
    call_command("sync_messages")
    browser, wanted = browser_of(Role.VIEWER), service_ids(service)
    assert list_ids(browser, "?page=2") == wanted[25:50]
    service.stop()
    assert list_ids(browser, "?page=2") == wanted[25:50]
    next_page, previous = (read_page_link(browser, "?page=2", rel) for rel in ("next", "prev"))
    assert list_ids(browser, next_page) == wanted[50:75]
    beside = text(browser, "?page=2").partition(f'data-message="{wanted[30]}"')[2].partition('hx-get="')[2]
    service.start()
    Outage.objects.all().delete()  # Ends the pause after several failed tries.
    emit(service, 7, at=START + DAY)
    Message.objects.filter(uuid__in=service_ids(service)[:7]).delete()
    assert list_ids(browser, next_page) == wanted[50:75]
    assert list_ids(browser, previous) == wanted[:25]
    assert list_ids(browser, read_page_link(browser, next_page, "next")) == wanted[75:100]
    address = beside.partition('"')[0].replace("&amp;", "&")
    assert (list_ids(browser, address), "page=2" in address) == (wanted[25:50], True)
    assert list_ids(browser)[:7] == service_ids(service)[:7]


@pytest.mark.parametrize("service", ["pages"], indirect=True)
class TestIgnoredFilters:
    @pytest.fixture(autouse=True)
    def ignored(self, service: Sandbox) -> None:
        for days in range(3):
            emit(service, 30, at=START - days * DAY)
        at = START - DAY + timedelta(minutes=45)
        service.world.message("payment.failed", {"uuid": "p-45"}, at=at)
        call_command("sync_messages")
        names = ["start_date", "end_date", "event"]
        service.fail_next("messages.list", times=None, ignored_parameters=names)

    @pytest.mark.slow
    def test_the_portal_applies_ignored_filters(self, service: Sandbox) -> None:
        browser = browser_of(Role.VIEWER)
        wanted = [one["uuid"] for one in service.world.messages() if one["created_at"] < "2026-11-03"]
        query = "?end_date=2026-11-02"
        assert list_ids(browser, query) == wanted[:25]
        for words in (
            "The service ignores the date filter",
            "<b>61</b> match",
        ):
            assert words in text(browser, query)
        assert list_ids(browser, read_page_link(browser, query, "next")) == wanted[25:50]
        assert "ignores the date and event filter" in text(browser, f"{query}&event=payment.failed")
        assert len(list_ids(browser, f"{query}&event=payment.failed")) == 1
        assert "ignores" not in text(browser)

    def test_a_full_export_matches_the_filters(self, service: Sandbox) -> None:
        browser = browser_of(Role.VIEWER)
        for query, number in {"start_date=2026-11-03": 30, "end_date=2026-11-02": 61}.items():
            file = browser.get(f"/messages/export/?{query}&all=1&format=jsonl").getvalue().decode()
            assert file.count("\n") == number

    def test_days_are_not_marked_as_compared(self, service: Sandbox) -> None:
        Day.objects.all().delete()
        days = "start_date=2026-11-01&end_date=2026-11-02"
        page = browser_of(Role.VIEWER).post(f"/messages/check/?{days}", follow=True)
        assert "ignores dates" in page.content.decode()
        assert not Day.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("service", ["pages"], indirect=True)
def test_messages_gone_at_the_service_are_marked(service: Sandbox) -> None:
    emit(service, 5)
    emit(service, 1, at=START - DAY)
    call_command("sync_messages")
    lost, *_ = service_ids(service)
    call_command("sync_messages", whole=True)
    service.world.remove_message(lost)
    browser = browser_of(Role.SERVICER)
    days = "start_date=2026-11-02&end_date=2026-11-03"
    browser.post(f"/messages/check/?{days}")
    assert "1</b> gone at the service" not in text(browser, f"?source=copy&{days}")
    job = browser.post("/messages/sync/", {"whole": "1"})["Location"]
    call_command("work", batch=True)
    assert browser.get(job).status_code == 200
    page = text(browser, f"?source=copy&{days}")
    assert "All 5 of these days saved ; 1 gone at the service" in visible_text(page)
    assert "Not listed since" in browser.get(f"/messages/{lost}/").content.decode()
    assert (list_ids(browser, "?gone=gone"), list_ids(browser, f"?gone=gone&id={lost}")) == ([lost], [lost])
    assert list_ids(browser, "?gone=gone&event=payment.failed") == []
    assert 'href="?gone=gone"' in browser.get("/messages/").content.decode()
    assert "; 1 gone at the service" in browser.get("/messages/").content.decode()


def is_loan(body: dict[str, Any]) -> bool:
    return bool(body["payload"]["product"] == "LOAN")


def parse_page_link(page: str, rel: str) -> str:
    foot = page.partition(f'rel="{rel}"')[0].rpartition('href="')[2]
    return foot.partition('"')[0].replace("&amp;", "&")


@pytest.mark.postgres
class TestLiveExports:
    @pytest.fixture(autouse=True)
    def _messages(self, portal_service: Sandbox) -> None:
        emit(portal_service, 250)

    @pytest.mark.parametrize(("form", "pieces"), [("csv", 3), ("jsonl", 1)])
    def test_an_interrupted_export_ends_with_a_warning(
        self, viewer: Browser, portal_service: Sandbox, form: str, pieces: int
    ) -> None:
        """The pieces hold the first hundred messages; a CSV file starts with a BOM and a header."""
        answer = iter(viewer.get(f"/messages/export/?all=1&format={form}"))
        got = b"".join(islice(answer, pieces))
        portal_service.fail_next("messages.list", times=None, status=403)
        *_, last = (got + b"".join(answer)).decode().splitlines()
        assert "INCOMPLETE" in last
        assert "This file has 100 of 250 messages" in last

    @pytest.mark.slow
    def test_nothing_is_exported_with_a_filter_that_would_be_ignored(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        answer = viewer.get("/messages/export/?all=1&least=ten&status=FAILED", follow=True)
        assert answer.redirect_chain[-1][0].startswith("/messages/?")
        assert "Nothing was exported. Amount from:" in visible_text(answer.content.decode())
        assert not Entry.objects.filter(action="messaging.export").exists()

    def test_the_file_of_a_text_names_the_days_that_were_searched(
        self, viewer: Browser, portal_service: Sandbox
    ) -> None:
        start = service_today() - 29 * DAY
        for query, named in (
            ("q=payment", f"messages-since-{start}-until-"),
            ("status=FAILED", "messages-20"),
        ):
            answer = viewer.get(f"/messages/export/?all=1&{query}")
            assert f'filename="{named}' in answer["Content-Disposition"]

    @pytest.mark.slow
    def test_a_large_export_redirects_to_the_copy(
        self, viewer: Browser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("portal.messaging.explorer.MAX_LIVE_EXPORT", 200)
        answer = viewer.get("/messages/export/?all=1", follow=True)
        assert answer.redirect_chain == [("/messages/?source=copy", 303)]
        assert "Large exports use the local copy" in answer.content.decode()


@pytest.mark.parametrize(("link", "days"), [("Today", 1), ("7 days", 7)])
def test_the_link_of_a_period_has_as_many_days(
    viewer: Browser, portal_service: Sandbox, link: str, days: int
) -> None:
    noon = datetime.combine(service_today(), time(12), service_zone())
    first, before = (
        portal_service.world.message("payment.failed", {}, at=noon - number * DAY)["uuid"]
        for number in (days - 1, days)
    )
    query = viewer.get("/messages/").content.decode().partition(f">{link}<")[0].rpartition('href="')[2]
    assert list_ids(viewer, query.partition('"')[0].replace("&amp;", "&")) == [first]
    assert before in text(viewer)


def test_the_24_hour_link_excludes_older_messages(viewer: Browser, portal_service: Sandbox) -> None:
    now = datetime.now(UTC)
    new, old = (
        portal_service.world.message("payment.failed", {}, at=now - timedelta(hours=hours))["uuid"]
        for hours in (22, 26)
    )
    call_command("sync_messages", verbosity=0)
    query = viewer.get("/messages/").content.decode().partition(">24 h<")[0].rpartition('href="')[2]
    assert list_ids(viewer, query.partition('"')[0].replace("&amp;", "&")) == [new]
    assert old in text(viewer)
