"""The pieces every screen is made of: values, fields, fragments, the frame, vendored files, what templates may hold."""

import io
import json
import re
import shutil
import tarfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django import forms
from django.contrib.auth.models import AnonymousUser
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template import TemplateSyntaxError, engines
from django.test import Client as Browser
from django.test import RequestFactory
from django.urls import include, path
from django.utils import timezone
from hypothesis import given as for_any
from hypothesis import strategies as st

from portal import urls
from portal.ui import vendor
from portal.ui.forms import DayField, DayInput, MoneyField, StaffForm, TextField, WriteForm, summarise
from portal.ui.htmx import done, toast
from portal.ui.icons import ICONS
from portal.ui.views import SampleForm
from servicing.values import RemoteTime
from tests.conftest import htmx

ROOT = Path(vendor.ROOT)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
HALF_PAIR = "\ud800"


def shown(template: str, request: HttpRequest | None = None, **context: Any) -> str:
    """What a piece of a template shows."""
    return engines["django"].from_string(template).render(context, request).strip()


def words(template: str, **context: Any) -> str:
    """The same without its tags."""
    return re.sub(r"<[^>]+>", "", shown(template, **context))


def staff(request: HttpRequest) -> HttpRequest:
    request.user = AnonymousUser()
    return request


# --- Values ---


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("-1234.50"), "−$1,234.50"),
        (Decimal("0"), "$0.00"),
        (0, "$0.00"),
        (None, "—"),
    ],
)
def test_money_has_two_places_and_a_real_minus(value: Decimal | int | None, text: str) -> None:
    assert words("{{ value|money }}", value=value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("14.92"), "14.92%"),
        (Decimal("12.90"), "12.90%"),
        (Decimal("0.123456"), "0.1235%"),
        (Decimal("8"), "8%"),
        (None, "—"),
    ],
)
def test_a_rate_is_shown_as_sent_up_to_four_places(value: Decimal | None, text: str) -> None:
    assert words("{{ value|rate }}", value=value) == text


def test_a_missing_value_says_who_did_not_provide_it() -> None:
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
        "given",
    ):
        assert 'title="not provided by the service"' in shown(f"{{{{ None|{name} }}}}"), name


def test_zero_false_and_empty_are_told_apart() -> None:
    assert words("{{ 0|given }} {{ no|given }} {{ ''|given }} {{ no|yes_no }}", no=False) == "0 False — No"
    assert words('{% unknown "the loan is read" %}') == "unknown until the loan is read"


@pytest.mark.parametrize("zone", ["Pacific/Honolulu", "Asia/Kolkata", "Pacific/Kiritimati"])
def test_a_calendar_day_is_the_same_in_every_zone(zone: str) -> None:
    with timezone.override(zone):
        assert shown("{{ value|day }}", value=date(2026, 11, 12)) == "12 Nov 2026"
        assert shown("{{ value|day }}", value="2026-11-12 23:30:00 PST") == "12 Nov 2026"
        assert shown('{{ value|day:"weekday" }}', value=date(2026, 11, 24)) == "Tuesday 24 Nov 2026"


def test_text_that_is_no_day_stays_as_it_is() -> None:
    assert shown("{{ value|day }}", value="soon <b>") == "soon &lt;b&gt;"


def test_a_moment_is_told_in_the_readers_zone_with_utc_on_hover() -> None:
    with timezone.override("America/New_York"):
        html = shown("{{ value|moment }}", value=datetime(2026, 11, 12, 19, 20, 5, tzinfo=UTC))
    assert "12 Nov 2026, 14:20:05 EST" in html
    assert 'title="2026-11-12 19:20:05 UTC"' in html


def test_a_remote_time_is_converted_only_where_its_zone_is_certain() -> None:
    with timezone.override("America/New_York"):
        certain = shown("{{ value|remote_time }}", value=RemoteTime("2026-11-12 11:20:05 PST"))
        unsure = shown("{{ value|remote_time }}", value=RemoteTime("2026-11-12 11:20:05 IST"))
    assert "14:20:05 EST" in certain
    assert "sent as 2026-11-12 11:20:05 PST" in certain
    assert ">2026-11-12 11:20:05 IST<" in unsure


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "3 s ago"), (300, "5 min ago"), (7200, "2 h ago"), (86400, "1 day ago"), (-172800, "in 2 days")],
)
def test_an_age_uses_the_unit_that_says_enough(seconds: int, text: str) -> None:
    assert words("{{ value|ago }}", value=timezone.now() - timezone.timedelta(seconds=seconds)) == text


