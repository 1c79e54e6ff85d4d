"""Parses what staff type or paste into a search box: words, IDs, phones, amounts, operators, exact phrases.

Turns text into a :class:`Query`. Whatever is not understood is named in its ``problems``, never silently dropped.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import MAXYEAR, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import Final

from django.db.models import F, OrderBy, Q
from django.utils import timezone

from portal.accounts.models import User
from portal.core.areas import areas
from portal.core.business_date import business_date
from portal.core.folding import fold, folded_key, join_initials
from portal.records.models import SEARCHED_KINDS, Kind
from portal.records.rows import distinct_values
from portal.ui import wording
from servicing.rules import US_STATES
from servicing.words import normal_word

MAX_LENGTH: Final = 500
MAX_TERMS: Final = 8
MAX_UUIDS: Final = 5
FIRST_GROUP: Final = 8
MAX_CITIES: Final = 10_000
EARLIEST_YEAR: Final = 1970
TOO_MANY_IDENTIFIERS: Final = f"Only the first {MAX_UUIDS} IDs were looked up."

# Alternatives, of which one must match; all of its terms must occur.
Alternatives = tuple[tuple[str, ...], ...]

_UUID = re.compile(
    r"(?<![0-9a-f])([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})(?![0-9a-f])",
    re.IGNORECASE,
)
_USUAL = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The beginning of an ID, with or without dashes: at least its first group within a text, less if alone.
_START = re.compile(r"(?<!\w)[0-9a-f]{8}[0-9a-f-]{0,27}(?!\w)")
_SHORT_START = re.compile(r"[^\w$%+-]*([0-9a-f]{4,7})[^\w%]*")
_SCHEME = re.compile(r"\b(?:tel|mailto):", re.IGNORECASE)
_OPERATOR = re.compile(r'(?<!\S)([a-z][a-z_]*):(?!//)("[^"]*"|\S*)', re.IGNORECASE)
# A wildcard elsewhere. A lone one, or one inside a word or quotation marks, may be meant literally.
_STAR = re.compile(r"(?<!\S)\*+(?=[^\s*])|(?<=[^\s*])\*+(?!\S)")
_PHRASE = re.compile(r'"([^"]*)"')
_EMAIL = re.compile(r"[^\s@<>\"(),;:]+@[^\s@<>\"(),;:]+\.[a-z0-9-]+")
# Not after the code of another country.
_PHONE = re.compile(
    r"(?<![\w.,])(?<!\+\d\d[\s.-])(?<!\+\d\d\d[\s.-])(?:(?:\+|00[\s.-]*|011[\s.-]*)?1[\s./-]*)?\(?[2-9]\d{2}\)?[\s./-]*\d{3}[\s./-]*\d{4}(?![\da-wyz]|[.,]\d)"
)
_PART_OF_PHONE = re.compile(r"[\d(+][\d\s().-]{5,}\d")
# Three decimals are no amount, because “25.000” may mean thousands.
_CENTS = r"(?:\.\d{1,2}(?!\d)|\.\d{1,4}(?=[km](?![a-z])))?(?![.,]?\d)"
_DOLLARS = re.compile(rf"\$\s?(\d[\d,]*{_CENTS}(?:[km](?![a-z]))?)")
_AMOUNT = re.compile(rf"((?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,15}}){_CENTS})([km]?)", re.IGNORECASE)
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000}
# Not a reference but a nine-digit ZIP code or a date.
_REFERENCE = re.compile(
    r"(?<![\w-])(?!\d{5}-\d{4}\b|\d{4}-\d\d-\d\d\b)(?=(?:[a-z-]*\d){4})[0-9a-z-]{8,}(?![\w-])"
)
_COMPARED = re.compile(r"(>=|<=|>|<|=)?\s*(.*)", re.DOTALL)
_LOOKUPS = {">=": "__gte", "<=": "__lte", ">": "__gt", "<": "__lt", "=": "", None: ""}
# Few addresses have the last four digits of a ZIP code.
_LONG_ZIP = re.compile(r"^(\d{5})-\d{4}$")
_BESIDE_DATE_PARTS = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b|[.,]|(?<=sep)t\b", re.IGNORECASE)
_DATE_FORMATS: Final = (
    *("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%m/%d/%y", "%m-%d-%Y", "%m-%d-%y"),
    *(
        "%b %d %Y",
        "%B %d %Y",
        "%d %b %Y",
        "%d %B %Y",
        "%b %d %y",
        "%d %b %y",
        "%d-%b-%Y",
        "%d-%b-%y",
        "%Y %b %d",
    ),
)
_DOTTED_DATE: Final = re.compile(r"\d{1,4}\.\d{1,2}\.\d{2,4}", re.ASCII)
_WEEKDAY: Final = re.compile(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b[\s,.]*", re.IGNORECASE)
_PLAIN = str.maketrans(dict.fromkeys("‐‑‒–—−", "-") | dict.fromkeys("“”„‟«»", '"'))


@dataclass(frozen=True, kw_only=True)
class Query:
    """The meaning of a typed text."""

    text: str = ""
    alternatives: Alternatives = ()
    uuids: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    """The prefixes of IDs."""
    phone: str = ""
    """Its ten digits."""
    amount: Decimal | None = None
    day: date | None = None
    kinds: tuple[Kind, ...] = tuple(SEARCHED_KINDS)
    conditions: Q = field(default_factory=Q)
    order: str | OrderBy = "-updated_at"
    """The order of results if there are only conditions."""
    problems: tuple[str, ...] = ()
    name: str = ""
    """The text as a possible name, if it has only words."""
    read_as: str = ""
    """What a pasted text was recognized as, in words, if the rest of it is ignored."""

    @property
    def has_text(self) -> bool:
        """Whether it has anything besides operators."""
        return bool(self.alternatives) or self.day is not None or self.amount is not None

    @property
    def is_limited(self) -> bool:
        return len(self.kinds) < len(SEARCHED_KINDS)

    @property
    def is_empty(self) -> bool:
        return not (self.has_text or self.conditions or self.is_limited)

    @property
    def words(self) -> list[str]:
        identifiers = (start[:FIRST_GROUP] for start in (*self.starts, *self.uuids))
        return list(dict.fromkeys([*(term for terms in self.alternatives for term in terms), *identifiers]))


def _simplified(text: str) -> str:
    """The text in lower case with one kind of dash and of quotation mark, in which IDs, dates and phrases are found."""
    return unicodedata.normalize("NFKC", text.translate(_PLAIN)).lower()


def uuids_in(text: str) -> list[str]:
    """The IDs in a pasted text, in canonical form."""
    return list(dict.fromkeys("-".join(found.groups()).lower() for found in _UUID.finditer(text)))


def uuid_in(text: str) -> str | None:
    """The first ID in a pasted text, if there is one."""
    return next(iter(uuids_in(text)), None)


def is_uuid(text: str) -> bool:
    """Whether the text is exactly one ID in canonical form, as the service sends them."""
    return bool(_USUAL.fullmatch(text))


def parse_query(text: str, *, operators: bool = True) -> Query:
    """Parse a text. Without ``operators``, colons and quotation marks have no meaning."""
    typed = " ".join(_printable(text).split())
    problems = [f"Only the first {MAX_LENGTH} characters were used."] if len(typed) > MAX_LENGTH else []
    typed = typed[:MAX_LENGTH]
    rest, asked = (
        _take_operators(_SCHEME.sub(" ", typed.translate(_PLAIN))) if operators else (typed, _Operators())
    )
    starred = [f"“{word}”" for word in rest.split() if _STAR.search(word)][:MAX_TERMS]
    rest = _STAR.sub("", rest)
    simplified = _simplified(rest).strip()
    meant = _read_words_or_number(simplified, phrases=operators)
    starts = () if meant.uuids else _id_prefixes(simplified)
    if len(starts) > MAX_UUIDS:
        problems.append(TOO_MANY_IDENTIFIERS)
    is_name = meant.name and asked.may_name and not any(map(_looks_like_id, starts))
    if starred and not meant.read_as:
        problems.append(f"Searched without asterisks: {', '.join(starred)}. Words match anywhere.")
    return replace(
        meant,
        alternatives=_folded(meant.alternatives),
        text=typed,
        name=" ".join(rest.replace('"', " ").split()) if is_name else "",
        kinds=tuple(kind for kind in SEARCHED_KINDS if kind in asked.kinds),
        conditions=asked.conditions,
        order=asked.order,
        problems=(*problems, *asked.problems, *meant.problems),
        starts=starts[:MAX_UUIDS],
    )


def _folded(alternatives: Alternatives) -> Alternatives:
    """The alternatives in the form of stored texts, without words that folding removes.

    A text of nothing else stays, and so finds nothing.
    """
    folded = (tuple(dict.fromkeys(filter(None, map(fold, terms)))) for terms in alternatives)
    return tuple(dict.fromkeys(filter(None, folded))) or alternatives


def _id_prefixes(text: str) -> tuple[str, ...]:
    """The prefixes of IDs that the text may mean, in canonical form."""
    alone = _SHORT_START.fullmatch(text)
    found = [alone[1]] if alone else _START.findall(text)
    return tuple(dict.fromkeys(map(_with_dashes, found)))


def _looks_like_id(start: str) -> bool:
    return len(start) >= FIRST_GROUP and any(map(str.isdigit, start))


def _with_dashes(start: str) -> str:
    """The prefix with an ID's dashes."""
    digits = start.replace("-", "")
    groups = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
    return "-".join(filter(None, groups))


