"""Measures the client library: decoding a long list, and a call compared with bare ``requests``."""

import json
import random
import tempfile
import uuid
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import requests

from servicing import Client, Repayment
from servicing.codec import decode_list
from servicing.sandbox import Sandbox
from tests.bench.table import Row, bounded, compared, timed

REPAYMENTS = 1_000
CALLS = 100


def rows() -> list[Row]:
    return [*decoding(), call_overhead()]


def decoding() -> list[Row]:
    """Compare decoding 1,000 repayments into models with the plain parser, with exact numbers."""
    lists = {"all amounts given": repayments(given=True), "amounts null": repayments(given=False)}
    found = []
    for name, text in lists.items():
        ours, reference = timed(
            partial(decode_list, Repayment, text), partial(json.loads, text, parse_float=Decimal)
        )
        found.append(compared(f"decode 1,000 repayments, {name}, times `json.loads`", ours, reference, 1.5))
    return found


def call_overhead() -> Row:
    """Compare reading a loan with a bare session that gets and parses the same answer."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox(Path(folder) / "bench.sqlite3", auth="none") as service,
    ):
        borrower = service.world.borrower()
        loan = service.world.loan(borrower["uuid"])
        address = f"{service.url}/v1/users/{borrower['uuid']}/loan/{loan['uuid']}"
        with Client(service.url, auth="none") as client, requests.Session() as session:
            session.trust_env = False  # As in the client: don't look up proxies and passwords on each call.
            ours, reference = timed(
                lambda: [client.loans.get(borrower["uuid"], loan["uuid"]) for _ in range(CALLS)],
                lambda: [session.get(address).json(parse_float=Decimal) for _ in range(CALLS)],
                rounds=10,
            )
    each, bare = ([took / CALLS for took in runs] for runs in (ours, reference))
    return bounded("a call beside bare `requests`: its own cost", each, bare, 0.5)


def repayments(*, given: bool) -> bytes:
    """Return a list as the service sends it, with all amounts or only the required ones."""
    source = random.Random(20260501)
    return json.dumps([_repayment(source, given=given) for _ in range(REPAYMENTS)]).encode()


def _repayment(source: random.Random, *, given: bool) -> dict[str, Any]:
    amounts = ("principal", "interest", "fees", "suspense", "ending_balance")
    return {
        "uuid": _uuid(source),
        "product": "LOAN",
        "payment_type": "SINGLE_PAYMENT",
        "effective_date": f"2026-0{source.randint(1, 9)}-15",
        "amount": source.randint(1_000, 200_000) / 100,
        **{name: source.randint(1_000, 200_000) / 100 if given else None for name in amounts},
        "should_commit_to_servicing": True,
        "borrower_bank_account_uuid": _uuid(source),
        "ach_batch_id": _uuid(source),
        "ach_id": _uuid(source),
        "completion_date": None,
        "error_description": "",
        "initiation_date": None,
        "status": "SUCCEEDED",
    }


def _uuid(source: random.Random) -> str:
    return str(uuid.UUID(int=source.getrandbits(128), version=4))