def test_a_day_is_so_many_days_away() -> None:
    today = timezone.localdate()
    for days, text in (
        (-1, "yesterday"),
        (0, "today"),
        (1, "tomorrow"),
        (4, "in 4 days"),
        (-9, "9 days ago"),
    ):
        assert shown("{{ value|ago }}", value=today + timezone.timedelta(days=days)) == text


def test_a_clock_time_grows_a_date_when_it_is_not_of_today() -> None:
    assert len(words("{{ value|clock }}", value=timezone.now())) == len("14:02:11")
    assert words("{{ value|clock }}", value=datetime(2020, 1, 2, 12, tzinfo=UTC)).startswith("2 Jan 2020, ")


@pytest.mark.parametrize(
    ("value", "text"),
    [("5125550143", "(512) 555-0143"), ("+15125550143", "(512) 555-0143"), ("ask at desk", "ask at desk")],
)
def test_a_phone_number_reads_as_people_write_it(value: str, text: str) -> None:
    assert shown("{{ value|phone }}", value=value) == text


def test_known_enumerations_become_words_and_unknown_ones_stay_raw() -> None:
    known = shown("{{ value|human }}", value="limited_liability_company")
    assert known == '<span title="limited_liability_company">Limited liability company</span>'
    assert shown("{{ value|human }}", value="SPACE_LOAN") == "SPACE_LOAN"


def test_a_country_is_named_and_an_unknown_code_stays_raw() -> None:
    assert shown("{{ value|country }}", value="IN") == '<span title="IN">India</span>'
    assert words("{{ value|country }}", value="QQ") == "QQ"


@pytest.mark.parametrize(
    ("value", "state", "word"),
    [
        ("ACTIVE", "sd-ok", "Active"),
        ("scheduled", "sd-waiting", "Scheduled"),
        ("FAILED_AFTER_SUCCESS", "sd-bad", "Returned after it had succeeded"),
        ("QUEUED_RETRY", "sd-neutral", "QUEUED_RETRY"),
    ],
)
def test_a_status_is_icon_word_and_tint(value: str, state: str, word: str) -> None:
    html = shown("{{ value|status_badge }}", value=value)
    assert f'class="sd-badge {state}"' in html
    assert "<svg" in html
    assert words("{{ value|status_badge }}", value=value) == word


def test_an_id_is_short_to_read_and_whole_to_copy() -> None:
    html = shown("{{ value|short_id }}", value=UUID("3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"))
    assert ">3f2b8c1e<" in html
    assert 'data-copy="3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"' in html
    assert words("{{ value|short_id }}", value=None) == words("{{ value|status_badge }}", value="") == "—"


def test_a_masked_value_is_nowhere_in_the_page() -> None:
    assert shown("{{ value|masked }}", value="123456789") == '<span class="sd-nowrap">•••• masked</span>'


def test_marks_show_what_went_and_what_came_word_by_word() -> None:
    old, new = "1180 Airport Blvd", "1180 Airport <Boulevard>"
    assert words("{{ old|removed:new }}", old=old, new=new) == "1180 Airport removed: Blvd"
    assert "&lt;" in shown("{{ new|added:old }}", old=old, new=new)
    assert shown("{{ new|added:new }}", new="same") == "same"


@pytest.mark.parametrize(
    ("name", "letters"), [("Northwind Baking Co LLC", "NB"), ("o'hara", "OH"), ("3M", "3M"), ("", "")]
)
def test_a_name_has_a_monogram(name: str, letters: str) -> None:
    assert shown("{{ name|monogram }}", name=name) == letters