def _printable(text: str) -> str:
    short = text[: MAX_LENGTH * 20].encode("utf-8", "ignore").decode()
    return "".join(" " if unicodedata.category(one) in ("Cc", "Cf") else one for one in short)


# --- What the words are: the most specific reading of a text without operators ---


def _read_words_or_number(text: str, *, phrases: bool) -> Query:
    if uuids := tuple(uuids_in(text)):
        left = len(uuids) > MAX_UUIDS
        problems = (TOO_MANY_IDENTIFIERS,) if left else ()
        uuids = uuids[:MAX_UUIDS]
        return Query(uuids=uuids, alternatives=tuple((uuid,) for uuid in uuids), problems=problems)
    if day := typed_day(text):
        # Texts have dates as screens show them, so each spelling finds the same.
        spellings = (_words(one, phrases=phrases).alternatives for one in (text, str(wording.day(day))))
        alternatives = tuple(dict.fromkeys(chain.from_iterable(spellings)))
        return Query(day=day, alternatives=alternatives, read_as=f"the date {wording.day(day)}, or as words")
    if found := _EMAIL.search(text):
        return _found_in_text(text, found[0], f"the email address {found[0]}")
    if found := _PHONE.search(text):
        digits = _digits(found[0])[-10:]
        query = _found_in_text(text, found[0], f"the phone number {wording.phone(digits)}")
        return replace(query, alternatives=((digits,),), phone=digits, amount=_money(text))
    if found := _DOLLARS.search(text):
        amount = _money(found[1])
        if text == found[0]:
            return Query(alternatives=_words(found[1], phrases=phrases).alternatives, amount=amount)
        # A name may have an amount too: “$1 Store”.
        spellings = (_words(one, phrases=phrases).alternatives for one in (text, text.replace("$", " ")))
        return Query(
            alternatives=tuple(dict.fromkeys(chain.from_iterable(spellings))),
            amount=amount,
            name=text,
            read_as=f"the amount {wording.money(amount)}, or as words",
        )
    if (amount := _money(text)) is not None:  # So may a whole name: “3M”.
        return replace(_words(text, phrases=phrases), amount=amount, name="" if text.isdigit() else text)
    if _PART_OF_PHONE.fullmatch(text) and not _LONG_ZIP.fullmatch(text):
        return Query(alternatives=((_digits(text),), tuple(text.split()[:MAX_TERMS])))
    if (found := _REFERENCE.search(text)) and " " in text and '"' not in text:
        query = _found_in_text(text, found[0], f"the reference {found[0]}, or as words")
        return replace(query, alternatives=(*query.alternatives, tuple(text.split()[:MAX_TERMS])))
    return _words(text, phrases=phrases)


