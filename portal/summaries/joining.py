"""Many documents as one PDF, written while they are read: of all but one document only numbers are in memory.

Hides how the document engine writes its files, of which it reads just that form (objects one after the other, the
small ones packed into one object stream), and how pages, bookmarks and tags for assistive technology become one tree.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

HEADER: Final = b"%PDF-1.7\n%\xf0\x9f\x96\xa4\n"
# The first objects of the whole, before those of its parts.
CATALOG, PAGES, OUTLINES, STRUCTURE, PARENTS, WHOLE = range(1, 7)
WIDTHS: Final = (1, 5, 4)
ENTRY: Final = sum(WIDTHS)
_STREAM: Final = re.compile(rb"(\d+) 0 obj\n(<<.*?/Length (\d+)>>)\nstream\n", re.DOTALL)
# Texts are left as they are, whatever stands in them.
_TOKEN: Final = re.compile(
    rb"(\((?:\\.|[^\\()])*\)|<[0-9a-fA-F]*>)|(\d+) 0 R|(/StructParents? )(\d+)", re.DOTALL
)


class Part(NamedTuple):
    """What the whole has to know of one document that it holds."""

    pages: int
    leaves: int
    outlines: int
    structure: int
    parents: int


def joined(documents: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """The pages of all documents in their order, each document under a bookmark with its title."""
    whole = _Whole()
    yield HEADER
    for title, document in documents:
        yield from whole.taken(title, document)
    yield from whole.ended()


class _Whole:
    """Where everything went that was written so far."""

    def __init__(self) -> None:
        self._position = len(HEADER)
        self._entries = bytearray(ENTRY * (WHOLE + 1))
        self._tags = 0
        self._parts: list[Part] = []
        self._bookmarks: list[tuple[int, bytes]] = []

    def taken(self, title: str, document: bytes) -> Iterator[bytes]:
        """One document under new numbers."""
        base = len(self._entries) // ENTRY - 1
        streams, objects, size = _read(document)
        self._entries.extend(bytes(ENTRY * size))
        plain = {number + base: self._moved(text, base) for number, text in objects.items()}
        self._parts.append(part := _part(plain))
        count = self._fit_in(plain, part, title)
        for number, head, data in streams:
            yield self._written(
                number + base, self._moved(head, base) + b"\nstream\n" + data + b"\nendstream"
            )
        yield self._packed(plain)
        self._tags += count

    def ended(self) -> Iterator[bytes]:
        """The trees over all documents, and the table of where everything is."""
        parts = self._parts
        total = sum(part.leaves for part in parts)
        first, last = (self._bookmarks[0][0], self._bookmarks[-1][0]) if parts else (0, 0)
        marks = b"/First %d 0 R/Last %d 0 R/Count %d" % (first, last, len(parts)) if parts else b""
        objects = {
            CATALOG: b"<</Type /Catalog/Pages %d 0 R/Outlines %d 0 R/StructTreeRoot %d 0 R/Lang (en)"
            b"/ViewerPreferences <</DisplayDocTitle true>>/MarkInfo <</Marked true>>>>"
            % (PAGES, OUTLINES, STRUCTURE),
            PAGES: b"<</Type /Pages/Kids [%s]/Count %d>>" % (_refs(one.pages for one in parts), total),
            OUTLINES: b"<<%s>>" % marks,
            STRUCTURE: b"<</Type /StructTreeRoot/K [%d 0 R]/ParentTree %d 0 R>>" % (WHOLE, PARENTS),
            WHOLE: b"<</Type /StructElem/S /Document/P %d 0 R/K [%s]>>"
            % (STRUCTURE, _refs(one.structure for one in parts)),
            PARENTS: b"<</Kids [%s]>>" % _refs(one.parents for one in parts),
            **{number: self._bookmark(index) for index, (number, _) in enumerate(self._bookmarks)},
        }
        yield self._packed(objects)
        yield self._table()

    def _fit_in(self, objects: dict[int, bytes], part: Part, title: str) -> int:
        """Hang a document's own trees below those of the whole; how many tagged pages it has."""
        objects[part.pages] = objects[part.pages].replace(b"<<", b"<</Parent %d 0 R" % PAGES, 1)
        root = objects[part.structure].replace(b"/Type /StructTreeRoot", b"/Type /StructElem/S /Part", 1)
        objects[part.structure] = re.sub(
            rb"/ParentTree \d+ 0 R", b"/P %d 0 R" % WHOLE, re.sub(rb"/Namespaces \[[^]]*\]", b"", root)
        )
        tags, count = re.subn(
            rb"(\d+)(?= \[)", lambda key: b"%d" % (int(key[1]) + self._tags), objects[part.parents]
        )
        limits = b"<</Limits [%d %d]" % (self._tags, self._tags + count - 1)
        objects[part.parents] = tags.replace(b"<<", limits, 1)
        (page,) = re.findall(rb"/Kids \[(\d+ 0 R)", objects[part.pages])
        below = re.sub(rb"^<<|>>\s*$", b"", objects.pop(part.outlines))
        text = b"\xfe\xff" + title.encode("utf-16-be", "replace")
        mark = b"<</Title <%s>/Parent %d 0 R/Dest [%s /Fit]" % (text.hex().encode(), OUTLINES, page)
        self._bookmarks.append((part.outlines, mark + re.sub(rb"/Count (\d+)", rb"/Count -\1", below)))
        return count

    def _bookmark(self, index: int) -> bytes:
        beside = [(b"/Prev", index - 1), (b"/Next", index + 1)]
        links = b"".join(
            b"%s %d 0 R" % (name, self._bookmarks[other][0])
            for name, other in beside
            if 0 <= other < len(self._bookmarks)
        )
        return self._bookmarks[index][1] + links + b">>"

    def _moved(self, text: bytes, base: int) -> bytes:
        def token(found: re.Match[bytes]) -> bytes:
            if found[1] is not None:
                return found[1]
            if found[2] is not None:
                return b"%d 0 R" % (int(found[2]) + base)
            return found[3] + b"%d" % (int(found[4]) + self._tags)

        return _TOKEN.sub(token, text)

    def _written(self, number: int, content: bytes) -> bytes:
        """An object of its own, and its place in the table."""
        self._enter(number, 1, self._position, 0)
        data = b"%d 0 obj\n%s\nendobj\n" % (number, content)
        self._position += len(data)
        return data

    def _packed(self, objects: dict[int, bytes]) -> bytes:
        """Small objects together in one object stream."""
        stream = len(self._entries) // ENTRY
        self._entries.extend(bytes(ENTRY))
        places, position = [], 0
        for index, (number, text) in enumerate(objects.items()):
            self._enter(number, 2, stream, index)
            places.append(b"%d %d" % (number, position))
            position += len(text) + 1
        head = b" ".join(places) + b"\n"
        data = zlib.compress(head + b"\n".join(objects.values()))
        kind = b"<</Type /ObjStm/N %d/First %d/Filter /FlateDecode/Length %d>>"
        return self._written(
            stream, kind % (len(objects), len(head), len(data)) + b"\nstream\n" + data + b"\nendstream"
        )

    def _table(self) -> bytes:
        number, start = len(self._entries) // ENTRY, self._position
        self._entries.extend(bytes(ENTRY))
        self._enter(number, 1, start, 0)
        data = zlib.compress(bytes(self._entries))
        kind = b"<</Type /XRef/W [%d %d %d]/Size %d/Root %d 0 R/Filter /FlateDecode/Length %d>>"
        head = kind % (*WIDTHS, number + 1, CATALOG, len(data))
        table = self._written(number, head + b"\nstream\n" + data + b"\nendstream")
        return table + b"startxref\n%d\n%%%%EOF\n" % start

    def _enter(self, number: int, *fields: int) -> None:
        packed = b"".join(value.to_bytes(width, "big") for value, width in zip(fields, WIDTHS, strict=True))
        self._entries[number * ENTRY : (number + 1) * ENTRY] = packed


