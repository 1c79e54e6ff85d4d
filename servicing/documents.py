"""Fetches a statement document from the address the service names, without trusting that address.

Hides how a link is read, which hosts may be asked, where their names lead, how redirects are followed, and the
limits of time and size. Whoever can write a link, or answer one, must not be able to make this machine speak to
what only it can reach, to keep it busy, or to have it pass on anything but a PDF.

Every hop of a redirect begins anew: its link is read into one normal spelling, its host must be known, its name
is resolved once, every address found must be public, and the connection goes to such an address and no other.
Nothing here logs, for the query of a link may be all that is needed to read the document.
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
_CHUNK: Final = 64 * 1024
_HEAD_ALLOWANCE: Final = 64 * 1024
_CONNECT_TIME: Final = 5.0
_OPERATION: Final = "documents.fetch"
_HEADERS: Final = {
    "Accept": "application/pdf",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "servicing",
}
_TOO_LARGE: Final = "The document is too large to be shown here."
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PORTS: Final = {"https": 443, "http": 80}
_LONGEST_LINK: Final = 8_000
# What programs read in different ways, so that one would check another address than the next one asks.
_AMBIGUOUS: Final = re.compile(r"[\x00-\x20\x7f\\]")

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_GLOBAL_UNICAST: Final = ip_network("2000::/3")
_NAT64: Final = ip_network("64:ff9b::/96")
_INTERNAL: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # behind a carrier's translation
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # a cloud's platform services
            "169.254.0.0/16",  # link-local, and the metadata of every cloud
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays to 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/3",  # multicast, reserved, broadcast
            "2001::/23",  # protocol assignments, among them Teredo
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
        ),
    )
)


def reach(address: str) -> Literal["public", "loopback", "internal"]:
    """Where an IP address leads; `internal` is all that has no business in a link, and what is no address.

    An IPv4 address inside an IPv6 one (mapped, NAT64) is judged as what it is. The networks are listed here
    because what Python calls global differs between its releases.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return "internal"
    if ip.is_loopback:
        return "loopback"
    if isinstance(ip, IPv6Address):
        if ip not in _GLOBAL_UNICAST and not ip.ipv4_mapped and ip not in _NAT64:
            return "internal"
        ip = ip if ip in _GLOBAL_UNICAST else IPv4Address(int(ip) & 0xFFFFFFFF)
    return "internal" if any(ip in network for network in _INTERNAL) else "public"


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class _Link(NamedTuple):
    """A link in the one spelling in which it is checked and followed."""

    request: PreparedRequest
    netloc: str
    origin: _Origin


class _Metered(socket.socket):
    """A connection that ends at a point in time and after a number of bytes, however they trickle or pour in."""

    deadline: float
    allowance: int

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(_left(self.deadline))
        received = super().recv_into(*args, **kwargs)
        self.allowance -= received
        if self.allowance < 0:
            raise _refused(_TOO_LARGE)
        return received


class _MeteredTLS(_Metered, ssl.SSLSocket):
    """The same, encrypted."""


class Document:
    """The PDF of a statement (section 2.8) on its way: iterate once over its bytes, and close it.

    `content_type` and `length` are what the other side says, the length None when it does not say. `sha256` and
    `size` are what came, None until the last byte was read. Reading raises `DocumentRefused` when the document
    turns out too large or too slow, and `Unavailable` when the connection breaks; the document is closed then.
    """

    def __init__(self, response: HTTPResponse, host: str) -> None:
        self.content_type = " ".join(response.headers.get("Content-Type", "").split())
        self.length: int | None = response.length
        self.sha256: str | None = None
        self.size: int | None = None
        self._response = response
        self._host = host
        head = self._read(len(_PDF))
        if head != _PDF:
            self.close()
            raise _refused(f"What {host} sent is not a PDF.", response.status)
        self._chunks = self._read_on(head)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """Give back the connection, whether everything was read or not."""
        self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_on(self, head: bytes) -> Iterator[bytes]:
        digest, size = hashlib.sha256(), 0
        chunk = head + self._read(_CHUNK)
        while chunk:
            digest.update(chunk)
            size += len(chunk)
            yield chunk
            chunk = self._read(_CHUNK)
        self.sha256, self.size = digest.hexdigest(), size

    def _read(self, amount: int) -> bytes:
        error: ServicingError | None = None
        try:
            chunk = self._response.read(amount)
            if chunk or not self._response.length:
                return chunk
        except DocumentRefused as refusal:
            error = refusal
        except TimeoutError:
            error = _refused("The document did not arrive in time, so it was given up.")
        except (OSError, HTTPException, ValueError):
            pass  # A ValueError is a chunk whose length makes no sense.
        self.close()
        raise error or _unavailable(self._host, "the connection was cut")


