"""A lending service on raw sockets that violates HTTP in many ways, to test the client library.

It shares no code with the client or the sandbox. The request ID of a call names its fault, so threads can share
connections. A write counts as done unless its fault is a plain rejection.
"""

import gzip
import json
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count

from servicing import Client, NotSent, Rejected, ServicingError, Unauthenticated

LIMIT_SECONDS = 1.8  # Long enough for a second try of a read.
SPARE_SECONDS = 1.0
MAX_BOMB_MEGABYTES = 300

Send = Callable[[bytes], None]
Fault = Callable[[Send, bytes], bool]
"""Sends an answer, and returns whether the connection stays open."""


def answer(body: bytes, status: str = "200 OK", *fields: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(body: bytes, *fields: str) -> list[bytes]:
    """Return an answer in four parts: the head, a chunk's size, its content, and the last chunk."""
    head = "\r\n".join(["HTTP/1.1 200 OK", *fields, "Transfer-Encoding: chunked", "", ""]).encode()
    return [head, b"%x\r\n" % len(body), body + b"\r\n", b"0\r\n\r\n"]


def whole(make: Callable[[bytes], bytes], stays: bool = True) -> Fault:
    def send_whole(send: Send, body: bytes) -> bool:
        send(make(body))
        return stays

    return send_whole


def cut_at(share: float, make: Callable[[bytes], bytes] = answer) -> Fault:
    def send_part(send: Send, body: bytes) -> bool:
        content = make(body)
        send(content[: int(len(content) * share)])
        return False

    return send_part


def dripping(start: Callable[[bytes], bytes], piece: bytes, pause: float = 0.05) -> Fault:
    def drip(send: Send, body: bytes) -> bool:
        send(start(body))
        for _ in range(200):
            send(piece)
            time.sleep(pause)
        return False

    return drip


def silent_after(share: float) -> Fault:
    def fall_silent(send: Send, body: bytes) -> bool:
        content = answer(body)
        send(content[: int(len(content) * share)])
        time.sleep(LIMIT_SECONDS * 3)
        return False

    return fall_silent


def reset(send: Send, body: bytes) -> bool:
    raise ConnectionResetError


def json_answer(status: str, value: object) -> Fault:
    return whole(lambda body: answer(json.dumps(value).encode(), status))


def encoded(content: bytes, coding: str = "gzip") -> Fault:
    return whole(lambda body: answer(content, "200 OK", f"Content-Encoding: {coding}"))


HEAD = b"HTTP/1.1 200 OK\r\n"
REASON = {"error": "amount is too large"}
REJECTIONS: dict[str, Fault] = {
    **{
        f"{status} with a reason": json_answer(f"{status} No", REASON)
        for status in (400, 401, 403, 404, 409, 422, 429, 451)
    },
    "200 with an error": json_answer("200 OK", REASON),
    "200 with errors by field": json_answer(
        "200 OK", {"success": False, "errors": {"amount": ["too large"]}}
    ),
}
FAULTS: dict[str, Fault] = {
    "none": whole(answer),
    "cut before the answer": cut_at(0),
    "reset before the answer": reset,
    **{f"cut after {share:.0%}": cut_at(share) for share in (0.02, 0.1, 0.2, 0.35, 0.5, 0.8, 0.99)},
    **{f"chunks cut after {n} of 4": cut_at(1, lambda b, n=n: b"".join(chunked(b)[:n])) for n in (1, 2, 3)},
    **{f"silent after {share:.0%}": silent_after(share) for share in (0, 0.1, 0.6)},
    "drip in the status line": dripping(lambda b: b"", b"H"),
    "drip in a header": dripping(lambda b: HEAD, b"X"),
    "headers without end": dripping(lambda b: HEAD, b"X-A: 1\r\n"),
    "100 without end": dripping(lambda b: b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01),
    "103 without end": dripping(lambda b: b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "drip in a chunk size": dripping(lambda b: chunked(b)[0], b"0"),
    "drip in a chunk": dripping(lambda b: chunked(b)[0] + b"ffff\r\n", b" "),
    "trailers without end": dripping(lambda b: b"".join(chunked(b)[:3]) + b"0\r\n", b"X-A: 1\r\n"),
    "drip in the body": dripping(lambda b: HEAD + b"Content-Length: 9999\r\n\r\n", b" "),
    "body without length": dripping(lambda b: HEAD + b"\r\n", b" "),
    "gzip that yields nothing": dripping(
        lambda b: chunked(b, "Content-Encoding: gzip")[0],
        b"14\r\n" + gzip.compress(b"")[:20].ljust(20) + b"\r\n",
    ),
    **{
        f"{status} before the answer": whole(
            lambda b, s=status: f"HTTP/1.1 {s} Wait\r\n\r\n".encode() + answer(b)
        )
        for status in (100, 102, 103, 199)
    },
    "101": whole(lambda b: b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
    "two answers": whole(lambda b: answer(b) + answer(b'{"uuid": "stale"}')),
    "half of a second answer": whole(lambda b: answer(b) + answer(b'{"uuid": "stale"}')[:20]),
    "a length too short": whole(lambda b: answer(b).replace(b"Length: ", b"Length: 1\r\nX: ")),
    "a length too long": whole(lambda b: HEAD + b"Content-Length: 9999\r\n\r\n" + b, stays=False),
    "two lengths": whole(lambda b: answer(b, "200 OK", "Content-Length: 3")),
    "length and chunks": whole(lambda b: b"".join(chunked(b, f"Content-Length: {len(b)}"))),
    "a negative length": whole(lambda b: HEAD + b"Content-Length: -1\r\n\r\n" + b, stays=False),
    "an unknown coding of chunks": whole(
        lambda b: b"".join(chunked(b)).replace(b"chunked", b"gzip, chunked"), False
    ),
    "a chunk size that is none": whole(lambda b: chunked(b)[0] + b"zz\r\n" + b),
    "a header without a name": whole(lambda b: answer(b, "200 OK", ": nothing", "no colon")),
    "a header of a megabyte": whole(lambda b: answer(b, "200 OK", "X: " + "y" * 1_000_000)),
    "a thousand headers": whole(lambda b: answer(b, "200 OK", *["X: y"] * 1000)),
    "HTTP/0.9": whole(lambda b: b, stays=False),
    "HTTP/2": whole(lambda b: answer(b).replace(b"HTTP/1.1", b"HTTP/2.0")),
    "status abc": whole(lambda b: answer(b, "abc OK")),
    "status 999": whole(lambda b: answer(b, "999 Odd")),
    "absurd dates": json_answer(
        "503 Busy\r\nDate: Fri, 31 Dec 9999 23:59:59 -1200\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 +"
        + "9" * 20,
        REASON,
    ),
    **{
        f"{status} of a proxy": json_answer(f"{status} Odd", {"message": "gone"})
        for status in (408, 425, 499, 502, 504)
    },
    "202 accepted": json_answer("202 Accepted", {"message": "Accepted for processing"}),
    "success without a record": json_answer("200 OK", {"success": True, "message": "Application created"}),
    "success with an error": json_answer("200 OK", {"success": True, "error": "Receipt not mailed"}),
    "nothing": whole(lambda b: b"HTTP/1.1 204 No Content\r\n\r\n"),
    "a redirect": whole(lambda b: answer(b, "307 Go", "Location: /v1/users")),
    "another record": json_answer("200 OK", {"uuid": "of-somebody-else"}),
    "a record without uuid": json_answer("200 OK", {"amount": 1}),
    "a web page": whole(lambda b: answer(b"<html>Sign in</html>")),
    "gzip that is none": encoded(b"\x1f\x8b\x08nonsense"),
    "gzip that ends early": whole(
        lambda b: answer(gzip.compress(b)[:-9], "200 OK", "Content-Encoding: gzip")
    ),
    "an unknown packing": encoded(b"....", "br"),
}
ALL = FAULTS | REJECTIONS


@dataclass
class Findings:
    """The problems found, the number of calls, and the seconds of the slowest call."""

    wrong: list[str] = field(default_factory=list)
    calls: int = 0
    slowest_seconds: float = 0.0


class HostileService:
    """Listens on a free loopback port, with a thread for each connection."""

    def __init__(self) -> None:
        self.mutants: dict[str, bytes] = {}
        self.arrived: Counter[str] = Counter()
        self.carried_out: set[str] = set()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @contextmanager
    def running(self) -> Iterator["HostileService"]:
        thread = threading.Thread(target=self._accept)
        thread.start()
        try:
            yield self
        finally:
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(30)
            try:
                while self._answer(connection):
                    pass
            except ConnectionResetError:  # Raised by ``reset``; unread and unsent data is discarded.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass  # The client hung up.

    def _answer(self, connection: socket.socket) -> bool:
        request = b""
        while b"\r\n\r\n" not in request:
            request += (received := connection.recv(65536))
            if not received:
                return False
        head, _, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        while length and len(body) < int(length[1]):
            body += connection.recv(65536)
        method, path, _ = head.split(b" ", 2)
        found = re.search(rb"(?i)x-request-id: ([\w-]+)-", head)
        call = found[1].decode() if found else ""
        self.arrived[call] += 1
        name = call.partition("-")[2].replace("_", " ")
        if call in self.mutants:
            self.carried_out.add(call)
            connection.sendall(self.mutants[call])
            return call.endswith("stays")
        fault = {key.translate(PLAIN): fault for key, fault in ALL.items()}.get(name, FAULTS["none"])
        if method == b"POST" and name not in {key.translate(PLAIN) for key in REJECTIONS}:
            self.carried_out.add(call)
        uuid = path.rpartition(b"/")[2].decode() if method == b"GET" else f"a-{call}"
        return fault(connection.sendall, json.dumps({"uuid": uuid, "amount": 1}).encode())


PLAIN = {ord(character): None for character in "/%,.()"}


def drill(*, mutants: int, threads: int = 16, seed: int = 20261122) -> Findings:
    """Try each fault and randomly mutated answers, for reads and writes, with a plain read after each."""
    service, findings, chance = HostileService(), Findings(), random.Random(seed)
    numbers = count()
    with (
        service.running(),
        Client(service.url, auth="none", time_limit=LIMIT_SECONDS, sleep=lambda _: None) as client,
    ):
        jobs = [(act, name) for name in ALL for act in ("read", "write")]
        for number in range(mutants):
            act, stays = ("read", "write")[number % 2], number % 4 < 2
            call = f"{next(numbers)}-mutant-{'stays' if stays else 'closes'}"
            uuid = f"l-{call}" if act == "read" else f"a-{call}"
            service.mutants[call] = mutate(answer(json.dumps({"uuid": uuid, "amount": 1.5}).encode()), chance)
            jobs.append((act, call))
        chance.shuffle(jobs)

        def work(job: tuple[str, str]) -> None:
            act, name = job
            call = (
                name
                if name in service.mutants
                else f"{next(numbers)}-{name.translate(PLAIN).replace(' ', '_')}"
            )
            attempt(client, service, findings, act, call)
            attempt(client, service, findings, "read", f"{next(numbers)}-none")

        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(work, job) for job in jobs]:
                done.result()
    return findings


def attempt(client: Client, service: HostileService, findings: Findings, act: str, call: str) -> None:
    """Make one call and compare its outcome with what the service did."""
    caller = client.with_watcher(None, request_id=call)
    started, result = time.monotonic(), ""
    try:
        if act == "read":
            uuid = caller.loans.get("b-1", f"l-{call}").uuid
        else:
            uuid = caller.applications.submit("b-1", amount=Decimal("1.50")).uuid
        if act == "read" and uuid != f"l-{call}":
            findings.wrong.append(f"{call}: got the record {uuid}")
    except ServicingError as error:
        result = f"{type(error).__name__}: {error.message}"
        if (
            isinstance(error, Rejected | NotSent | Unauthenticated)
            and act == "write"
            and call in service.carried_out
        ):
            findings.wrong.append(f"{call}: carried out, and called {result}")
    except Exception as error:
        findings.wrong.append(f"{call}: {type(error).__name__}: {error}")
    seconds = time.monotonic() - started
    findings.calls += 1
    findings.slowest_seconds = max(findings.slowest_seconds, seconds)
    if seconds > LIMIT_SECONDS + SPARE_SECONDS:
        findings.wrong.append(f"{call}: took {seconds:.1f} s")
    if act == "write" and service.arrived[call] > 1:
        findings.wrong.append(f"{call}: sent {service.arrived[call]} times")
    if call.endswith("-none") and result:
        findings.wrong.append(f"{call}: a plain {act} after a fault: {result}")
    if result.startswith("OutcomeUnknown") and call not in service.carried_out and service.arrived[call]:
        findings.wrong.append(f"{call}: rejected, and called unknown")


def mutate(content: bytes, chance: random.Random) -> bytes:
    """Return an answer with some bytes after the status changed, removed, repeated or added."""
    head, rest = content[:12], bytearray(content[12:])
    for _ in range(chance.randint(1, 4)):
        at, size = chance.randrange(len(rest)), chance.randint(1, 12)
        match chance.randrange(4):
            case 0:
                rest[at] = chance.randrange(256)
            case 1:
                del rest[at : at + size]
            case 2:
                rest[at:at] = rest[at : at + size]
            case _:
                rest[at:at] = chance.randbytes(size)
        rest = rest or bytearray(b" ")
    return bytes(head + rest)


BOMBS = {
    "empty objects": "'[' + '{},' * 11_000_000 + '{}]'",
    "objects within objects, as many as may be": "'[' + ','.join(['{\"a\":{\"b\":{\"c\":1}}}'] * 249_000) + ']'",
}
_BOMB = """
import gzip, resource, sys, time
from servicing import Client, ServicingError
from tests.drills.wire import HostileService, answer
text = {text}
service = HostileService()
service.mutants["bomb"] = answer(gzip.compress(text.encode(), 6), "200 OK", "Content-Encoding: gzip")
del text
with service.running(), Client(service.url, auth="none", time_limit=20, max_tries=1) as client:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    def peak():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024
    idle, started = peak(), time.monotonic()
    try:
        client.with_watcher(None, request_id="bomb").repayments.of_loan("b-1", "l-1")
    except ServicingError as error:
        print(peak() - idle, type(error).__name__)
"""


def bombs() -> Iterator[tuple[str, int, str]]:
    """Yield each bomb, how many megabytes the process grew, and the exception of the call."""
    for name, text in BOMBS.items():
        program = [sys.executable, "-c", _BOMB.format(text=text)]
        found = subprocess.run(
            program, capture_output=True, text=True, check=True, timeout=120
        ).stdout.split()
        yield name, int(found[0]), found[1]
