"""How template filters and tags format values."""

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.template import TemplateSyntaxError, engines
from django.test import RequestFactory
from django.utils import timezone

from portal.ui import wording
from servicing.values import RemoteTime


def render(template: str, request: HttpRequest | None = None, **context: Any) -> str:
    """Render a piece of a template."""
    return engines["django"].from_string(template).render(context, request).strip()


def render_text(template: str, **context: Any) -> str:
    """Render a piece of a template and remove the HTML tags."""
    return re.sub(r"<[^>]+>", "", render(template, **context))


def with_user(request: HttpRequest) -> HttpRequest:
    request.user = AnonymousUser()
    return request


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("-1234.50"), "−$1,234.50"),
        (Decimal("0"), "$0.00"),
        (0, "$0.00"),
        (Decimal("0.0049"), "$0.00"),
        (Decimal("-0.0049"), "$0.00"),
        (Decimal("0.005"), "$0.01"),  # This counts as past due.
        (Decimal("12.345"), "$12.35"),
        (Decimal("99999999999999999999.995"), "$100,000,000,000,000,000,000.00"),
        (None, "—"),
    ],
)
def test_money_has_two_decimals_and_a_minus_sign(value: Decimal | int | None, text: str) -> None:
    assert render_text("{{ value|money }}", value=value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("14.92"), "14.92%"),
        (Decimal("12.90"), "12.90%"),
        (Decimal("0.123456"), "0.123456%"),
        (Decimal("35.99995"), "35.99995%"),
        (Decimal("8"), "8%"),
        (None, "—"),
    ],
)
def test_a_rate_is_shown_as_sent(value: Decimal | None, text: str) -> None:
    assert render_text("{{ value|rate }}", value=value) == text


def test_a_missing_value_is_labeled_as_not_provided() -> None:
    for name in (
        "money",
        "rate",
        "day",
        "moment",
        "clock",
        "ago",
        "remote_time",
        "phone",
        "human",
        "country",
        "or_dash",
    ):
        assert 'title="not provided by the service"' in render(f"{{{{ None|{name} }}}}"), name


def test_zero_false_and_empty_are_distinct() -> None:
    assert (
        render_text("{{ 0|or_dash }} {{ no|or_dash }} {{ ''|or_dash }} {{ no|yes_no }}", no=False)
        == "0 False — No"
    )
    assert render_text('{% unknown "the loan is read" %}') == "unknown until the loan is read"


@pytest.mark.parametrize("zone", ["Pacific/Honolulu", "Asia/Kolkata", "Pacific/Kiritimati"])
def test_a_calendar_date_is_the_same_in_every_time_zone(zone: str) -> None:
    with timezone.override(zone):
        assert render("{{ value|day }}", value=date(2026, 11, 12)) == "Nov 12, 2026"
        assert render("{{ value|day }}", value="2026-11-12 23:30:00 PST") == "Nov 12, 2026"
        assert render('{{ value|day:"weekday" }}', value=date(2026, 11, 24)) == "Tuesday, Nov 24, 2026"


def test_text_that_is_not_a_date_is_shown_unchanged() -> None:
    assert render("{{ value|day }}", value="soon <b>") == "soon &lt;b&gt;"


def test_moments_use_the_users_time_zone_with_utc_on_hover() -> None:
    with timezone.override("America/New_York"):
        html = render("{{ value|moment }}", value=datetime(2026, 11, 12, 19, 20, 5, tzinfo=UTC))
    assert "Nov 12, 2026, 2:20:05 PM EST" in html
    assert 'title="2026-11-12 19:20:05 UTC"' in html