class DocumentFetcher:
    """Fetches statement documents (section 2.8) from the service's own host and from `hosts`, which are exact names.

    `auth` signs what goes to the very scheme, host and port of `service_url`, and nothing else. Links must use
    https and its usual port, or the service's own. `allow_loopback_http` is for development: it lets in this
    machine, with http and any port. `max_bytes` counts all that a host sends, `time_limit` all the seconds until
    the last byte was read, except those in which the system looks up a name. Certificates must be signed by one
    of `ca_bundle`, a file, or by a publicly known authority. `resolve` gives the addresses of a host name.

    One fetcher serves any number of threads. A setting that cannot be used raises `ConfigurationError`.
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
        self._loopback = allow_loopback_http
        self._max_bytes = max_bytes
        self._time_limit = time_limit
        self._max_redirects = max_redirects
        self._tls = _tls(ca_bundle)
        self._resolve = resolve or _resolved

    def fetch(self, url: str) -> Document:
        """Ask for a document; its first bytes have been seen to be those of a PDF.

        Raises `DocumentRefused`, whose message tells staff why, or `Unavailable` when there is no answer.
        """
        deadline = time.monotonic() + self._time_limit
        link = self._checked(url)
        for _ in range(self._max_redirects + 1):
            response = self._answer(link, deadline)
            onward = response.headers.get("Location")
            if response.status not in _REDIRECTS or not onward:
                return self._document(link.origin.host, response)
            response.close()
            link = self._checked(onward, link.request.url)
        raise _refused(f"The link to the document leads on more than {self._max_redirects} times.")

    def _checked(self, url: str, base: str | None = None) -> _Link:
        link = _link(url, base)
        if link is None:
            raise _refused("The link to the document cannot be read.")
        scheme, host, port = link.origin
        if "@" in link.netloc:
            raise _refused("The link to the document carries a user name, which is not allowed.")
        if scheme != "https" and not (scheme == "http" and self._loopback):
            raise _refused("The link to the document does not use https.")
        if host not in self._hosts:
            raise _refused(f"The document lies on {host}, which is not a host that documents may come from.")
        if port != _PORTS[scheme] and link.origin != self._service and not self._is_here(host):
            raise _refused(f"The link to the document asks for port {port} of {host}, which is not allowed.")
        return link

    def _is_here(self, host: str) -> bool:
        return self._loopback and host in _LOOPBACK_NAMES

    def _answer(self, link: _Link, deadline: float) -> HTTPResponse:
        try:
            return self._asked(link, deadline)
        except (OSError, HTTPException, UnicodeError) as problem:
            error = _no_answer(link.origin.host, problem)
        raise error

    def _asked(self, link: _Link, deadline: float) -> HTTPResponse:
        request = link.request
        if self._auth and link.origin == self._service:
            request = self._auth(request)
        connection = HTTPConnection(link.origin.host, link.origin.port)
        # Closing the socket here closes the connection only once the answer, too, has been closed.
        with self._connected(link.origin, deadline) as connection.sock:
            headers = {"Host": link.netloc, **request.headers}
            connection.request("GET", request.path_url, headers=headers)
            return connection.getresponse()

    def _connected(self, origin: _Origin, deadline: float) -> socket.socket:
        problem: OSError = socket.gaierror()
        for address in self._addresses(origin):
            try:
                return self._connection(address, origin, deadline)
            except OSError as failure:
                problem = failure
        raise problem

    def _addresses(self, origin: _Origin) -> Sequence[str]:
        """Where the host's name leads, looked up once and all of it harmless."""
        addresses = self._resolve(origin.host)
        reaches = {reach(address) for address in addresses}
        if "internal" in reaches or ("loopback" in reaches and not self._loopback):
            raise _refused(f"{origin.host} leads to an internal address, so nothing was fetched from it.")
        if origin.scheme == "http" and "public" in reaches:
            raise _refused("The link to the document does not use https.")
        return addresses

    def _connection(self, address: str, origin: _Origin, deadline: float) -> socket.socket:
        sock = _Metered(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.settimeout(min(_CONNECT_TIME, _left(deadline)))
            sock.connect((address, origin.port))
            if origin.scheme == "https":
                sock = cast(_Metered, self._tls.wrap_socket(sock, server_hostname=origin.host))
        except BaseException:
            sock.close()
            raise
        sock.deadline, sock.allowance = deadline, self._max_bytes + _HEAD_ALLOWANCE
        return sock

    def _document(self, host: str, response: HTTPResponse) -> Document:
        encoding = response.headers.get("Content-Encoding", "identity")
        if response.status != 200:
            sentence = f"{host} answered with status {response.status} instead of a document."
        elif encoding.strip().lower() != "identity":
            sentence = f"{host} sent the document packed, although it was asked not to."
        elif (response.length or 0) > self._max_bytes:
            sentence = _TOO_LARGE
        else:
            return Document(response, host)
        response.close()
        raise _refused(sentence, response.status)


def _link(url: str, base: str | None = None) -> _Link | None:
    """What a link says, seen from where `base` led if it came from there; None when that is not clear."""
    if len(url) > _LONGEST_LINK or _AMBIGUOUS.search(url):
        return None
    try:
        whole = urldefrag(urljoin(base or "", url)).url
        request = Request("GET", whole, headers=_HEADERS).prepare()
        parts = urlsplit(request.url or "")
        port = parts.port
    except ValueError:  # Every complaint of these is one.
        return None
    origin = _Origin(parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme, 0))
    return _Link(request, parts.netloc, origin)


