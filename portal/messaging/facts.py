"""What can be searched in a message of any shape, and how it is asked for.

The search text of a message holds every value, folded, a line each, and for each value a word made of a digest of its
path and itself. So one index answers both: words anywhere in the payload, and values at a path.
"""

import hashlib
from base64 import b32encode
from collections.abc import Iterator
from typing import Any, Final

from portal.registry.query import fold
from servicing import ProtocolError, codec
from servicing.values import exact

SEARCHED: Final = 100_000
"""So many characters of a message can be searched."""
DEEPEST: Final = 300
TRIGRAM: Final = 3
MOST_WORDS: Final = 8
FACT: Final = "ǂ"
"""What digests begin with, and no value holds."""


class NotJson(ValueError):
    """Why nothing can be looked for, as a sentence."""


def search_text(raw: Any) -> str:
    """Every value of a message, folded, a line each; then for each a digest of its path and itself, as a word."""
    values: list[str] = []
    facts: list[str] = []
    left = SEARCHED
    for path, value in leaves(raw):
        text = plain(value)
        if text and value is not None:
            values.append(text[:left].replace(FACT, "\ufffd"))
        facts.append(fact(path, text))
        left -= len(text)
        if left <= 0:
            break
    return "\n".join([*values, *dict.fromkeys(facts)]).replace("\0", "\ufffd")


def words_asked(text: str) -> list[str]:
    """The words of which each must occur; what stands between quotation marks is one."""
    parts = fold(text.replace(FACT, "\ufffd")).split('"')
    words = [part.strip() for part in parts[1::2]] + " ".join(parts[::2]).split()
    words = list(dict.fromkeys(word for word in words if word))
    if any(len(word) < TRIGRAM for word in words):
        raise NotJson(f"Each word needs at least {TRIGRAM} characters.")
    if len(words) > MOST_WORDS:
        raise NotJson(f"Search for at most {MOST_WORDS} words at once.")
    return words


def facts_asked(text: str) -> list[str]:
    """The words for all values of a JSON object, which must stand at the same paths in a message."""
    try:
        asked = codec.parse(text)
    except ProtocolError:
        raise NotJson('This is no JSON. Write it like {"payload": {"status": "SUCCEEDED"}}.') from None
    found = list(leaves(asked))
    if not found:
        raise NotJson("Name at least one value.")
    if any("[]" in path for path, _ in found):
        raise NotJson("A list cannot be looked for; name the values that stand at their own path.")
    return [fact(path, plain(value)) for path, value in found]


def leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Each plain value with its path; the elements of a list share one path."""
    if depth > DEEPEST:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{path}[]", depth + 1)
    else:
        yield path, value


def plain(value: Any) -> str:
    """A plain value as it is compared: no case, no accents, numbers without idle zeros."""
    if isinstance(value, str):
        text = value[:SEARCHED]
        return text.lower() if text.isascii() else fold(text)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    number = exact(value)
    return str(value) if number is None else f"{number.normalize():f}"


def fact(path: str, text: str) -> str:
    """What stands in the search text for "at this path is this value"."""
    digest = hashlib.blake2b(f"{path}={text}".encode("utf-8", "surrogatepass"), digest_size=5).digest()
    return f"{FACT}{b32encode(digest).decode().lower()}"
