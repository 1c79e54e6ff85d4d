"""The command line: ``python -m servicing first-day`` examines a service before its first use.

Secrets come from the environment, because the process list shows arguments.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import get_args

from servicing.client import AuthName, Client
from servicing.crypto import ValueEncoding, ValueKey
from servicing.errors import ConfigurationError

RECORD_KINDS = ("borrower", "application", "loan", "line")
TEXTS = {
    "client_id": "the ID that the lender issued",
    "token_url": "where oauth2 gets its tokens",
    "scope": "the scope to ask for with oauth2",
    "value_iv": "before, after, or a separator such as “:”",
    "envelope": "the member that holds an object",
    "list_envelope": "the member that holds a list of repayments",
}
CHOICES = {
    "auth": get_args(AuthName),
    "epoch_unit": ("ms", "s"),
    "value_encoding": get_args(ValueEncoding),
    "value_key": get_args(ValueKey),
    "message_filters": ("query", "body"),
    "offset_counts": ("rows", "pages0", "pages1"),
}
SECRETS = {"secret": "SERVICING_SECRET", "token": "SERVICING_TOKEN", "field_key": "SERVICING_FIELD_KEY"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the report; exit with 1 if something is wrong."""
    options = build_parser().parse_args(arguments)
    try:
        with build_client(options) as lending:
            report = lending.first_day(**{f"{name}_id": getattr(options, name) for name in RECORD_KINDS})
    except ConfigurationError as problem:
        sys.exit(str(problem))
    print(report.text(), end="")
    sys.exit(0 if report.is_usable else 1)


def build_parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m servicing", description="A client of the lending service.")
    commands = root.add_subparsers(required=True, metavar="first-day")
    check = commands.add_parser(
        "first-day",
        help="try every read of a service, and report what differs and the setting to try",
        description=f"Only reads. {', '.join(SECRETS.values())} are read from the environment.",
    )
    check.add_argument("--base-url", required=True, help="base URL of the service, without /v1")
    for name, words in TEXTS.items():
        check.add_argument(f"--{name.replace('_', '-')}", help=words)
    for name, choices in CHOICES.items():
        check.add_argument(f"--{name.replace('_', '-')}", choices=choices)
    check.add_argument(
        "--auth-headers", help="of client ID, signature, time and digest; for header, its one name"
    )
    check.add_argument("--page-size", type=int, help="messages to ask for at a time")
    check.add_argument("--verify", metavar="FILE", help="certificates to trust in place of the public ones")
    check.add_argument("--cert", metavar="FILE", help="a client certificate with its key")
    check.add_argument("--proxy", metavar="URL")
    for name in RECORD_KINDS:
        check.add_argument(f"--{name}", default="", metavar="ID", help=f"a {name} that exists")
    return root


def build_client(options: argparse.Namespace) -> Client:
    """A client with the arguments that were given."""
    given = {name: getattr(options, name) for name in (*TEXTS, *CHOICES, "page_size", "verify", "cert")}
    given |= {name: os.environ.get(variable) for name, variable in SECRETS.items()}
    if options.auth_headers:
        given["auth_headers"] = [name.strip() for name in options.auth_headers.split(",")]
    if options.proxy:
        given["proxies"] = {"http": options.proxy, "https": options.proxy}
    return Client(options.base_url, **{name: value for name, value in given.items() if value is not None})


if __name__ == "__main__":
    main()
