"""The page of a day, the lists behind its numbers, and its files."""

import csv
import io
import re
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.urls import reverse
from pypdf import PdfReader

from portal.accounts.roles import Role
from portal.audit.models import Entry, PageView
from portal.collections.models import Promise
from portal.core.business_date import business_date
from portal.jobs.models import Job
from portal.jobs.queue import start_job, take
from portal.portfolio import demo
from portal.portfolio.models import BookDay, BucketSum, OwnerSum, RollCell
from portal.portfolio.tasks import write_days
from portal.records.models import Account
from tests.conftest import browser_of
from tests.portal import pages, spreadsheets
from tests.portal.collections.conftest import advance
from tests.portal.collections.test_collections import log_contact
from tests.portal.jobs.scripted import run_taken
from tests.portal.portfolio.conftest import Book, five_accounts, installment, run_job

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.fixture
def viewer(book: Book) -> Browser:
    return browser_of(Role.VIEWER)


def page(browser: Browser, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def text(browser: Browser, address: str) -> str:
    return pages.visible_text(page(browser, address).partition("<main")[2])


def links_of_lists(html: str) -> dict[str, str]:
    """The words of each link to a list of accounts, by address."""
    found = re.findall(r'<a href="(/portfolio/accounts/[^"]*)">(.*?)</a>', html, re.DOTALL)
    return {unescape(address): pages.visible_text(words) for address, words in found}


def payments_of_two_weeks(book: Book) -> Account:
    """Fourteen days with payments that were scheduled, due, promised, collected and returned."""
    book.add("one", installment(book.day(3)), installment(book.day(12)))
    loan, world = book.loans["one"], book.sandbox.world
    world.repayment(loan.uuid, amount="60.00", status="SCHEDULED", effective_date=str(book.day(12)))
    world.repayment(loan.uuid, amount="25.00", status="SCHEDULED", effective_date=str(book.day(9)))
    for number in range(1, 15):
        if number == 5:
            book.read()
            promise = {"amount": "500.00", "confirmed_amount": "500.00", "day": book.day(11).isoformat()}
            log_contact(browser_of(Role.SERVICER), loan, **promise)
        if number == 9:
            world.repayment(loan.uuid, amount="80.00", effective_date=str(book.day(10)))
            returned = world.repayment(loan.uuid, amount="33.00")
            world.bounce_payment(returned["uuid"], "R01 - Insufficient funds")
        book.end_day()
    return loan


class TestPage:
    def test_every_number_opens_a_list_with_that_many_rows_and_that_sum(
        self, book: Book, viewer: Browser
    ) -> None:
        five_accounts(book)
        for number in (3, 10):
            html = page(viewer, f"/portfolio/?day={book.day(number)}")
            links = re.findall(r'<a href="(/portfolio/accounts/[^"]*)">(.*?)</a>', html, re.DOTALL)
            assert len(links) > 10
            for address, words in links:
                shown = viewer.get(unescape(address))
                number_of, sums = shown.context["shown"].paginator.count, shown.context["sums"]
                for word in pages.visible_text(words).split():
                    if word.startswith("$"):
                        amount = Decimal(word.strip("$").replace(",", ""))
                        assert amount in sums.values(), (address, words)
                    elif word.isdigit():
                        assert int(word) == number_of, (address, words)

    def test_the_roll_adds_up_in_both_directions(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        for number in range(2, 11):
            answer = viewer.get(f"/portfolio/?day={book.day(number)}")
            roll = answer.context["page"].roll
            *buckets, before, new, total = roll.rows
            for row in roll.rows:
                opened, others = row.cells[:7], row.cells[8:]
                still = row.cells[7]
                assert still.number == sum(cell.number for cell in opened)
                assert row.total.number == still.number + sum(cell.number for cell in others)
                assert row.total.principal == still.principal + row.paid + sum(
                    cell.principal for cell in others
                )
            for place in range(len(before.cells)):
                assert before.cells[place].number == sum(row.cells[place].number for row in buckets)
                assert (
                    total.cells[place].principal == before.cells[place].principal + new.cells[place].principal
                )
            sums = BucketSum.objects.filter(day=book.day(number)).exclude(bucket="closed")
            assert total.cells[7].number == sum(one.number for one in sums)
            assert total.cells[7].principal == sum(one.principal for one in sums)

    def test_shares_have_their_denominators(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        shown = text(viewer, f"/portfolio/?day={book.day(3)}")
        assert "Past due $200.00 2 accounts, 5 of 5 known" in shown
        assert "Past due, of principal 40.0%" in shown
        assert "2 of 5 accounts, 40.0%" in shown

    def test_what_is_not_known_is_never_zero(self, book: Book, viewer: Browser) -> None:
        book.add("one", delinquent=True)
        book.add("two", installment(book.day(20)))
        book.end_day()
        shown = text(viewer, "/portfolio/")
        assert "0 accounts, 1 of 2 known" in shown
        assert "Not known 1 account 1 $1,000.00 —" in shown

    def test_cash_is_the_repayments_of_its_days(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        loan = book.loans["opened"]
        for amount in ("100.10", "20.05"):
            book.sandbox.world.repayment(loan.uuid, amount=amount, effective_date=str(book.day(11)))
        for more in ({"status": "Completed"}, {"payment_type": "REFUNDED"}, {"status": "SCHEDULED"}):
            book.sandbox.world.repayment(
                loan.uuid, **{"amount": "1.00", "effective_date": str(book.day(11)), **more}
            )
        book.end_day()
        cash = viewer.get("/portfolio/").context["page"].cash
        assert cash.sum.collected == Decimal("121.15")
        week = cash.weeks[-1]
        found = viewer.get(f"/repayments/?collected=yes&from={week.first}&to={week.last}").context["listing"]
        assert sum(one.amount for one in found.found) == week.collected

    def test_what_was_due_opens_its_payments(self, book: Book, viewer: Browser) -> None:
        book.add("one", installment(book.day(3)))
        book.sandbox.world.repayment(book.loans["one"].uuid, amount="40.00", effective_date=str(book.day(4)))
        for _ in range(9):
            book.end_day()
        week = viewer.get(f"/portfolio/?day={book.day(9)}").context["page"].cash.weeks[-1]
        assert (week.first, week.due, week.paid) == (book.day(3), Decimal(100), Decimal(40))
        found = viewer.get(f"/portfolio/payments/?list=due&from={week.first}&to={week.last}").context
        assert found["sums"] == {"unknown": 0, "amount": Decimal(100), "came": Decimal(40)}
        assert [row.record.uuid for row in found["rows"]] == [book.loans["one"].uuid]
        for query in ("", "?list=due", "?list=odd&from=2026-01-01&to=2026-01-02", "?list=due&from=x&to=y"):
            assert viewer.get(f"/portfolio/payments/{query}").status_code == 404

    @pytest.mark.parametrize(("days", "paid"), [(6, 40), (7, 0)])
    def test_a_payment_counts_for_a_due_up_to_six_days_before_it(
        self, book: Book, viewer: Browser, days: int, paid: int
    ) -> None:
        book.add("one", installment(book.day(3)))
        loan, day = book.loans["one"], book.day(3 + days)
        book.sandbox.world.repayment(loan.uuid, amount="40.00", effective_date=str(day))
        for _ in range(11):
            book.end_day()
        week = viewer.get(f"/portfolio/?day={book.day(9)}").context["page"].cash.weeks[-1]
        assert (week.first, week.due, week.paid) == (book.day(3), Decimal(100), Decimal(paid))

    def test_a_week_before_the_first_day_on_file_links_to_no_returned_payments(
        self, book: Book, viewer: Browser
    ) -> None:
        book.add("one", installment(book.day(3)))
        for _ in range(9):
            book.end_day()
        cash = viewer.get(f"/portfolio/?day={book.day(9)}").context["page"].cash
        links = re.findall(r"list=returned&amp;from=([\d-]+)", viewer.get("/portfolio/").content.decode())
        assert [week.returned is None for week in cash.weeks].count(True) > 0
        assert links == [str(week.first) for week in cash.weeks if week.returned is not None]

    def test_a_payment_is_of_one_due_only_the_oldest_first(self, book: Book, viewer: Browser) -> None:
        book.add("one", installment(book.day(3)), installment(book.day(6)), installment(book.day(8)))
        for amount, number in (("100.00", 6), ("30.00", 7), ("250.00", 8)):
            book.sandbox.world.repayment(
                book.loans["one"].uuid, amount=amount, effective_date=str(book.day(number))
            )
        for _ in range(10):
            book.end_day()
        week = viewer.get(f"/portfolio/?day={book.day(9)}").context["page"].cash.weeks[-1]
        assert (week.due, week.paid, week.collected) == (Decimal(300), Decimal(200), Decimal(380))
        address = f"/portfolio/payments/?list=due&from={week.first}&to={week.last}"
        assert {row.day: row.came for row in viewer.get(address).context["rows"]} == {
            book.day(3): 100, book.day(6): 100, book.day(8): 0,
        }  # fmt: skip

    def test_a_day_in_the_future_or_before_the_book_is_named(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        assert "isn’t over or isn’t written yet" in text(viewer, f"/portfolio/?day={book.day(99)}")
        assert "The book begins on" in text(viewer, "/portfolio/?day=2020-01-01")
        assert "was ignored" in text(viewer, "/portfolio/?day=someday")

    @pytest.mark.parametrize("path", ["accounts/", "print/", "export/", "accounts/export/", "print.pdf"])
    def test_no_list_or_file_is_of_a_day_in_the_future(self, book: Book, viewer: Browser, path: str) -> None:
        book.add("one", installment(book.day(20)))
        book.end_day()
        answer = viewer.get(f"/portfolio/{path}?day={book.day(99)}")
        if path == "accounts/":
            assert "isn’t over or isn’t written yet" in pages.visible_text(answer.content.decode())
        else:
            assert answer.status_code == 404
        assert viewer.get(f"/portfolio/?day={book.day(2)}").context["page"] is None

    def test_a_month_of_one_day_begins_with_the_last_of_the_month_before(
        self, book: Book, viewer: Browser
    ) -> None:
        """Both when the month is one day old, and when the book is."""
        book.add("one", installment(book.day(2)))
        book.end_day()
        assert viewer.get("/portfolio/").context["page"].roll is None
        while book.day(len(BookDay.objects.all())).day != 1:
            book.pass_days(1)
        first = BookDay.objects.latest("day").day
        roll = viewer.get("/portfolio/").context["page"].roll
        assert (roll.since, roll.day, roll.day.day) == (first - timedelta(days=1), first, 1)
        assert roll.rows[-1].total.number == 1

    def test_a_gap_is_named_and_never_drawn(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        BookDay.objects.filter(day=book.day(5)).update(not_certain=1)
        assert "can’t be told" in text(viewer, f"/portfolio/?day={book.day(5)}")
        html = page(viewer, f"/portfolio/?day={book.day(10)}")
        assert f'<a href="?day={book.day(4)}"><svg' in html
        assert "not certain" in html
        assert f'<a href="?day={book.day(5)}"><svg' not in html

    def test_without_accounts_it_says_so(self, book: Book, viewer: Browser) -> None:
        assert "No day on file yet" in text(viewer, "/portfolio/")
        assert "No day is written yet" in text(viewer, "/portfolio/accounts/")
        assert viewer.get("/portfolio/export/").status_code == 404
        advance(book.sandbox, 3)
        assert run_job().result == {"days": 0}
        assert "No day on file yet" in text(viewer, "/portfolio/")

    def test_of_days_written_later_nobody_knows_what_was_expected(self, book: Book, viewer: Browser) -> None:
        payments_of_two_weeks(book)
        book.pass_days(3)
        for number in (15, 16):
            answer = viewer.get(f"/portfolio/?day={book.day(number)}")
            assert (answer.context["page"].outlook, answer.context["page"].owners) == (None, [])
            cards = re.findall(r"<section.*?</section>", answer.content.decode(), re.DOTALL)
            words = [pages.visible_text(card) for card in cards]
            for title in ("Next 30 days", "By owner"):
                assert any(card.startswith(title) and "Not known for this day" in card for card in words)
            paper = text(viewer, f"/portfolio/print/?day={book.day(number)}")
            assert "Not known for this day: the next 30 days, and the work of each owner." in paper
        week = f"&from={book.day(16)}&to={book.day(45)}"
        assert not viewer.get(f"/portfolio/payments/?list=scheduled&day={book.day(15)}{week}").context["rows"]
        assert viewer.get("/portfolio/").context["page"].outlook.sum.scheduled

    def test_a_withdrawn_promise_is_not_counted_for_its_owner(self, book: Book, viewer: Browser) -> None:
        book.add("one", installment(book.day(1)))
        book.end_day()
        book.read()
        servicer = browser_of(Role.SERVICER)
        for _ in range(2):
            log_contact(servicer, book.loans["one"], amount="50.00")
        withdrawn = Promise.objects.latest("pk")
        servicer.post(reverse("collections:withdraw", args=[withdrawn.pk]), {"reason": "Logged twice"})
        book.end_day()
        (owner,) = OwnerSum.objects.filter(day=book.day(2))
        assert (owner.number, owner.promised) == (1, 1)

    def test_the_first_request_of_a_date_starts_the_job(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        Job.objects.all().delete()
        viewer.get("/portfolio/")
        assert not Job.objects.exists()
        advance(book.sandbox, 1)
        viewer.get("/portfolio/")
        viewer.get("/portfolio/")
        assert Job.objects.filter(name="portfolio.write_days").count() == 1

    def test_corrected_accounts_are_counted_and_listed(self, book: Book, viewer: Browser) -> None:
        book.add("one", installment(book.day(1)))
        for _ in range(3):
            book.end_day()
        book.say("one", installment(book.day(1), paid_on=book.day(1)))
        book.end_day()
        address = f"/portfolio/accounts/?day={book.day(2)}&bucket=open&corrected=yes"
        assert "The service has corrected 1 account since" in text(viewer, f"/portfolio/?day={book.day(2)}")
        assert viewer.get(address).context["shown"].paginator.count == 1
        assert "has corrected" not in text(viewer, "/portfolio/")

    def test_archived_accounts_have_a_column(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        gone = book.loans["paid later"]
        Account.objects.filter(pk=gone.pk).update(archived_at="2020-01-01T12:00Z")
        book.end_day()
        assert RollCell.objects.get(day=book.day(11), now="archived").number == 1
        html = page(viewer, "/portfolio/")
        assert "Archived" in html
        links = [address for address in links_of_lists(html) if "bucket=archived" in address]
        for address in links:
            found = viewer.get(address).context
            assert [row.state.uuid for row in found["rows"]] == [gone.uuid]
            assert found["sums"]["principal"] == 1000
        assert links


class TestPaymentLists:
    def test_every_sum_of_payments_opens_the_payments_it_adds_up(self, book: Book, viewer: Browser) -> None:
        payments_of_two_weeks(book)
        found: dict[str, int] = Counter()
        for number in (7, 9, 14):
            html = page(viewer, f"/portfolio/?day={book.day(number)}")
            for address, words in re.findall(
                r'<a href="(/(?:portfolio/payments|repayments)/[^"]*)">\s*(\$[^<]*)</a>', html
            ):
                shown = viewer.get(unescape(address)).context
                amount = Decimal(words.strip().strip("$").replace(",", ""))
                if "sums" in shown:
                    amounts, sums = [row.amount for row in shown["rows"]], set(shown["sums"].values())
                    assert amount in sums, (address, words)
                    assert shown["sums"]["amount"] == sum(amounts)
                    found[shown["found"].name] += bool(amount)
                else:
                    assert amount == sum(one.amount for one in shown["listing"].found), (address, words)
                    found["repayments"] += bool(amount)
        wanted = {"due", "returned", "promises", "scheduled", "unscheduled", "promised", "repayments"}
        assert {name for name, number in found.items() if number} == wanted

    def test_what_was_expected_on_a_day_stays_though_it_changes_later(
        self, book: Book, viewer: Browser
    ) -> None:
        loan = payments_of_two_weeks(book)
        address = f"/portfolio/payments/?day={book.day(9)}&from={book.day(10)}&to={book.day(39)}"
        for view, amount in (("scheduled", 60), ("unscheduled", 40), ("promised", 500)):
            shown = viewer.get(f"{address}&list={view}").context
            assert amount in [row.amount for row in shown["rows"]]
            assert {row.record.uuid for row in shown["rows"]} == {loan.uuid}
        for view in ("unscheduled", "promised"):
            later = f"/portfolio/payments/?day={book.day(14)}&from={book.day(15)}&to={book.day(44)}"
            assert not viewer.get(f"{later}&list={view}").context["rows"]

    def test_the_total_of_what_was_due_begins_with_the_book(self, book: Book, viewer: Browser) -> None:
        payments_of_two_weeks(book)
        total = viewer.get(f"/portfolio/?day={book.day(14)}").context["page"].cash.rows[-1]
        assert total.known_from == book.day(8)
        assert total.first < book.day(1)


class TestAccounts:
    @pytest.mark.parametrize(
        ("query", "chosen"),
        [
            ("bucket=any", "Open and closed accounts"),
            ("was=open&bucket=closed", "Closed"),
            ("bucket=archived", "Archived"),
            ("cured=yes&bucket=any", None),
        ],
    )
    def test_a_list_of_a_roll_names_its_own_bucket(
        self, book: Book, viewer: Browser, query: str, chosen: str | None
    ) -> None:
        five_accounts(book)
        html = page(viewer, f"/portfolio/accounts/?day={book.day(10)}&since={book.day(2)}&{query}")
        found = re.search(r'<select name="bucket".*?</select>', html, re.DOTALL)
        selected = re.findall(r"<option[^>]* selected>([^<]*)<", found[0]) if found else [None]
        assert selected == [chosen]

    def test_its_filters_are_saved_as_a_view_of_the_newest_day(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        address = f"/portfolio/accounts/?day={book.day(3)}&bucket=late&kind=loan"
        query = viewer.get(address).context["views"].query
        form = {"list": "portfolio:accounts", "name": "Late loans", "query": query}
        saved = viewer.post(reverse("saved_views:save"), form)
        assert saved.headers["Location"] == "/portfolio/accounts/?bucket=late&kind=loan"
        newest = viewer.get(saved.headers["Location"]).context
        assert newest["found"].day == book.day(10)
        assert newest["views"].current.name == "Late loans"


class TestFiles:
    def test_the_spreadsheet_has_a_sheet_for_each_table(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        answer = viewer.get("/portfolio/export/")
        file = b"".join(answer.streaming_content)  # type: ignore[arg-type]
        assert spreadsheets.cells_of(file)[1][:4] == ["Loans", "Current", Decimal(3), Decimal(2800)]
        assert spreadsheets.cells_of(file, 2)[0][0] == "Day"
        assert spreadsheets.cells_of(file, 3)[0][0] == "From"
        entry = Entry.objects.get(action="portfolio.export")
        assert entry.detail == {"day": str(book.day(10)), "table": "all"}

    def test_a_table_is_a_csv(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        answer = viewer.get(f"/portfolio/export/?day={book.day(3)}&table=aging")
        rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))
        late = next(row for row in rows if (row["Product"], row["Aging"]) == ("Loans", "1–29 days"))
        assert (late["Accounts"], late["Principal"], late["Past due"]) == ("2", "2000.00", "200.00")

    def test_the_accounts_of_a_day_are_a_file(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        answer = viewer.get(f"/portfolio/accounts/export/?day={book.day(3)}&bucket=late")
        rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))
        uuids = {book.loans[name].uuid for name in ("paid later", "returned")}
        assert {row["Account"] for row in rows} == uuids
        assert {row["Days past due"] for row in rows} == {"1"}
        entry: Any = Entry.objects.get(action="portfolio.export_accounts")
        assert entry.detail["rows"] == 2

    def test_the_payments_behind_a_sum_are_a_file(self, book: Book, viewer: Browser) -> None:
        payments_of_two_weeks(book)
        for query in ("list=due", "list=returned", f"list=scheduled&day={book.day(9)}"):
            query = f"?{query}&from={book.day(0)}&to={book.day(39)}"
            shown = viewer.get(f"/portfolio/payments/{query}").context
            answer = viewer.get(f"/portfolio/payments/export/{query}")
            rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))
            day = shown["found"].day_head
            assert [(row["Account"], row[day], Decimal(row["Amount"])) for row in rows] == [
                (row.uuid, str(row.day), row.amount) for row in shown["rows"]
            ]
            assert rows
            assert ("Of it came" in rows[0]) == bool(shown["found"].came)
        entry: Any = Entry.objects.filter(action="portfolio.export_payments").first()
        assert entry.detail["rows"] == len(rows)
        assert viewer.get("/portfolio/payments/export/?list=odd").status_code == 404

    def test_it_is_printed_on_two_pages(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        preview = text(viewer, f"/portfolio/print/?day={book.day(3)}")
        assert "1–29 days 2 $2,000.00 $200.00" in preview
        answer = viewer.get(f"/portfolio/print.pdf?day={book.day(3)}")
        printed = PdfReader(io.BytesIO(answer.content))
        assert len(printed.pages) == 2
        assert "Roll" in printed.pages[0].extract_text()
        assert "Cash by week" in printed.pages[1].extract_text()
        assert Entry.objects.get(action="summaries.print").detail["title"] == "Portfolio"
        assert viewer.get("/portfolio/print/?day=2020-01-01").status_code == 404

    def test_views_are_recorded(self, book: Book, viewer: Browser) -> None:
        five_accounts(book)
        viewer.get("/portfolio/")
        viewer.get("/portfolio/accounts/?bucket=late")
        labels = PageView.objects.filter(page="portfolio.index").values_list("subject_label", flat=True)
        assert set(labels) == {"the portfolio", "the accounts of a day"}


def test_the_job_is_named_on_the_status_page(book: Book) -> None:
    book.add("one", installment(book.day(20)))
    book.end_day()
    assert run_job().label == "Write the book"


class TestDemoPast:
    def test_the_days_of_a_demo_pass_and_are_written(
        self, book: Book, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        five_accounts(book)
        servicer = browser_of(Role.SERVICER)
        assert servicer.post("/portfolio/demo-past/").status_code == 404
        settings.DEBUG = True
        monkeypatch.setattr(demo, "PAST_DAYS", 3)
        assert "Add 90 days to this demo" in page(servicer, "/portfolio/")
        servicer.post("/portfolio/demo-past/")
        job = Job.objects.get(name="portfolio.demo_past")
        run_taken(job)
        job.refresh_from_db()
        assert (job.state, job.done, job.total) == ("done", 3, 3)
        assert business_date() == book.day(14)
        assert list(BookDay.objects.order_by("day").values_list("day", flat=True)) == [
            book.day(number) for number in range(1, 14)
        ]

    def test_a_day_that_a_worker_writes_is_waited_for(
        self, book: Book, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another worker has the job of writing, and loses it."""
        five_accounts(book)
        settings.DEBUG, settings.JOB_LEASE_SECONDS = True, 2
        monkeypatch.setattr(demo, "PAST_DAYS", 1)
        lost = take(start_job(write_days))
        browser_of(Role.SERVICER).post("/portfolio/demo-past/")
        run_taken(Job.objects.get(name="portfolio.demo_past"))
        assert lost
        lost.refresh_from_db()
        assert (lost.state, lost.attempts) == ("done", 2)
        assert Job.objects.filter(name="portfolio.write_days", state="failed").count() == 0
        assert BookDay.objects.latest("day").day == book.day(11)

    def test_viewers_may_not(self, book: Book, viewer: Browser) -> None:
        assert viewer.post("/portfolio/demo-past/").status_code == 403