def _found_in_text(text: str, found: str, words: str) -> Query:
    return Query(alternatives=((found,),), read_as="" if text == found else words)


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _money(text: str) -> Decimal | None:
    """Parse an amount as people write it, such as 25,000 or 25k."""
    found = _AMOUNT.fullmatch(text)
    return Decimal(found[1].replace(",", "")) * _THOUSANDS[found[2].lower()] if found else None


def _words(text: str, *, phrases: bool) -> Query:
    quoted = [phrase.strip() for phrase in _PHRASE.findall(text)] if phrases else []
    loose = _PHRASE.sub(" ", text).replace('"', " ") if phrases else text
    # Punctuation beside words is ignored: “Garcia, Maria”, “Alvarado & Lindgren”.
    words = (
        word
        for one in join_initials(loose).split()
        if any(map(str.isalnum, word := one.strip(",;()").rstrip(".")))
    )
    terms = tuple(dict.fromkeys([*filter(None, quoted), *words])) or tuple(loose.split())
    problems = (f"Only the first {MAX_TERMS} words were used.",) if len(terms) > MAX_TERMS else ()
    terms = tuple(_LONG_ZIP.sub(r"\1", term) for term in terms[:MAX_TERMS])
    return Query(alternatives=(terms,) if terms else (), name=text, problems=problems)


