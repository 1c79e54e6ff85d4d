"""Merges many documents into one streamed PDF, with only object numbers of earlier documents in memory.

Hides the structure of WeasyPrint's files, the only one that this module reads (objects one after the other, small ones
in one object stream), and how pages, bookmarks and accessibility tags become one tree. A blank page follows a document
with an odd number of pages, so that no sheet printed on both sides has pages of two.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

HEADER: Final = b"%PDF-1.7\n%\xf0\x9f\x96\xa4\n"
# The first objects of the merged file, before those of the documents.
CATALOG, PAGES, OUTLINES, STRUCTURE, PARENTS, ROOT_ELEMENT = range(1, 7)
WIDTHS: Final = (1, 5, 4)
ENTRY: Final = sum(WIDTHS)
_STREAM: Final = re.compile(rb"(\d+) 0 obj\n(<<.*?/Length (\d+)>>)\nstream\n", re.DOTALL)
# Strings are matched so that they stay unchanged.
_TOKEN: Final = re.compile(
    rb"(\((?:\\.|[^\\()])*\)|<[0-9a-fA-F]*>)|(\d+) 0 R|(/StructParents? )(\d+)", re.DOTALL
)


class Part(NamedTuple):
    """The object numbers of one document's trees, and its number of pages."""

    pages: int
    leaves: int
    outlines: int
    structure: int
    parents: int


