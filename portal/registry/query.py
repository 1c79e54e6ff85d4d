"""Reads what staff type or paste into a search box: words, identifiers, phones, amounts, operators, exact phrases.

Text in, :class:`Query` out. Whatever is not understood is named in its ``problems``, never dropped in silence.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import MAXYEAR, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Q
from django.utils import timezone

from portal.registry.models import SEARCHED_KINDS, Kind, Record
from portal.registry.search_index import UNMARKED
from portal.ui import wording
from servicing.rules import US_STATES

MAX_LENGTH: Final = 500
MAX_TERMS: Final = 8
MAX_UUIDS: Final = 5
FIRST_GROUP: Final = 8
EARLIEST_YEAR: Final = 1970
TOO_MANY_IDENTIFIERS: Final = f"Only the first {MAX_UUIDS} identifiers were looked up."

# Any of them will do; all terms of one must occur.
Alternatives = tuple[tuple[str, ...], ...]

_UUID = re.compile(
    r"(?<![0-9a-f])([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})(?![0-9a-f])",
    re.IGNORECASE,
)
_USUAL = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What an identifier begins with, with or without its dashes: in any text at least its first group, alone less of it.
_START = re.compile(r"(?<!\w)[0-9a-f]{8}[0-9a-f-]{0,27}(?!\w)")
_SHORT_START = re.compile(r"[^\w$%+-]*([0-9a-f]{4,7})[^\w%]*")
_SCHEME = re.compile(r"\b(?:tel|mailto):", re.IGNORECASE)
_OPERATOR = re.compile(r'(?<!\S)([a-z][a-z_]*):(?!//)("[^"]*"|\S*)', re.IGNORECASE)
# Elsewhere it stands for any letters; a lone one, one inside a word or in quotation marks may be meant.
_STAR = re.compile(r"(?<!\S)\*+(?=[^\s*])|(?<=[^\s*])\*+(?!\S)")
_PHRASE = re.compile(r'"([^"]*)"')
_EMAIL = re.compile(r"[^\s@<>\"(),;:]+@[^\s@<>\"(),;:]+\.[a-z0-9-]+")
# Not what stands behind the code of another country.
_PHONE = re.compile(
    r"(?<![\w.,])(?<!\+\d\d[\s.-])(?<!\+\d\d\d[\s.-])(?:(?:\+|00[\s.-]*|011[\s.-]*)?1[\s./-]*)?\(?[2-9]\d{2}\)?[\s./-]*\d{3}[\s./-]*\d{4}(?![\da-wyz]|[.,]\d)"
)
_PART_OF_PHONE = re.compile(r"[\d(+][\d\s().-]{5,}\d")
_DOLLARS = re.compile(r"\$\s?(\d[\d,]*(?:\.\d+)?(?:[km](?![a-z]))?)")
_AMOUNT = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d{1,4})?|\d{1,15}(?:\.\d{1,4})?)([km]?)", re.IGNORECASE)
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000}
# What has another form than a reference: a nine-digit ZIP code, a day.
_REFERENCE = re.compile(
    r"(?<![\w-])(?!\d{5}-\d{4}\b|\d{4}-\d\d-\d\d\b)(?=(?:[a-z-]*\d){4})[0-9a-z-]{8,}(?![\w-])"
)
_COMPARED = re.compile(r"(>=|<=|>|<|=)?\s*(.*)", re.DOTALL)
_LOOKUPS = {">=": "__gte", "<=": "__lte", ">": "__gt", "<": "__lt", "=": "", None: ""}
_ZIP = re.compile(r"\d{5}(-\d{4})?")
_PLAIN = str.maketrans(dict.fromkeys("‐‑‒–—−", "-") | dict.fromkeys("‘’ʼ", "'"))


@dataclass(frozen=True, kw_only=True)
class Query:
    """What a typed text asks for."""

    text: str = ""
    alternatives: Alternatives = ()
    uuids: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    """What identifiers may begin with."""
    amount: Decimal | None = None
    kinds: tuple[Kind, ...] = tuple(SEARCHED_KINDS)
    conditions: Q = field(default_factory=Q)
    order: str = "-updated_at"
    """In which order to show what matches only conditions."""
    problems: tuple[str, ...] = ()
    name: str = ""
    """The text as it may name somebody, if it holds nothing but words."""
    read_as: str = ""
    """What a pasted text was taken for, in words, where the rest of it does not count."""

    @property
    def has_text(self) -> bool:
        """Whether it looks for anything but what operators ask."""
        return bool(self.alternatives) or self.amount is not None

    @property
    def is_limited(self) -> bool:
        """Whether only some kinds of record are meant."""
        return len(self.kinds) < len(SEARCHED_KINDS)

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing at all."""
        return not (self.has_text or self.conditions or self.is_limited)

    @property
    def words(self) -> list[str]:
        """What a match may be marked by."""
        identifiers = (start[:FIRST_GROUP] for start in (*self.starts, *self.uuids))
        return list(dict.fromkeys([*(term for terms in self.alternatives for term in terms), *identifiers]))


