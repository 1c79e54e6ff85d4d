"""CPU of each page beside a bare view of the same rows, signed in behind the same middleware of the same process.

CPU time of the thread that answers, taken in turns, compressed, with deployed static files: a ratio of two holds on a
busy machine too. Django's admin stands beside the lists twice, plain and tuned. Each page is also measured as a lone
person meets it, with empty caches; one page at a hundred depths of the call stack.
"""

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.deployment import DEPLOYED, environment, free_port, prepare
from tests.bench.plain import bare
from tests.bench.table import Row, at_most, compared, timed

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "15"))
COLUMNS = ["label", "subtype", "state", "city", "past_due", "status", "updated_at"]
DEPTHS = range(0, 200, 2)
COLD_TIMES, ADMIN_TIMES = 2, 0.8
DJANGO = "admin"
"""The engine with Django's own templates of its admin: the portal's have a lighter frame."""


class Page(NamedTuple):
    """A page, how often it may take the CPU of the bare view, and the region if only that is asked for."""

    address: str
    limit: float
    target: str = ""
    kind: str = ""
    """The kind of its rows, if the admin has a list of the same."""
    why: str = ""
    """The reason, where it is missed."""


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        settings = environment(folder, free_port()) | DEPLOYED | {"ALLOWED_HOSTS": "testserver"}
        os.environ |= settings | {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "portal.settings"}
        import django

        django.setup()
        from portal.gunicorn import GC_THRESHOLD
        from portal.runtime.stack import with_large_frame

        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        return with_large_frame(measured)()


def measured() -> list[Row]:
    add_promises()
    lists = {page.kind for page in PAGES.values() if page.kind}
    add_references(lists)
    browser = signed_in()
    pages = PAGES | accounts()
    found = [row for name, page in pages.items() for row in beside_references(browser, name, page)]
    return [*found, *(cold(browser, name, page) for name, page in pages.items()), depths(browser)]


ADDED_UP = (
    "beside the rows it adds up months, statuses or aging, whose statements take longer to build than to run, and a row"
    " has twice the parts of another list's."
)
WHOLE_BORROWER = (
    "it decodes every account with its repayments for the timeline and the data checks, and draws thirteen cards and"
    " tabs."
)
WHOLE_SCHEDULE = (
    "the chart draws every installment, and the figures need the whole schedule read: a quarter of it."
)
ROWS = "a third of it draws the cells of 25 rows, a quarter finds them; the bare view is no longer much below it."
FRAME = "the same rows stand in a page with filters, views, columns, files, and a navigation with what waits."
COLD = (
    "a page that nobody asked for lately counts what waits and measures the service's health for its frame."
)
PAGES = {
    "home": Page("/", 4),
    "borrowers": Page("/borrowers/", 4, kind="borrower"),
    "borrowers, rows alone": Page("/borrowers/", 3, target="borrower-rows", why=ROWS),
    "borrowers of a year": Page("/borrowers/?from=2026-01-01&to=2026-12-31", 4),
    "loans": Page("/loans/", 4, kind="loan"),
    "lines of credit": Page("/lines/", 4, kind="line"),
    "applications": Page("/applications/", 4, kind="application"),
    "repayments": Page("/repayments/", 4, kind="repayment", why=ADDED_UP),
    "collections": Page("/collections/", 5, why=ADDED_UP),
    "messages": Page("/messages/", 4),
    "search": Page("/search/?q=llc", 4),
    "suggestions": Page("/search/?q=llc", 3, target="suggestions"),
}


def accounts() -> dict[str, Page]:
    """The borrower with the most accounts, the loan with the longest schedule, and a line."""
    from django.db.models import Count
    from django.db.models.functions import Length

    from portal.registry.models import Kind, Record

    read = Record.objects.filter(kind__in=[Kind.LOAN, Kind.LINE]).exclude(answer="")
    owner = read.order_by().values("borrower_uuid").annotate(n=Count("pk")).order_by("-n", "borrower_uuid")[0]
    loan = read.filter(kind=Kind.LOAN).order_by(Length("answer").desc()).first()
    line = read.filter(kind=Kind.LINE).order_by("uuid").first()
    assert loan, "the service was seeded with loans"
    assert line, "and with lines"
    return {
        "borrower": Page(f"/borrowers/{owner['borrower_uuid']}/", 5, why=WHOLE_BORROWER),
        "loan of 360 rows": Page(loan.get_absolute_url(), 6, why=WHOLE_SCHEDULE),
        "loan with all rows": Page(f"{loan.get_absolute_url()}?rows=all", 20),
        "line of credit": Page(line.get_absolute_url(), 5),
    }


def add_promises() -> None:
    """Every other account that is past due has a promise: for today, or for another day."""
    from django.utils import timezone

    from portal.collections.models import Channel, Contact, Outcome, Promise
    from portal.registry.models import IS_LATE, Record
    from portal.runtime.business_date import business_date

    today, now = business_date(), timezone.now()
    by = {"person": "Owner, (555) 010-0199", "author_id": 1, "author_name": "Sam", "day": today}
    for number, one in enumerate(Record.objects.filter(IS_LATE).order_by("pk")[::2]):
        of = {"borrower_uuid": one.borrower_uuid, "account_kind": one.kind, "account_uuid": one.uuid}
        contact = Contact.objects.create(channel=Channel.PHONE, outcome=Outcome.PROMISED, **of, **by)
        on = {"day": today + timedelta(days=number % 3), "logged_on": today, "logged_at": now}
        Promise.objects.create(contact=contact, account_uuid=one.uuid, amount=500, **on)