def merge_pdfs(documents: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Stream the pages of all documents in order, each document under a bookmark with its title."""
    merger = PdfMerger()
    yield HEADER
    for title, document in documents:
        yield from merger.append(title, document)
    yield from merger.finish()


class PdfMerger:
    """The numbers and positions of all objects written so far."""

    def __init__(self) -> None:
        self._position = len(HEADER)
        self._entries = bytearray(ENTRY * (ROOT_ELEMENT + 1))
        self._tags = 0
        self._parts: list[Part] = []
        self._page_trees: list[int] = []
        """The pages of each document, and the blank pages between them."""
        self._page_count = 0
        self._bookmarks: list[tuple[int, bytes]] = []

    def append(self, title: str, document: bytes) -> Iterator[bytes]:
        """Write one document with new object numbers."""
        base = len(self._entries) // ENTRY - 1
        streams, objects, size = _parse(document)
        self._entries.extend(bytes(ENTRY * size))
        plain = {number + base: self._renumber(text, base) for number, text in objects.items()}
        self._parts.append(part := _read_trees(plain))
        count = self._graft(plain, part, title)
        self._page_trees.append(part.pages)
        self._page_count += part.leaves
        if part.leaves % 2:
            plain[self._add_blank_page()] = _blank_page_like(plain)
        for number, head, data in streams:
            yield self._write_object(
                number + base, self._renumber(head, base) + b"\nstream\n" + data + b"\nendstream"
            )
        yield self._write_stream(plain)
        self._tags += count

    def finish(self) -> Iterator[bytes]:
        """Write the trees over all documents, and the table of object positions."""
        parts = self._parts
        first, last = (self._bookmarks[0][0], self._bookmarks[-1][0]) if parts else (0, 0)
        marks = b"/First %d 0 R/Last %d 0 R/Count %d" % (first, last, len(parts)) if parts else b""
        objects = {
            CATALOG: b"<</Type /Catalog/Pages %d 0 R/Outlines %d 0 R/StructTreeRoot %d 0 R/Lang (en)"
            b"/ViewerPreferences <</DisplayDocTitle true>>/MarkInfo <</Marked true>>>>"
            % (PAGES, OUTLINES, STRUCTURE),
            PAGES: b"<</Type /Pages/Kids [%s]/Count %d>>" % (_refs(self._page_trees), self._page_count),
            OUTLINES: b"<<%s>>" % marks,
            STRUCTURE: b"<</Type /StructTreeRoot/K [%d 0 R]/ParentTree %d 0 R>>" % (ROOT_ELEMENT, PARENTS),
            ROOT_ELEMENT: b"<</Type /StructElem/S /Document/P %d 0 R/K [%s]>>"
            % (STRUCTURE, _refs(one.structure for one in parts)),
            PARENTS: b"<</Kids [%s]>>" % _refs(one.parents for one in parts),
            **{number: self._bookmark(index) for index, (number, _) in enumerate(self._bookmarks)},
        }
        yield self._write_stream(objects)
        yield self._write_table()

    def _graft(self, objects: dict[int, bytes], part: Part, title: str) -> int:
        """Attach a document's trees to those of the merged file; return its number of tagged pages."""
        objects[part.pages] = objects[part.pages].replace(b"<<", b"<</Parent %d 0 R" % PAGES, 1)
        root = objects[part.structure].replace(b"/Type /StructTreeRoot", b"/Type /StructElem/S /Part", 1)
        objects[part.structure] = re.sub(
            rb"/ParentTree \d+ 0 R", b"/P %d 0 R" % ROOT_ELEMENT, re.sub(rb"/Namespaces \[[^]]*\]", b"", root)
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

    def _add_blank_page(self) -> int:
        """Append a page to the tree; return the number of its object."""
        self._entries.extend(bytes(ENTRY))
        self._page_trees.append(len(self._entries) // ENTRY - 1)
        self._page_count += 1
        return self._page_trees[-1]

    def _bookmark(self, index: int) -> bytes:
        beside = [(b"/Prev", index - 1), (b"/Next", index + 1)]
        links = b"".join(
            b"%s %d 0 R" % (name, self._bookmarks[other][0])
            for name, other in beside
            if 0 <= other < len(self._bookmarks)
        )
        return self._bookmarks[index][1] + links + b">>"

    def _renumber(self, text: bytes, base: int) -> bytes:
        def token(found: re.Match[bytes]) -> bytes:
            if found[1] is not None:
                return found[1]
            if found[2] is not None:
                return b"%d 0 R" % (int(found[2]) + base)
            return found[3] + b"%d" % (int(found[4]) + self._tags)

        return _TOKEN.sub(token, text)

    def _write_object(self, number: int, content: bytes) -> bytes:
        """Write one object, and enter its position in the table."""
        self._set_entry(number, 1, self._position, 0)
        data = b"%d 0 obj\n%s\nendobj\n" % (number, content)
        self._position += len(data)
        return data

    def _write_stream(self, objects: dict[int, bytes]) -> bytes:
        """Write small objects together in one object stream."""
        stream = len(self._entries) // ENTRY
        self._entries.extend(bytes(ENTRY))
        offsets, position = [], 0
        for index, (number, text) in enumerate(objects.items()):
            self._set_entry(number, 2, stream, index)
            offsets.append(b"%d %d" % (number, position))
            position += len(text) + 1
        head = b" ".join(offsets) + b"\n"
        data = zlib.compress(head + b"\n".join(objects.values()))
        kind = b"<</Type /ObjStm/N %d/First %d/Filter /FlateDecode/Length %d>>"
        return self._write_object(
            stream, kind % (len(objects), len(head), len(data)) + b"\nstream\n" + data + b"\nendstream"
        )

    def _write_table(self) -> bytes:
        number, start = len(self._entries) // ENTRY, self._position
        self._entries.extend(bytes(ENTRY))
        self._set_entry(number, 1, start, 0)
        data = zlib.compress(bytes(self._entries))
        kind = b"<</Type /XRef/W [%d %d %d]/Size %d/Root %d 0 R/Filter /FlateDecode/Length %d>>"
        head = kind % (*WIDTHS, number + 1, CATALOG, len(data))
        table = self._write_object(number, head + b"\nstream\n" + data + b"\nendstream")
        return table + b"startxref\n%d\n%%%%EOF\n" % start

    def _set_entry(self, number: int, *fields: int) -> None:
        packed = b"".join(value.to_bytes(width, "big") for value, width in zip(fields, WIDTHS, strict=True))
        self._entries[number * ENTRY : (number + 1) * ENTRY] = packed


def _parse(document: bytes) -> tuple[list[tuple[int, bytes, bytes]], dict[int, bytes], int]:
    """Read a document's streams, its small objects, and the number of its last object."""
    streams, objects, size = [], {}, 0
    position = document.index(b"\n", document.index(b"\n") + 1) + 1
    while found := _STREAM.match(document, position):
        number, length = int(found[1]), int(found[3])
        data = document[found.end() : found.end() + length]
        position = found.end() + length + len(b"\nendstream\nendobj\n")
        if b"/Type /ObjStm" in found[2]:
            objects = _unpack(found[2], zlib.decompress(data))
        elif b"/Type /XRef" in found[2]:
            size = number
        else:
            streams.append((number, found[2], data))
    return streams, objects, size


def _unpack(head: bytes, data: bytes) -> dict[int, bytes]:
    (first,) = map(int, re.findall(rb"/First (\d+)", head))
    numbers = list(map(int, data[:first].split()))
    starts = [first + offset for offset in numbers[1::2]]
    ends = [*starts[1:], len(data)]
    texts = (data[start:end].rstrip(b"\n") for start, end in zip(starts, ends, strict=True))
    return dict(zip(numbers[::2], texts, strict=True))


def _read_trees(objects: dict[int, bytes]) -> Part:
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


def _blank_page_like(objects: dict[int, bytes]) -> bytes:
    """An empty page of the same size as the pages among these objects."""
    sizes = (re.search(rb"/MediaBox \[[^]]*\]", text) for text in objects.values())
    size = next(found[0] for found in sizes if found)
    return b"<</Type /Page/Parent %d 0 R/Resources <<>>%s>>" % (PAGES, size)


def _refs(numbers: Iterable[int]) -> bytes:
    return b" ".join(b"%d 0 R" % number for number in numbers)
