"""JSON of the service as typed models. Hides how tolerant decoding stays fast, and encryption.

Decoding: an answer is parsed once into plain values with exact numbers, then converted into models in batches. A
record that cannot be converted is read field by field: a bad value becomes None and an `Issue`. Every model keeps
the object it was read from (`raw`), and so its unknown fields (`extra`). The only errors are text that is not
JSON, a list that is neither an array nor an envelope, and a record without uuid.

Encoding: `encode` writes the fields that a type declares. A field declared `Encrypted` is never sent in plain text.
"""

import base64
import gzip
import re
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Context, Decimal
from enum import Enum, auto
from functools import cache, partial
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Protocol, Self, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct

from servicing.errors import ConfigurationError, ProtocolError
from servicing.masking import Sensitive, scrub

# Larger numbers make no sense in lending, and printing one could exhaust memory.
MAX_EXPONENT: Final = 20
MIN_EXPONENT: Final = -30
MAX_DIGITS: Final = 60

# A page of the largest borrowers needs about 1% of these limits.
MAX_VALUES: Final = 1_000_000
MAX_RECORDS: Final = 50_000
_BATCH_RECORDS: Final = 40
_PIECE_BYTES: Final = 64 * 1024

M = TypeVar("M", bound="Model")


class Issue(NamedTuple):
    """A value in an answer that could not be read; its field is None instead.

    `path` is the name of the field, dotted if nested (`offers.0.apr`); `problem` completes the sentence
    "This value …", for example `is not a date`.
    """

    path: str
    problem: str


class Model(Struct, frozen=True, kw_only=True, dict=True):
    """Base of everything the service returns. It also keeps the object it was read from.

    Copies and pickles keep `raw`, `extra` and `issues`.
    """

    @property
    def raw(self) -> dict[str, Any]:
        """The object as received, with exact numbers; empty for a model built in code."""
        raw: dict[str, Any] = self.__dict__.get("raw", {})
        return raw

    @property
    def extra(self) -> Mapping[str, Any]:
        """The fields of `raw` that the interface does not describe."""
        known = _shape(type(self)).wire_names
        return MappingProxyType({name: value for name, value in self.raw.items() if name not in known})

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The values that could not be read, in nested objects too."""
        issues: tuple[Issue, ...] = self.__dict__.get("issues", ())
        return issues

    def __copy__(self) -> Self:
        return _rebuild(*self.__reduce__()[1])

    def __reduce__(self) -> tuple[Any, tuple[type[Self], dict[str, Any], dict[str, Any]]]:
        return _rebuild, (type(self), msgspec.structs.asdict(self), self.__dict__)


def _rebuild(cls: type[M], fields: dict[str, Any], attributes: dict[str, Any]) -> M:
    """Rebuild a model from its fields and its other attributes. Pickles refer to this function by name."""
    model = cls(**fields)
    model.__dict__.update(attributes)
    return model


class Record(Model, frozen=True, kw_only=True):
    """Base of models with a uuid, which an answer must contain."""

    uuid: str = ""


# Decoding


def decode(cls: type[M], text: bytes | str) -> M:
    """The one record in a JSON text."""
    return read(cls, parse(text))


def decode_list(cls: type[M], text: bytes | str) -> list[M]:
    """The records in a JSON text: an array, or an envelope around one."""
    return read_list(cls, unwrap_list(parse(text)))


class Budget:
    """The limits of one answer: JSON values, records and time.

    Too many values or records raise `ProtocolError`; passing the deadline (monotonic clock) raises `TimeoutError`.
    """

    def __init__(
        self, max_values: int = MAX_VALUES, max_records: int = MAX_RECORDS, deadline: float = float("inf")
    ) -> None:
        self._max_values = max_values
        self._max_records = max_records
        self._records = 0
        self._deadline = deadline

    def check_values(self, data: bytes) -> None:
        """Count the values of a JSON text before parsing it."""
        if _holds_more_values(data, self._max_values):
            raise ProtocolError(f"The response has more than {self._max_values:,} values.")

    def take_records(self, count: int) -> None:
        self._records += count
        if self._records > self._max_records:
            raise ProtocolError(f"The response has more than {self._max_records:,} records.")

    def check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeoutError


def parse(text: bytes | str, budget: Budget | None = None) -> Any:
    """Plain values with exact numbers, sensitive fields hidden; `ProtocolError` if the text is not JSON.

    A byte-order mark before it is dropped.
    """
    budget = budget or _unlimited()
    data = (text.encode(errors="surrogatepass") if isinstance(text, str) else text).removeprefix(BOM_UTF8)
    budget.check_values(data)
    numbers = Context(prec=MAX_DIGITS, Emin=MIN_EXPONENT, Emax=MAX_EXPONENT, traps=[], flags=[])
    value = _parse_json(data, numbers.create_decimal)
    if any(numbers.flags.values()):  # Some number is out of bounds. The slower hook keeps it as text.
        value = _parse_json(data, partial(_decimal_or_text, budget))
    scrub(value, budget.check_time)
    return value


def unwrap_list(value: Any, envelope: str = "") -> list[Any]:
    """The array, or the one inside an envelope's `data` or `items`, or its member `envelope`."""
    if isinstance(value, dict):
        value = next((value[key] for key in (envelope, "data", "items") if key in value), value)
    if isinstance(value, list):
        return value
    raise ProtocolError("The response is neither a list nor an envelope around one.")


