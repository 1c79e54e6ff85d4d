"""Finding known records by what staff have in hand: a name, a phone in any notation, an e-mail, a uuid, a city."""

import re

from django.db.models import Q, QuerySet

from portal.registry.models import Record

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_PHONE = re.compile(r"[+(]?[\d\s().+-]{7,}")
MAX_TERMS = 8


def search_text(*parts: str | None) -> str:
    """What a record can be found by, in one lower-case text; phones as bare digits."""
    return "\n".join(part.casefold() for part in parts if part)


def uuid_in(text: str) -> str | None:
    """The uuid in a pasted text, if there is one."""
    found = _UUID.search(text)
    return found[0].lower() if found else None


def terms(text: str) -> list[str]:
    """The words that must all occur: a pasted uuid or a phone number is one word, whatever surrounds it."""
    text = text[:500].encode(errors="ignore").decode().replace("\0", " ").strip().casefold()
    if uuid := uuid_in(text):
        return [uuid]
    if _PHONE.fullmatch(text):
        digits = "".join(character for character in text if character.isdigit())
        return [digits[1:] if len(digits) == 11 and digits.startswith("1") else digits]
    return text.split()[:MAX_TERMS]


def matching(records: QuerySet[Record], text: str) -> QuerySet[Record]:
    """The records in which every term of the text occurs."""
    condition = Q()
    for term in terms(text):
        condition &= Q(search_text__contains=term)
    return records.filter(condition)
