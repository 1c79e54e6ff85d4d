"""The client: one object with a resource for each area of the service, and every setting."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, NoReturn, Self, get_args
from zoneinfo import ZoneInfo

from servicing.answers import ERROR_MEMBERS
from servicing.applications import ApplicationsResource
from servicing.auth import HEADER_NAMES, BasicAuth, BearerAuth, HeaderAuth, HmacAuth, NoAuth, Scheme
from servicing.borrowers import BorrowersResource
from servicing.codec import MAX_RECORDS, MAX_VALUES, Cipher
from servicing.connections import Session, check_certificates, checked_url, guard_connections, new_session
from servicing.credit_lines import CreditLinesResource
from servicing.crypto import FieldCipher, ValueEncoding, ValueKey, key_bytes, key_from_secret
from servicing.documents import DocumentFetcher
from servicing.errors import ConfigurationError
from servicing.first_day import UNTYPED, FirstDay, first_day
from servicing.loans import LoansResource
from servicing.masking import Sensitive
from servicing.messages import MESSAGES_PER_PAGE, MessagesResource
from servicing.oauth2 import ClientCredentialsAuth
from servicing.repayments import RepaymentsResource
from servicing.resource import OffsetUnit
from servicing.transport import Call, Gate, Outcome, Transport, Watcher

AuthName = Literal["hmac", "bearer", "header", "basic", "oauth2", "none"]
MAX_SECONDS: Final = 86_400


class Client:
    """A client of one lending service.

    Each argument with a default decides a point that the interface leaves open, or sets a limit:

    - `auth` is the scheme: `hmac` and `basic` need `client_id` and `secret`, `bearer` a `token`, `header` a `token`
      and its one header in `auth_headers`, `oauth2` a `token_url` beside `client_id` and `secret`, and a `scope` if
      the lender says so (client credentials). For `hmac`, `auth_headers` names the four signature headers (client
      ID, signature, time, digest), `epoch_unit` the unit of the time.
    - `field_key` encrypts EIN and SSN; it defaults to `secret`. `value_key` says how it spells the key, and
      `value_encoding` and `value_iv` what an encrypted value looks like: see `servicing.crypto`. `cipher` builds
      another cipher from the key.
    - `envelope` is the member of an answer that holds its one object, such as `data`, `list_envelope` the member
      that holds a list of repayments. `page_size` is how many messages `messages.iterate` asks for at a time.
    - `timeout` is seconds to connect and to wait for an answer. `time_limit` is the total seconds of one call with
      at most `max_tries` tries, from the host lookup to the last byte decoded. An answer may hold at most
      `max_values` JSON values and `max_records` records.
    - `verify` is a CA bundle to trust instead of the public authorities, `cert` a client certificate (a file, or a
      pair with the file of its key), `proxies` the proxy for each scheme. `session` replaces all three: your own
      `requests.Session`, whose adapters derive from `HTTPAdapter` and do not retry.
    - `country` is the name that addresses must use, `incorporation_field` the field for the incorporation date.
    - `message_filters` says where the filters of the message list go, `message_content_type` whether filters in a
      body have `Content-Type: application/json`, `offset_counts` what the list's offset counts; by default the
      client finds out.
    - `gate` is a circuit breaker (see `Gate`). Clients that share one stop calling a service that is down.
    - `time_zone` is the lender's time zone. It decides on which day somebody turns 18.

    A setting that cannot be used raises `ConfigurationError`.
    """

    borrowers: BorrowersResource
    applications: ApplicationsResource
    loans: LoansResource
    credit_lines: CreditLinesResource
    repayments: RepaymentsResource
    messages: MessagesResource

    def __init__(
        self,
        base_url: str,
        *,
        client_id: str = "",
        secret: str = "",
        auth: AuthName = "hmac",
        token: str = "",
        token_url: str = "",
        scope: str = "",
        auth_headers: Sequence[str] = HEADER_NAMES,
        epoch_unit: Literal["ms", "s"] = "ms",
        field_key: str = "",
        value_encoding: ValueEncoding = "base64",
        value_iv: str = "before",
        value_key: ValueKey = "text",
        cipher: Callable[[bytes], Cipher] | None = None,
        timeout: float | tuple[float, float] = (3.05, 15.0),
        time_limit: float = 25.0,
        max_tries: int = 3,
        max_values: int = MAX_VALUES,
        max_records: int = MAX_RECORDS,
        verify: str | Literal[True] = True,
        cert: str | tuple[str, str] | None = None,
        proxies: Mapping[str, str] | None = None,
        session: Session | None = None,
        country: str = "UNITED STATES",
        incorporation_field: str = "start_date",
        envelope: str = "",
        list_envelope: str = "",
        page_size: int = MESSAGES_PER_PAGE,
        message_filters: Literal["query", "body"] = "query",
        message_content_type: bool = True,
        offset_counts: OffsetUnit | None = None,
        time_zone: str = "US/Pacific",
        sleep: Callable[[float], None] = time.sleep,
        gate: Gate | None = None,
    ) -> None:
        # A traceback may print these variables.
        secret, token, field_key = Sensitive(secret), Sensitive(token), Sensitive(field_key)
        _require_one_of("message_filters", message_filters, ("query", "body"))
        _require_one_of("offset_counts", offset_counts, (None, "rows", "pages0", "pages1"))
        limits = timeout if isinstance(timeout, tuple) else (timeout, timeout)
        _require_pair("timeout", limits)
        for seconds in limits:
            _require_positive(timeout=seconds)
        _require_positive(time_limit=time_limit)
        _require_whole(
            max_tries=max_tries, max_values=max_values, max_records=max_records, page_size=page_size
        )
        _require_text(country=country, incorporation_field=incorporation_field)
        _require_one_of("message_content_type", message_content_type, (True, False))
        _require_zone(time_zone)
        base_url = checked_url(base_url)
        session = _session(session, verify=verify, cert=cert, proxies=proxies)
        guard_connections(session, base_url)
        _require_one_of("auth", auth, get_args(AuthName))
        if {envelope, list_envelope} & set(ERROR_MEMBERS):
            raise ConfigurationError(
                f"envelope and list_envelope can’t be {', '.join(ERROR_MEMBERS)}: such an answer is an error."
            )
        if auth != "oauth2" and (token_url or scope):
            raise ConfigurationError("token_url and scope belong to auth=oauth2.")
        scheme: Scheme
        match auth:
            case "bearer":
                scheme = BearerAuth(token)
            case "header":
                scheme = HeaderAuth(token, auth_headers)
            case "basic":
                scheme = BasicAuth(client_id, secret)
            case "oauth2":
                scheme = ClientCredentialsAuth(client_id, secret, token_url, scope=scope, session=session)
            case "none":
                scheme = NoAuth()
            case _:
                scheme = HmacAuth(client_id, secret, header_names=auth_headers, epoch_unit=epoch_unit)
        self._service = (base_url, scheme)
        self._auth_name = auth
        self._ca_bundle = session.verify if isinstance(session.verify, str) else None
        self._cipher = _cipher(field_key or secret, value_key, value_encoding, value_iv, cipher)
        self._borrower_options: dict[str, str] = {
            "country": country,
            "incorporation_field": incorporation_field,
            "time_zone": time_zone,
        }
        self._message_options: dict[str, Any] = {
            "filters": message_filters,
            "content_type": message_content_type,
            "offset_counts": offset_counts,
            "page_size": page_size,
            "time_zone": time_zone,
        }
        self._create_resources(
            Transport(
                base_url,
                scheme,
                session=session,
                timeout=limits,
                time_limit=time_limit,
                max_tries=max_tries,
                max_values=max_values,
                max_records=max_records,
                envelope=envelope,
                list_envelope=list_envelope,
                credentials=(secret, token, field_key),
                sleep=sleep,
                gate=gate,
            )
        )

    def with_watcher(self, watcher: Watcher | None, *, request_id: str = "") -> Self:
        """A lightweight copy that reports its calls to `watcher` and shares connections.

        With `request_id`, the ID of the request that causes the calls, the ID of each call begins with it.
        """
        clone = self._copy()
        clone._create_resources(self._transport.with_watcher(watcher, request_id))
        return clone

    def with_time_limit(self, seconds: float) -> Self:
        """A copy whose calls take at most this long, for callers who cannot wait longer."""
        _require_positive(seconds=seconds)
        clone = self._copy()
        clone._create_resources(self._transport.with_time_limit(seconds))
        return clone

    def preview(self, make_write: Callable[[Self], object]) -> Call:
        """The write that `make_write` would send, checked and masked but not sent.

        `client.preview(lambda it: it.borrowers.update(borrower_id, email=...)).body` is the JSON to show.
        """
        try:
            make_write(self.with_watcher(_PreviewWatcher()))
        except _WriteStopped as stop:
            return stop.call
        raise TypeError("There is no write to preview.")

    def documents(
        self, *, hosts: Collection[str] = (), allow_loopback_http: bool = False, time_limit: float = 30
    ) -> DocumentFetcher:
        """A fetcher of statement documents from the service's own host and from `hosts`.

        It refuses a document that takes longer than `time_limit` seconds. Only requests to the service itself carry
        this client's credentials.
        """
        service_url, auth = self._service
        return DocumentFetcher(
            hosts=hosts,
            service_url=service_url,
            auth=auth,
            allow_loopback_http=allow_loopback_http,
            ca_bundle=self._ca_bundle,
            time_limit=time_limit,
        )

    def first_day(
        self, *, borrower_id: str = "", loan_id: str = "", line_id: str = "", application_id: str = ""
    ) -> FirstDay:
        """Try every read, and report what fits this service, what differs, and the setting to try.

        Reads whose IDs are missing are left out. Watchers do not see these calls, and failures become findings, so
        nothing is raised.
        """
        place = "query"
        if self._message_options["filters"] == "body":
            place = "body" if self._message_options["content_type"] else UNTYPED
        return first_day(
            self._transport,
            {
                "borrower_id": borrower_id,
                "loan_id": loan_id,
                "line_id": line_id,
                "application_id": application_id,
            },
            auth=self._auth_name,
            place=place,
            page_size=self._message_options["page_size"],
            offset_counts=self._message_options["offset_counts"],
            cipher=self._cipher,
        )

    def close(self) -> None:
        """Close the idle connections, which copies of this client share."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A Client holds secrets and connections and cannot be copied or pickled; make another one."
        )

    def _copy(self) -> Self:
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__)
        return clone

    def _create_resources(self, transport: Transport) -> None:
        self._transport = transport
        self.borrowers = BorrowersResource(transport, self._cipher, **self._borrower_options)
        self.applications = ApplicationsResource(transport)
        self.loans = LoansResource(transport)
        self.credit_lines = CreditLinesResource(transport)
        self.repayments = RepaymentsResource(transport)
        self.messages = MessagesResource(transport, **self._message_options)


