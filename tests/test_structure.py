"""Project-wide rules for access, forms, templates, names and wording."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.forms import Field
from django.forms.forms import BaseForm
from django.template.loader import get_template
from django.test import Client as Browser
from django.urls import URLPattern, URLResolver, get_resolver

import servicing
from portal.accounts.admin import StaffAdmin
from portal.accounts.forms import CodeForm, ConfirmCodeForm, SetUpAppForm, SignInForm
from portal.accounts.roles import ACTS, Role
from portal.records import sources
from portal.records.models import Kind
from portal.settings import BASE_DIR
from portal.ui.guard import GuardedForm, is_free_text
from servicing import Client, codec, errors
from servicing.resource import Resource
from servicing.sandbox import Sandbox
from servicing.sandbox.endpoints import OPERATIONS
from tests import given
from tests.conftest import browser_of, browser_of_superuser
from tests.counts import MAX_TEMPLATE_COLUMNS
from tests.portal import pages

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# Sign-in, sign-out, platform checks and icons need no session; the component page exists only under DEBUG.
PUBLIC_URLS = {
    "/sign-in/",
    "/sign-in/second-factor/",
    "/sign-in/passkey/",
    "/sign-in/password/",
    "/sign-in/password/1/sample/",
    "/sign-in/inactive/",
    "/sign-in/cancelled/",
    "/sign-in/failed/",
    "/sign-in/with/sample/",
    "/sign-in/with/sample/back/",
    "/sign-out/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/favicon.ico",
    "/logo",
    "/ui/",
}
# "createsuperuser" creates an administrator, whose role may change later.
SUPERUSER_ROLES = (Role.ADMIN, Role.AUDITOR, Role.VIEWER)
SAMPLES = {"uuid": "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364", "int": "1"}


@dataclass(frozen=True)
class Address:
    """An entry of the URL map with a sample URL that reaches it."""

    url: str
    view: Callable[..., Any]

    @property
    def act(self) -> str | None:
        return getattr(self.view, "act", None)


def sample_value(found: re.Match[str]) -> str:
    """Return a sample value for a part of a URL: one of its type, or its first alternative."""
    return SAMPLES.get(found[1] or "", found[1] if found[0].startswith("(") and found[1] else "sample")


def addresses(patterns: Any = None, prefix: str = "/") -> Iterator[Address]:
    """Yield every address of the portal, including the admin's."""
    for pattern in patterns if patterns is not None else get_resolver("portal.urls").url_patterns:
        plain = re.sub(r"\(\?P<\w+>(\w*).*\)", sample_value, str(pattern.pattern).strip("^$"))
        url = prefix + re.sub(r"<(?:(\w+):)?\w+>", sample_value, plain)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, url)
        elif isinstance(pattern, URLPattern):
            yield Address(url, pattern.callback)


def closed_addresses() -> list[Address]:
    """Return the portal's own addresses that need a sign-in."""
    return [a for a in addresses() if a.url not in PUBLIC_URLS and not a.url.startswith("/admin/")]


