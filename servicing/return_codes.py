"""Return codes of ACH payments as Nacha publishes them, and the code in the words of a service.

Hides which letters and digits are a code and which are part of an order number or of a date.
"""

import re
from types import MappingProxyType
from typing import Final, NamedTuple


class ReturnCode(NamedTuple):
    """What a return code means. One column for each thing that is known of a code."""

    description: str


RETURN_CODES: Final = MappingProxyType(
    {
        code: ReturnCode(*columns)
        for code, *columns in (
            ("R01", "Insufficient funds"),
            ("R02", "Account closed"),
            ("R03", "No account or unable to locate account"),
            ("R04", "Invalid account number structure"),
            ("R05", "Unauthorized debit to consumer account using corporate SEC code"),
            ("R06", "Returned per ODFI's request"),
            ("R07", "Authorization revoked by customer"),
            ("R08", "Payment stopped"),
            ("R09", "Uncollected funds"),
            ("R10", "Customer advises originator is not known or not authorized"),
            ("R11", "Customer advises entry not in accordance with the terms of the authorization"),
            ("R12", "Account sold to another DFI"),
            ("R13", "Invalid ACH routing number"),
            ("R14", "Representative payee deceased or unable to continue in that capacity"),
            ("R15", "Beneficiary or account holder deceased"),
            ("R16", "Account frozen or entry returned per OFAC instruction"),
            ("R17", "File record edit criteria, or invalid account number under questionable circumstances"),
            ("R18", "Improper effective entry date"),
            ("R19", "Amount field error"),
            ("R20", "Non-transaction account"),
            ("R21", "Invalid company identification"),
            ("R22", "Invalid individual ID number"),
            ("R23", "Credit entry refused by receiver"),
            ("R24", "Duplicate entry"),
            ("R25", "Addenda error"),
            ("R26", "Mandatory field error"),
            ("R27", "Trace number error"),
            ("R28", "Routing number check digit error"),
            ("R29", "Corporate customer advises not authorized"),
            ("R30", "RDFI not participant in check truncation program"),
            ("R31", "Permissible return entry (CCD and CTX only)"),
            ("R32", "RDFI non-settlement"),
            ("R33", "Return of XCK entry"),
            ("R34", "Limited participation DFI"),
            ("R35", "Return of improper debit entry"),
            ("R36", "Return of improper credit entry"),
            ("R37", "Source document presented for payment"),
            ("R38", "Stop payment on source document"),
            ("R39", "Improper source document or source document presented for payment"),
            ("R40", "Return of ENR entry by federal government agency"),
            ("R41", "Invalid transaction code (ENR only)"),
            ("R42", "Routing number or check digit error (ENR only)"),
            ("R43", "Invalid DFI account number (ENR only)"),
            ("R44", "Invalid individual ID number (ENR only)"),
            ("R45", "Invalid individual or company name (ENR only)"),
            ("R46", "Invalid representative payee indicator (ENR only)"),
            ("R47", "Duplicate enrollment (ENR only)"),
            ("R50", "State law affecting RCK acceptance"),
            ("R51", "Item related to RCK entry is ineligible or RCK entry is improper"),
            ("R52", "Stop payment on item related to RCK entry"),
            ("R53", "Item and RCK entry presented for payment"),
            ("R61", "Misrouted return"),
            ("R62", "Return of erroneous or reversing debit"),
            ("R67", "Duplicate return"),
            ("R68", "Untimely return"),
            ("R69", "Field errors"),
            ("R70", "Permissible return entry not accepted or return not requested by ODFI"),
            ("R71", "Misrouted dishonored return"),
            ("R72", "Untimely dishonored return"),
            ("R73", "Timely original return"),
            ("R74", "Corrected return"),
            ("R75", "Return not a duplicate"),
            ("R76", "No errors found"),
            ("R77", "Non-acceptance of R62 dishonored return"),
            ("R80", "IAT entry coding error"),
            ("R81", "Non-participant in IAT program"),
            ("R82", "Invalid foreign receiving DFI identification"),
            ("R83", "Settlement with foreign receiving DFI not possible"),
            ("R84", "Entry not processed by gateway"),
            ("R85", "Incorrectly coded outbound international payment"),
        )
    }
)
"""The published codes, in order."""

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
