"""Views of a list: kept under a name, shared, offered again, deleted."""

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.lists.models import SavedView
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.pages import plain

LIST = "borrowers:index"


def save(browser: Browser, name: str = "Late in Texas", **fields: str) -> SavedView:
    typed = {"list": LIST, "query": "?state=TX&page=3&past_due=yes", "name": name} | fields
    assert browser.post("/views/save/", typed).status_code == 303
    return SavedView.objects.latest("created_at")


def names(browser: Browser, group: str) -> list[str]:
    return [one.name for one in getattr(browser.get("/borrowers/").context["views"], group)]


def test_a_view_is_the_list_as_it_was_without_its_page(servicer: Browser) -> None:
    answer = servicer.post("/views/save/", {"list": LIST, "query": "?state=TX&page=3", "name": "Texas"})
    assert answer["Location"] == "/borrowers/?state=TX"
    assert "View: Texas" in plain(servicer, answer["Location"])
    assert "View: Texas" not in plain(servicer, "/borrowers/?state=OR")


def test_a_view_of_messages_keeps_the_payment_status(servicer: Browser) -> None:
    query = "?payment=FAILED_AFTER_SUCCESS"
    typed = {"list": "messaging:index", "query": query, "name": "Came back"}
    assert servicer.post("/views/save/", typed)["Location"] == f"/messages/{query}"
    assert "View: Came back" in plain(servicer, f"/messages/{query}")
    assert "View:" not in plain(servicer, "/messages/")


def test_the_same_name_takes_the_new_state(servicer: Browser) -> None:
    save(servicer)
    assert save(servicer, query="state=OR").query == "state=OR"
    assert names(servicer, "mine") == ["Late in Texas"]


def test_what_looks_like_a_tax_number_is_kept_in_no_view(servicer: Browser) -> None:
    answer = servicer.post("/views/save/", {"list": LIST, "query": "?q=219-09-9999", "name": "Her"})
    assert answer.status_code == 422
    assert "Remove it first" in answer.content.decode()
    assert not SavedView.objects.exists()


def test_only_what_is_shared_is_offered_to_others(servicer: Browser, viewer: Browser) -> None:
    save(servicer, "My own")
    save(servicer, "Of the team", is_shared="on")
    assert names(viewer, "shared") == ["Of the team"]
    assert names(viewer, "mine") == []


def test_nobody_deletes_the_view_of_another(servicer: Browser, viewer: Browser) -> None:
    view = save(servicer, is_shared="on")
    assert viewer.post(f"/views/{view.pk}/delete/").status_code == 404
    assert servicer.post(f"/views/{view.pk}/delete/")["Location"] == "/borrowers/"
    assert names(servicer, "mine") == []
    acts = Entry.objects.filter(action__startswith="saved_views.").order_by("pk")
    assert [entry.action for entry in acts] == ["saved_views.save", "saved_views.delete"]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": " "},
        {"name": "x" * 81},
        {"list": "admin:index"},
        {"list": "//evil.example"},
        {"query": "q=" + "x" * 3000},
    ],
)
def test_what_is_no_view_is_refused(servicer: Browser, fields: dict[str, str]) -> None:
    answer = servicer.post("/views/save/", {"list": LIST, "query": "", "name": "Fine"} | fields)
    assert answer.status_code == 422
    assert not SavedView.objects.exists()


def test_a_hostile_name_is_shown_as_text(servicer: Browser) -> None:
    save(servicer, "<script>alert(1)</script>")
    assert "&lt;script&gt;alert(1)" in plain(servicer, "/borrowers/")


def test_every_list_comes_with_views(portal_service: Sandbox, servicer: Browser) -> None:
    given.borrower(portal_service, first_name="New here LLC")
    for view in servicer.get("/borrowers/").context["views"].built_in:
        page = servicer.get(f"/borrowers/?{view.query}", headers=htmx("borrower-rows")).content.decode()
        assert f"View: {view.name}" in page
        assert ("New here LLC" in page) == (view.name == "Added this week")