@pytest.mark.slow
class TestAccess:
    @pytest.mark.slow
    @pytest.mark.parametrize("method", METHODS)
    def test_every_closed_url_requires_sign_in(self, anonymous: Browser, method: str) -> None:
        closed = [address.url for address in addresses() if address.url not in PUBLIC_URLS]
        assert len(closed) > 60
        answers = {url: anonymous.generic(method, url) for url in closed}
        # The admin's sign-in redirects to the portal's.
        sign_ins = ("/sign-in/?next=", "/admin/login/?next=/admin/")
        wrong = [
            url for url, answer in answers.items() if not answer.get("Location", "").startswith(sign_ins)
        ]
        assert wrong == []

    def test_every_view_names_its_act(self) -> None:
        assert [address.url for address in closed_addresses() if address.act not in ACTS] == []

    def test_every_act_has_a_role_and_a_view(self) -> None:
        used = {address.act for address in closed_addresses()} | {"accounts.staff"}
        assert [act for act, (_, roles) in ACTS.items() if not roles or act not in used] == []

    def test_every_act_has_a_test_file(self) -> None:
        def files(area: str, view: str) -> list[Path]:
            area = {"summaries": "documents"}.get(area, area)  # Stored acts keep the area's old name.
            names = [f"{area}/test_{view}.py", f"{area}/test_{area}.py", f"test_{area}.py"]
            return [BASE_DIR / "tests" / "portal" / name for name in names]

        assert [act for act in ACTS if not any(file.exists() for file in files(*act.split(".")))] == []

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("person", "role"),
        [*((browser_of, role) for role in Role), *((browser_of_superuser, role) for role in SUPERUSER_ROLES)],
    )
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_a_role_opens_only_the_pages_of_its_acts(
        self, portal_service: Sandbox, role: Role, method: str, person: Callable[[Role], Browser]
    ) -> None:
        browser = person(role)
        answers = {
            address: browser.generic(method, address.url).status_code for address in closed_addresses()
        }
        wrong = [
            address.url
            for address, status in answers.items()
            if status != 405 and (status == 403) != (role not in ACTS[address.act or ""].roles)
        ]
        assert wrong == []

    @pytest.mark.slow
    @pytest.mark.parametrize("role", Role)
    def test_other_methods_do_not_bypass_roles(self, portal_service: Sandbox, role: Role) -> None:
        browser = browser_of(role)
        closed = [address.url for address in closed_addresses() if role not in ACTS[address.act or ""].roles]
        others = set(METHODS) - {"GET", "POST"}
        tried = [
            (method, url, browser.generic(method, url).status_code) for url in closed for method in others
        ]
        assert [one for one in tried if one[2] not in (403, 405)] == []

    @pytest.mark.slow
    def test_posts_require_a_csrf_token(self, portal_service: Sandbox) -> None:
        browser = browser_of(Role.SUPERVISOR, enforce_csrf_checks=True)
        answers = {url: browser.post(url).status_code for url in {a.url for a in addresses()} - {"/healthz"}}
        assert {url: status for url, status in answers.items() if status not in (403, 405, 404)} == {}

    @pytest.mark.slow
    def test_responses_are_never_cached(self, portal_service: Sandbox) -> None:
        browser = browser_of(Role.SUPERVISOR)
        answers = {address.url: browser.get(address.url).headers["Cache-Control"] for address in addresses()}
        assert [url for url, cache_control in answers.items() if "no-store" not in cache_control] == []


def templates() -> list[Path]:
    return sorted((BASE_DIR / "templates").rglob("*.html"))


def found_in_templates(find: Callable[[str], object]) -> dict[str, object]:
    """What is wrong in the text of each template, by name."""
    texts = {str(path.relative_to(BASE_DIR / "templates")): path.read_text() for path in templates()}
    return {name: found for name, text in texts.items() if (found := find(text))}


PARTIAL = re.compile(r"{% partialdef ([\w-]+)(?: inline)? %}\s*(?:{%[^%]*%}\s*|{#.*?#}\s*)*(<[^>]*>)")
# The content security policy blocks these, and a light badge has too little contrast.
FORBIDDEN = {
    "an inline script": r"<script(?![^>]*\bsrc=)",
    "an inline style": r"<style|\sstyle=",
    "an event attribute": r"<[a-z]+\s(?:[^<>]*\s)?on[a-z]+=",
    "a script in an attribute": r"hx-on|\bjs:|javascript:",
    "a light badge": r"class=\"[^\"]*-lt\b",
}
# Values are formatted by the portal's own filters, and nothing is marked safe.
DJANGO_FILTER = re.compile(r"\|(?:floatformat|intcomma|timesince|timeuntil|naturaltime|safe)\b")
TEMPLATE_SYNTAX = re.compile(r"{[{%#].*?[}%#]}", re.DOTALL)


def subclasses_of(base: type) -> Iterator[type]:
    for one in base.__subclasses__():
        yield one
        yield from subclasses_of(one)