def test_a_remote_time_is_converted_if_its_zone_is_certain() -> None:
    with timezone.override("America/New_York"):
        certain = render("{{ value|remote_time }}", value=RemoteTime("2026-11-12 11:20:05 PST"))
    assert "2:20 PM" in certain
    assert "sent as 2026-11-12 11:20:05 PST" in certain


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("2026-07-23 17:46:15", "Jul 23, 2026, 5:46 PM, time zone not given"),
        ("2024-04-05 03:07:48 IST", "Apr 5, 2024, 3:07 AM IST"),
        ("2026-02-30 03:07:48 IST", "2026-02-30 03:07:48 IST"),
        ("soon", "soon"),
    ],
)
def test_a_remote_time_without_a_certain_zone_is_shown_as_written(sent: str, shown: str) -> None:
    with timezone.override("America/New_York"):
        html = render("{{ value|remote_time }}", value=RemoteTime(sent))
    assert f">{shown}<" in html
    assert f"sent as {sent}" in html


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "3 s ago"), (300, "5 min ago"), (7200, "2 h ago"), (86400, "1 day ago"), (-172800, "in 2 days")],
)
def test_an_age_uses_the_largest_fitting_unit(seconds: int, text: str) -> None:
    assert render_text("{{ value|ago }}", value=timezone.now() - timezone.timedelta(seconds=seconds)) == text


def test_dates_are_shown_relative_to_today() -> None:
    today = timezone.localdate()
    for days, text in (
        (-1, "yesterday"),
        (0, "today"),
        (1, "tomorrow"),
        (4, "in 4 days"),
        (-9, "9 days ago"),
    ):
        assert render("{{ value|ago }}", value=today + timezone.timedelta(days=days)) == text


def test_a_clock_time_includes_the_date_unless_it_is_today() -> None:
    assert re.fullmatch(r"\d{1,2}:\d\d [AP]M", render_text("{{ value|clock }}", value=timezone.now()))
    assert re.fullmatch(
        r"\d{1,2}:\d\d:\d\d [AP]M", render_text('{{ value|clock:"seconds" }}', value=timezone.now())
    )
    for hour, text in ((0, "12:05 AM"), (9, "9:05 AM"), (12, "12:05 PM"), (23, "11:05 PM")):
        assert wording.time_of_day(time(hour, 5)) == text
    assert render_text("{{ value|clock }}", value=datetime(2020, 1, 2, 12, tzinfo=UTC)).startswith(
        "Jan 2, 2020, "
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [("5125550143", "(512) 555-0143"), ("+15125550143", "(512) 555-0143"), ("ask at desk", "ask at desk")],
)
def test_us_phone_numbers_are_formatted(value: str, text: str) -> None:
    assert render("{{ value|phone }}", value=value) == text


def test_known_codes_become_words_and_unknown_codes_stay_raw() -> None:
    known = render("{{ value|human }}", value="limited_liability_company")
    assert known == '<span title="limited_liability_company">Limited liability company</span>'
    assert render("{{ value|human }}", value="SPACE_LOAN") == "SPACE_LOAN"


def test_a_country_is_named_and_an_unknown_code_stays_raw() -> None:
    assert render("{{ value|country }}", value="IN") == '<span title="IN">India</span>'
    assert render_text("{{ value|country }}", value="QQ") == "QQ"


@pytest.mark.parametrize(
    ("periods", "frequency", "words"),
    [
        (12, "MONTHLY", "12 months"),
        (1, "monthly", "1 month"),
        (26, "BIWEEKLY", "26, BIWEEKLY"),
        (12, None, "12"),
        (None, None, "—"),
    ],
)
def test_a_term_has_its_unit(periods: int | None, frequency: str | None, words: str) -> None:
    assert render_text("{{ periods|term:frequency }}", periods=periods, frequency=frequency) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("user.updated", "Borrower updated"),
        ("userless.event", "Userless event"),
        ("payment.failed_after_success", "Payment returned after posting"),
    ],
)
def test_an_event_is_shown_in_words(value: str, words: str) -> None:
    assert render_text("{{ value|event_words }}", value=value) == words


@pytest.mark.parametrize(
    ("value", "state", "word"),
    [
        ("ACTIVE", "sd-ok", "Active"),
        ("scheduled", "sd-waiting", "Scheduled"),
        ("FAILED_AFTER_SUCCESS", "sd-bad", "Returned after posting"),
        ("QUEUED_RETRY", "sd-neutral", "Queued retry"),
    ],
)
def test_a_status_badge_has_an_icon_a_word_and_a_color(value: str, state: str, word: str) -> None:
    html = render("{{ value|status_badge }}", value=value)
    assert f'class="sd-badge {state}"' in html
    assert "<svg" in html
    assert render_text("{{ value|status_badge }}", value=value) == word


