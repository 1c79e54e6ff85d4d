"""The command line: ``python -m servicing check`` looks at a service that is used for the first time.

Secrets come from the environment, where the list of processes does not show them.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from servicing.auth import HEADER_NAMES
from servicing.client import Client
from servicing.errors import ConfigurationError

MARKS = {"ok": "ok   ", "warn": "look ", "bad": "WRONG"}
RECORDS = ("borrower", "loan", "line", "application")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was found and the settings to use; exit code 1 where something is wrong."""
    options = parser().parse_args(arguments)
    try:
        with client(options) as lending:
            is_usable = report(lending, {f"{name}_id": getattr(options, name) for name in RECORDS})
    except ConfigurationError as problem:
        sys.exit(str(problem))
    sys.exit(0 if is_usable else 1)


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m servicing", description="A client of the lending service.")
    acts = root.add_subparsers(required=True, metavar="check")
    check = acts.add_parser(
        "check",
        help="find out what a service makes of the points that its interface leaves open",
        description="Only reads. SERVICING_SECRET (hmac) or SERVICING_TOKEN (bearer) is read from the environment.",
    )
    check.add_argument("--base-url", required=True, help="the address of the service, without /v1")
    check.add_argument("--auth", choices=("hmac", "bearer", "none"), default="hmac")
    check.add_argument("--client-id", default=os.environ.get("SERVICING_CLIENT_ID", ""))
    check.add_argument(
        "--auth-headers", default=",".join(HEADER_NAMES), help="of client id, signature, time and digest"
    )
    check.add_argument("--epoch-unit", choices=("ms", "s"), default="ms")
    check.add_argument("--verify", metavar="FILE", help="certificates to trust in place of the public ones")
    check.add_argument("--cert", metavar="FILE", help="a client certificate with its key")
    check.add_argument("--proxy", metavar="URL")
    for name in RECORDS:
        check.add_argument(f"--{name}", default="", metavar="ID", help=f"a {name} that exists")
    return root


def client(options: argparse.Namespace) -> Client:
    return Client(
        options.base_url,
        auth=options.auth,
        client_id=options.client_id,
        secret=os.environ.get("SERVICING_SECRET", ""),
        token=os.environ.get("SERVICING_TOKEN", ""),
        auth_headers=[name.strip() for name in options.auth_headers.split(",")],
        epoch_unit=options.epoch_unit,
        verify=options.verify or True,
        cert=options.cert,
        proxies={"http": options.proxy, "https": options.proxy} if options.proxy else None,
    )


def report(lending: Client, known_ids: dict[str, str]) -> bool:
    """Print each finding as it is made, then the settings. False where something is wrong."""
    is_usable = True
    settings: dict[str, object] = {}
    for found in lending.check(**known_ids):
        print(f"{MARKS[found.grade]}  {found.words}", flush=True)
        is_usable = is_usable and found.grade != "bad"
        settings |= found.settings
    if settings:
        print("\nArguments of Client, and the portal's settings:")
    for name, value in settings.items():
        text = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
        print(f"  {f'{name}={value!r}':24}  SERVICING_{name.upper()}={text}")
    return is_usable


if __name__ == "__main__":
    main()