def read(cls: type[M], raw: object, budget: Budget | None = None) -> M:
    """One record from parsed JSON."""
    return read_list(cls, [raw], budget)[0]


def read_list(cls: type[M], raws: list[Any], budget: Budget | None = None) -> list[M]:
    """Records from parsed JSON, converted in batches so that a malformed record slows down only its batch."""
    budget = budget or _unlimited()
    budget.take_records(len(raws))
    models: list[M] = []
    for start in range(0, len(raws), _BATCH_RECORDS):
        budget.check_time()
        batch = raws[start : start + _BATCH_RECORDS]
        budget.take_records(_count_inner_records(cls, batch))
        models += _convert_batch(cls, batch) or [_read_one(cls, raw) for raw in batch]
    for model in models:
        _require_uuid(model)
    return models


def _unlimited() -> Budget:
    """A budget for saved answers, which were checked when they arrived."""
    return Budget(sys.maxsize, sys.maxsize)


def _convert_batch(cls: type[M], raws: list[Any]) -> list[M] | None:
    """The records, or None if one of them must be read field by field."""
    try:
        models = msgspec.convert(raws, list[cls], dec_hook=_from_wire)  # type: ignore[valid-type]
    except msgspec.ValidationError:
        return None
    return models if all(map(partial(_attach_raw, _shape(cls)), models, raws)) else None


def _read_one(cls: type[M], raw: Any) -> M:
    if not isinstance(raw, dict):
        raise ProtocolError(f"The response isn’t an object, as {cls.__name__} must be.")
    return (_convert_batch(cls, [raw]) or [_read_by_field(cls, raw)])[0]


def _count_inner_records(cls: type[Model], raws: list[Any]) -> int:
    """The number of records in lists inside these records."""
    names = [field.wire_name for field in _shape(cls).nested if field.is_list]
    lists = [raw.get(name) for name in names for raw in raws if isinstance(raw, dict)]
    return sum(len(inner) for inner in lists if isinstance(inner, list))


def _parse_json(data: bytes, float_hook: Callable[[str], Any]) -> Any:
    try:
        return msgspec.json.Decoder(float_hook=float_hook).decode(data)
    except (ValueError, RecursionError):
        pass
    raise ProtocolError("The response isn’t JSON.")


