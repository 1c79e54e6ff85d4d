"""A sandbox of the lending service: its interface over real HTTP, with its state in one SQLite file.

    with Sandbox(path) as service:
        borrower = service.world.borrower(first_name="Acme Farms LLC")
        service.fail_next("borrowers.update", cut_after_commit=True)
        ...  # call service.url
        assert service.calls[-1].status is None

It shares only the field cipher with the client, so that a mistake in one cannot hide a mistake in the other.
"""

from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from servicing.crypto import FieldCipher, key_from_secret

try:
    import pydyf  # noqa: F401
    import werkzeug  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"The sandbox needs {missing.name}: install the extra “sandbox”, or requirements-demo.txt in a checkout.",
        name=missing.name,
    ) from None

from servicing.sandbox.app import Call, Service
from servicing.sandbox.clock import Clock
from servicing.sandbox.control import with_control
from servicing.sandbox.endpoints import FILTERS, OFFSETS, OPERATIONS, Choices
from servicing.sandbox.faults import ANY, Fault
from servicing.sandbox.server import Server
from servicing.sandbox.signing import DEFAULT_HEADERS, Signatures
from servicing.sandbox.store import Store
from servicing.sandbox.world import World

__all__ = ["DEMO_CLIENT_ID", "DEMO_SECRET", "FILTERS", "OFFSETS", "Call", "Fault", "Sandbox", "World"]

DEMO_CLIENT_ID = "sandbox-client"
DEMO_SECRET = "7f0c2b9e-41d6-4a58-9c37-e2b86d15fa40"  # noqa: S105 - opens nothing but a sandbox.


class Sandbox:
    """A lending service with its data in ``db_path``, which runs in threads of this process.

    ``control`` enables ``/_sandbox/``, ``log`` writes a line to stderr for each request. ``auth`` is ``hmac`` or
    ``none``. ``port=0`` chooses a free port, which a restart keeps. ``today`` sets the service's date.
    ``auth_headers`` names the headers of client ID, signature, epoch and digest.

    The other arguments decide what the interface leaves open. ``offset`` is what the message list's offset counts:
    ``pages`` (from 0), ``pages-from-1`` or ``rows``; ``filters`` is where its parameters are read: ``query``, ``body``
    or ``both``. A page has at most ``page_cap`` messages; a larger limit is rejected, or lowered if
    ``refuses_larger_pages`` is False. ``json_type_breaks_reads`` is the header rule of section 4,
    ``unknown_path_status`` the status for unknown paths, ``clock_skew`` the seconds by which the service's clock is
    fast.
    """

    def __init__(
        self,
        db_path: str | Path,
        *,
        client_id: str = DEMO_CLIENT_ID,
        secret: str = DEMO_SECRET,
        auth: str = "hmac",
        host: str = "127.0.0.1",
        port: int = 0,
        control: bool = False,
        today: date | None = None,
        auth_headers: tuple[str, str, str, str] = DEFAULT_HEADERS,
        log: bool = False,
        **choices: Any,
    ) -> None:
        chosen = Choices(**choices)
        signatures = Signatures(client_id, secret, auth_headers, skew=chosen.clock_skew)
        self.client_id, self.secret = client_id, secret
        self._store = Store(db_path)
        self.world = World(self._store, Clock(self._store, today))
        self._service = Service(
            self.world,
            FieldCipher(key_from_secret(secret)),
            signatures=signatures if auth == "hmac" else None,
            choices=chosen,
        )
        self._address = (host, port)
        self._app = with_control(self._service, self.world, self.reset) if control else self._service
        self._log = log
        self._clock_skew = chosen.clock_skew
        self._server: Server | None = None

    def start(self) -> Self:
        """Open the port and serve requests; ``OSError`` if the port is in use."""
        self._service.stopping.clear()
        self._server = Server(*self._address, self._app, log=self._log, clock_skew=self._clock_skew)
        self._address = (self._address[0], self._server.port)
        self._server.start()
        return self

    def stop(self) -> None:
        """Close the port and every connection. The data remain, and the sandbox can start again."""
        self._service.stopping.set()
        if self._server is not None:
            self._server.stop()
            self._server = None

    def close(self) -> None:
        """Stop and close the file."""
        self.stop()
        self._store.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        host, port = self._address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def calls(self) -> list[Call]:
        """The requests received since the last reset, oldest first."""
        return list(self._service.calls)

    def reset(self) -> None:
        """Delete all data, faults and recorded calls."""
        self._store.clear()
        self._service.faults.clear()
        self._service.last_answers.clear()
        self._service.calls.clear()

    def fail_next(self, operation: str, *, times: int | None = 1, **fault: Any) -> None:
        """Make the next ``times`` calls of an operation fail; None means all calls, ``*`` any operation.

        The other arguments are the fields of :class:`Fault`: ``status=503``, ``cut_after_commit=True``, …
        """
        if operation not in (*OPERATIONS, ANY):
            raise ValueError(f"there is no operation {operation!r}")
        self._service.faults.add(operation, Fault(**fault), times=times)

    def heal(self) -> None:
        """Remove the faults that have not happened yet."""
        self._service.faults.clear()
