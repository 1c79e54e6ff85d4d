"""References for the portal's pages: Django's admin and a bare view of the same rows."""

from collections.abc import Callable
from typing import Any

ROWS = 25
BARE = """<!doctype html><title>Rows</title><table>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>"""
COLUMNS = ["label", "category", "state", "amount", "past_due", "status", "updated_at"]
BORROWER_COLUMNS = ["name", "legal_form", "state", "city", "past_due", "decision", "updated_at"]
APPLICATION_COLUMNS = ["label", "product", "decision", "amount", "submitted_at", "updated_at"]
PERSON_COLUMNS = ["name", "title", "state", "city", "phone", "email", "updated_at"]
REPAYMENT_COLUMNS = ["uuid", "product", "payment_type", "status", "amount", "effective_on", "updated_at"]
MESSAGE_COLUMNS = ["uuid", "event", "status", "product", "amount", "payment_status", "day"]
DJANGO = "admin"
"""The template engine with Django's own admin templates; the portal replaces some with lighter ones."""
WAYS = ("plain", "tuned")


def change_list(model: Any, columns: list[str], **options: Any) -> Callable[..., None]:
    """Return a function that renders the admin's list of a model, filtered by query parameters.

    Call this before the first request, because Django then loads the URLs.
    """
    from django.contrib import admin
    from django.template.response import TemplateResponse
    from django.test import RequestFactory

    from portal.accounts.admin import site
    from portal.accounts.models import User

    admin_user = User(username="root", role="admin")
    settings: dict[str, Any] = {
        "list_display": columns,
        "list_per_page": ROWS,
        "has_view_permission": lambda *_: True,
        **dict.fromkeys(("title", "purpose"), ""),
    } | options
    site.register(model, type("Plain", (admin.ModelAdmin,), settings))
    page = site.get_model_admin(model)

    def render(query: dict[str, str] | None = None) -> None:
        request = RequestFactory().get("/", query or {})
        request.user = admin_user
        answer = page.changelist_view(request)
        assert isinstance(answer, TemplateResponse), query
        answer.render()

    return render


def bare(rows: Any, number: int = ROWS) -> Callable[[], str]:
    """Return a function that renders the first rows of a query, without frame, filters or counts."""
    from django.template import Context, Engine

    template = Engine().from_string(BARE)
    return lambda: template.render(Context({"rows": list(rows.all()[:number])}))


def add_references() -> None:
    """Add the bare views and Django's admin of records and messages to the URLs.

    There are two admins. The plain one has a few options, as in most projects. The tuned one has a list for each kind
    of record, fixed filter choices and no count of the whole table.
    """
    from django.conf import settings
    from django.http import HttpResponse
    from django.urls import path

    from portal.messaging.models import Message
    from portal.records.models import RECORDED_KINDS, Application, Borrower, KeyPerson, Repayment
    from portal.records.rows import active_records

    engine = "django.template.backends.django.DjangoTemplates"
    ours: Any = settings.TEMPLATES
    options = {"context_processors": ours[0]["OPTIONS"]["context_processors"][:3]}
    ours.append({"NAME": DJANGO, "BACKEND": engine, "APP_DIRS": True, "OPTIONS": options})
    # Importing this needs Django to be set up.
    import portal.urls

    newest = ["-updated_at", "-id"]
    rows: dict[str, Any] = {
        kind.value: active_records(kind).order_by(*newest).values_list(*COLUMNS) for kind in RECORDED_KINDS
    }
    rows["application"] = Application.objects.order_by(*newest).values_list(*APPLICATION_COLUMNS)
    rows["borrower"] = Borrower.objects.order_by(*newest).values_list(*BORROWER_COLUMNS)
    rows["key_person"] = KeyPerson.objects.order_by(*newest).values_list(*PERSON_COLUMNS)
    rows["repayment"] = Repayment.objects.order_by(*newest).values_list(*REPAYMENT_COLUMNS)
    rows["message"] = Message.objects.values_list(*MESSAGE_COLUMNS)
    renderers = {kind: bare(found) for kind, found in rows.items()}
    addresses: list[Any] = [
        path("bench/bare/<kind>/", lambda request, kind: HttpResponse(renderers[kind]())),
        *(path(f"bench/{way}/", _admin(way, list(rows)).urls) for way in WAYS),
    ]
    portal.urls.urlpatterns[:0] = addresses


