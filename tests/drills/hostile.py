"""Sends hostile input to every form and query string that pages link to, and counts answers of 500.

A crawler follows links and collects forms and queries. They are sent with some fields replaced: invalid UTF-8, huge
numbers, impossible dates, markup, very long words, repeated and unknown names.
"""

import html
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urldefrag, urljoin, urlsplit

from django.test import Client as Browser

FORM = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.DOTALL)
FIELD = re.compile(r"<(?:input|select|textarea|button)\b([^>]*)>")
LINK = re.compile(r'\b(?:href|hx-get)="([^"]*)"')
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
# Signing out would end the run; PDFs are slow, and their pages take the same parameters.
SKIPPED = re.compile(r"/sign-out/|/sessions/|/accounts/session/|\.pdf\b|/pdf/")
WORDS = [
    "", " ", "\0", "a\0b", "\r\nSet-Cookie: a=b", "\u202e\u2066", "\ufeff", "\u2028",
    "e\u0301" * 50, "🏦" * 40, "ﬀ", "İ",
    "-1", "0", "00", "1e400", "-1e400", "NaN", "Infinity", "-0.0", "9" * 400, f"1.{'0' * 300}1", "1_000", "٣",
    "²", "½", "0x10",
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1,,2", "$1..2", "1e5", "+5", "5-",
    "2026-02-30", "0000-00-00", "0001-01-01", "9999-12-31", "10000-01-01", "1900-01-01", "2026-W01-1", "24:00",
    "23:59:60",
    "2026-11-21T10:00:00+99:00", "99999999999-01-01", "02/30/2026",
    "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364", "3f2b8c1e9d474a60b1c57e8f90a2d364",
    "{3F2B8C1E-9D47-4A60-B1C5-7E8F90A2D364}",
    "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "{{ 7*7 }}", "{% include 'base.html' %}",
    "%s%n%(x)s",
    "../../../../etc/passwd", "/" * 50, "\\", "'; DROP TABLE audit_entry; --", '" OR 1=1', "%", "_", "*",
    "(((", "[a-", "?", "~", ":",
    "=cmd|' /C calc'!A0", "@SUM(1+1)", "https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)",
    '{"a": {"$gt": ""}}', "[" * 900, '{"a":' * 900, "null", "None", "true", "undefined", "[object Object]",
    "status:", "amount:>", "due:<2026-13-01", "id:" + "a" * 300, '"unclosed', "a" * 17 + "1",
    "a " * 3000, "x" * 70_000,
]  # fmt: skip
BYTES = [
    b"\xff\xfe",
    b"\x80",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"%",
    b"%zz",
    b"\xf4\x90\x80\x80",
    b"&",
    b"=",
    b";",
]
NAMES = [
    "page",
    "q",
    "sort",
    "order",
    "panel",
    "tab",
    "limit",
    "before",
    "since",
    "next",
    "id__in",
    "__proto__",
    "a[b][]",
    "\0",
]
TARGETS = [
    "",
    "messages",
    "loan",
    "sample",
    "\u2028".encode().decode("latin-1"),
    "x" * 5000,
    "call-rows",
    "#",
]


@dataclass(frozen=True)
class Door:
    """A form, or a link with a query."""

    method: str
    path: str
    fields: tuple[tuple[str, str], ...]


@dataclass
class Attack:
    """One input as it was sent, with the error that it caused."""

    door: Door
    sent: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.door.method} {self.door.path} with {self.sent[:300]!r}: {self.wrong}"


