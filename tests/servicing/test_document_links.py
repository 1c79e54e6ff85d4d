"""Which links are followed: how they are read, which hosts they may name, where names may lead, and who answers."""

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
from servicing.documents import reach
from tests.servicing.fetching import FILES, PDF, SERVICE, here, leading_to, out_there, read, refusal, trouble
from tests.servicing.wire import Wire, answered, closing, trickling, unending

OK = b"HTTP/1.1 200 OK\r\n"

STRANGERS = """
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

NO_ADDRESSES = "127.1  2130706433  0x7f.0.0.1  0177.0.0.1  [::1]  127.0.0.1:80  files.lender.example"


# Which links are followed


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
def test_a_link_that_could_mean_several_things_is_not_read(url: str) -> None:
    assert refusal(out_there(), url) in (
        "The link to the document cannot be read.",
        "The link to the document does not use https.",
    )


@pytest.mark.parametrize("scheme", ["http", "HTTP", "ftp", "file", "data", "javascript", "httpx", "gopher"])
def test_a_link_must_use_https(scheme: str) -> None:
    assert "does not use https" in refusal(out_there(), f"{scheme}://{FILES}/a.pdf")


@pytest.mark.parametrize("user", ["me", "me:secret", ":secret", "lender.example:443", "%40"])
def test_a_link_must_carry_no_user(user: str) -> None:
    assert "user name" in refusal(out_there(), f"https://{user}@{FILES}/a.pdf")


@pytest.mark.parametrize("port", [22, 80, 8443, 65535])
def test_a_link_must_use_the_usual_port(port: int) -> None:
    assert f"port {port} of {FILES}" in refusal(out_there(), f"https://{FILES}:{port}/a.pdf")


@pytest.mark.parametrize("host", STRANGERS.split())
def test_only_a_host_that_was_named_is_asked(host: str) -> None:
    message = refusal(out_there(), f"https://{host}/a.pdf")

    assert "not a host that documents may come from" in message or "cannot be read" in message


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
def test_a_host_is_known_in_every_way_to_write_it(url: str) -> None:
    fetcher = out_there(hosts=["Files.lender.example", "B\u00fccher.example"], resolve=leading_to("10.0.0.1"))

    assert "leads to an internal address" in refusal(fetcher, url)


def test_the_services_own_port_belongs_to_its_own_host_only() -> None:
    fetcher = out_there(service_url="https://lender.example:8443/v1", resolve=leading_to("10.0.0.1"))

    assert "internal address" in refusal(fetcher, "https://lender.example:8443/a.pdf")
    assert "internal address" in refusal(fetcher, "https://lender.example/a.pdf")
    assert "port 8443" in refusal(fetcher, f"https://{FILES}:8443/a.pdf")


NOWHERE = out_there(hosts=[])


@settings(deadline=None)
@given(st.text(max_size=60) | st.from_regex(r"https?://[!-~]{1,30}", fullmatch=True))
def test_no_other_link_reaches_anybody(url: str) -> None:
    assert refusal(NOWHERE, url)


# Where names may lead


@pytest.mark.parametrize("address", PUBLIC.split())
def test_most_addresses_are_public(address: str) -> None:
    assert reach(address) == "public"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.255.254", "::1"])
def test_a_machine_is_known_by_its_own_addresses(address: str) -> None:
    assert reach(address) == "loopback"


@pytest.mark.parametrize("address", ["", *INTERNAL.split(), *NO_ADDRESSES.split()])
def test_everything_else_is_internal(address: str) -> None:
    assert reach(address) == "internal"


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1"])
@pytest.mark.parametrize("among", [[], ["93.184.216.34"]])
def test_one_address_inside_is_enough_to_refuse_a_name(address: str, among: list[str]) -> None:
    fetcher = out_there(resolve=leading_to(*among, address))

    assert refusal(fetcher, f"https://{FILES}/a.pdf") == (
        f"{FILES} leads to an internal address, so nothing was fetched from it."
    )


@pytest.mark.parametrize("name", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost"])
def test_a_name_that_was_named_may_still_not_lead_here(name: str) -> None:
    fetcher = DocumentFetcher(hosts=[name], service_url=SERVICE)

    assert "leads to an internal address" in refusal(fetcher, f"https://{name}/a.pdf")


def test_the_service_itself_may_lie_on_this_machine_only_in_development(wire: Wire) -> None:
    fetcher = DocumentFetcher(hosts=[], service_url=wire.url)

    assert "https" in refusal(fetcher, wire.url)
    assert "internal" in refusal(fetcher, "https://127.0.0.1/")
    assert wire.connections == 0


@pytest.mark.parametrize(
    ("address", "why"),
    [("93.184.216.34", "does not use https"), ("10.0.0.1", "leads to an internal address")],
)
def test_development_lets_in_this_machine_and_no_other(address: str, why: str) -> None:
    fetcher = out_there(allow_loopback_http=True, resolve=leading_to(address))

    assert why in refusal(fetcher, f"http://{FILES}/a.pdf")


def test_an_unknown_name_is_no_answer() -> None:
    def unknown(host: str) -> Sequence[str]:
        raise socket.gaierror

    sentence = f"{FILES} gave no document: its name is not known."
    assert trouble(out_there(resolve=unknown), f"https://{FILES}/") == sentence
    assert trouble(out_there(resolve=leading_to()), f"https://{FILES}/") == sentence


def test_a_name_that_cannot_be_looked_up_is_no_answer() -> None:
    name = f"{'a' * 64}.lender.example"
    fetcher = DocumentFetcher(hosts=[name], service_url=SERVICE)

    assert trouble(fetcher, f"https://{name}/").endswith("its name is not known.")


def test_the_next_address_is_tried_when_one_does_not_answer(wire: Wire) -> None:
    wire.answer(answered(PDF))

    assert read(here(wire.url, resolve=leading_to("::1", "127.0.0.2", "127.0.0.1")), wire.url) == PDF


# Who answers


def certificate(folder: Path, name: str) -> Path:
    """A key and a certificate for one host name, signed with that very key."""
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
def asked_for() -> list[str | None]:
    """The names that clients said they want to speak to."""
    return []


@pytest.fixture
def secured(tmp_path: Path, asked_for: list[str | None]) -> Iterator[tuple[Wire, str]]:
    """An encrypted server that is `files.lender.example`, and the file that vouches for it."""
    path = certificate(tmp_path, FILES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.sni_callback = lambda sock, name, within: asked_for.append(name)
    with Wire(context) as server:
        server.answer(answered(PDF))
        yield server, str(path)


def test_the_connection_goes_to_the_checked_address_and_the_certificate_is_for_the_name(
    secured: tuple[Wire, str], asked_for: list[str | None]
) -> None:
    server, path = secured
    url = f"https://{FILES}:{server.port}/a.pdf"
    looked_up: list[str] = []

    def once(host: str) -> Sequence[str]:
        looked_up.append(host)
        return ["127.0.0.1"]

    assert read(here(url, ca_bundle=path, resolve=once), url) == PDF
    assert (looked_up, asked_for) == ([FILES], [FILES])
    assert f"host: {FILES}:{server.port}" in server.heads[0]


def test_another_name_is_not_proved_by_the_certificate(secured: tuple[Wire, str]) -> None:
    server, path = secured
    url = f"https://lender.example:{server.port}/a.pdf"
    fetcher = here(url, ca_bundle=path, resolve=leading_to("127.0.0.1"), auth=BearerAuth("token"))

    assert refusal(fetcher, url) == (
        "lender.example could not prove who it is: its certificate is not valid."
    )
    assert server.requests == []


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_an_address_is_not_proved_by_a_certificate_for_a_name(secured: tuple[Wire, str], name: str) -> None:
    server, path = secured

    assert "prove" in refusal(here(SERVICE, ca_bundle=path), f"https://{name}:{server.port}/")


def test_a_certificate_that_nobody_vouches_for_is_refused(secured: tuple[Wire, str]) -> None:
    server, _ = secured
    url = f"https://{FILES}:{server.port}/a.pdf"

    assert "prove" in refusal(here(url, resolve=leading_to("127.0.0.1")), url)


def test_an_encrypted_document_is_limited_like_any_other(secured: tuple[Wire, str]) -> None:
    server, path = secured
    url = f"https://{FILES}:{server.port}/a.pdf"
    choices = {"ca_bundle": path, "resolve": leading_to("127.0.0.1")}

    server.answer(unending(OK + b"\r\n%PDF-1.7"))
    assert "too large" in refusal(here(url, max_bytes=1_000_000, **choices), url)
    server.answer(trickling(OK + b"\r\n%PDF-1.7"))
    assert "in time" in refusal(here(url, time_limit=2, **choices), url)
    server.answer(closing(OK + b"Content-Length: 500\r\n\r\n%PDF-1.7"))
    assert "cut" in trouble(here(url, **choices), url)


def test_a_server_that_cannot_encrypt_is_no_answer() -> None:
    with Wire(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) as server:
        assert "no secure connection" in trouble(here(SERVICE), f"https://127.0.0.1:{server.port}/")


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
def test_a_host_must_be_given_as_a_plain_name(host: str) -> None:
    with pytest.raises(ConfigurationError, match="plain name"):
        DocumentFetcher(hosts=[host], service_url=SERVICE)


@pytest.mark.parametrize("url", ["", "lender.example", "ftp://lender.example", "https://[", "https://"])
def test_the_address_of_the_service_must_be_one(url: str) -> None:
    with pytest.raises(ConfigurationError, match="address of the lending service"):
        DocumentFetcher(hosts=[], service_url=url)


def test_a_missing_file_of_certificates_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.pem"):
        DocumentFetcher(hosts=[], service_url=SERVICE, ca_bundle=str(tmp_path / "missing.pem"))