class TestForms:
    def test_every_form_with_free_text_guards_against_ssn_and_ein(self) -> None:
        """Searches and sign-in store no input, and only the SSN and EIN fields accept such numbers."""
        list(addresses())  # Imports every module with a view, and so every form.
        own: set[Any] = {form for form in subclasses_of(BaseForm) if form.__module__.startswith("portal.")}
        own |= {StaffAdmin.form, StaffAdmin.add_form}
        free = {form for form in own if any(map(is_free_text, getattr(form, "base_fields", {}).values()))}
        assert len(free) > 20
        sign_in: set[Any] = {SignInForm, CodeForm, ConfirmCodeForm, SetUpAppForm}
        assert {form for form in free if not issubclass(form, GuardedForm)} == sign_in
        assert [form.__name__ for form in free - sign_in if not form.guards_text] == ["FilterForm"]
        takers = [field for field in subclasses_of(Field) if getattr(field, "takes_tax_numbers", False)]
        assert [field.__name__ for field in takers] == ["SecretDigitsField"]


class TestTemplates:
    def test_templates_compile(self) -> None:
        for path in templates():
            name = str(path.relative_to(BASE_DIR / "templates"))
            assert get_template(name).origin.template_name == name

    def test_no_line_is_too_long(self) -> None:
        def long_lines(text: str) -> list[int]:
            lines = enumerate(text.splitlines(), 1)
            return [number for number, line in lines if len(line) > MAX_TEMPLATE_COLUMNS]

        assert found_in_templates(long_lines) == {}

    def test_templates_have_no_forbidden_markup(self) -> None:
        def forbidden(text: str) -> list[str]:
            markup = TEMPLATE_SYNTAX.sub("", text)
            return [what for what, pattern in FORBIDDEN.items() if re.search(pattern, markup)]

        # The report is a file of its own, which the portal doesn't serve.
        assert found_in_templates(forbidden) == {"operations/first_day_alone.html": ["an inline style"]}

    def test_templates_use_only_the_portals_formats(self) -> None:
        assert found_in_templates(DJANGO_FILTER.findall) == {}

    def test_targeted_partials_have_their_name_as_id(self) -> None:
        targets = set(re.findall(r'hx-target="#([\w-]+)"', "".join(path.read_text() for path in templates())))

        def misnamed(text: str) -> list[str]:
            roots = {
                name: re.search(r'(?:\bid=|panel |follows )"([^"{]+)"', root)
                for name, root in PARTIAL.findall(text)
            }
            names = set(re.findall(r"{% partialdef ([\w-]+)", text))
            other = [name for name, found in roots.items() if found and found[1] != name]
            return [*other, *(name for name in names & targets if not roots.get(name))]

        assert found_in_templates(misnamed) == {}

    def test_every_hx_post_works_without_scripts(self) -> None:
        """Only forms, and what is in a form, post with HTMX, so that the form does the same."""

        def alone(text: str) -> list[str]:
            posts = list(re.finditer(r"<(\w+)[^>]*\bhx-post=", text))
            return [
                post[0]
                for post in posts
                if text.count("<form", 0, post.end()) == text.count("</form", 0, post.end())
            ]

        assert found_in_templates(alone) == {}


def resources(client: Client) -> dict[str, Resource]:
    return {name: value for name, value in vars(client).items() if isinstance(value, Resource)}


def methods(resource: Resource) -> list[str]:
    return [name for name in vars(type(resource)) if not name.startswith("_") and name != "iterate"]


ADDRESS = servicing.Address(
    line_1="418 Harbor Street", city="Eugene", state="OR", zip="97401", country="UNITED STATES"
)
PERSON = servicing.NewKeyPerson(
    first_name="Maya",
    last_name="Lindqvist",
    title="OWNER",
    citizenship="US",
    email="maya@harbor.example",
    phone="5415550142",
    address=ADDRESS,
)