def fold(text: str) -> str:
    """The form in which texts are compared: no case, no accents, one kind of dash and of apostrophe."""
    if text.isascii():
        return text.lower()  # Most texts; any other takes ten times as long.
    spread = unicodedata.normalize("NFKD", text.translate(_PLAIN).casefold())
    return "".join(character for character in spread if not unicodedata.combining(character))


def uuids_in(text: str) -> list[str]:
    """The identifiers in a pasted text, in their usual form."""
    return list(dict.fromkeys("-".join(found.groups()).lower() for found in _UUID.finditer(text)))


def uuid_in(text: str) -> str | None:
    """The first identifier in a pasted text, if there is one."""
    return next(iter(uuids_in(text)), None)


def is_uuid(text: str) -> bool:
    """Whether it is nothing but an identifier in its usual form, as the service gives them."""
    return bool(_USUAL.fullmatch(text))


def read(text: str, *, operators: bool = True) -> Query:
    """What the text asks for. Without ``operators`` a colon and a quotation mark mean nothing."""
    typed = " ".join(_printable(text).split())
    problems = [f"Only the first {MAX_LENGTH} characters were read."] if len(typed) > MAX_LENGTH else []
    typed = typed[:MAX_LENGTH]
    rest, asked = _take_operators(_SCHEME.sub(" ", typed)) if operators else (typed, _Asked())
    starred = [f"“{word}”" for word in rest.split() if _STAR.search(word)][:MAX_TERMS]
    rest = _STAR.sub("", rest)
    folded = fold(rest).translate(UNMARKED).strip()
    meant = _recognised(folded, phrases=operators)
    starts = () if meant.uuids else _starts(folded)
    if len(starts) > MAX_UUIDS:
        problems.append(TOO_MANY_IDENTIFIERS)
    is_name = meant.name and asked.may_name and not any(map(_is_no_word, starts))
    if starred and not meant.read_as:
        problems.append(f"Read without asterisks: {', '.join(starred)}. A word is found wherever it stands.")
    return replace(
        meant,
        text=typed,
        name=" ".join(rest.replace('"', " ").split()) if is_name else "",
        kinds=tuple(kind for kind in SEARCHED_KINDS if kind in asked.kinds),
        conditions=asked.conditions,
        order=asked.order,
        problems=(*problems, *asked.problems, *meant.problems),
        starts=starts[:MAX_UUIDS],
    )


def _starts(text: str) -> tuple[str, ...]:
    """With what identifiers may begin that are meant, in the form of those."""
    alone = _SHORT_START.fullmatch(text)
    found = [alone[1]] if alone else _START.findall(text)
    return tuple(dict.fromkeys(map(_grouped, found)))


def _is_no_word(start: str) -> bool:
    return len(start) >= FIRST_GROUP and any(map(str.isdigit, start))


def _grouped(start: str) -> str:
    """It with dashes where those of an identifier are."""
    digits = start.replace("-", "")
    groups = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
    return "-".join(filter(None, groups))


def _printable(text: str) -> str:
    kept = text[: MAX_LENGTH * 20].encode("utf-8", "ignore").decode()
    return "".join(" " if unicodedata.category(one) in ("Cc", "Cf") else one for one in kept)


# --- What the words are: the most telling reading of a text without operators ---


def _recognised(text: str, *, phrases: bool) -> Query:
    if uuids := tuple(uuids_in(text)):
        left = len(uuids) > MAX_UUIDS
        problems = (TOO_MANY_IDENTIFIERS,) if left else ()
        uuids = uuids[:MAX_UUIDS]
        return Query(uuids=uuids, alternatives=tuple((uuid,) for uuid in uuids), problems=problems)
    if found := _EMAIL.search(text):
        return _pasted(text, found[0], f"the e-mail address {found[0]}")
    if found := _PHONE.search(text):
        digits = _digits(found[0])[-10:]
        query = _pasted(text, found[0], f"the phone number {wording.phone(digits)}")
        return replace(query, alternatives=((digits,),), amount=_money(text))
    if found := _DOLLARS.search(text):
        amount = _money(found[1])
        return replace(
            _pasted(text, found[0], f"the amount {wording.money(amount)}"), alternatives=(), amount=amount
        )
    if (amount := _money(text)) is not None:
        return Query(amount=amount, alternatives=((text,),) if text.isdigit() else ())
    if _PART_OF_PHONE.fullmatch(text):
        return Query(alternatives=((_digits(text),), tuple(text.split()[:MAX_TERMS])))
    if (found := _REFERENCE.search(text)) and " " in text and '"' not in text:
        query = _pasted(text, found[0], f"the reference {found[0]}, or as words")
        return replace(query, alternatives=(*query.alternatives, tuple(text.split()[:MAX_TERMS])))
    return _words(text, phrases=phrases)


