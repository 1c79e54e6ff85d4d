"""Return codes of ACH payments as Nacha publishes them, and the code in the words of a service.

Hides which letters and digits are a code and which are part of an order number or of a date.
"""

import re
from datetime import date
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class Consequence(StrEnum):
    """What may follow a return, in words for people."""

    PRESENT_AGAIN = "Up to two more presentments within 180 days of the first"
    NEEDS_ACCOUNT = "Not again without a new account or authority"
    NEEDS_AUTHORITY = "Not again until authorized anew"
    ASK_BORROWER = "Ask the borrower"
    ONLY_CORRECTED = "Only as corrected, within 60 days"
    ASK_BANK = "Ask your bank"


FORBIDS_MORE: Final = frozenset({Consequence.NEEDS_ACCOUNT, Consequence.NEEDS_AUTHORITY})
"""After these, a scheduled payment from the same account needs a change first."""
MAX_PRESENTMENTS: Final = 3
"""Of one amount, the first included, if the code is presented again."""
PRESENTMENT_DAYS: Final = 180
SOURCE: Final = "Nacha Operating Rules, reinitiation of returned entries"


class ReturnCode(NamedTuple):
    """What a return code means. One column for each thing that is known of a code."""

    description: str
    consequence: Consequence = Consequence.ASK_BANK
    source: str = SOURCE
    checked_on: date = date(2026, 11, 28)
    """When the row was last compared with its source."""


