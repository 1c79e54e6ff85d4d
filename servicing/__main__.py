"""The command line: ``python -m servicing check`` examines a service before its first use.

Secrets come from the environment, because the process list shows arguments.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from servicing.auth import HEADER_NAMES
from servicing.client import Client
from servicing.errors import ConfigurationError

GRADE_LABELS = {"ok": "ok   ", "warn": "look ", "bad": "WRONG"}
RECORD_KINDS = ("borrower", "loan", "line", "application")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the findings and the settings to use; exit with 1 if something is wrong."""
    options = build_parser().parse_args(arguments)
    try:
        with build_client(options) as lending:
            is_usable = report(lending, {f"{name}_id": getattr(options, name) for name in RECORD_KINDS})
    except ConfigurationError as problem:
        sys.exit(str(problem))
    sys.exit(0 if is_usable else 1)


def build_parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m servicing", description="A client of the lending service.")
    commands = root.add_subparsers(required=True, metavar="check")
    check = commands.add_parser(
        "check",
        help="find out how a service handles the points that its interface leaves open",
        description="Only reads. SERVICING_SECRET (hmac) or SERVICING_TOKEN (bearer) is read from the environment.",
    )
    check.add_argument("--base-url", required=True, help="base URL of the service, without /v1")
    check.add_argument("--auth", choices=("hmac", "bearer", "none"), default="hmac")
    check.add_argument("--client-id", default=os.environ.get("SERVICING_CLIENT_ID", ""))
    check.add_argument(
        "--auth-headers", default=",".join(HEADER_NAMES), help="of client id, signature, time and digest"
    )
    check.add_argument("--epoch-unit", choices=("ms", "s"), default="ms")
    check.add_argument("--verify", metavar="FILE", help="certificates to trust in place of the public ones")
    check.add_argument("--cert", metavar="FILE", help="a client certificate with its key")
    check.add_argument("--proxy", metavar="URL")
    for name in RECORD_KINDS:
        check.add_argument(f"--{name}", default="", metavar="ID", help=f"a {name} that exists")
    return root


def build_client(options: argparse.Namespace) -> Client:
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
    """Print each finding as it arrives, then the settings; False if something is wrong."""
    is_usable = True
    settings: dict[str, object] = {}
    for finding in lending.check(**known_ids):
        print(f"{GRADE_LABELS[finding.grade]}  {finding.words}", flush=True)
        is_usable = is_usable and finding.grade != "bad"
        settings |= finding.settings
    if settings:
        print("\nArguments of Client, and the portal's settings:")
    for name, value in settings.items():
        text = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
        print(f"  {f'{name}={value!r}':24}  SERVICING_{name.upper()}={text}")
    return is_usable


if __name__ == "__main__":
    main()