def test_a_match_is_marked_whatever_its_case_and_escaped() -> None:
    assert (
        shown("{{ text|highlight:term }}", text="<NorthWind>", term="wind")
        == "&lt;North<mark>Wind</mark>&gt;"
    )
    assert shown("{{ text|highlight:term }}", text="Northwind", term="") == "Northwind"


def test_several_search_terms_are_marked_the_longest_first() -> None:
    marked = shown("{{ text|highlight:terms }}", text="Ana & Anatol", terms=["ana", "anatol", "&", ""])
    assert marked == "<mark>Ana</mark> <mark>&amp;</mark> <mark>Anatol</mark>"


@pytest.mark.parametrize(
    ("used", "share", "state"),
    [(7600, "38%", "ok"), (15000, "75%", "warn"), (25000, "125%", "bad"), (0, "0%", "ok")],
)
def test_a_meter_tells_its_share_in_words_too(used: int, share: str, state: str) -> None:
    html = shown("{% meter used 20000 %}", used=used)
    assert f'aria-valuetext="{share}"' in html
    assert f"sd-meter-{state}" in html
    assert ("sd-meter-bar" in html) == bool(used)


def test_no_meter_is_drawn_for_what_was_not_provided() -> None:
    assert shown("{% meter None 20000 %}") == (
        '<p class="sd-null" title="not provided by the service">not provided by the service</p>'
    )


def test_json_is_shown_line_by_line_and_never_as_html() -> None:
    html = shown(
        "{{ value|json_view }}", value={"a": [None, True, {}], "b": "<script>", "c": Decimal("310.00")}
    )
    lines = re.findall("<span data-path[^>]*>(.*?)</span>", html)
    assert len(lines) == 9
    assert "<script>" not in html
    assert "<data>310.00</data>" in html


def test_an_unknown_icon_is_a_mistake_that_shows_at_once() -> None:
    with pytest.raises(TemplateSyntaxError, match="No icon"):
        shown('{% icon "unicorn" %}')


def test_a_list_says_which_rows_these_are_and_links_on(rf: RequestFactory) -> None:
    page = Paginator(range(120), 50).page(2)
    html = shown('{% page_links page "rows" %}', page=page, request=staff(rf.get("/x/?q=a&page=2")))
    assert "51 to 100 of 120" in html
    assert 'hx-get="?q=a&amp;page=3"' in html
    assert 'href="?q=a&amp;page=1"' in html
    assert html.count('hx-target="#rows"') == 2


# --- Page or fragment ---


def test_a_request_for_a_region_gets_only_that_region(viewer: Browser) -> None:
    fragment = viewer.get("/borrowers/", headers=htmx("borrower-rows"))
    assert fragment.content.decode().strip().startswith('<div id="borrower-rows"')
    assert "sd-header" not in fragment.content.decode()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        htmx("another-region"),
        htmx("borrower-rows") | {"HX-Boosted": "true"},
        htmx("borrower-rows") | {"HX-History-Restore-Request": "true"},
    ],
)
def test_every_other_request_gets_the_page(viewer: Browser, headers: dict[str, str]) -> None:
    page = viewer.get("/borrowers/", headers=headers)
    assert "sd-header" in page.content.decode()


def test_answers_are_kept_by_no_cache_and_vary_with_htmx(viewer: Browser) -> None:
    page = viewer.get("/borrowers/")
    assert page.headers["Cache-Control"] == "no-store"
    assert {"HX-Request", "HX-Target"} <= set(page.headers["Vary"].split(", "))


# A view like any act of the portal: it says what it did and answers.
def act(request: HttpRequest) -> HttpResponse:
    toast(request, "Saved <it>", url="/audit/")
    return done(request, "/ui/", event=request.GET.get("event"))


urlpatterns = [*urls.urlpatterns, path("act/", act), path("ui/", include("portal.ui.urls"))]


@pytest.mark.urls(__name__)
def test_an_act_without_htmx_goes_on_and_says_so_there(servicer: Browser) -> None:
    answer = servicer.post("/act/?event=thing:saved", follow=True)
    assert answer.redirect_chain == [("/ui/", 303)]
    assert '<b>Saved &lt;it&gt;</b><a href="/audit/">Open the audit entry</a>' in answer.content.decode()
    assert "Saved" not in servicer.get("/ui/").content.decode()


