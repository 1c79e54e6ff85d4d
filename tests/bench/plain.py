"""What Django offers for the same rows: its admin's change list, and a bare query in a bare template."""

from collections.abc import Callable
from typing import Any

ROWS = 25
BARE = """<!doctype html><title>Rows</title><table>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>"""


def change_list(model: Any, columns: list[str], **options: Any) -> Callable[..., None]:
    """Draws the admin's page of a table; what is given then filters it, as its own links do.

    To be made before the first request: then the addresses are read.
    """
    from django.contrib import admin
    from django.test import RequestFactory

    from portal.accounts.admin import site
    from portal.accounts.models import User

    root = User(username="root", role="admin")
    settings = {
        "list_display": columns,
        "list_per_page": ROWS,
        "has_view_permission": lambda *_: True,
    } | options
    site.register(model, type("Plain", (admin.ModelAdmin,), settings))
    page = site.get_model_admin(model)

    def draw(asked: dict[str, str] | None = None) -> None:
        request = RequestFactory().get("/", asked or {})
        request.user = root
        answer = page.changelist_view(request)
        assert answer.status_code == 200, asked
        answer.render()

    return draw


def bare(rows: Any, number: int = ROWS) -> Callable[[], str]:
    """Draws the first rows of a query of tuples, without frame, words or counts."""
    from django.template import Context, Engine

    template = Engine().from_string(BARE)
    return lambda: template.render(Context({"rows": list(rows.all()[:number])}))
