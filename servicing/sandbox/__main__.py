"""The command line: ``python -m servicing.sandbox`` runs the sandbox; its subcommands use the same file.

Secrets may come from the environment (``SANDBOX_SECRET``, ``SANDBOX_TOKEN``, ``SANDBOX_FIELD_KEY``), because the
process list shows arguments.
"""

import argparse
import csv
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from servicing.crypto import ValueEncoding, ValueKey
from servicing.errors import ConfigurationError
from servicing.sandbox import DEMO_CLIENT_ID, DEMO_SECRET, DEMO_TOKEN, Sandbox
from servicing.sandbox.choices import ERRORS, FILTERS, OFFSETS, TOTALS
from servicing.sandbox.clock import Clock
from servicing.sandbox.credentials import AUTHS
from servicing.sandbox.listing import COLUMNS, list_ids
from servicing.sandbox.seed import seed
from servicing.sandbox.signing import EPOCHS
from servicing.sandbox.store import Store
from servicing.sandbox.wire import dumps
from servicing.sandbox.world import World

SCRIPT = "servicing-sandbox"
"""The name of the installed command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; on failure print one sentence and exit with 1."""
    options = build_parser().parse_args(arguments)
    try:
        options.run(options)
    except (OSError, sqlite3.Error) as problem:
        sys.exit(f"{options.db} can't be used as the sandbox's database: {problem}.")
    except ConfigurationError as problem:
        sys.exit(str(problem))


def build_parser() -> argparse.ArgumentParser:
    """The arguments and subcommands."""
    is_installed = Path(sys.argv[0]).stem == SCRIPT
    root = argparse.ArgumentParser(
        prog=SCRIPT if is_installed else "python -m servicing.sandbox",
        description="A sandbox of the lending service.",
    )
    root.set_defaults(run=serve)
    root.add_argument("--host", default="127.0.0.1")
    root.add_argument("--port", type=int, default=8001)
    root.add_argument("--db", type=Path, default=Path("sandbox.sqlite3"), help="the file with its data")
    root.add_argument("--seed", action="store_true", help="fill an empty file with the demo portfolio")
    root.add_argument(
        "--days-ago",
        type=int,
        default=0,
        help="start the demo portfolio this many days ago; then let them pass",
    )
    root.add_argument("--reset", action="store_true", help="delete the data in the file")
    _add_credentials(root)
    _add_encryption(root)
    _add_answers(root)
    root.add_argument("--control", action="store_true", help="enable the control endpoints under /_sandbox/")
    root.add_argument("--clock-skew", type=float, default=0, help="seconds by which its clock is fast")
    root.add_argument("--log", action="store_true", help="log each request to stderr")
    commands = root.add_subparsers(title="commands on the data, which may run while the service runs")
    days = _add_command(commands.add_parser("advance", help="let days pass"), advance)
    days.add_argument("--days", type=int, required=True)
    _add_command(commands.add_parser("ids", help=f"print CSV: {','.join(COLUMNS)}"), print_ids)
    _add_command(
        commands.add_parser("profiles", help="print the user objects, one JSON object a line"), print_profiles
    )
    return root


def _add_credentials(root: argparse.ArgumentParser) -> None:
    group = root.add_argument_group("how a request shows who sends it")
    group.add_argument("--auth", type=_parse_auth, choices=AUTHS, default="hmac", help="api-key means header")
    group.add_argument("--client-id", default=DEMO_CLIENT_ID)
    group.add_argument("--secret", default=os.environ.get("SANDBOX_SECRET", DEMO_SECRET))
    group.add_argument(
        "--token", default=os.environ.get("SANDBOX_TOKEN", DEMO_TOKEN), help="for bearer and header"
    )
    group.add_argument(
        "--auth-headers", type=_parse_names, default=(), metavar="NAMES", help="four for hmac, one for header"
    )
    group.add_argument("--epoch", choices=EPOCHS, default="both", help="the unit of a signature's epoch")
    group.add_argument("--scope", default="", help="what a client must ask for with oauth2")
    group.add_argument("--token-seconds", type=int, default=3600, help="how long an oauth2 token lives")


def _add_encryption(root: argparse.ArgumentParser) -> None:
    group = root.add_argument_group("how EIN and SSN are encrypted")
    group.add_argument("--values", choices=get_args(ValueEncoding), default="base64")
    group.add_argument("--value-iv", default="before", help="before, after or a separator")
    group.add_argument("--value-key", choices=get_args(ValueKey), default="text")
    group.add_argument(
        "--field-key", default=os.environ.get("SANDBOX_FIELD_KEY", ""), help="default: the secret"
    )


