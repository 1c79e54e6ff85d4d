"""Document links: parsing, allowed hosts, resolved addresses, and certificates."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from servicing import ConfigurationError, DocumentFetcher
from servicing.auth import BearerAuth
from servicing.documents import address_scope
from tests.servicing.fetching import (
    FILES,
    PDF,
    SERVICE,
    local_fetcher,
    read_document,
    refusal_message,
    remote_fetcher,
    resolve_to,
    unavailable_message,
)
from tests.servicing.wire import Wire, closing, response, trickling, unending

OK = b"HTTP/1.1 200 OK\r\n"

UNLISTED_HOSTS = """
    lender.example.attacker.example  files.lender.example.  www.files.lender.example  files-lender.example
    files.lender.example%00.attacker.example  metadata.google.internal  xn--fles-lender-x0a.example
    attacker.example#@files.lender.example  attacker.example?@files.lender.example
    attacker.example/@files.lender.example
    localhost  localhost.  127.0.0.1  127.0.0.1.  127.1  2130706433  0x7f000001  0x7f.0.0.1  0177.0.0.1
    017700000001  169.254.169.254  2852039166
    [::1]  [::]  [::ffff:127.0.0.1]  [0:0:0:0:0:ffff:7f00:1]  [fe80::1%25eth0]  [fe80::1%eth0]
    [64:ff9b::a9fe:a9fe]
    \uff11\uff12\uff17.0.0.1  127\u30020\u30020\u30021  f\u0131les.lender.example  \uff46iles\u3002lender.example
"""

PUBLIC = """
    93.184.216.34  100.63.255.255  100.128.0.0  172.15.255.255  172.32.0.0  223.255.255.255
    2606:2800:220:1:248:1893:25c8:1946  2a00:1450:4001::1  ::ffff:93.184.216.34  64:ff9b::5db8:d822
"""

INTERNAL = """
    0.0.0.0  0.1.2.3  10.0.0.1  100.64.0.1  100.100.100.200  100.127.255.255  168.63.129.16  169.254.169.254
    172.16.0.1  172.31.255.255  192.0.0.170  192.0.2.1  192.88.99.1  192.168.1.1  198.18.0.1  198.19.255.255
    198.51.100.1  203.0.113.1  224.0.0.1  239.255.255.255  240.0.0.1  255.255.255.255
    ::  100::1  2001::1  2001:db8::1  3fff::1  5f00::1  fc00::1  fd00:ec2::254  fe80::1  fe80::1%eth0  fec0::1
    ff02::1  4000::1
    ::127.0.0.1  ::10.0.0.1  ::ffff:127.0.0.1  ::ffff:10.0.0.1  ::ffff:a9fe:a9fe  ::ffff:0:127.0.0.1
    64:ff9b::127.0.0.1  64:ff9b::10.0.0.1  64:ff9b::a9fe:a9fe  64:ff9b:1::a9fe:a9fe
    2002:7f00:1::  2002:a9fe:a9fe::1  2002:5db8:d822::1  2001:0:4136:e378:8000:63bf:3fff:fdd2