RETURN_CODES: Final = MappingProxyType(
    {
        "R01": ReturnCode("Insufficient funds", Consequence.PRESENT_AGAIN),
        "R02": ReturnCode("Account closed", Consequence.NEEDS_ACCOUNT),
        "R03": ReturnCode("No account or unable to locate account", Consequence.NEEDS_ACCOUNT),
        "R04": ReturnCode("Invalid account number structure", Consequence.NEEDS_ACCOUNT),
        "R05": ReturnCode(
            "Unauthorized debit to consumer account using corporate SEC code", Consequence.NEEDS_AUTHORITY
        ),
        "R06": ReturnCode("Returned per ODFI's request"),
        "R07": ReturnCode("Authorization revoked by customer", Consequence.NEEDS_AUTHORITY),
        "R08": ReturnCode("Payment stopped", Consequence.ASK_BORROWER),
        "R09": ReturnCode("Uncollected funds", Consequence.PRESENT_AGAIN),
        "R10": ReturnCode(
            "Customer advises originator is not known or not authorized", Consequence.NEEDS_AUTHORITY
        ),
        "R11": ReturnCode(
            "Customer advises entry not in accordance with the terms of the authorization",
            Consequence.ONLY_CORRECTED,
        ),
        "R12": ReturnCode("Account sold to another DFI"),
        "R13": ReturnCode("Invalid ACH routing number"),
        "R14": ReturnCode("Representative payee deceased or unable to continue in that capacity"),
        "R15": ReturnCode("Beneficiary or account holder deceased"),
        "R16": ReturnCode("Account frozen or entry returned per OFAC instruction", Consequence.NEEDS_ACCOUNT),
        "R17": ReturnCode(
            "File record edit criteria, or invalid account number under questionable circumstances"
        ),
        "R18": ReturnCode("Improper effective entry date"),
        "R19": ReturnCode("Amount field error"),
        "R20": ReturnCode("Non-transaction account", Consequence.NEEDS_ACCOUNT),
        "R21": ReturnCode("Invalid company identification"),
        "R22": ReturnCode("Invalid individual ID number"),
        "R23": ReturnCode("Credit entry refused by receiver"),
        "R24": ReturnCode("Duplicate entry"),
        "R25": ReturnCode("Addenda error"),
        "R26": ReturnCode("Mandatory field error"),
        "R27": ReturnCode("Trace number error"),
        "R28": ReturnCode("Routing number check digit error"),
        "R29": ReturnCode("Corporate customer advises not authorized", Consequence.NEEDS_AUTHORITY),
        "R30": ReturnCode("RDFI not participant in check truncation program"),
        "R31": ReturnCode("Permissible return entry (CCD and CTX only)"),
        "R32": ReturnCode("RDFI non-settlement"),
        "R33": ReturnCode("Return of XCK entry"),
        "R34": ReturnCode("Limited participation DFI"),
        "R35": ReturnCode("Return of improper debit entry"),
        "R36": ReturnCode("Return of improper credit entry"),
        "R37": ReturnCode("Source document presented for payment"),
        "R38": ReturnCode("Stop payment on source document"),
        "R39": ReturnCode("Improper source document or source document presented for payment"),
        "R40": ReturnCode("Return of ENR entry by federal government agency"),
        "R41": ReturnCode("Invalid transaction code (ENR only)"),
        "R42": ReturnCode("Routing number or check digit error (ENR only)"),
        "R43": ReturnCode("Invalid DFI account number (ENR only)"),
        "R44": ReturnCode("Invalid individual ID number (ENR only)"),
        "R45": ReturnCode("Invalid individual or company name (ENR only)"),
        "R46": ReturnCode("Invalid representative payee indicator (ENR only)"),
        "R47": ReturnCode("Duplicate enrollment (ENR only)"),
        "R50": ReturnCode("State law affecting RCK acceptance"),
        "R51": ReturnCode("Item related to RCK entry is ineligible or RCK entry is improper"),
        "R52": ReturnCode("Stop payment on item related to RCK entry"),
        "R53": ReturnCode("Item and RCK entry presented for payment"),
        "R61": ReturnCode("Misrouted return"),
        "R62": ReturnCode("Return of erroneous or reversing debit"),
        "R67": ReturnCode("Duplicate return"),
        "R68": ReturnCode("Untimely return"),
        "R69": ReturnCode("Field errors"),
        "R70": ReturnCode("Permissible return entry not accepted or return not requested by ODFI"),
        "R71": ReturnCode("Misrouted dishonored return"),
        "R72": ReturnCode("Untimely dishonored return"),
        "R73": ReturnCode("Timely original return"),
        "R74": ReturnCode("Corrected return"),
        "R75": ReturnCode("Return not a duplicate"),
        "R76": ReturnCode("No errors found"),
        "R77": ReturnCode("Non-acceptance of R62 dishonored return"),
        "R80": ReturnCode("IAT entry coding error"),
        "R81": ReturnCode("Non-participant in IAT program"),
        "R82": ReturnCode("Invalid foreign receiving DFI identification"),
        "R83": ReturnCode("Settlement with foreign receiving DFI not possible"),
        "R84": ReturnCode("Entry not processed by gateway"),
        "R85": ReturnCode("Incorrectly coded outbound international payment"),
    }
)
"""The published codes, in order."""
UNAUTHORIZED: Final = ("R05", "R07", "R10", "R29")
ADMINISTRATIVE: Final = ("R02", "R03", "R04")

# No letter or digit beside it, and no digits joined to it, as in an order number; another code may follow.
_CODE: Final = re.compile(
    r"(?<![A-Z0-9])(?<![0-9][-./:#])(R[0-9]{2})(?![^\W_])(?![-.,/:#](?!R[0-9]{2}(?![^\W_]))\w*[0-9])",
    re.IGNORECASE,
)


def find_return_code(text: str | None) -> str:
    """The first return code in a text, such as `R01`, also one that isn't published; empty if there is none."""
    found = _CODE.search(text or "")
    return found[1].upper() if found else ""


def describe_return_code(code: str) -> str:
    """The description of a published code, else empty."""
    return RETURN_CODES[code].description if code in RETURN_CODES else ""


def consequence_of(code: str) -> Consequence:
    """What may follow a return with this code; for a code that isn't published, the bank has to say."""
    return RETURN_CODES[code].consequence if code in RETURN_CODES else Consequence.ASK_BANK
