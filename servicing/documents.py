"""Downloads statement documents from untrusted links.

Hides how links are parsed, which hosts are allowed, how names are resolved and redirects followed, and the limits of
time and size. An attacker who controls a link or a server must not be able to reach internal addresses through this
machine, keep it busy, or deliver anything but a PDF.

Each redirect is checked like a first link: the link is normalized, its host must be allowed, the name is resolved
once, every address must be public, and the connection goes to one of those addresses. Nothing is logged, because the
query of a link may be enough to read the document.
"""

import functools
import hashlib
import re
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self, cast
from urllib.parse import urldefrag, urljoin, urlsplit

from requests import PreparedRequest, Request
from requests.auth import AuthBase
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from servicing.errors import ConfigurationError, DocumentRefused, ServicingError, Unavailable

MEGABYTE: Final = 1024 * 1024
_PDF: Final = b"%PDF-"
# Readers of PDFs accept other bytes before the mark, such as a byte-order mark, but no more than these in all.
_MARK_BYTES: Final = 1024
_CHUNK_BYTES: Final = 64 * 1024
_MAX_HEAD_BYTES: Final = 64 * 1024
_CONNECT_SECONDS: Final = 5.0
_OPERATION: Final = "documents.fetch"
_HEADERS: Final = {
    "Accept": "application/pdf",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "servicing",
}
_TOO_LARGE: Final = "The document is too large to be shown here."
_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_MAX_LINK_CHARACTERS: Final = 8_000
# URL parsers disagree about these characters, so the address checked could differ from the one requested.
_AMBIGUOUS: Final = re.compile(r"[\x00-\x20\x7f\\]")

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_GLOBAL_UNICAST: Final = ip_network("2000::/3")
_NAT64: Final = ip_network("64:ff9b::/96")
_INTERNAL_NETWORKS: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # carrier-grade NAT
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # platform services of a cloud
            "169.254.0.0/16",  # link-local, including cloud metadata
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/3",  # multicast, reserved, broadcast
            "2001::/23",  # protocol assignments, including Teredo
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
        ),
    )
)