"""

INVALID_ADDRESSES = "127.1  2130706433  0x7f.0.0.1  0177.0.0.1  [::1]  127.0.0.1:80  files.lender.example"


# Accepted and rejected links


@pytest.mark.parametrize(
    "url",
    [
        "",
        "statement.pdf",
        "//files.lender.example/a.pdf",
        "https:///a.pdf",
        "https://",
        "https://[/a.pdf",
        "https://[::1",
        "https://files.lender.example:port/",
        "https://files.lender.example:-1/",
        "https://files.lender.example:65536/",
        "https://files.lender.example\\@10.0.0.1/",
        "https://files.lender.example/\r\nHost: 10.0.0.1",
        "https://files.lender.example /",
        " https://files.lender.example/",
        "https://files.lender\t.example/",
        "https://files.lender.example\x00/",
        "https://*.lender.example/",
        "https://xn--\u2603-.example/",
        f"https://files.lender.example/{'a' * 8000}",
    ],
)
def test_a_malformed_link_is_rejected(url: str) -> None:
    assert refusal_message(remote_fetcher(), url) in (
        "The document link isn’t valid.",
        "The document link doesn’t use https.",
    )


@pytest.mark.parametrize("scheme", ["http", "HTTP", "ftp", "file", "data", "javascript", "httpx", "gopher"])
def test_a_link_must_use_https(scheme: str) -> None:
    assert "doesn’t use https" in refusal_message(remote_fetcher(), f"{scheme}://{FILES}/a.pdf")


@pytest.mark.parametrize("user", ["me", "me:secret", ":secret", "lender.example:443", "%40"])
def test_a_link_must_not_contain_a_username(user: str) -> None:
    assert "username" in refusal_message(remote_fetcher(), f"https://{user}@{FILES}/a.pdf")


@pytest.mark.parametrize("port", [22, 80, 8443, 65535])
def test_a_link_must_use_the_default_port(port: int) -> None:
    assert f"port {port} of {FILES}" in refusal_message(remote_fetcher(), f"https://{FILES}:{port}/a.pdf")


@pytest.mark.parametrize("host", UNLISTED_HOSTS.split())
def test_only_allowed_hosts_are_contacted(host: str) -> None:
    message = refusal_message(remote_fetcher(), f"https://{host}/a.pdf")

    assert "isn’t an allowed document host" in message or "isn’t valid" in message


@pytest.mark.parametrize(
    "url",
    [
        "https://files.lender.example/a.pdf",
        "https://files.lender.example:443/a.pdf",
        "HTTPS://FILES.Lender.EXAMPLE/a.pdf",
        "https://files.lender.example?a@b",
        "https://files.lender.example#@attacker.example",
        "https://lender.example/a.pdf",
        "https://b\u00fccher.example/a.pdf",
        "https://xn--bcher-kva.example/a.pdf",
    ],
)
def test_an_allowed_host_matches_in_any_spelling(url: str) -> None:
    fetcher = remote_fetcher(
        hosts=["Files.lender.example", "B\u00fccher.example"], resolve=resolve_to("10.0.0.1")
    )

    assert "points to an internal address" in refusal_message(fetcher, url)


def test_the_service_port_is_allowed_only_on_the_service_host() -> None:
    fetcher = remote_fetcher(service_url="https://lender.example:8443/v1", resolve=resolve_to("10.0.0.1"))

    assert "internal address" in refusal_message(fetcher, "https://lender.example:8443/a.pdf")
    assert "internal address" in refusal_message(fetcher, "https://lender.example/a.pdf")
    assert "port 8443" in refusal_message(fetcher, f"https://{FILES}:8443/a.pdf")


FETCHER_WITHOUT_HOSTS = remote_fetcher(hosts=[])


@settings(deadline=None)
@given(st.text(max_size=60) | st.from_regex(r"https?://[!-~]{1,30}", fullmatch=True))
def test_random_links_contact_no_host(url: str) -> None:
    assert refusal_message(FETCHER_WITHOUT_HOSTS, url)


# Resolved addresses


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses_are_recognized(address: str) -> None:
    assert address_scope(address) == "public"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.255.254", "::1"])
def test_loopback_addresses_are_recognized(address: str) -> None:
    assert address_scope(address) == "loopback"


@pytest.mark.parametrize("address", ["", *INTERNAL.split(), *INVALID_ADDRESSES.split()])
def test_other_addresses_are_internal(address: str) -> None:
    assert address_scope(address) == "internal"


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1"])
@pytest.mark.parametrize("among", [[], ["93.184.216.34"]])
def test_a_host_with_an_internal_address_is_rejected(address: str, among: list[str]) -> None:
    fetcher = remote_fetcher(resolve=resolve_to(*among, address))

    assert refusal_message(fetcher, f"https://{FILES}/a.pdf") == (
        f"{FILES} points to an internal address, so nothing was fetched."
    )


@pytest.mark.parametrize("name", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost"])
def test_an_allowed_host_must_not_resolve_to_localhost(name: str) -> None:
    fetcher = DocumentFetcher(hosts=[name], service_url=SERVICE)

    assert "points to an internal address" in refusal_message(fetcher, f"https://{name}/a.pdf")


def test_a_local_service_is_rejected_outside_development(wire: Wire) -> None:
    fetcher = DocumentFetcher(hosts=[], service_url=wire.url)

    assert "https" in refusal_message(fetcher, wire.url)
    assert "internal" in refusal_message(fetcher, "https://127.0.0.1/")
    assert wire.connections == 0


@pytest.mark.parametrize(
    ("address", "why"),
    [("93.184.216.34", "doesn’t use https"), ("10.0.0.1", "points to an internal address")],
)
def test_development_mode_allows_only_loopback(address: str, why: str) -> None:
    fetcher = remote_fetcher(allow_loopback_http=True, resolve=resolve_to(address))

    assert why in refusal_message(fetcher, f"http://{FILES}/a.pdf")


def test_an_unknown_host_is_unavailable() -> None:
    def fail_lookup(host: str) -> Sequence[str]:
        raise socket.gaierror

    sentence = f"No document from {FILES}: the host name is unknown."
    assert unavailable_message(remote_fetcher(resolve=fail_lookup), f"https://{FILES}/") == sentence
    assert unavailable_message(remote_fetcher(resolve=resolve_to()), f"https://{FILES}/") == sentence


def test_a_hostname_with_an_overlong_label_is_unavailable() -> None:
    name = f"{'a' * 64}.lender.example"
    fetcher = DocumentFetcher(hosts=[name], service_url=SERVICE)

    assert unavailable_message(fetcher, f"https://{name}/").endswith("the host name is unknown.")


def test_the_next_address_is_tried_after_a_failed_connection(wire: Wire) -> None:
    wire.answer(response(PDF))

    assert (
        read_document(local_fetcher(wire.url, resolve=resolve_to("::1", "127.0.0.2", "127.0.0.1")), wire.url)
        == PDF
    )


# Certificates


def write_certificate(folder: Path, name: str) -> Path:
    """Write a key and a self-signed certificate for a host name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A server of the tests")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}.pem"
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def requested_names() -> list[str | None]:
    """The server names that clients sent (SNI)."""
    return []


