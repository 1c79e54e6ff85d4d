"""A sandbox of the lending service: its interface over real HTTP, with its state in one SQLite file.

    with Sandbox(path) as service:
        borrower = service.world.borrower(first_name="Acme Farms LLC")
        service.fail_next("borrowers.update", cut_after_commit=True)
        ...  # call service.url
        assert service.calls[-1].status is None

It shares only the field cipher with the client, so that a mistake in one cannot hide a mistake in the other.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from servicing.crypto import FieldCipher, ValueEncoding, ValueKey, key_from_secret

try:
    import pydyf  # noqa: F401
    import werkzeug  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"The sandbox needs {missing.name}: install the extra “sandbox”, or requirements-demo.txt in a checkout.",
        name=missing.name,
    ) from None

from servicing.sandbox.app import Call, Service
from servicing.sandbox.choices import Choices
from servicing.sandbox.clock import Clock
from servicing.sandbox.control import with_control
from servicing.sandbox.credentials import Tokens, build_scheme
from servicing.sandbox.endpoints import OPERATIONS, TOKEN
from servicing.sandbox.faults import ANY, Fault
from servicing.sandbox.server import Server
from servicing.sandbox.store import Store
from servicing.sandbox.world import World

__all__ = ["DEMO_CLIENT_ID", "DEMO_SECRET", "DEMO_TOKEN", "Call", "Fault", "Sandbox", "World"]

DEMO_CLIENT_ID = "sandbox-client"
DEMO_SECRET = "7f0c2b9e-41d6-4a58-9c37-e2b86d15fa40"  # noqa: S105 - opens nothing but a sandbox.
DEMO_TOKEN = "sandbox-token-2c9d71e0"  # noqa: S105 - opens nothing but a sandbox.


class Sandbox:
    """A lending service with its data in ``db_path``, which runs in threads of this process.

    ``control`` enables ``/_sandbox/``, ``log`` writes a line to stderr for each request. ``port=0`` chooses a free
    port, which a restart keeps. ``today`` sets the service's date, ``clock_skew`` the seconds by which its clock is
    fast.

    The other arguments decide what the interface leaves open.

    Credentials: ``auth`` is ``hmac``, ``none``, ``bearer`` or ``header`` (``token``), ``basic`` (client ID and secret)
    or ``oauth2`` (tokens from ``token_url``, which live ``token_seconds``; the client must ask for ``scope`` if it is
    not empty). ``auth_headers`` names the headers of ``hmac`` (client ID, signature, epoch and digest) or the one of
    ``header``. ``epoch_unit`` is ``both``, ``ms`` or ``s``.

    Encrypted values: ``values`` is ``base64``, ``base64url`` or ``hex``; ``value_iv`` is ``before``, ``after`` or a
    separator; ``value_key`` is how the key is made from ``field_key``, which defaults to the secret: ``text``,
    ``hex``, ``base64`` or ``sha256``.

    Answers: ``wrap``, ``wrap_lists`` and ``wrap_errors`` name the member that holds an object, a list of repayments
    or an error; by default there is none. ``errors`` is ``message``, ``oauth`` (``error`` and ``error_description``),
    ``list`` (``errors`` with a ``detail`` each) or ``ok`` (``error``, and failed checks have the status 200).

    Messages: ``offset`` is what the list's offset counts: ``pages`` (from 0), ``pages-from-1`` or ``rows``;
    ``filters`` is where its parameters are read: ``query``, ``body`` or ``both``. A page has at most ``page_cap``
    messages; a larger limit is rejected, or lowered if ``refuses_larger_pages`` is False. ``message_total`` is where
    the total is: in ``pagination``, ``beside`` the data, in ``meta``; or the list is a ``bare`` array without one.

    ``json_type_breaks_reads`` is the header rule of section 4, ``unknown_path_status`` the status for unknown paths.
    """

    def __init__(
        self,
        db_path: str | Path,
        *,
        client_id: str = DEMO_CLIENT_ID,
        secret: str = DEMO_SECRET,
        token: str = DEMO_TOKEN,
        field_key: str = "",
        auth: str = "hmac",
        auth_headers: Sequence[str] = (),
        epoch_unit: str = "both",
        scope: str = "",
        token_seconds: int = 3600,
        values: ValueEncoding = "base64",
        value_iv: str = "before",
        value_key: ValueKey = "text",
        host: str = "127.0.0.1",
        port: int = 0,
        control: bool = False,
        today: date | None = None,
        clock_skew: float = 0,
        log: bool = False,
        **choices: Any,
    ) -> None:
        self.client_id, self.secret, self.token = client_id, secret, token
        chosen = Choices(**choices)
        cipher = FieldCipher(key_from_secret(field_key or secret, value_key), encoding=values, iv=value_iv)
        self._tokens = Tokens(client_id, secret, scope=scope, seconds=token_seconds)
        scheme = build_scheme(
            auth,
            client_id=client_id,
            secret=secret,
            token=token,
            tokens=self._tokens,
            headers=auth_headers,
            epoch_unit=epoch_unit,
            skew=clock_skew,
        )
        self._store = Store(db_path)
        self.world = World(self._store, Clock(self._store, today))
        self._service = Service(self.world, cipher, scheme=scheme, tokens=self._tokens, choices=chosen)
        self._address = (host, port)
        self._app = with_control(self._service, self.world, self.reset) if control else self._service
        self._log = log
        self._clock_skew = clock_skew
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
    def token_url(self) -> str:
        """Where a client gets tokens with ``auth="oauth2"``."""
        return self.url + OPERATIONS[TOKEN].path

    def expire_tokens(self) -> None:
        """End all tokens that were given so far."""
        self._tokens.expire_all()

    def choose(self, **choices: Any) -> None:
        """Change how the running service answers: ``page_cap=30``, or another field of ``Choices``."""
        self._service.choices = replace(self._service.choices, **choices)

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