def _service_origin(url: str) -> _Origin:
    link = _link(url)
    if link is None or link.origin.scheme not in _PORTS:
        raise ConfigurationError(
            f"The address of the lending service must look like https://lender.example; {url!r} does not."
        )
    return link.origin


def _host_name(name: str) -> str:
    link = _link(f"https://{name}/")
    if link is None or link.request.url != f"https://{link.origin.host}/":
        raise ConfigurationError(
            f"A host of documents must be a plain name such as files.lender.example; {name!r} is not."
        )
    return link.origin.host


@functools.cache  # Reading some hundred authorities takes longer than fetching a document.
def _tls(ca_bundle: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=DEFAULT_CA_BUNDLE_PATH)
        if ca_bundle:
            context.load_verify_locations(ca_bundle)
    except OSError:
        problem = ConfigurationError(f"The certificates in {ca_bundle!r} cannot be read.")
    else:
        context.sslsocket_class = _MeteredTLS
        return context
    raise problem


def _resolved(host: str) -> Sequence[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _no_answer(host: str, problem: Exception) -> ServicingError:
    """A few words for staff. The problem's own text may hold the link and is left out."""
    match problem:
        case ssl.SSLCertVerificationError():
            return _refused(f"{host} could not prove who it is: its certificate is not valid.")
        case ssl.SSLError():
            trouble = "no secure connection could be made"
        case socket.gaierror() | UnicodeError():
            trouble = "its name is not known"
        case TimeoutError():
            trouble = "it took too long"
        case ConnectionRefusedError():
            trouble = "the connection was refused"
        case OSError():
            trouble = "the connection was cut"
        case _:
            trouble = "what it sent cannot be understood"
    return _unavailable(host, trouble)


def _refused(sentence: str, status: int | None = None) -> DocumentRefused:
    return DocumentRefused(sentence, operation=_OPERATION, status=status)


def _unavailable(host: str, trouble: str) -> Unavailable:
    return Unavailable(f"{host} gave no document: {trouble}.", operation=_OPERATION)