# --- Operators ---


class NotUnderstood(ValueError):
    """A value is not understood; the message says why."""


@dataclass
class _Operators:
    """The combined meaning of a text's operators."""

    types: set[Kind] = field(default_factory=set)
    possible: set[Kind] = field(default_factory=lambda: set(SEARCHED_KINDS))
    conditions: Q = field(default_factory=Q)
    order: str | OrderBy = Query.order
    problems: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> set[Kind]:
        return self.possible & self.types if self.types else self.possible

    @property
    def may_name(self) -> bool:
        """Whether the other words may be the name of a borrower."""
        return not self.problems and Kind.BORROWER in self.kinds

    def take(self, name: str, value: str) -> None:
        if not value:
            raise NotUnderstood("Enter a value right after the colon.")
        if name == "type":
            self.types.add(_kind(value))
            return
        kinds, condition = operators()[name](value)
        self.possible &= set(kinds)
        self.conditions &= condition
        self.order = ORDERS.get(name, self.order)


def _take_operators(text: str) -> tuple[str, _Operators]:
    """Split a text into the words and the meaning of its operators. Anything that is no operator stays in the text."""
    asked = _Operators()
    pasted = bool(uuids_in(text))

    def take(found: re.Match[str]) -> str:
        name, value = found[1].lower(), found[2].strip('"').strip()
        if name not in ("type", *operators()):
            if value and not pasted:
                asked.problems.append(
                    f"“{name}:” isn’t an operator. The operators are {_joined(operator_names())}. "
                    f"“{found[0]}” was searched as a word."
                )
            return found[0] if value else found[1]
        try:
            asked.take(name, value)
        except NotUnderstood as reason:
            asked.problems.append(f"“{found[0]}” was ignored. {reason}")
        return " "

    rest = _OPERATOR.sub(take, text)
    if not asked.kinds:
        asked.problems.append("Nothing can match this combination.")
    return rest, asked