def _read(document: bytes) -> tuple[list[tuple[int, bytes, bytes]], dict[int, bytes], int]:
    """Its streams, its small objects, and how many numbers it takes."""
    streams, objects, size = [], {}, 0
    position = document.index(b"\n", document.index(b"\n") + 1) + 1
    while found := _STREAM.match(document, position):
        number, length = int(found[1]), int(found[3])
        data = document[found.end() : found.end() + length]
        position = found.end() + length + len(b"\nendstream\nendobj\n")
        if b"/Type /ObjStm" in found[2]:
            objects = _unpacked(found[2], zlib.decompress(data))
        elif b"/Type /XRef" in found[2]:
            size = number
        else:
            streams.append((number, found[2], data))
    return streams, objects, size


def _unpacked(head: bytes, data: bytes) -> dict[int, bytes]:
    (first,) = map(int, re.findall(rb"/First (\d+)", head))
    places = list(map(int, data[:first].split()))
    starts = [first + place for place in places[1::2]]
    ends = [*starts[1:], len(data)]
    texts = (data[start:end].rstrip(b"\n") for start, end in zip(starts, ends, strict=True))
    return dict(zip(places[::2], texts, strict=True))


def _part(objects: dict[int, bytes]) -> Part:
    catalog = next(text for text in objects.values() if b"/Type /Catalog" in text)

    def number(name: bytes, text: bytes) -> int:
        return int(re.findall(rb"/%s (\d+)" % name, text)[0])

    pages, structure = number(b"Pages", catalog), number(b"StructTreeRoot", catalog)
    return Part(
        pages=pages,
        leaves=number(b"Count", objects[pages]),
        outlines=number(b"Outlines", catalog),
        structure=structure,
        parents=number(b"ParentTree", objects[structure]),
    )


def _refs(numbers: Iterable[int]) -> bytes:
    return b" ".join(b"%d 0 R" % number for number in numbers)
