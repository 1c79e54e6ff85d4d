"""The book on a chosen day: which day that is, and every table of the page."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.db.models import Max, Q, Subquery
from django.http import Http404

from portal.portfolio import aging, cash, chart, forecast, owners, roll
from portal.portfolio.models import LATE, BookDay, BucketSum, Correction
from portal.records.query import NotUnderstood, calendar_day
from portal.ui import wording
from servicing.figures import ONE_DAY


@dataclass(frozen=True)
class Book:
    """What is on file of the book, and the day that was asked for."""

    first: date | None
    """The first day that is written; None if none is."""
    newest: date | None
    day: date
    written: dict[date, BookDay] = field(default_factory=dict)
    """The days on file that the page shows, by date."""
    problem: str = ""
    """Why the day that was asked for can't be shown, or another one is."""

    @property
    def chosen(self) -> BookDay | None:
        found = self.written.get(self.day)
        return found if found and not found.not_certain else None

    @property
    def before(self) -> date | None:
        return self.day - ONE_DAY if self.first and self.day > self.first else None

    @property
    def after(self) -> date | None:
        return self.day + ONE_DAY if self.newest and self.day < self.newest else None


def find_book(asked: str) -> Book:
    """The book on the day in a query string; without one on the newest."""
    day, problem = None, ""
    if asked:
        try:
            day = calendar_day(asked)
        except NotUnderstood as reason:
            problem = f"Day “{asked[:40]}” was ignored. {reason}"
    ends = {"first": Subquery(BookDay.objects.order_by("day").values("day")[:1])}
    ends["newest"] = Subquery(BookDay.objects.order_by("-day").values("day")[:1])
    # The roll may begin before the chart does, and the days of cash are among its days.
    until = {"day__lte": day} if day else {}
    found: Any = list(BookDay.objects.filter(**until).annotate(**ends).order_by("-day")[: chart.DAYS])
    if not found:
        first = BookDay.objects.order_by("day").values_list("day", flat=True).first()
        problem = f"The book begins on {wording.day(first)}." if first else problem
        return Book(first, BookDay.objects.aggregate(Max("day"))["day__max"], day or date.min, {}, problem)
    first, newest = found[0].first, found[0].newest
    day = day or newest
    written = {one.day: one for one in found if one.day > day - timedelta(days=chart.DAYS)}
    if day > newest:
        problem = (
            f"{wording.day(day)} isn’t over or isn’t written yet. The newest day is {wording.day(newest)}."
        )
    elif not problem and (day not in written or written[day].not_certain):
        problem = f"{wording.day(day)} can’t be told: it isn’t certain which answers were the latest."
    return Book(first, newest, day, written, problem)


@dataclass(frozen=True)
class Page:
    """Every table of a day."""

    book: Book
    chosen: BookDay
    figures: aging.Figures
    chart: chart.Chart | None
    roll: roll.Roll | None
    cash: cash.Cash
    outlook: forecast.Outlook | None
    owners: list[owners.Owner]
    corrected: int

    @property
    def iso(self) -> str:
        return self.chosen.day.isoformat()


def read_page(book: Book, chosen: BookDay) -> Page:
    day, since = chosen.day, chosen.roll_since
    is_on_chart = Q(day__range=[day - timedelta(days=chart.DAYS - 1), day], bucket__in=LATE)
    money = cash.read(day, book.written)
    sums = list(BucketSum.objects.filter(is_on_chart | Q(day__in=[one for one in (day, since) if one])))
    return Page(
        book=book,
        chosen=chosen,
        figures=aging.read(day, since, sums),
        chart=chart.read(day, book.written, sums),
        roll=roll.read(chosen),
        cash=money,
        outlook=forecast.read(day, money.came),
        owners=list(owners.read(day)),
        corrected=Correction.objects.filter(first_day__lte=day, last_day__gte=day)
        .values("kind", "uuid")
        .distinct()
        .count(),
    )


def known_book(asked: str) -> Book:
    """The book on a day that can be told; any other isn’t found."""
    book = find_book(asked)
    if not book.chosen:
        raise Http404(book.problem or "No day is written yet.")
    return book


def known_page(asked: str) -> Page:
    book = known_book(asked)
    return read_page(book, book.written[book.day])