@dataclass
class Crawl:
    """Follows links and collects the forms and queries of each page."""

    browser: Browser
    pages: int
    doors: dict[tuple[str, str, tuple[str, ...]], Door] = field(default_factory=dict)

    def __call__(self, starts: Iterable[str]) -> list[Door]:
        queue, seen = list(starts), set()
        while queue and len(seen) < self.pages:
            address = queue.pop(0)
            shape = re.sub(r"=[^&]*", "", address)
            if shape in seen or SKIPPED.search(address):
                continue
            seen.add(shape)
            answer = self.browser.get(address)
            if answer.headers.get("Content-Type", "").startswith("text/html"):
                queue += self._read(address, answer.content.decode())
        return list(self.doors.values())

    def _read(self, address: str, page: str) -> Iterator[str]:
        self._add("GET", urlsplit(address).path, parse_qsl(urlsplit(address).query, keep_blank_values=True))
        for attributes, inside in FORM.findall(page):
            shape = dict(ATTRIBUTE.findall(attributes))
            fields = [dict(ATTRIBUTE.findall(one)) for one in FIELD.findall(inside)]
            named = [(one["name"], html.unescape(one.get("value", ""))) for one in fields if "name" in one]
            action = urljoin(address, html.unescape(shape.get("action", "")))
            self._add(shape.get("method", "get").upper(), urlsplit(action).path, named)
        for link in LINK.findall(page):
            found = urldefrag(urljoin(address, html.unescape(link))).url
            if found.startswith("/") and not found.startswith(("//", "/static/")):
                yield found

    def _add(self, method: str, path: str, fields: list[tuple[str, str]]) -> None:
        if not SKIPPED.search(path):
            names = tuple(sorted({name for name, _ in fields}))
            self.doors.setdefault((method, path, names), Door(method, path, tuple(fields)))


def attack(
    browser: Browser, starts: Iterable[str], count: int, *, pages: int = 250, seed: int = 0
) -> Iterator[Attack]:
    """Send ``count`` inputs to the forms and queries reachable from these pages; yield those that cause a 500."""
    chance = random.Random(seed)
    browser.raise_request_exception = False
    doors = Crawl(browser, pages)(starts)
    forms = [door for door in doors if door.method == "POST"] or doors
    for number in range(count):
        door = chance.choice(forms if number % 2 else doors)
        path, sent, headers = (
            _hostile_path(chance, door.path),
            _hostile_fields(chance, door),
            _headers(chance),
        )
        answer = _send(browser, door.method, path, sent, headers)
        if answer.status_code >= 500:
            yield Attack(door, f"{path} {sent}", f"{answer.status_code} {answer.exc_info or ''}")


def _send(browser: Browser, method: str, path: str, sent: str, headers: dict[str, str]) -> Any:
    if method == "GET":
        return browser.get(path, QUERY_STRING=sent, headers=headers)
    return browser.generic(
        method, path, sent, content_type="application/x-www-form-urlencoded", headers=headers
    )


def _hostile_fields(chance: random.Random, door: Door) -> str:
    """Return the URL-encoded fields, some of them replaced."""
    fields = [(name, value) for name, value in door.fields if chance.random() < 0.9]
    for _ in range(chance.randint(0, 2)):
        fields.append((chance.choice([*NAMES, *(name for name, _ in door.fields)]), ""))
    changed = {chance.randrange(len(fields)) for _ in range(chance.randint(1, 3))} if fields else set()
    return "&".join(
        f"{quote(name)}={_hostile_value(chance, value) if index in changed else quote(value)}"
        for index, (name, value) in enumerate(fields)
    )


def _hostile_value(chance: random.Random, value: str) -> str:
    """Return a percent-encoded hostile value, sometimes inserted into the original one."""
    if chance.random() < 0.15:
        return (
            quote(chance.choice(BYTES)) if chance.random() < 0.5 else chance.choice(BYTES).decode("latin-1")
        )
    word = chance.choice(WORDS)
    if chance.random() < 0.3 and len(word) < 1000:
        place = chance.randint(0, len(value))
        word = value[:place] + word + value[place:]
    return quote(word)


def _hostile_path(chance: random.Random, path: str) -> str:
    """Return the path, sometimes with one part replaced."""
    parts = path.split("/")
    if chance.random() < 0.1 and len(parts) > 2:
        word = chance.choice([word for word in WORDS if len(word) < 500])
        parts[chance.randrange(1, len(parts) - 1)] = quote(word, safe="") or "x"
    return "/".join(parts)


def _headers(chance: random.Random) -> dict[str, str]:
    """Return the headers of a plain or an HTMX request."""
    if chance.random() < 0.6:
        return {}
    return {
        "HX-Request": "true",
        "HX-Target": chance.choice(TARGETS),
        "HX-Current-URL": chance.choice(["", "%", "//["]),
    }
