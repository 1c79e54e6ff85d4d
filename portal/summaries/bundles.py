"""The finished documents of a batch as one download, made while it is sent: one document at a time is in memory."""

import zipfile
from collections.abc import Iterator

from portal.summaries.models import Batch, Item


class _Tap:
    """A file that cannot be rewound and hands on what was written to it."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""

    def taken(self) -> bytes:
        """What was written since the last time."""
        data, self._written = b"".join(self._written), []
        return data


def finished(batch: Batch) -> Iterator[Item]:
    """The items that have a document, in order, one after the other from the database."""
    return batch.items.filter(state=Item.State.DONE, document__isnull=False).iterator(10)


def documents(batch: Batch) -> Iterator[tuple[str, bytes]]:
    """Whose each finished document is, and its bytes."""
    return ((item.label, bytes(item.document or b"")) for item in finished(batch))


def zipped(batch: Batch) -> Iterator[bytes]:
    """A ZIP file; PDFs are packed already, so they are only stored."""
    tap = _Tap()
    made = batch.created_at.timetuple()[:6]
    with zipfile.ZipFile(tap, "w", zipfile.ZIP_STORED) as archive:
        for item in finished(batch):
            archive.writestr(zipfile.ZipInfo(item.file_name, made), bytes(item.document or b""))
            yield tap.taken()
        if failures := _failures(batch):
            archive.writestr(zipfile.ZipInfo("failed.txt", made), failures)
    yield tap.taken()


def _failures(batch: Batch) -> str:
    """Who is missing from the file, and why."""
    failed = batch.items.filter(state=Item.State.FAILED).values_list("label", "borrower_uuid", "reason")
    return "".join(f"{label} ({uuid}): {reason}\r\n" for label, uuid, reason in failed)