def calls(client: Client, sandbox: Sandbox) -> dict[str, Callable[[], object]]:
    """Return a call of every client operation by name."""
    world = sandbox.world
    owner = world.borrower()
    borrower, person = owner["uuid"], owner["key_people"][0]["uuid"]
    accounts = {
        Kind.LOAN: world.loan(borrower)["uuid"],
        Kind.LINE: world.line(borrower)["uuid"],
        Kind.APPLICATION: world.line_application(borrower)["uuid"],
    }
    business = {
        "first_name": "Acme",
        "email": "a@acme.example",
        "entity": "CORPORATION",
        "phone": "5415550178",
    }
    return {
        "borrowers.create_commercial": lambda: client.borrowers.create_commercial(
            **business, ein="930184475", address=ADDRESS, key_people=[PERSON]
        ),
        "borrowers.update": lambda: client.borrowers.update(borrower, email="b@acme.example"),
        "borrowers.update_key_person": lambda: client.borrowers.update_key_person(
            borrower, person, title="DIRECTOR"
        ),
        "applications.submit": lambda: client.applications.submit(borrower, amount=Decimal(1200)),
        **{
            operation.name: partial(
                operation.read, client, borrower, accounts[operation.parent or operation.kind]
            )
            for operation in sources.OPERATIONS
            if operation.ids
        },
        "messages.list": lambda: client.messages.list(limit=5),
    }


class TestOperations:
    def test_every_client_method_has_a_sandbox_handler(
        self, service_client: Client, sandbox: Sandbox
    ) -> None:
        named = {
            f"{area}.{name}"
            for area, resource in resources(service_client).items()
            for name in methods(resource)
        }
        assert named == set(calls(service_client, sandbox)) == set(sources.BY_NAME) - {"documents.fetch"}
        assert named <= set(OPERATIONS)

    def test_every_call_is_recorded_under_its_method_name(
        self, service_client: Client, sandbox: Sandbox
    ) -> None:
        seen: list[str] = []

        class Recorder:
            def before(self, call: servicing.Call) -> None: ...

            def after(self, call: servicing.Call, outcome: servicing.Outcome) -> None:
                seen.append(call.operation)

        every = calls(service_client.with_watcher(Recorder()), sandbox)
        for call in every.values():
            call()
        assert seen == list(every)
        assert [call.operation for call in sandbox.calls] == seen

    def test_reads_send_no_content_type(self, service_client: Client, sandbox: Sandbox) -> None:
        for call in calls(service_client, sandbox).values():
            call()
        types = {call.operation: call.headers.get("Content-Type") for call in sandbox.calls}
        reads = {call.operation for call in sandbox.calls if call.method == "GET"}
        assert {operation for operation, kind in types.items() if kind is None} == reads
        assert reads == {one.name for one in sources.OPERATIONS if one.ids} | {"messages.list"}


class TestPublicApi:
    def test_every_error_and_model_is_exported(self) -> None:
        models = {cls.__name__ for cls in subclasses(codec.Model)} - {"Record"}
        failures = {cls.__name__ for cls in subclasses(errors.ServicingError)} | {"ServicingError"}
        inputs = {
            "Client",
            "NewKeyPerson",
            "UNSET",
            "Issue",
            "RemoteTime",
            "Page",
            "Watcher",
            "Call",
            "Outcome",
        }
        assert models | failures | inputs <= set(servicing.__all__)

    def test_exported_names_exist_and_are_sorted(self) -> None:
        assert servicing.__all__ == sorted(
            set(servicing.__all__), key=lambda name: (not name.isupper(), name)
        )
        assert [name for name in servicing.__all__ if not hasattr(servicing, name)] == []


def subclasses(base: type) -> set[type]:
    """Return all subclasses of a class in the client library."""
    direct = {cls for cls in base.__subclasses__() if cls.__module__.startswith("servicing.")}
    return direct.union(*map(subclasses, direct))


def test_every_test_named_in_security_md_exists() -> None:
    named = re.findall(r"`(tests/[\w/.]+)((?:::\w+)*)`", (BASE_DIR / "SECURITY.md").read_text())
    texts = {path: "".join(one.read_text() for one in python_files(BASE_DIR / path)) for path, _ in named}
    assert len(named) > 30
    missing = [
        (path, name)
        for path, names in named
        for name in names.split("::")[1:]
        if not re.search(rf"(?:class|def) {name}\b", texts[path])
    ]
    assert missing + [path for path, text in texts.items() if not text] == []