def _add_answers(root: argparse.ArgumentParser) -> None:
    group = root.add_argument_group("how it answers")
    group.add_argument("--wrap", default="", metavar="NAME", help="the member that holds an object")
    group.add_argument(
        "--wrap-lists", default="", metavar="NAME", help="the member that holds a list of repayments"
    )
    group.add_argument("--wrap-errors", default="", metavar="NAME", help="the member that holds an error")
    group.add_argument("--errors", choices=ERRORS, default="message", help="the form of an error")
    group.add_argument("--unknown-path-status", type=int, default=404)
    group.add_argument(
        "--allow-json-type", action="store_true", help="accept a JSON content type on every read"
    )
    group.add_argument(
        "--offset", choices=OFFSETS, default="pages", help="what the message list's offset counts"
    )
    group.add_argument(
        "--filters", choices=FILTERS, default="both", help="where the message list reads its parameters"
    )
    group.add_argument("--page-cap", type=int, default=1000, help="the most messages per page")
    group.add_argument(
        "--lower-larger-pages", action="store_true", help="lower a larger limit instead of rejecting it"
    )
    group.add_argument(
        "--total-at", choices=TOTALS, default="pagination", help="where the message list has its total"
    )


def _parse_auth(name: str) -> str:
    return "header" if name == "api-key" else name


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _add_command(
    command: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    command.add_argument("--db", type=Path, required=True)
    command.set_defaults(run=run)
    return command


def serve(options: argparse.Namespace) -> None:
    """Serve requests until a signal arrives. The port opens once the data are ready."""
    if not 0 <= options.port <= 65535:
        sys.exit("--port must be 0 to 65535.")
    stop_signal = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop_signal.set())
    sandbox = _build_sandbox(options)
    if options.reset:
        sandbox.reset()
    if options.seed:
        seed(sandbox.world, days_ago=max(options.days_ago, 0))
    try:
        sandbox.start()
    except OSError as problem:
        reason = os.strerror(problem.errno or 0).lower()
        sys.exit(
            f"Port {options.port} of {options.host} can't be opened ({reason}). Choose another with --port."
        )
    print(f"The lending service sandbox is at {sandbox.url}", flush=True)
    stop_signal.wait()
    sandbox.close()


def _build_sandbox(options: argparse.Namespace) -> Sandbox:
    return Sandbox(
        options.db,
        client_id=options.client_id,
        secret=options.secret,
        token=options.token,
        field_key=options.field_key,
        auth=options.auth,
        auth_headers=options.auth_headers,
        epoch_unit=options.epoch,
        scope=options.scope,
        token_seconds=options.token_seconds,
        values=options.values,
        value_iv=options.value_iv,
        value_key=options.value_key,
        host=options.host,
        port=options.port,
        control=options.control,
        clock_skew=options.clock_skew,
        log=options.log,
        wrap=options.wrap,
        wrap_lists=options.wrap_lists,
        wrap_errors=options.wrap_errors,
        errors=options.errors,
        unknown_path_status=options.unknown_path_status,
        json_type_breaks_reads=not options.allow_json_type,
        offset=options.offset,
        filters=options.filters,
        page_cap=options.page_cap,
        refuses_larger_pages=not options.lower_larger_pages,
        message_total=options.total_at,
    )


def advance(options: argparse.Namespace) -> None:
    """Let days pass for the service in the file."""
    if options.days < 1:
        sys.exit("--days must be 1 or more.")
    with _world(options.db) as world:
        world.advance(options.days)
        print(f"It is {world.clock.today()} in the sandbox now.")


def print_ids(options: argparse.Namespace) -> None:
    """Print the IDs of all records as CSV."""
    with _world(options.db) as world:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(list_ids(world))


def print_profiles(options: argparse.Namespace) -> None:
    """Print the user objects, one JSON object per line."""
    with _world(options.db) as world:
        for user in world.users():
            print(dumps(user).decode())


@contextmanager
def _world(path: Path) -> Iterator[World]:
    if not path.is_file():
        sys.exit(f"{path} doesn’t exist.")
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # A reader may close the pipe early.
    store = Store(path)
    try:
        yield World(store, Clock(store))
    finally:
        store.close()


if __name__ == "__main__":
    main()