def _pasted(text: str, found: str, words: str) -> Query:
    return Query(alternatives=((found,),), read_as="" if text == found else words)


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _money(text: str) -> Decimal | None:
    """An amount as people write it, such as 25,000 or 25k."""
    found = _AMOUNT.fullmatch(text)
    return Decimal(found[1].replace(",", "")) * _THOUSANDS[found[2].lower()] if found else None


def _words(text: str, *, phrases: bool) -> Query:
    quoted = [phrase.strip() for phrase in _PHRASE.findall(text)] if phrases else []
    loose = _PHRASE.sub(" ", text).replace('"', " ") if phrases else text
    # What stands beside words is not looked for: “Garcia, Maria”, “Alvarado & Lindgren”.
    words = (word for one in loose.split() if any(map(str.isalnum, word := one.strip(",;()"))))
    terms = tuple(dict.fromkeys([*filter(None, quoted), *words])) or tuple(loose.split())
    problems = (f"Only the first {MAX_TERMS} words were used.",) if len(terms) > MAX_TERMS else ()
    return Query(alternatives=_with_state(terms[:MAX_TERMS]), name=text, problems=problems)


def _with_state(terms: tuple[str, ...]) -> Alternatives:
    """The terms, and again with the state's name for the code that ends a place, as in “Austin, TX 78702”."""
    if not terms:
        return ()
    place, after = (terms[:-1], terms[-1:]) if _ZIP.fullmatch(terms[-1]) else (terms, ())
    state = US_STATES.get(place[-1].rstrip(".").upper()) if len(place) > 1 else None
    return (terms, (*place[:-1], fold(state), *after)) if state else (terms,)


# --- Operators ---


class NotUnderstood(ValueError):
    """Why a value means nothing here, as a sentence."""


@dataclass
class _Asked:
    """What the operators of a text ask for together."""

    types: set[Kind] = field(default_factory=set)
    possible: set[Kind] = field(default_factory=lambda: set(SEARCHED_KINDS))
    conditions: Q = field(default_factory=Q)
    order: str = Query.order
    problems: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> set[Kind]:
        return self.possible & self.types if self.types else self.possible

    @property
    def may_name(self) -> bool:
        """Whether the words beside the operators may be the name of a borrower."""
        return not self.problems and Kind.BORROWER in self.kinds

    def take(self, name: str, value: str) -> None:
        if not value:
            raise NotUnderstood("Write its value right after the colon.")
        if name == "type":
            self.types.add(_kind(value))
            return
        kinds, condition = OPERATORS[name](value)
        self.possible &= set(kinds)
        self.conditions &= condition
        self.order = ORDERS.get(name, self.order)


def _take_operators(text: str) -> tuple[str, _Asked]:
    """The text without its operators, and what they ask for. What is no operator stays in the text."""
    asked = _Asked()
    pasted = bool(uuids_in(text))

    def take(found: re.Match[str]) -> str:
        name, value = found[1].lower(), found[2].strip('"').strip()
        if name not in NAMES:
            if value and not pasted:
                asked.problems.append(
                    f"“{name}:” is no operator: there are {_listed(NAMES)}. “{found[0]}” was searched for as a word."
                )
            return found[0] if value else found[1]
        try:
            asked.take(name, value)
        except NotUnderstood as reason:
            asked.problems.append(f"“{found[0]}” was left out. {reason}")
        return " "

    rest = _OPERATOR.sub(take, text)
    if not asked.kinds:
        asked.problems.append("Nothing can match: no kind of record has all that was asked for.")
    return rest, asked


def _kind(value: str) -> Kind:
    if kind := KINDS.get(_key(value)):
        return kind
    names = ("borrower", "person", "application", "loan", "loc", "repayment")
    raise NotUnderstood(f"There is no such kind of record: there are {_listed(names)}.")