@pytest.fixture
def tls_server(tmp_path: Path, requested_names: list[str | None]) -> Iterator[tuple[Wire, str]]:
    """A TLS server for `files.lender.example`, and the CA file for its certificate."""
    path = write_certificate(tmp_path, FILES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.sni_callback = lambda sock, name, tls_context: requested_names.append(name)
    with Wire(context) as server:
        server.answer(response(PDF))
        yield server, str(path)


def test_the_host_is_resolved_once_and_sent_as_sni(
    tls_server: tuple[Wire, str], requested_names: list[str | None]
) -> None:
    server, path = tls_server
    url = f"https://{FILES}:{server.port}/a.pdf"
    looked_up: list[str] = []

    def resolve_once(host: str) -> Sequence[str]:
        looked_up.append(host)
        return ["127.0.0.1"]

    assert read_document(local_fetcher(url, ca_bundle=path, resolve=resolve_once), url) == PDF
    assert (looked_up, requested_names) == ([FILES], [FILES])
    assert f"host: {FILES}:{server.port}" in server.heads[0]


def test_a_certificate_for_another_host_is_rejected(tls_server: tuple[Wire, str]) -> None:
    server, path = tls_server
    url = f"https://lender.example:{server.port}/a.pdf"
    fetcher = local_fetcher(url, ca_bundle=path, resolve=resolve_to("127.0.0.1"), auth=BearerAuth("token"))

    assert refusal_message(fetcher, url) == ("The certificate of lender.example isn’t valid.")
    assert server.requests == []


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_certificate_for_a_domain_is_rejected_on_loopback(tls_server: tuple[Wire, str], name: str) -> None:
    server, path = tls_server

    assert "isn’t valid" in refusal_message(
        local_fetcher(SERVICE, ca_bundle=path), f"https://{name}:{server.port}/"
    )


def test_a_self_signed_certificate_is_rejected(tls_server: tuple[Wire, str]) -> None:
    server, _ = tls_server
    url = f"https://{FILES}:{server.port}/a.pdf"

    assert "isn’t valid" in refusal_message(local_fetcher(url, resolve=resolve_to("127.0.0.1")), url)


@pytest.mark.slow
def test_size_and_time_limits_apply_over_tls(tls_server: tuple[Wire, str]) -> None:
    server, path = tls_server
    url = f"https://{FILES}:{server.port}/a.pdf"
    choices = {"ca_bundle": path, "resolve": resolve_to("127.0.0.1")}

    server.answer(unending(OK + b"\r\n%PDF-1.7"))
    assert "too large" in refusal_message(local_fetcher(url, max_bytes=1_000_000, **choices), url)
    server.answer(trickling(OK + b"\r\n%PDF-1.7"))
    assert "took too long" in refusal_message(local_fetcher(url, time_limit=2, **choices), url)
    server.answer(closing(OK + b"Content-Length: 500\r\n\r\n%PDF-1.7"))
    assert "cut" in unavailable_message(local_fetcher(url, **choices), url)


def test_a_failed_tls_handshake_is_unavailable() -> None:
    with Wire(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as server:
        assert "no secure connection" in unavailable_message(
            local_fetcher(SERVICE), f"https://127.0.0.1:{server.port}/"
        )


# Settings


@pytest.mark.parametrize(
    "host",
    [
        "",
        "https://files.lender.example",
        "files.lender.example:443",
        "files.lender.example/a",
        "*.lender.example",
    ],
)
def test_an_allowed_host_must_be_a_plain_name(host: str) -> None:
    with pytest.raises(ConfigurationError, match="plain name"):
        DocumentFetcher(hosts=[host], service_url=SERVICE)


@pytest.mark.parametrize("url", ["", "lender.example", "ftp://lender.example", "https://[", "https://"])
def test_the_service_url_must_be_valid(url: str) -> None:
    with pytest.raises(ConfigurationError, match="address of the lending service"):
        DocumentFetcher(hosts=[], service_url=url)


def test_a_missing_ca_bundle_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.pem"):
        DocumentFetcher(hosts=[], service_url=SERVICE, ca_bundle=str(tmp_path / "missing.pem"))