@pytest.mark.urls(__name__)
def test_an_act_with_htmx_stays_and_tells_the_page(servicer: Browser) -> None:
    answer = servicer.post("/act/?event=thing:saved", headers=htmx("x"))
    assert answer.status_code == 204
    told = {"text": "Saved <it>", "url": "/audit/", "link": "Open the audit entry"}
    assert json.loads(answer.headers["HX-Trigger"]) == {
        "thing:saved": {},
        "dialog:close": {},
        "toasts": [told],
    }


@pytest.mark.urls(__name__)
def test_an_act_with_htmx_and_no_event_leads_on(servicer: Browser) -> None:
    answer = servicer.post("/act/", headers=htmx("x"))
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/ui/")
    assert "Saved" in servicer.get("/ui/").content.decode()


def test_the_frame_names_environment_zone_and_place(viewer: Browser) -> None:
    html = viewer.get("/borrowers/").content.decode()
    assert ">SANDBOX<" in html or ">LIVE<" in html
    assert re.search("Times shown in Eastern (Standard|Daylight) Time", html)
    assert re.search(r'<a href="/borrowers/" data-go="b" aria-current="page">', html)


def test_areas_that_a_person_may_not_enter_are_absent(viewer: Browser, auditor: Browser) -> None:
    assert 'data-go="t"' not in viewer.get("/").content.decode()
    assert 'data-go="t"' in auditor.get("/").content.decode()


def test_only_those_who_may_onboard_can_press_the_button(viewer: Browser, servicer: Browser) -> None:
    assert 'href="/borrowers/new/' not in viewer.get("/loans/").content.decode()
    assert 'href="/borrowers/new/' in servicer.get("/loans/").content.decode()


# --- Forms ---


class Amount(WriteForm):
    amount = MoneyField()
    note = TextField(required=False, max_length=20)


def filled(**values: str) -> Amount:
    return Amount({"submit_id": str(uuid4()), "amount": "1", **values})


@pytest.mark.parametrize(
    ("typed", "amount"),
    [("$25,000.00", "25000.00"), ("25000", "25000"), (" 1,234.5 ", "1234.5"), ("$ 7", "7")],
)
def test_an_amount_is_read_as_people_write_it(typed: str, amount: str) -> None:
    form = filled(amount=typed)
    assert form.is_valid()
    assert form.cleaned_data["amount"] == Decimal(amount)


@pytest.mark.parametrize(
    "typed", ["-5", "−5", "0", "1e400", "NaN", "1,23", "٣", "1.999", "9" * 30, "9" * 10_000, "", "five", "$"]
)
def test_an_amount_that_is_none_is_refused(typed: str) -> None:
    assert filled(amount=typed).errors["amount"]


def test_a_day_is_read_from_three_boxes_and_from_iso_text() -> None:
    boxes = DayField().widget.value_from_datadict({"x_month": "4", "x_day": " 9", "x_year": "1987"}, {}, "x")
    assert DayField().clean(boxes) == date(1987, 4, 9)
    assert DayField(widget=DayInput).clean("1987-04-09") == date(1987, 4, 9)
    assert DayField(required=False).clean(["", "", ""]) is None


@pytest.mark.parametrize(
    "typed",
    [["2", "30", "2026"], ["", "1", "2026"], "12/31/2026", "٢٠٢٦-١-١", ["a" * 10_000, "1", "1"], "0000-1-1"],
)
def test_a_day_that_does_not_exist_is_refused(typed: Any) -> None:
    with pytest.raises(forms.ValidationError):
        DayField().clean(typed)


def test_a_known_day_fills_its_boxes() -> None:
    class Born(StaffForm):
        born = DayField()

    html = str(Born(initial={"born": date(1987, 4, 9)})["born"].as_widget())
    assert re.findall('value="([0-9]+)"', html) == ["04", "09", "1987"]


def test_a_phone_number_goes_out_as_ten_digits_and_comes_back_readable() -> None:
    form = SampleForm({"phone": "+1 512.555.0143"})
    form.is_valid()
    assert form.cleaned_data["phone"] == "5125550143"
    assert 'value="(512) 555-0143"' in str(SampleForm(initial={"phone": "5125550143"})["phone"])