def test_an_id_is_shortened_but_copied_in_full() -> None:
    html = render("{{ value|short_id }}", value=UUID("3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"))
    assert ">3f2b8c1e<" in html
    assert 'data-copy="3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"' in html
    assert (
        render_text("{{ value|short_id }}", value=None)
        == render_text("{{ value|status_badge }}", value="")
        == "—"
    )


def test_a_masked_value_is_never_rendered() -> None:
    assert render("{{ value|masked }}", value="123456789") == '<span class="sd-nowrap">•••• masked</span>'


def test_changed_words_are_marked_as_removed_and_added() -> None:
    old, new = "1180 Airport Blvd", "1180 Airport <Boulevard>"
    assert render_text("{{ old|removed:new }}", old=old, new=new) == "1180 Airport removed: Blvd"
    assert "&lt;" in render("{{ new|added:old }}", old=old, new=new)
    assert render("{{ new|added:new }}", new="same") == "same"


@pytest.mark.parametrize(
    ("name", "letters"), [("Northwind Baking Co LLC", "NB"), ("o'hara", "OH"), ("3M", "3M"), ("", "")]
)
def test_a_name_has_a_monogram(name: str, letters: str) -> None:
    assert render("{{ name|monogram }}", name=name) == letters


def test_highlighting_ignores_case_and_escapes_html() -> None:
    assert (
        render("{{ text|highlight:term }}", text="<NorthWind>", term="wind")
        == "&lt;North<mark>Wind</mark>&gt;"
    )
    assert render("{{ text|highlight:term }}", text="Northwind", term="") == "Northwind"


def test_longer_search_terms_are_highlighted_first() -> None:
    marked = render("{{ text|highlight:terms }}", text="Ana & Anatol", terms=["ana", "anatol", "&", ""])
    assert marked == "<mark>Ana</mark> <mark>&amp;</mark> <mark>Anatol</mark>"


@pytest.mark.parametrize(
    ("used", "share", "state"),
    [(7600, "38%", "ok"), (15000, "75%", "warn"), (25000, "125%", "bad"), (0, "0%", "ok")],
)
def test_a_meter_states_its_share_as_text(used: int, share: str, state: str) -> None:
    html = render("{% meter used 20000 %}", used=used)
    assert f'aria-valuetext="{share}"' in html
    assert f"sd-meter-{state}" in html
    assert ("sd-meter-bar" in html) == bool(used)


def test_no_meter_is_drawn_without_a_value() -> None:
    assert render("{% meter None 20000 %}") == (
        '<p class="sd-null" title="not provided by the service">not provided by the service</p>'
    )


def test_json_is_shown_line_by_line_and_never_as_html() -> None:
    html = render(
        "{{ value|json_view }}", value={"a": [None, True, {}], "b": "<script>", "c": Decimal("310.00")}
    )
    lines = re.findall("<span data-path[^>]*>(.*?)</span>", html)
    assert len(lines) == 9
    assert "<script>" not in html
    assert "<data>310.00</data>" in html


def test_an_unknown_icon_raises_an_error() -> None:
    with pytest.raises(TemplateSyntaxError, match="No icon"):
        render('{% icon "unicorn" %}')


def test_pagination_shows_the_row_range_and_links(rf: RequestFactory) -> None:
    page = Paginator(range(120), 50).page(2)
    html = render('{% page_links page "rows" %}', page=page, request=with_user(rf.get("/x/?q=a&page=2")))
    assert "51 to 100 of 120" in html
    assert 'hx-get="?q=a&amp;page=3"' in html
    assert 'href="?q=a&amp;page=1"' in html
    assert html.count('hx-target="#rows"') == 2


def test_the_date_of_a_moment_uses_the_users_time_zone() -> None:
    late_in_new_york = datetime(2026, 11, 23, 2, 30, tzinfo=UTC)
    with timezone.override(ZoneInfo("America/New_York")):
        assert wording.day(late_in_new_york) == "Nov 22, 2026"
    with timezone.override(UTC):
        assert wording.day(late_in_new_york) == "Nov 23, 2026"