def test_every_file_and_helper_named_for_contributors_exists() -> None:
    text = "".join((BASE_DIR / name).read_text() for name in ("CONTRIBUTING.md", "portal/DECISIONS.md"))
    files = re.findall(r"`((?:portal|servicing|templates|static|tests|docker)/[\w./*-]+)`", text)
    helpers = set(re.findall(r"\b(given|pages)\.(\w+)\(", text))
    assert len(files) > 60
    assert len(helpers) > 1
    assert [path for path in files if not any(BASE_DIR.glob(path))] == []
    modules = {"given": given, "pages": pages}
    assert [(module, name) for module, name in helpers if not hasattr(modules[module], name)] == []


DOCUMENTS = [path for pattern in ("*.md", "*/*.md", "tests/bench/*.md") for path in BASE_DIR.glob(pattern)]


MAKEFILE = (BASE_DIR / "Makefile").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(set(re.findall(r"-m (tests[.\w]*)", MAKEFILE))))
def test_every_command_of_the_makefile_starts_without_settings(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    main = f"{module}.__main__" if (BASE_DIR / module.replace(".", "/")).is_dir() else module
    command = [sys.executable, "-c", f"import {main}"]
    subprocess.run(command, cwd=BASE_DIR, env=environment, check=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_document_links_resolve(document: Path) -> None:
    text = document.read_text()
    titles = re.findall(r"^#+ (.+)$", text.lower(), re.MULTILINE)
    anchors = {"#" + re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}
    links = {link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link}
    files = {link for link in links if not link.startswith("#")}
    assert sorted(links - files - anchors) == []
    assert sorted(link for link in files if not (document.parent / link).exists()) == []


def test_the_readme_stays_short() -> None:
    assert len((BASE_DIR / "README.md").read_bytes()) <= 8 * 1024


# Readers cannot guess what these names mean.
UNCLEAR_NAMES = {
    "told", "tells", "kept", "made", "held", "ended", "apart", "here", "few", "ahead", "theirs", "saw", "hasty",
    "settle",
}  # fmt: skip


def names_in(path: Path) -> set[str]:
    """Return the names of a module, its package, functions, classes and arguments."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    definitions = {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    return (
        definitions
        | {node.arg for node in nodes if isinstance(node, ast.arg)}
        | {path.stem, path.parent.name}
    )


@pytest.mark.slow
def test_code_has_no_unclear_names() -> None:
    paths = [path for folder in ("portal", "servicing") for path in python_files(BASE_DIR / folder)]
    found = {
        (str(path.relative_to(BASE_DIR)), name)
        for path in paths
        if "migrations" not in path.parts
        for name in names_in(path) & UNCLEAR_NAMES
    }
    assert len(paths) > 200
    assert sorted(found) == []


# Unclear or non-US words that users must not see; see "Words" in CONTRIBUTING.md.
UNCLEAR_WORDS = re.compile(
    r"\b(?:is|was|were) told\b|told here|known here|known to this desk|this desk|put aside|kept nowhere|of theirs"
    r"|\bwhoever\b|\beverybody\b|every entity|read again|the last word|set out to|came of it|makes nothing of it"
    r"|an equal one|hand-over|\bseal(?:s|ed|ing)?\b|\bsettl(?:e|es|ed|ing)\b|utilisation|e-mail|\bidentifiers?\b"
    r"|recognise|security key",
    re.IGNORECASE,
)
TEMPLATE_COMMENT = re.compile(r"{#.*?#}|{% comment %}.*?{% endcomment %}", re.DOTALL)
QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
SHOWN_ATTRIBUTE = re.compile(r"\b(?:title|aria-label|placeholder|alt)=\"([^\"]*)\"")
SCRIPT_TEXT = re.compile(r"\"[^\"\n]* [^\"\n]*\"|`[^`]* [^`]*`")


def template_texts(markup: str) -> Iterator[str]:
    """Yield each text and visible attribute of a template, including the texts passed to its tags."""
    markup = TEMPLATE_COMMENT.sub("", markup)
    markup = TEMPLATE_SYNTAX.sub(
        lambda tag: " ".join(one or other for one, other in QUOTED.findall(tag[0])), markup
    )
    yield from SHOWN_ATTRIBUTE.findall(markup)
    yield from re.split(r"<[^>]*>", markup)


def python_texts(path: Path) -> Iterator[str]:
    """Yield each string of several words or one capitalized word, without docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    strings = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in statements]
    for node in strings:
        if isinstance(node.value, str) and (" " in node.value.strip() or node.value.istitle()):
            yield node.value


def shown_texts() -> Iterator[tuple[str, str]]:
    """Yield each text that people read with its file: from templates, code, scripts and documents."""
    for path in (BASE_DIR / "templates").rglob("*.*"):
        yield from ((path.name, text) for text in template_texts(path.read_text()))
    for folder in ("portal", "servicing"):
        for path in python_files(BASE_DIR / folder):
            if "migrations" not in path.parts:
                yield from ((str(path.relative_to(BASE_DIR)), text) for text in python_texts(path))
    for path in (BASE_DIR / "static/js").glob("*.js"):
        yield from ((path.name, text) for text in SCRIPT_TEXT.findall(path.read_text()))
    yield from ((path.name, path.read_text()) for path in DOCUMENTS)


def unclear_words(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    joined = [(name, " ".join(text.split())) for name, text in texts]
    return [(name, found[0]) for name, text in joined for found in UNCLEAR_WORDS.finditer(text)]


def test_every_app_with_pages_declares_what_it_adds_to_shared_pages() -> None:
    with_pages = {path.parent.name for path in (BASE_DIR / "portal").glob("*/urls.py")} - {"ui"}
    assert with_pages - {path.parent.name for path in (BASE_DIR / "portal").glob("*/area.py")} == set()


@pytest.mark.slow
def test_no_screen_uses_an_unclear_word() -> None:
    texts = list(shown_texts())
    assert len(texts) > 9000
    assert unclear_words(texts) == []


@pytest.mark.parametrize(
    "markup",
    [
        "{% block title %}Seal{% endblock %}<p>Fine</p>",
        "<p>It\n  was\n  told.</p>",
        '{% copy_button entry.hash "the seal" %}',
        '<a title="Settle it">Fine</a>',
        "{{ name|default:'everybody' }}",
        "Your e-mail address",
    ],
)
def test_unclear_words_are_found_anywhere_in_a_template(markup: str) -> None:
    assert unclear_words(("a template", text) for text in template_texts(markup))


def python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []


CALENDAR_TODAY = re.compile(
    r"\blocaldate\(\)|\bdate\.today\(|\b(now|localtime)\([^()]*\)\.date\(\)|\bdatetime\.today\("
)
# Displayed timestamps are compared with today in the user's own time zone.
ALLOWED_CALENDAR_TODAY = {"portal/ui/wording.py": ["localdate()"]}


def test_today_always_means_the_business_date() -> None:
    found = {
        str(path.relative_to(BASE_DIR)): [one.group() for one in CALENDAR_TODAY.finditer(path.read_text())]
        for folder in ("portal", "servicing")
        for path in (BASE_DIR / folder).rglob("*.py")
        if "sandbox" not in path.parts and "migrations" not in path.parts
    }
    assert {path: calls for path, calls in found.items() if calls} == ALLOWED_CALENDAR_TODAY


def test_an_older_python_reads_the_setup_as_far_as_its_version_check() -> None:
    source = (BASE_DIR / "docker/setup.py").read_text()
    tree = ast.parse(source, feature_version=(3, 6))
    first = next(node for node in tree.body if not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom))
    assert isinstance(first, ast.If)
    assert "sys.version_info < (3, 11)" in ast.unparse(first.test)