def add_references(kinds: set[str]) -> None:
    """Serve the bare view and the admin's lists, for whoever is signed in to the portal."""
    from django.conf import settings
    from django.contrib import admin
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import path

    from portal.accounts.admin import site
    from portal.accounts.models import User
    from portal.registry.models import Record
    from portal.registry.records import active_records

    processors = settings.TEMPLATES[0]["OPTIONS"]["context_processors"][:3]
    engine = "django.template.backends.django.DjangoTemplates"
    options = {"context_processors": processors}
    settings.TEMPLATES.append({"NAME": DJANGO, "BACKEND": engine, "APP_DIRS": True, "OPTIONS": options})
    site.register(Record, admin.ModelAdmin)  # Its addresses are read with the others.
    import portal.urls

    draw = bare(active_records("borrower").order_by("-updated_at", "-id").values_list(*COLUMNS))
    addresses = [path("bench/bare/", lambda request: HttpResponse(draw()))]
    plain: dict[str, Any] = {"list_filter": ["kind", "state"], "search_fields": ["search_text"]}
    root = User.objects.get(username="admin")
    for kind in kinds:
        for way, options in (("plain", plain), ("tuned", {"show_full_result_count": False})):

            class Listed(admin.ModelAdmin[Record]):
                list_display, list_per_page, ordering = COLUMNS, 25, ["-updated_at"]

                def has_view_permission(self, *_: Any) -> bool:
                    return True

                def get_queryset(self, request: HttpRequest, kind: str = kind) -> QuerySet[Record]:
                    return active_records(kind)

            page = type("Listed", (Listed,), options)(Record, site)

            def show(request: HttpRequest, page: Any = page) -> Any:
                request.user = root
                answer = page.changelist_view(request)
                answer.using = DJANGO
                return answer

            addresses.append(path(f"bench/{way}/{kind}/", show))
    portal.urls.urlpatterns[:0] = addresses


def signed_in() -> Any:
    """A browser in which a servicer is signed in, and a worker that is alive."""
    from django.test import Client
    from django.utils import timezone

    from portal.accounts.models import User
    from portal.jobs.models import Worker

    Worker.objects.update_or_create(pk="bench", defaults={"beat_at": timezone.now()})
    browser = Client(headers={"accept-encoding": "gzip"})
    person = User.objects.get(username="servicer")
    browser.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
    browser.cookies["js"] = "1"
    return browser


def get(browser: Any, page: Page) -> None:
    headers = {"HX-Request": "true", "HX-Target": page.target} if page.target else {}
    answer = browser.get(page.address, headers=headers)
    assert answer.status_code == 200, page.address


def nobody_asks_the_service() -> None:
    """As if the service had just answered for everything: what is measured is the page."""
    from django.utils import timezone

    from portal.jobs.models import Worker
    from portal.registry.models import Record

    Record.objects.update(asked_at=timezone.now())
    Record.objects.exclude(answer="").update(checked_at=timezone.now())
    Worker.objects.update(beat_at=timezone.now())


def beside_references(browser: Any, name: str, page: Page) -> list[Row]:
    """A page beside the bare view, and a list beside the admin's."""
    ways = ("plain", "tuned") if page.kind else ()
    others = [Page("/bench/bare/", 1), *(Page(f"/bench/{way}/{page.kind}/", 1) for way in ways)]
    works: list[Callable[[], object]] = [partial(get, browser, one) for one in (page, *others)]
    nobody_asks_the_service()
    for work in works:
        work()
    ours, least, *admins = timed(*works, rounds=ROUNDS, clock=time.thread_time)
    found = [compared(f"{name}, times a bare view", ours, least, page.limit, why=page.why)]
    for way, theirs in zip(ways, admins, strict=True):
        found.append(compared(f"{name}, times Django's admin, {way}", ours, theirs, ADMIN_TIMES, why=FRAME))
    return found


def cold(browser: Any, name: str, page: Page) -> Row:
    """A page after nobody asked for anything for a while, beside the same page again."""
    from django.core.cache import cache

    from portal.registry import store

    nobody_asks_the_service()
    runs = []
    for _ in range(max(ROUNDS // 3, 3)):
        cache.clear()
        for decoded in (store.decode_answer, store.decode_list_answer):
            decoded.cache_clear()
        runs.append(timed(*[partial(get, browser, page)] * 2, rounds=1, clock=time.thread_time))
    first, again = ([run[number][0] for run in runs] for number in (0, 1))
    return compared(f"{name}, caches empty, times the same again", first, again, COLD_TIMES, why=COLD)


def depths(browser: Any) -> Row:
    """The slowest tenth of a page's runs at a hundred depths of the call stack, beside their median."""
    from portal.runtime.stack import with_large_frame

    nobody_asks_the_service()
    work = with_large_frame(partial(get, browser, PAGES["borrowers"]))

    def below(depth: int) -> None:
        below(depth - 1) if depth else work()

    took = [min(timed(partial(below, depth), rounds=3, clock=time.thread_time)[0]) for depth in DEPTHS]
    slowest = statistics.quantiles(took, n=10, method="inclusive")[-1]
    return at_most(
        "borrowers at 100 depths of the stack, slowest tenth beside the median",
        slowest / statistics.median(took),
        1.25,
        unit="×",
    )