def _kind(value: str) -> Kind:
    if kind := KINDS.get(_normalized(value)):
        return kind
    names = ("borrower", "person", "application", "loan", "loc", "repayment")
    raise NotUnderstood(f"Unknown type. Use {_joined(names)}.")


def _status(value: str) -> tuple[Iterable[Kind], Q]:
    kinds = [Kind.BORROWER, Kind.APPLICATION, Kind.LOAN, Kind.REPAYMENT]
    status = _normalized(value).upper()
    if status in ("DELINQUENT", "PAST_DUE"):  # A repayment's flag means that it failed.
        return [Kind.BORROWER, Kind.LOAN, Kind.LINE], Q(past_due_rank__isnull=False)
    # The service may have unforeseen statuses, so every status on file can be searched for, in any spelling.
    decided = (Kind.BORROWER, Kind.APPLICATION)
    columns = {kind: "decision" if kind in decided else "status" for kind in kinds}
    on_file = {one for kind, column in columns.items() for one in distinct_values(kind, column)}
    found = [one for one in on_file if _normalized(one).upper() == status]
    if status not in wording.STATUSES and not found:
        raise NotUnderstood(f"Unknown status. For example: {_joined(STATUSES)}.")
    return kinds, Q(status__in=found or [status])


def _state(value: str) -> tuple[Iterable[Kind], Q]:
    codes = {_normalized(name): code for code, name in US_STATES.items()} | {
        code.lower(): code for code in US_STATES
    }
    if code := codes.get(_normalized(value)):
        return [Kind.BORROWER, Kind.KEY_PERSON, Kind.LOAN], Q(state=code)
    raise NotUnderstood("Not a US state or territory. Use a code or name, such as TX or texas.")


def _city(value: str) -> tuple[Iterable[Kind], Q]:
    on_file = distinct_values(Kind.BORROWER, "city", MAX_CITIES)
    return [Kind.BORROWER], Q(city__in=[one for one in on_file if folded_key(one) == folded_key(value)])


def _owner(value: str) -> tuple[Iterable[Kind], Q]:
    kinds = [Kind.LOAN, Kind.LINE]
    owners = User.objects.exclude(collection_accounts=None)
    if _normalized(value) == "none":
        active = owners.filter(is_active=True)
        return kinds, ~Q(uuid__in=active.values("collection_accounts__account_uuid"))
    wanted = folded_key(value)
    found = [one.pk for one in User.objects.all() if wanted in _names_of(one)]
    if not found:
        raise NotUnderstood("No colleague has this name. Use a first or last name, or none.")
    return kinds, Q(uuid__in=owners.filter(pk__in=found).values("collection_accounts__account_uuid"))


def _names_of(user: User) -> set[str]:
    names = (user.username, user.display_name(), user.first_name, user.last_name)
    return set(map(folded_key, names))


def _autopay(value: str) -> tuple[Iterable[Kind], Q]:
    choices = {"yes": True, "on": True, "no": False, "off": False}
    if (has_autopay := choices.get(_normalized(value))) is None:
        raise NotUnderstood("Use autopay:yes or autopay:no.")
    return [Kind.LOAN], Q(has_autopay=has_autopay)


def _past_due(value: str) -> tuple[Iterable[Kind], Q]:
    lookup, text = _comparison(value)
    if (amount := _money(text.removeprefix("$"))) is None:
        raise NotUnderstood("Not an amount. Use past_due:>0 or past_due:<=1,500.00.")
    # As in lists: what is past due has a rank, whether its amount is known, and a closed account isn't.
    known = Q(**{f"past_due{lookup}": amount}) & (Q(past_due_rank__isnull=False) | Q(past_due__lte=0))
    is_any = lookup == "__gt" and not amount
    return [Kind.BORROWER, Kind.LOAN, Kind.LINE], Q(past_due_rank__isnull=False) if is_any else known