def address_scope(address: str) -> Literal["public", "loopback", "internal"]:
    """The scope of an IP address. Anything that does not belong in a link is `internal`, even if it is no address.

    An IPv4 address inside an IPv6 address (mapped, NAT64) is classified as IPv4. The networks are listed here
    because Python's `is_global` differs between releases.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return "internal"
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    if ip.is_loopback and not mapped:  # Python 3.13 looks into mapped addresses.
        return "loopback"
    if isinstance(ip, IPv6Address):
        if ip not in _GLOBAL_UNICAST and not mapped and ip not in _NAT64:
            return "internal"
        ip = ip if ip in _GLOBAL_UNICAST else IPv4Address(int(ip) & 0xFFFFFFFF)
    return "internal" if any(ip in network for network in _INTERNAL_NETWORKS) else "public"


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class _Link(NamedTuple):
    """A normalized link, the same for checking and for requesting."""

    request: PreparedRequest
    netloc: str
    origin: _Origin


class _LimitedSocket(socket.socket):
    """A socket with a deadline and a limit on the bytes received."""

    deadline: float
    bytes_left: int

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(_seconds_left(self.deadline))
        received = super().recv_into(*args, **kwargs)
        self.bytes_left -= received
        if self.bytes_left < 0:
            raise _refusal(_TOO_LARGE)
        return received


class _LimitedTLSSocket(_LimitedSocket, ssl.SSLSocket):
    """The same limits over TLS."""


class Document:
    """A statement PDF (section 2.8) during its download: iterate over its bytes once, and close it.

    `content_type` and `length` are what the server says; `length` is None if it says nothing. `sha256` and `size`
    are of the bytes received, None until the last one was read. Reading raises `DocumentRefused` if the document is
    too large or too slow, and `Unavailable` if the connection breaks; both close the document.
    """

    def __init__(self, response: HTTPResponse, host: str) -> None:
        self.content_type = " ".join(response.headers.get("Content-Type", "").split())
        self.length: int | None = response.length
        self.sha256: str | None = None
        self.size: int | None = None
        self._response = response
        self._host = host
        head = self._read(len(_PDF))
        if head and head != _PDF:
            head += self._read(_MARK_BYTES - len(_PDF))
        before, mark, _ = head.partition(_PDF)
        if not mark or b"<" in before:  # A page in HTML or XML may contain the mark.
            self.close()
            raise _refusal(f"{host} sent a file that isn’t a PDF.", response.status)
        self._chunks = self._stream(head)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """Close the connection, even if the document was not read to its end."""
        self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stream(self, head: bytes) -> Iterator[bytes]:
        digest, size = hashlib.sha256(), 0
        chunk = head + self._read(_CHUNK_BYTES)
        while chunk:
            digest.update(chunk)
            size += len(chunk)
            yield chunk
            chunk = self._read(_CHUNK_BYTES)
        self.sha256, self.size = digest.hexdigest(), size

    def _read(self, size_limit: int) -> bytes:
        error: ServicingError | None = None
        try:
            chunk = self._response.read(size_limit)
            if chunk or not self._response.length:
                return chunk
        except DocumentRefused as refusal:
            error = refusal
        except TimeoutError:
            error = _refusal("The document took too long to arrive.")
        except (OSError, HTTPException, ValueError):
            pass  # A chunk with an invalid length raises ValueError.
        self.close()
        raise error or _unavailable(self._host, "the connection was cut")


class DocumentFetcher:
    """Fetches statement documents (section 2.8) from the service's own host and from `hosts` (exact names).

    `auth` signs only requests to the exact scheme, host and port of `service_url`. Links must use https on port 443,
    or the service's own port. `allow_loopback_http`, for development, also allows this machine with http and any
    port. `max_bytes` limits the bytes a host sends, `time_limit` the seconds until the last byte, without the time
    of host lookups. A certificate must be signed by an authority in the file `ca_bundle` or a public one. `resolve`
    returns the IP addresses of a host name.

    Threads may share a fetcher. A setting that cannot be used raises `ConfigurationError`.
    """

    def __init__(
        self,
        *,
        hosts: Collection[str],
        service_url: str,
        auth: AuthBase | None = None,
        allow_loopback_http: bool = False,
        max_bytes: int = 32 * MEGABYTE,
        time_limit: float = 30.0,
        max_redirects: int = 3,
        ca_bundle: str | None = None,
        resolve: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self._service = _service_origin(service_url)
        self._hosts = {self._service.host, *map(_host_name, hosts)}
        if allow_loopback_http:
            self._hosts |= _LOOPBACK_NAMES
        self._auth = auth
        self._allows_loopback_http = allow_loopback_http
        self._max_bytes = max_bytes
        self._time_limit = time_limit
        self._max_redirects = max_redirects
        self._tls_context = _tls_context(ca_bundle)
        self._resolve = resolve or _resolve_host

    def check(self, url: str) -> None:
        """Raise `DocumentRefused`, with the reason for staff, if the link itself is not allowed. Nothing is called."""
        self._allowed_link(url)

    def fetch(self, url: str) -> Document:
        """Start downloading a document. Its first bytes are already known to be those of a PDF.

        Raises `DocumentRefused`, with the reason for staff, or `Unavailable` if there is no answer.
        """
        deadline = time.monotonic() + self._time_limit
        link = self._allowed_link(url)
        for _ in range(self._max_redirects + 1):
            response = self._get(link, deadline)
            location = response.headers.get("Location")
            if response.status not in _REDIRECT_STATUSES or not location:
                return self._open_document(link.origin.host, response)
            response.close()
            link = self._allowed_link(location, link.request.url)
        raise _refusal(f"The document link redirects more than {self._max_redirects} times.")

    def _allowed_link(self, url: str, base: str | None = None) -> _Link:
        link = _parse_link(url, base)
        if link is None:
            raise _refusal("The document link isn’t valid.")
        scheme, host, port = link.origin
        if "@" in link.netloc:
            raise _refusal("The document link contains a username, which isn’t allowed.")
        if scheme != "https" and not (scheme == "http" and self._allows_loopback_http):
            raise _refusal("The document link doesn’t use https.")
        if host not in self._hosts:
            raise _refusal(f"The document is on {host}, which isn’t an allowed document host.")
        if (
            port != _DEFAULT_PORTS[scheme]
            and link.origin != self._service
            and not self._is_local_service(host)
        ):
            raise _refusal(f"The document link uses port {port} of {host}, which isn’t allowed.")
        return link

    def _is_local_service(self, host: str) -> bool:
        return self._allows_loopback_http and host in _LOOPBACK_NAMES

    def _get(self, link: _Link, deadline: float) -> HTTPResponse:
        try:
            return self._send(link, deadline)
        except (OSError, HTTPException, UnicodeError) as problem:
            error = _connection_error(link.origin.host, problem)
        raise error

    def _send(self, link: _Link, deadline: float) -> HTTPResponse:
        request = link.request
        if self._auth and link.origin == self._service:
            request = self._auth(request)
        connection = HTTPConnection(link.origin.host, link.origin.port)
        # The connection stays open until the answer is closed, too.
        with self._connect(link.origin, deadline) as connection.sock:
            headers = {"Host": link.netloc, **request.headers}
            connection.request("GET", request.path_url, headers=headers)
            return connection.getresponse()

    def _connect(self, origin: _Origin, deadline: float) -> socket.socket:
        problem: OSError = socket.gaierror()
        for address in self._checked_addresses(origin):
            try:
                return self._open_connection(address, origin, deadline)
            except OSError as failure:
                problem = failure
        raise problem

    def _checked_addresses(self, origin: _Origin) -> Sequence[str]:
        """The addresses of the host, resolved once; raise if any of them is not allowed."""
        addresses = self._resolve(origin.host)
        scopes = {address_scope(address) for address in addresses}
        if "internal" in scopes or ("loopback" in scopes and not self._allows_loopback_http):
            raise _refusal(f"{origin.host} points to an internal address, so nothing was fetched.")
        if origin.scheme == "http" and "public" in scopes:
            raise _refusal("The document link doesn’t use https.")
        return addresses

    def _open_connection(self, address: str, origin: _Origin, deadline: float) -> socket.socket:
        sock = _LimitedSocket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.settimeout(min(_CONNECT_SECONDS, _seconds_left(deadline)))
            sock.connect((address, origin.port))
            if origin.scheme == "https":
                sock = cast(_LimitedSocket, self._tls_context.wrap_socket(sock, server_hostname=origin.host))
        except BaseException:
            sock.close()
            raise
        sock.deadline, sock.bytes_left = deadline, self._max_bytes + _MAX_HEAD_BYTES
        return sock

    def _open_document(self, host: str, response: HTTPResponse) -> Document:
        encoding = response.headers.get("Content-Encoding", "identity")
        if response.status != 200:
            sentence = f"{host} returned status {response.status} instead of a document."
        elif encoding.strip().lower() != "identity":
            sentence = f"{host} sent the document compressed, which wasn’t requested."
        elif (response.length or 0) > self._max_bytes:
            sentence = _TOO_LARGE
        else:
            return Document(response, host)
        response.close()
        raise _refusal(sentence, response.status)


def _parse_link(url: str, base: str | None = None) -> _Link | None:
    """Parse a link, relative to `base` if given; None if it is invalid or ambiguous."""
    if len(url) > _MAX_LINK_CHARACTERS or _AMBIGUOUS.search(url):
        return None
    try:
        whole = urldefrag(urljoin(base or "", url)).url
        request = Request("GET", whole, headers=_HEADERS).prepare()
        parts = urlsplit(request.url or "")
        port = parts.port
    except ValueError:  # All errors of these functions derive from it.
        return None
    origin = _Origin(parts.scheme, parts.hostname or "", port or _DEFAULT_PORTS.get(parts.scheme, 0))
    return _Link(request, parts.netloc, origin)


def _service_origin(url: str) -> _Origin:
    link = _parse_link(url)
    if link is None or link.origin.scheme not in _DEFAULT_PORTS:
        raise ConfigurationError(
            f"The address of the lending service must look like https://lender.example; {url!r} does not."
        )
    return link.origin


def _host_name(name: str) -> str:
    link = _parse_link(f"https://{name}/")
    if link is None or link.request.url != f"https://{link.origin.host}/":
        raise ConfigurationError(
            f"A host of documents must be a plain name such as files.lender.example; {name!r} is not."
        )
    return link.origin.host


@functools.cache  # Loading the public authorities takes longer than fetching a document.
def _tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=DEFAULT_CA_BUNDLE_PATH)
        if ca_bundle:
            context.load_verify_locations(ca_bundle)
    except OSError:
        problem = ConfigurationError(f"The certificates in {ca_bundle!r} cannot be read.")
    else:
        context.sslsocket_class = _LimitedTLSSocket
        return context
    raise problem


def _resolve_host(host: str) -> Sequence[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connection_error(host: str, problem: Exception) -> ServicingError:
    """The error for staff. It leaves out the text of the problem, which may contain the link."""
    match problem:
        case ssl.SSLCertVerificationError():
            return _refusal(f"The certificate of {host} isn’t valid.")
        case ssl.SSLError():
            failure = "no secure connection"
        case socket.gaierror() | UnicodeError():
            failure = "the host name is unknown"
        case TimeoutError():
            failure = "it took too long"
        case ConnectionRefusedError():
            failure = "the connection was refused"
        case OSError():
            failure = "the connection was cut"
        case _:
            failure = "the response can’t be read"
    return _unavailable(host, failure)


def _refusal(sentence: str, status: int | None = None) -> DocumentRefused:
    return DocumentRefused(sentence, operation=_OPERATION, status=status)


def _unavailable(host: str, failure: str) -> Unavailable:
    return Unavailable(f"No document from {host}: {failure}.", operation=_OPERATION)
