"""Reads from a real service, to catch differences between it and this client: `make test-live`.

The service is at `SERVICING_LIVE_URL`; all other settings are those of the portal, such as `SERVICING_AUTH`. The
records to read are `LIVE_BORROWER`, `LIVE_LOAN`, `LIVE_LINE` and `LIVE_APPLICATION`; a read whose ID is missing is
skipped. Nothing is changed, and no value of a record is printed.

A test fails where a value can't be read or a message is lost. Fields that the interface doesn't have are a warning,
because a lender may add some.
"""

import os
import warnings
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from servicing import Client, Message
from servicing.codec import Model

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif("SERVICING_LIVE_URL" not in os.environ, reason="SERVICING_LIVE_URL is not set"),
    pytest.mark.filterwarnings("default:The interface has no:UserWarning"),
]

MAX_MESSAGES = 250
"""How many messages are read at most in one walk."""
MAX_WALKS = 3
"""How often messages are read again if new ones arrive in between."""
DECIMALS = 2
RATES = {"interest_rate", "apr"}

TEXTS = (
    "auth",
    "client_id",
    "secret",
    "token",
    "token_url",
    "scope",
    "epoch_unit",
    "field_key",
    "value_encoding",
    "value_iv",
    "value_key",
    "envelope",
    "list_envelope",
    "country",
    "incorporation_field",
    "message_filters",
    "offset_counts",
    "time_zone",
)
NUMBERS = ("page_size", "max_values", "max_records")


def setting(name: str) -> str:
    """The value of a portal setting, from its variable or from the file that `…_FILE` names."""
    variable = f"SERVICING_{name.upper()}"
    if path := os.environ.get(f"{variable}_FILE"):
        return Path(path).read_text().strip()
    return os.environ.get(variable, "").strip()


def imported(name: str) -> Any:
    module, _, attribute = setting(name).rpartition(".")
    return getattr(import_module(module), attribute) if module else None


def build_client() -> Client:
    """A client from the portal's settings, as `portal.gateway.client.build_client` makes it."""
    given: dict[str, Any] = {name: value for name in TEXTS if (value := setting(name))}
    given |= {name: int(value) for name in NUMBERS if (value := setting(name))}
    if names := setting("auth_headers"):
        given["auth_headers"] = [name.strip() for name in names.split(",")]
    if value := setting("message_content_type"):
        given["message_content_type"] = value.lower() in ("on", "true", "yes", "1")
    if seconds := setting("timeout"):
        given["timeout"] = (3.05, float(seconds))
    if cipher := imported("cipher"):
        given["cipher"] = cipher
    if make_session := imported("session"):
        given["session"] = make_session()
    if bundle := setting("ca_bundle"):
        given["verify"] = bundle
    if cert := setting("client_cert"):
        key = setting("client_cert_key")
        given["cert"] = (cert, key) if key else cert
    if proxy := setting("proxy"):
        given["proxies"] = {"http": proxy, "https": proxy}
    return Client(os.environ["SERVICING_LIVE_URL"], **given)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with build_client() as client:
        yield client


def known_ids(*names: str) -> dict[str, str]:
    """The IDs of these records as arguments of a read; without one of them the test is skipped."""
    found = {f"{name}_id": os.environ.get(f"LIVE_{name.upper()}", "") for name in names}
    if missing := [name for name in names if not found[f"{name}_id"]]:
        variables = " and ".join(f"LIVE_{name.upper()}" for name in missing)
        pytest.skip(f"{variables} not set, so this isn’t read.")
    return found


def require_readable(*models: Model) -> None:
    """Fail on values that can't be read or hold fractions of a cent; warn of unknown fields."""
    problems = {problem for model in models for problem in find_problems(model)}
    for name in sorted({name for model in models for name in unknown_fields(model)}):
        warnings.warn(f"The interface has no {name}.", stacklevel=2)
    if problems:
        pytest.fail("; ".join(sorted(problems)), pytrace=False)


def find_problems(model: Model) -> Iterator[str]:
    kind = type(model).__name__
    yield from (f"{kind}: {issue.path} {issue.problem}" for issue in model.issues)
    for part in parts(model):
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if isinstance(value, Decimal) and name not in RATES and round(value, DECIMALS) != value:
                yield f"{kind}: {name} has more than {DECIMALS} decimals"


def unknown_fields(model: Model) -> Iterator[str]:
    return (f"{type(part).__name__}.{name}" for part in parts(model) for name in part.extra)


def parts(model: Model) -> Iterator[Model]:
    """A model and the models in it."""
    yield model
    for name in model.__struct_fields__:
        value = getattr(model, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Model):
                yield from parts(inner)


def test_a_loan(client: Client) -> None:
    require_readable(client.loans.get(**known_ids("borrower", "loan")))


def test_the_repayments_of_a_loan(client: Client) -> None:
    require_readable(*client.repayments.of_loan(**known_ids("borrower", "loan")))


def test_a_statement(client: Client) -> None:
    require_readable(client.credit_lines.statement(**known_ids("borrower", "line")))


def test_the_repayments_of_a_line(client: Client) -> None:
    require_readable(*client.repayments.of_line(**known_ids("borrower", "line")))


def test_an_application_for_a_line(client: Client) -> None:
    require_readable(client.applications.get_for_line(**known_ids("borrower", "application")))


def test_messages(client: Client) -> None:
    require_readable(*islice(client.messages.iterate(), MAX_MESSAGES))


def test_no_message_is_lost_or_doubled(client: Client) -> None:
    """Pages of two sizes show the same messages, as many as the service counts."""
    size = client.messages.page_size
    for _ in range(MAX_WALKS):
        walks = [read_ids(client.messages.iterate(limit=limit)) for limit in (size, max(2, size // 3), size)]
        total = client.messages.list(limit=1).pagination.total
        if walks[0] == walks[2]:  # Nothing arrived in between.
            break
    else:
        pytest.skip("Messages arrive too fast to compare two walks.")
    first, second, _ = walks
    if problem := compare_walks(first, second, total):
        pytest.fail(problem, pytrace=False)


def read_ids(messages: Iterable[Message]) -> list[str]:
    return [message.uuid for message in islice(messages, MAX_MESSAGES)]


def compare_walks(first: list[str], second: list[str], total: int | None) -> str:
    """What is wrong with two walks through the same messages, in words."""
    if len(set(first)) < len(first) or len(set(second)) < len(second):
        return "A message was read twice."
    if lost := set(first) ^ set(second):
        return f"Pages of another size lose messages: {len(lost)} of {len(first)} differ."
    if total is not None and len(first) != min(total, MAX_MESSAGES):
        return f"{len(first)} messages were read, but the service counts {total}."
    return ""


def test_a_day_has_its_messages(client: Client) -> None:
    """The filters and `SERVICING_TIME_ZONE` find the newest message on its own day."""
    newest = next(client.messages.iterate(), None)
    if newest is None or newest.created_at is None or newest.created_at.at is None:
        pytest.skip("No message has a certain time.")
    day: date = newest.created_at.at.astimezone(ZoneInfo(setting("time_zone") or "US/Pacific")).date()
    found = client.messages.iterate(start_date=day, end_date=day)
    if newest.uuid not in read_ids(found):
        pytest.fail("The newest message is missing on its day. Check SERVICING_TIME_ZONE.", pytrace=False)
    if client.messages.list(start_date=day, end_date=day).filters_ignored:
        warnings.warn("The interface has no list that ignores the days; this one does.", stacklevel=2)