def _added(value: str) -> tuple[Iterable[Kind], Q]:
    lookup, text = _comparison(value)
    first, last = _day_range(text)
    start, end = midnight(first), midnight(last + timedelta(days=1))
    conditions = {
        "__gt": Q(created_at__gte=end),
        "__gte": Q(created_at__gte=start),
        "__lt": Q(created_at__lt=start),
        "__lte": Q(created_at__lt=end),
        "": Q(created_at__gte=start, created_at__lt=end),
    }
    return SEARCHED_KINDS, conditions[lookup]


def _day_range(text: str) -> tuple[date, date]:
    """The first and last day of a day, a week or a month."""
    today, one, week = business_date(), timedelta(days=1), timedelta(days=7)
    monday, month = today - timedelta(days=today.weekday()), today.replace(day=1)
    spans = {
        "today": (today, today),
        "yesterday": (today - one, today - one),
        "this_week": (monday, monday + week - one),
        "last_week": (monday - week, monday - one),
        "this_month": (month, (month + timedelta(days=31)).replace(day=1) - one),
        "last_month": ((month - one).replace(day=1), month - one),
    }
    return spans.get(_normalized(text)) or (calendar_day(text),) * 2


def calendar_day(text: str) -> date:
    """Parse a date as people write it, in a year for which records can exist."""
    if not (day := typed_day(text)):
        raise NotUnderstood(
            "Not a date. Use 11/30/2026 or 2026-11-30, or today, yesterday, this-week or last-month."
        )
    return day


def typed_day(text: str) -> date | None:
    """Parse a date such as 11/30/2026, Nov 30 or November 30, 2026; without a year, the nearest one."""
    dotted = text.strip().replace(".", "/") if _DOTTED_DATE.fullmatch(text.strip()) else text
    typed, today = " ".join(_BESIDE_DATE_PARTS.sub(" ", _WEEKDAY.sub("", dotted)).split()), business_date()
    if not any(map(str.isdigit, typed)):
        return None
    if day := _day_with_year(typed):
        return day
    years = (today.year + one for one in (-1, 0, 1))
    days = (_day_with_year(f"{typed}{'/' if '/' in typed else ' '}{year}") for year in years)
    return min(filter(None, days), key=lambda day: abs(day - today), default=None)


def _day_with_year(text: str) -> date | None:
    for form in _DATE_FORMATS:
        try:
            day = datetime.strptime(text, form).date()  # noqa: DTZ007 - a calendar day has no zone
        except ValueError:
            continue
        if EARLIEST_YEAR <= day.year < MAXYEAR:
            return day
    return None


def midnight(day: date) -> datetime:
    """The start of a day in the viewer's time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))


def _comparison(value: str) -> tuple[str, str]:
    sign, text = _COMPARED.fullmatch(value).groups()  # type: ignore[union-attr]  # it matches every text
    return _LOOKUPS[sign], text


def _normalized(text: str) -> str:
    return normal_word(text).lower()


def _joined(names: Iterable[str]) -> str:
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
OPERATORS: Final[dict[str, Callable[[str], tuple[Iterable[Kind], Q]]]] = {
    "status": _status,
    "state": _state,
    "city": _city,
    "past_due": _past_due,
    "autopay": _autopay,
    "owner": _owner,
    "added": _added,
    "created": _added,  # its name in earlier links
}
# The order of results for operators about a figure, largest first.
ORDERS: Final[Mapping[str, str | OrderBy]] = {
    "past_due": F("past_due_rank").desc(nulls_last=True),
    "added": "-created_at",
    "created": "-created_at",
}


@cache
def operators() -> Mapping[str, Callable[[str], tuple[Iterable[Kind], Q]]]:
    """The operators by name, also those of other apps."""
    return OPERATORS | {name: one for area in areas() for name, one in area.operators.items()}


def operator_names() -> list[str]:
    """The operators that people can type."""
    return ["type", *(name for name in operators() if name != "created")]