def _status(value: str) -> tuple[Iterable[Kind], Q]:
    kinds = [Kind.BORROWER, Kind.APPLICATION, Kind.LOAN, Kind.LINE, Kind.REPAYMENT]
    status = _key(value).upper()
    if status in ("DELINQUENT", "PAST_DUE"):  # of a repayment the flag says that it failed
        return [Kind.BORROWER, Kind.LOAN, Kind.LINE], Q(flagged__in=[True])
    # The service may have statuses that nobody foresaw: whatever it once told can be asked for.
    told = Record.objects.filter(kind__in=kinds, status=status, archived_at__isnull=True)
    if status not in wording.STATUSES and not told.exists():
        raise NotUnderstood(f"No record has this status. Among others there are {_listed(STATUSES)}.")
    return kinds, Q(status=status)


def _state(value: str) -> tuple[Iterable[Kind], Q]:
    codes = {_key(name): code for code, name in US_STATES.items()} | {
        code.lower(): code for code in US_STATES
    }
    if code := codes.get(_key(value)):
        return [Kind.BORROWER, Kind.KEY_PERSON, Kind.LOAN], Q(state=code)
    raise NotUnderstood(
        "It is no US state or territory. Give its two letters or its name, such as TX or texas."
    )


def _past_due(value: str) -> tuple[Iterable[Kind], Q]:
    lookup, text = _comparison(value)
    if (amount := _money(text.removeprefix("$"))) is None:
        raise NotUnderstood("It is no amount. Write it like past_due:>0 or past_due:<=1,500.00.")
    return [Kind.BORROWER, Kind.LINE], Q(**{f"past_due{lookup}": amount})


def _created(value: str) -> tuple[Iterable[Kind], Q]:
    lookup, text = _comparison(value)
    first, last = _span(text)
    start, end = midnight(first), midnight(last + timedelta(days=1))
    conditions = {
        "__gt": Q(created_at__gte=end),
        "__gte": Q(created_at__gte=start),
        "__lt": Q(created_at__lt=start),
        "__lte": Q(created_at__lt=end),
        "": Q(created_at__gte=start, created_at__lt=end),
    }
    return SEARCHED_KINDS, conditions[lookup]


def _span(text: str) -> tuple[date, date]:
    """The first and the last day of a day, a week or a month."""
    today, one, week = timezone.localdate(), timedelta(days=1), timedelta(days=7)
    monday, month = today - timedelta(days=today.weekday()), today.replace(day=1)
    spans = {
        "today": (today, today),
        "yesterday": (today - one, today - one),
        "this_week": (monday, monday + week - one),
        "last_week": (monday - week, monday - one),
        "this_month": (month, (month + timedelta(days=31)).replace(day=1) - one),
        "last_month": ((month - one).replace(day=1), month - one),
    }
    return spans.get(_key(text)) or (calendar_day(text),) * 2


def calendar_day(text: str) -> date:
    """A date written ``YYYY-MM-DD``, of a year in which this desk can have known anything."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if not EARLIEST_YEAR <= day.year < MAXYEAR:
        raise NotUnderstood(
            "It is no day. Write it like 2026-11-30, or today, yesterday, this-week, last-month."
        )
    return day


def midnight(day: date) -> datetime:
    """When a day begins for whoever is looking."""
    return timezone.make_aware(datetime.combine(day, time.min))


def _comparison(value: str) -> tuple[str, str]:
    sign, text = _COMPARED.fullmatch(value).groups()  # type: ignore[union-attr]  # it matches every text
    return _LOOKUPS[sign], text


def _key(text: str) -> str:
    return re.sub(r"[\s-]+", "_", text.strip().lower())


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"


KINDS: Final[Mapping[str, Kind]] = {
    name: kind
    for kind, names in {
        Kind.BORROWER: "borrower borrowers business individual",
        Kind.KEY_PERSON: "person people key_person key_people",
        Kind.APPLICATION: "application applications",
        Kind.LOAN: "loan loans",
        Kind.LINE: "loc locs line lines line_of_credit",
        Kind.REPAYMENT: "repayment repayments payment payments",
    }.items()
    for name in names.split()
}
STATUSES: Final = ("active", "approved", "rejected", "open", "scheduled", "succeeded", "failed", "delinquent")
OPERATORS: Final[Mapping[str, Callable[[str], tuple[Iterable[Kind], Q]]]] = {
    "status": _status,
    "state": _state,
    "past_due": _past_due,
    "created": _created,
}
# What is asked for by a figure is shown by it, the most first.
ORDERS: Final[Mapping[str, str]] = {"past_due": "-past_due", "created": "-created_at"}
NAMES: Final = ("type", *OPERATORS)