def _holds_more_values(data: bytes, limit: int) -> bool:
    """Whether a JSON text has more values than `limit`. Every value but the first follows a comma or a bracket.

    The first count includes commas and brackets inside strings. Only if that is too many, strings are skipped, in
    pieces: copying an enormous text would use the memory that the limit protects.
    """
    if len(data) < 2 * limit or _separators(data) < limit:
        return False
    count, in_string, start = 1, False, 0
    while start < len(data) and count <= limit:
        end = start + _PIECE_BYTES
        while data[end - 1 : end] == b"\\":  # A piece must not end between a backslash and what it escapes.
            end += 1
        pieces = data[start:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        count += sum(map(_separators, pieces[in_string::2]))
        in_string ^= len(pieces) % 2 == 0
        start = end
    return count > limit


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _decimal_or_text(budget: Budget, text: str) -> Decimal | str:
    budget.check_time()
    try:
        return exact_decimal(text)
    except ValueError:
        return text


def _from_wire(kind: Any, value: Any) -> Any:
    return kind.from_wire(value)


def _attach_raw(shape: "_Shape", model: Model, raw: dict[str, Any]) -> bool:
    """Attach `raw` to the model and its nested models; False if a number is out of bounds."""
    model.__dict__["raw"] = raw
    for name in shape.numbers:
        number = getattr(model, name)
        if number is not None and not _is_bounded(number):
            return False
    for field in shape.nested:
        value: Any = getattr(model, field.name)
        source: Any = raw.get(field.wire_name)
        pairs = zip(value, source or (), strict=True) if field.is_list else ((value, source),)
        its_shape = _shape(field.kind)
        if not all(inner is None or _attach_raw(its_shape, inner, its_raw) for inner, its_raw in pairs):
            return False
    return True


def _require_uuid(model: Model) -> None:
    if isinstance(model, Record) and not model.uuid:
        raise ProtocolError(f"The response has a {type(model).__name__} without uuid.")


# Decoding field by field


class _Field(NamedTuple):
    name: str
    wire_name: str
    kind: Any
    is_list: bool
    required: bool

    @property
    def is_model(self) -> bool:
        return isinstance(self.kind, type) and issubclass(self.kind, Model)


class _Shape(NamedTuple):
    fields: tuple[_Field, ...]
    wire_names: frozenset[str]
    numbers: tuple[str, ...]
    nested: tuple[_Field, ...]


@cache
def _shape(cls: type[Model]) -> _Shape:
    fields = tuple(map(_field, msgspec.structs.fields(cls)))
    return _Shape(
        fields=fields,
        wire_names=frozenset(field.wire_name for field in fields),
        numbers=tuple(field.name for field in fields if field.kind in (Decimal, int)),
        nested=tuple(field for field in fields if field.is_model),
    )


def _field(info: msgspec.structs.FieldInfo) -> _Field:
    kind = info.type
    if get_origin(kind) in (Union, UnionType):
        kind = next(arg for arg in get_args(kind) if arg is not type(None))
    is_list = get_origin(kind) is tuple
    return _Field(info.name, info.encode_name, get_args(kind)[0] if is_list else kind, is_list, info.required)


def _read_by_field(cls: type[M], raw: dict[str, Any]) -> M:
    issues: list[Issue] = []
    values: dict[str, Any] = {}
    for field in _shape(cls).fields:
        source = raw.get(field.wire_name)
        value = None if source is None else _read_field(field, source, issues)
        if value is not None or field.required:
            values[field.name] = value
    model = cls(**values)
    model.__dict__.update(raw=raw, issues=tuple(issues))
    return model


def _read_field(field: _Field, source: Any, issues: list[Issue]) -> Any:
    if not field.is_list:
        return _read_value(field.kind, source, field.wire_name, issues)
    if not isinstance(source, list):
        issues.append(Issue(field.wire_name, "is not a list"))
        return None
    if not field.is_model:
        return tuple(source)
    read = (_read_value(field.kind, each, f"{field.wire_name}.{n}", issues) for n, each in enumerate(source))
    return tuple(model for model in read if model is not None)


def _read_value(kind: Any, source: Any, path: str, issues: list[Issue]) -> Any:
    try:
        value = _READERS[kind](source) if kind in _READERS else _read_other(kind, source)
    except ValueError as problem:
        if source != "":
            issues.append(Issue(path, str(problem)))
        return None
    if isinstance(value, Model):
        issues += (Issue(f"{path}.{issue.path}", issue.problem) for issue in value.issues)
    return value


def _read_other(kind: Any, source: Any) -> Any:
    if not issubclass(kind, Model):
        return kind.from_wire(source)
    if not isinstance(source, dict):
        raise ValueError("is not an object")
    return _read_by_field(kind, source)


def exact_decimal(value: object) -> Decimal:
    """The exact number in a JSON value, which may be text; `ValueError` if there is none."""
    if type(value) is not Decimal:  # It nearly always is one, and a schedule has thousands.
        if isinstance(value, bool | float) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
            raise ValueError("is not an exact number")
        if not isinstance(value, str | int | Decimal):
            raise ValueError("is not a number")
        value = Decimal(value)
    if not _is_bounded(value):
        raise ValueError("is a number out of bounds")
    return value


def _is_bounded(number: Decimal | int) -> bool:
    if isinstance(number, int):
        return abs(number) < 10**18
    return number.is_finite() and MIN_EXPONENT <= number.adjusted() <= MAX_EXPONENT


def _whole_number(value: object) -> int:
    number = exact_decimal(value)
    if number != number.to_integral_value() or not _is_bounded(int(number)):
        raise ValueError("is not a whole number of usual size")
    return int(number)


def _calendar_date(value: object) -> date:
    """The date as written, ignoring any time or zone after it: a calendar date never shifts."""
    found = _DATE.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError("is not a date")
    return date(*map(int, found.groups()))


def _boolean(value: object) -> bool:
    if isinstance(value, str) and value.casefold() in ("true", "false"):
        return value.casefold() == "true"
    if not isinstance(value, bool):
        raise ValueError("is neither true nor false")
    return value


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("is not text")
    return str(value)


_NUMBER: Final = re.compile(r"[+-]?\d{1,60}(?:\.\d{0,60})?(?:[eE][+-]?\d{1,6})?", re.ASCII)
_DATE: Final = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})(?:[ T].*)?", re.ASCII)
_READERS: Final[dict[Any, Callable[[Any], Any]]] = {
    Any: lambda value: value,
    Decimal: exact_decimal,
    int: _whole_number,
    date: _calendar_date,
    bool: _boolean,
    str: _text,
}


