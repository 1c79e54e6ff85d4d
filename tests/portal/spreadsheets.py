"""Read the cells of a spreadsheet file without the library that wrote it."""

import io
import re
import zipfile
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

NAMES = {"s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
FIRST_DAY = date(1899, 12, 30)


def cells_of(file: bytes, sheet: int = 1) -> list[list[Any]]:
    """Return the rows of a sheet: numbers as Decimal, text as str, dates as date, empty cells as None."""
    with zipfile.ZipFile(io.BytesIO(file)) as parts:
        formats = _number_formats(ElementTree.fromstring(parts.read("xl/styles.xml")))
        root = ElementTree.fromstring(parts.read(f"xl/worksheets/sheet{sheet}.xml"))
    found = []
    for row in root.findall(".//s:row", NAMES):
        cells: dict[int, Any] = {}
        for cell in row.findall("s:c", NAMES):
            cells[_column(cell.attrib["r"])] = _value(cell, formats)
        found.append([cells.get(place) for place in range(max(cells, default=-1) + 1)])
    return found


def frozen_rows(file: bytes) -> str:
    """Return how many rows are frozen."""
    with zipfile.ZipFile(io.BytesIO(file)) as parts:
        pane = ElementTree.fromstring(parts.read("xl/worksheets/sheet1.xml")).find(".//s:pane", NAMES)
    return pane.attrib.get("ySplit", "") if pane is not None else ""


def _number_formats(root: Any) -> list[str]:
    codes = {one.attrib["numFmtId"]: one.attrib["formatCode"] for one in root.findall(".//s:numFmt", NAMES)}
    return [codes.get(one.attrib["numFmtId"], "") for one in root.findall("./s:cellXfs/s:xf", NAMES)]


def _value(cell: Any, formats: list[str]) -> Any:
    if cell.attrib.get("t") == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(f"{{{NAMES['s']}}}t"))
    number = Decimal(cell.find("s:v", NAMES).text)
    is_date = "yyyy" in formats[int(cell.attrib.get("s", 0))]
    return FIRST_DAY + timedelta(days=int(number)) if is_date else number


def _column(reference: str) -> int:
    number = 0
    for letter in re.sub(r"\d", "", reference):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
