"""Saved views of a list: saving, sharing, showing and deleting them."""

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.tables.models import SavedView
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.pages import plain

pytestmark = pytest.mark.postgres

LIST = "borrowers:index"


def save_view(browser: Browser, name: str = "Late in Texas", **fields: str) -> SavedView:
    typed = {"list": LIST, "query": "?state=TX&page=3&past_due=yes", "name": name} | fields
    assert browser.post("/views/save/", typed).status_code == 303
    return SavedView.objects.latest("created_at")


def view_names(browser: Browser, group: str) -> list[str]:
    return [view.name for view in getattr(browser.get("/borrowers/").context["views"], group)]


def test_a_view_saves_filters_but_not_the_page_number(servicer: Browser) -> None:
    response = servicer.post("/views/save/", {"list": LIST, "query": "?state=TX&page=3", "name": "Texas"})
    assert response["Location"] == "/borrowers/?state=TX"
    assert "View: Texas" in plain(servicer, response["Location"])
    assert "View: Texas" not in plain(servicer, "/borrowers/?state=OR")


def test_a_view_of_messages_keeps_the_payment_status(servicer: Browser) -> None:
    query = "?payment=FAILED_AFTER_SUCCESS"
    typed = {"list": "messaging:index", "query": query, "name": "Came back"}
    assert servicer.post("/views/save/", typed)["Location"] == f"/messages/{query}"
    assert "View: Came back" in plain(servicer, f"/messages/{query}")
    assert "View:" not in plain(servicer, "/messages/")


def test_saving_under_the_same_name_replaces_the_view(servicer: Browser) -> None:
    save_view(servicer)
    assert save_view(servicer, query="state=OR").query == "state=OR"
    assert view_names(servicer, "mine") == ["Late in Texas"]


def test_a_query_with_a_tax_number_is_rejected(servicer: Browser) -> None:
    response = servicer.post("/views/save/", {"list": LIST, "query": "?q=219-09-9999", "name": "Her"})
    assert response.status_code == 422
    assert "Remove it first" in response.content.decode()
    assert not SavedView.objects.exists()


def test_others_see_only_shared_views(servicer: Browser, viewer: Browser) -> None:
    save_view(servicer, "My own")
    save_view(servicer, "Of the team", is_shared="on")
    assert view_names(viewer, "shared") == ["Of the team"]
    assert view_names(viewer, "mine") == []


def test_only_the_owner_can_delete_a_view(servicer: Browser, viewer: Browser) -> None:
    view = save_view(servicer, is_shared="on")
    assert viewer.post(f"/views/{view.pk}/delete/").status_code == 404
    assert servicer.post(f"/views/{view.pk}/delete/")["Location"] == "/borrowers/"
    assert view_names(servicer, "mine") == []
    entries = Entry.objects.filter(action__startswith="saved_views.").order_by("pk")
    assert [entry.action for entry in entries] == ["saved_views.save", "saved_views.delete"]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": " "},
        {"name": "x" * 81},
        {"list": "admin:audit_entry_changelist"},
        {"list": "//evil.example"},
        {"query": "q=" + "x" * 3000},
    ],
)
def test_an_invalid_view_is_rejected(servicer: Browser, fields: dict[str, str]) -> None:
    response = servicer.post("/views/save/", {"list": LIST, "query": "", "name": "Fine"} | fields)
    assert response.status_code == 422
    assert not SavedView.objects.exists()


def test_a_hostile_name_is_shown_as_text(servicer: Browser) -> None:
    save_view(servicer, "<script>alert(1)</script>")
    assert "&lt;script&gt;alert(1)" in plain(servicer, "/borrowers/")


def test_built_in_views_filter_the_borrower_list(portal_service: Sandbox, servicer: Browser) -> None:
    given.borrower(portal_service, first_name="New here LLC")
    for view in servicer.get("/borrowers/").context["views"].built_in:
        page = servicer.get(f"/borrowers/?{view.query}", headers=htmx("borrower-rows")).content.decode()
        assert f"View: {view.name}" in page
        assert ("New here LLC" in page) == (view.name == "Added this week")


@pytest.mark.parametrize("other", ["late ONES", " Late  ones ", "Late’ ones"])
def test_a_name_in_another_spelling_replaces_the_view(servicer: Browser, other: str) -> None:
    for name, query in (("Late ones", "state=TX"), (other, "state=OH")):
        servicer.post("/views/save/", {"list": LIST, "query": query, "name": name})
    (view,) = SavedView.objects.all()
    assert (view.name, view.query) == (other.strip(), "state=OH")