# Encoding


class Cipher(Protocol):
    """Encrypts single fields; `servicing.crypto.FieldCipher` is the default."""

    def encrypt(self, text: str) -> str: ...


class _Encoding(Enum):
    ENCRYPTED = auto()
    SLASHED = auto()
    GZIPPED = auto()


Encrypted = Annotated[str, _Encoding.ENCRYPTED]
"""Text that is always sent encrypted."""
SlashedDate = Annotated[date, _Encoding.SLASHED]
"""A date that is sent as `YYYY/MM/DD`."""
Gzipped = Annotated[bytes, _Encoding.GZIPPED]
"""Bytes that are sent as base64 of gzip, always the same text for the same bytes."""


class Outgoing(Struct, frozen=True, kw_only=True):
    """Base of request bodies. Fields with a special encoding are personal, so `repr` hides them."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={shown!r}' for name, shown in self.__rich_repr__())})"
        )

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        fields = ((name, getattr(self, name), encoding) for name, _, encoding in _field_encodings(type(self)))
        return [(name, Sensitive() if encoding else value) for name, value, encoding in fields]


def encode(message: Struct, cipher: Cipher | None) -> dict[str, Any]:
    """The JSON object to send: UNSET fields are left out, fields declared encrypted are encrypted."""
    body = {}
    for name, wire_name, encoding in _field_encodings(type(message)):
        value = getattr(message, name)
        if value is not UNSET:
            body[wire_name] = _encode_value(value, encoding, cipher)
    return body


def to_json(value: Any) -> bytes:
    """JSON text in which a Decimal is a number with all its digits."""
    return _ENCODER.encode(value)


def _encode_value(value: Any, encoding: _Encoding | None, cipher: Cipher | None) -> Any:
    if value is None:
        return None
    match encoding:
        case _Encoding.ENCRYPTED:
            return _require_cipher(cipher).encrypt(value)
        case _Encoding.SLASHED:
            return value.isoformat().replace("-", "/")
        case _Encoding.GZIPPED:
            return base64.b64encode(gzip.compress(value, mtime=0)).decode("ascii")
    if isinstance(value, Struct):
        return encode(value, cipher)
    if isinstance(value, list | tuple):
        return [_encode_value(item, None, cipher) for item in value]
    return _to_wire(value)


def _to_wire(value: object) -> Any:
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str | int):
        return value
    raise TypeError(f"{type(value).__name__} cannot be sent; amounts are Decimal and days are date.")


def _require_cipher(cipher: Cipher | None) -> Cipher:
    if cipher is None:
        raise ConfigurationError("An EIN or SSN can only be sent with a secret or a field key to encrypt it.")
    return cipher


@cache
def _field_encodings(cls: type[Struct]) -> tuple[tuple[str, str, _Encoding | None], ...]:
    return tuple(
        (info.name, info.encode_name, _encoding_of(info.type)) for info in msgspec.structs.fields(cls)
    )


def _encoding_of(kind: Any) -> _Encoding | None:
    if get_origin(kind) is Annotated:
        return next((encoding for encoding in kind.__metadata__ if isinstance(encoding, _Encoding)), None)
    return next(filter(None, map(_encoding_of, get_args(kind))), None)


_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