def test_a_secret_is_read_once_and_never_drawn_again() -> None:
    form = SampleForm({"ssn": "123-45-6789"})
    assert "6789" not in str(form) + repr(form) + str(form.errors)
    assert form.cleaned_data["ssn"] == "123456789"
    refused = SampleForm({"ssn": "123-45-678"})
    assert refused.errors["ssn"] == ["8 digits entered, 9 needed."]
    assert "678" not in str(refused)


@pytest.mark.parametrize("typed", ["x" * 10_000, "nul\x00", f"half {HALF_PAIR}", "\ufffd", "\u202eevil"])
def test_hostile_text_is_refused_with_a_reason_and_the_form_drawn_again(typed: str) -> None:
    data = QueryDict(mutable=True)
    for name in SampleForm.base_fields:
        data[name] = typed
    form = SampleForm(data)
    refused = set(form.errors)
    assert {"first_name", "last_name", "email", "phone", "amount", "dob", "ssn", "title", "entity"} <= refused
    str(form).encode()


@for_any(
    st.dictionaries(st.sampled_from([*SampleForm.base_fields, "dob_month", "dob_day", "dob_year"]), st.text())
)
def test_whatever_is_posted_the_form_answers(data: dict[str, str]) -> None:
    form = SampleForm(data)
    assert not form.is_valid()
    assert form.error_summary is not None
    str(form).encode()


def test_reasons_are_full_and_all_at_once() -> None:
    summary = SampleForm({"last_name": "Raman2", "phone": "512 555 019"}).error_summary
    assert summary is not None
    texts = " ".join(item.text for item in summary.items)
    assert "Person 2, Last name: “2” at position 6" in texts
    assert "Person 2, Phone: 9 digits entered, 10 needed." in texts
    assert summary.title.endswith("of person 2 need a correction. Nothing was sent.")


def test_each_reason_leads_to_its_field() -> None:
    form = SampleForm({"dob": "x", "entity": "x"}, prefix="p1")
    html = str(form)
    assert form.error_summary is not None
    for item in form.error_summary.items:
        assert f'id="{item.target}"' in html, item


def test_a_submit_id_survives_a_refusal_and_a_lost_one_is_replaced() -> None:
    kept = str(uuid4())
    assert f'value="{kept}"' in str(Amount({"submit_id": kept})["submit_id"])
    lost = Amount({"submit_id": "x", "amount": "1"})
    assert not lost.is_valid()
    new = re.search('value="([0-9a-f-]{36})"', str(lost["submit_id"]))
    assert new
    assert lost.error_summary is not None
    assert "had lost its number" in lost.error_summary.items[0].text


def test_two_drawings_of_a_form_have_two_submit_ids() -> None:
    assert Amount()["submit_id"].value() != Amount()["submit_id"].value()


def test_problems_of_the_library_land_on_their_fields() -> None:
    class Where(StaffForm):
        problem_fields = {"address.zip": "zip_code"}
        zip_code = TextField()

    form = Where({"zip_code": "9404"})
    form.add_problems({"address.zip": ["4 digits entered."], "key_people": ["At least one is needed."]})
    assert form.errors["zip_code"] == ["4 digits entered."]
    assert form.non_field_errors() == ["key_people: At least one is needed."]


def test_the_words_of_the_service_stand_in_quotes() -> None:
    form = filled()
    form.add_rejection("amount <too> high", f"and {HALF_PAIR}")
    assert not form.is_valid()
    html = shown('{% include "ui/_error_summary.html" %}', summary=form.error_summary)
    assert "<q>amount &lt;too&gt; high</q>" in html
    assert form.error_summary is not None
    assert form.error_summary.title == "The lending service refused this. Nothing was sent."
    html.encode()


def test_one_summary_speaks_for_several_forms() -> None:
    assert summarise([filled(), SampleForm()]) is None
    summary = summarise([filled(amount=""), SampleForm({}, prefix="b")], "Nothing was saved.")
    assert summary is not None
    assert summary.title.endswith("fields need a correction. Nothing was saved.")


