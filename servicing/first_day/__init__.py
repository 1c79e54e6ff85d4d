"""The first day with a service: tries every read and reports what fits, what differs, and the setting to try.

It sends no change, never sends the secret in another form than the configured one, and makes at most three calls that
the service refuses. A point that the calls can't decide is reported as open, never guessed. The report contains no
value of a record but its enumerations.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from servicing.codec import Cipher
from servicing.crypto import BLOCK, FieldCipher
from servicing.first_day.messages import UNTYPED, check_filters, read_messages
from servicing.first_day.probe import Probe
from servicing.first_day.reads import READS, check_envelopes, not_tried, try_read
from servicing.first_day.report import Finding, FirstDay
from servicing.resource import OffsetUnit
from servicing.transport import Transport

__all__ = ["UNTYPED", "Finding", "FirstDay", "first_day"]

TEST_VALUE: Final = "123456789"
TEST_IV: Final = bytes(range(BLOCK))


def first_day(
    transport: Transport,
    known_ids: Mapping[str, str],
    *,
    auth: str,
    place: str,
    page_size: int,
    offset_counts: OffsetUnit | None,
    cipher: Cipher | None,
) -> FirstDay:
    """Try every read. Reads whose IDs are missing in `known_ids` are left out.

    `auth`, `place` (of the message filters), `page_size` and `offset_counts` are the configured ones.
    """
    report = FirstDay()
    probe = Probe(transport)
    report.findings += read_messages(probe, report, auth, place, page_size)
    for read in READS:
        if probe.obstacle:
            report.reads.append(not_tried(read, probe.obstacle))
        else:
            report.findings += try_read(probe, report, read, known_ids)
    report.findings += check_envelopes(report.reads)
    if (first_page := probe.first_page) is not None:
        report.findings += check_filters(probe, report, first_page, place, page_size, offset_counts)
    report.findings += _check_cipher(report, cipher)
    return report


def _check_cipher(report: FirstDay, cipher: Cipher | None) -> Iterator[Finding]:
    try:
        report.test_value = _encrypted_test_value(cipher)
    except Exception:
        yield Finding("bad", "SERVICING_CIPHER fails to encrypt a test value.")


def _encrypted_test_value(cipher: Cipher | None) -> str:
    if isinstance(cipher, FieldCipher):
        return f"{TEST_VALUE} with the IV {TEST_IV.hex()} is {cipher.encrypt(TEST_VALUE, iv=TEST_IV)}"
    return f"{TEST_VALUE} is {cipher.encrypt(TEST_VALUE)}" if cipher else ""