def admin_address(way: str, kind: str, text: str = "") -> str:
    """Return the address of the admin's list of a kind, or of its search of borrowers."""
    if text:
        return f"/bench/{way}/registry/borrower/?q={text}"
    if kind == "message":
        return f"/bench/{way}/messaging/message/"
    if kind in ("application", "borrower", "key_person", "repayment"):
        return f"/bench/{way}/registry/{kind.replace('_', '')}/"
    return (
        f"/bench/plain/registry/record/?kind__exact={kind}"
        if way == "plain"
        else f"/bench/tuned/registry/{kind}/"
    )


def _admin(way: str, kinds: list[str]) -> Any:
    """Return a site of Django's admin with these lists."""
    from django.contrib import admin
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from portal.messaging.models import Message
    from portal.records.models import RECORDED_KINDS, Account, Application, Borrower, KeyPerson, Repayment
    from portal.records.rows import active_records
    from servicing.rules import US_STATES

    class Site(admin.AdminSite):
        def has_permission(self, request: HttpRequest) -> bool:
            return True

    class ListAdmin(admin.ModelAdmin[Any]):
        list_per_page = ROWS
        has_module_permission = has_view_permission = lambda *_: True

        def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
            answer = super().changelist_view(request, extra_context)
            answer.using = DJANGO  # type: ignore[attr-defined]
            return answer

    class Choices(admin.SimpleListFilter):
        choices_of: list[str]

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(one, one) for one in self.choices_of]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset

    def choices(column: str, values: list[str]) -> type[Choices]:
        return type(column, (Choices,), {"title": column, "parameter_name": column, "choices_of": values})

    site, is_tuned = Site(name=f"bench-{way}"), way == "tuned"
    record_options: dict[str, Any] = {
        "list_display": COLUMNS,
        "ordering": ["-updated_at"],
        "search_fields": ["search_text"],
        "list_filter": [choices("state", list(US_STATES))] if is_tuned else ["kind", "state"],
        "show_full_result_count": not is_tuned,
    }
    statuses = ["SUCCESS", "FAILED", "PENDING"]
    message_options = record_options | {
        "list_display": MESSAGE_COLUMNS,
        "ordering": None,
        "list_filter": [choices("status", statuses)] if is_tuned else ["event", "status", "product"],
    }
    repayment_options = record_options | {
        "list_display": REPAYMENT_COLUMNS,
        "search_fields": ["uuid"],
        "list_filter": [choices("status", ["SUCCEEDED", "SCHEDULED"])] if is_tuned else ["status", "product"],
    }
    own_options = record_options if is_tuned else record_options | {"list_filter": ["state"]}
    application_options = record_options | {
        "list_display": APPLICATION_COLUMNS,
        "list_filter": [choices("decision", ["APPROVED", "REJECTED"])] if is_tuned else ["decision"],
    }
    site.register(Application, type("Applications", (ListAdmin,), application_options))
    site.register(Borrower, type("Borrowers", (ListAdmin,), own_options | {"list_display": BORROWER_COLUMNS}))
    site.register(KeyPerson, type("People", (ListAdmin,), own_options | {"list_display": PERSON_COLUMNS}))
    site.register(Repayment, type("Repayments", (ListAdmin,), repayment_options))
    site.register(Account, type("Records", (ListAdmin,), record_options))
    site.register(Message, type("Messages", (ListAdmin,), message_options))
    for kind in kinds if is_tuned else ():
        if kind in RECORDED_KINDS:
            meta = type("Meta", (), {"proxy": True, "app_label": "registry"})
            proxy = type(kind, (Account,), {"__module__": Account.__module__, "Meta": meta})
            query = {"get_queryset": lambda self, request, kind=kind: active_records(kind)}
            site.register(proxy, type("Records", (ListAdmin,), record_options | query))
    return site