def test_a_warning_or_a_tick_stands_where_no_error_is() -> None:
    form = SampleForm({"first_name": "Priya", "email": "priya@northwind.example"})
    form.warn("email", "Also on another borrower.")
    assert "Accepted by the service’s rule" in form["first_name"].as_field_group()
    assert "sd-note-warn" in form["email"].as_field_group()
    assert 'aria-describedby="id_email_helptext"' in str(form["email"])


# --- Files ---


def test_vendored_files_are_those_of_their_manifests() -> None:
    assert vendor.changed_files(vendor.FOLDERS) == []


def test_a_changed_and_a_missing_vendored_file_are_named(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(vendor.FOLDERS[0], tmp_path / "vendor"))
    with (copy / "tabler/tabler.css").open("a") as css:
        css.write(" ")
    (copy / "inter/LICENSE").unlink()
    assert vendor.changed_files((copy,)) == ["tabler/tabler.css", "inter/LICENSE"]


def package_of(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A package like those of the registry, and its entry in a manifest."""
    css = b'@charset "UTF-8";a{color:red}\n/*# sourceMappingURL=a.css.map */'
    drawing = b'<svg><path stroke="none" d="M0 0"/><path d="M1 1" /></svg>'
    drawings = {f"icons/outline/{name}.svg": drawing for name in ICONS}
    drawings |= {f"icons/filled/{name.removesuffix('-filled')}.svg": drawing for name in ICONS}
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        for name, data in {"a.css": css, **drawings}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    files = {"a/a.css": {"from": "a.css"}, "icons.svg": {"from": "icons"}, "LICENSE": {}}
    (tmp_path / "LICENSE").write_text("ours")
    return tmp_path / "a.tgz", {"name": "a", "version": "1", "integrity": "", "files": files}


def test_a_style_sheet_is_vendored_in_its_layer_and_without_its_map(tmp_path: Path) -> None:
    archive, package = package_of(tmp_path)
    vendor.unpack(archive, tmp_path, package)
    assert (tmp_path / "a/a.css").read_text() == "@layer tabler{a{color:red}\n}\n"
    assert len((tmp_path / "icons.svg").read_text().splitlines()) == len(ICONS) + 2
    (tmp_path / "manifest.json").write_text(json.dumps({"packages": [package]}))
    assert vendor.changed_files([tmp_path]) == []


def test_a_package_with_another_checksum_is_refused(tmp_path: Path) -> None:
    archive, package = package_of(tmp_path)
    with pytest.raises(vendor.UntrustedPackage, match="a 1 has the checksum"):
        vendor.unpack(archive, tmp_path, package | {"integrity": "sha512-of-another"})
    assert not (tmp_path / "a").exists()


def test_the_sprite_holds_the_icons_in_use_and_no_other() -> None:
    sprite = (ROOT / "static/vendor/icons/icons.svg").read_text()
    assert tuple(re.findall('<symbol id="([^"]+)"', sprite)) == ICONS


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_templates_hold_nothing_that_the_content_policy_forbids(template: Path) -> None:
    banned = r"""\sstyle=|<style|\son\w+=["']|hx-on|js:|<script(?![^>]*\ssrc=)|bg-\w+-lt"""
    assert not re.search(banned, template.read_text())


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_no_comment_of_a_template_ends_up_on_the_page(template: Path) -> None:
    assert not re.search(r"{#(?!.*#})", template.read_text()), (
        "a comment of several lines needs {% comment %}"
    )


@pytest.mark.parametrize("template", TEMPLATES, ids=str)
def test_templates_use_only_icons_that_the_sprite_holds(template: Path) -> None:
    assert set(re.findall(r'{% icon "([^"]+)"', template.read_text())) <= set(ICONS)


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (ROOT / "static/css").glob("*.css") if path.stem != "print")
)
def test_colours_are_named_only_in_the_tokens(name: str) -> None:
    css = (ROOT / f"static/css/{name}.css").read_text()
    colours = set(re.findall(r"#[0-9a-f]{3,8}\b", css)) - {"#ffffff", "#151a21"}
    assert bool(colours) == (name == "tokens")