class _WriteStopped(Exception):
    def __init__(self, call: Call) -> None:
        self.call = call


class _PreviewWatcher:
    """A watcher that stops every write before it is sent."""

    def before(self, call: Call) -> None:
        raise _WriteStopped(call)

    def after(self, call: Call, outcome: Outcome) -> None: ...


def _cipher(
    secret: str,
    derivation: ValueKey,
    encoding: ValueEncoding,
    iv: str,
    make_cipher: Callable[[bytes], Cipher] | None,
) -> Cipher | None:
    """The cipher of EIN and SSN; None without a secret, if no value can be sent."""
    if make_cipher and (encoding, iv) != ("base64", "before"):
        raise ConfigurationError("A cipher of your own replaces value_encoding and value_iv; give either.")
    if not secret:
        return None
    if make_cipher:
        return make_cipher(key_bytes(secret, derivation))
    return FieldCipher(key_from_secret(secret, derivation), encoding=encoding, iv=iv)


def _session(
    session: Session | None,
    *,
    verify: str | Literal[True],
    cert: str | tuple[str, str] | None,
    proxies: Mapping[str, str] | None,
) -> Session:
    """The given session, or a new one with these certificates and proxies."""
    if proxies is not None and not isinstance(proxies, Mapping):
        raise ConfigurationError("proxies must name an http or https address for each scheme.")
    if session is None:
        check_certificates(verify, cert)
        return new_session(verify=verify, cert=cert, proxies=proxies)
    if cert or proxies or verify is not True:
        raise ConfigurationError("A session brings its own certificates and proxies; give either, not both.")
    if not isinstance(session, Session):
        raise ConfigurationError(f"session must be a requests.Session, not {session!r}.")
    return session


def _require_one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        raise ConfigurationError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}.")


def _require_pair(name: str, value: tuple[object, ...]) -> None:
    if len(value) != 2:
        raise ConfigurationError(f"{name} must be one number, or two: to connect and to read; not {value!r}.")


def _require_positive(**numbers: object) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= MAX_SECONDS:
            raise ConfigurationError(
                f"{name} must be greater than zero and at most {MAX_SECONDS:,} seconds, not {number!r}."
            )


def _require_whole(**numbers: object) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ConfigurationError(f"{name} must be a whole number from 1 up, not {number!r}.")


def _require_text(**texts: object) -> None:
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise ConfigurationError(f"{name} must not be empty.")


def _require_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ValueError, KeyError, OSError, TypeError):
        raise ConfigurationError(
            f"time_zone must be a name such as America/New_York, not {name!r}."
        ) from None
