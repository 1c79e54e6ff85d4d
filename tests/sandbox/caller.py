"""An HTTP caller with its own signing code, so that it cannot share a bug with the sandbox."""

import hashlib
import hmac
import json
import time
from typing import Any

import requests

from servicing.sandbox import DEMO_CLIENT_ID, DEMO_SECRET


class Caller:
    """Sends signed requests over one persistent connection."""

    def __init__(self, url: str, secret: str = DEMO_SECRET) -> None:
        self.url = url
        self.secret = secret
        self.session = requests.Session()
        self.session.trust_env = False

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, body: object) -> requests.Response:
        return self.send("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def put(self, path: str, body: object) -> requests.Response:
        return self.send("PUT", path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        epoch: str | None = None,
    ) -> requests.Response:
        signed = sign_request(self.url + path, body, epoch=epoch, secret=self.secret)
        return self.session.request(
            method,
            self.url + path,
            data=body,
            headers=signed | (headers or {}),
            timeout=10,
            allow_redirects=False,
        )


def sign_request(
    url: str, body: bytes = b"", *, epoch: str | None = None, secret: str = DEMO_SECRET
) -> dict[str, str]:
    """Return the headers of a signed request. The only whitespace in the body may be spaces."""
    epoch = epoch or str(int(time.time() * 1000))
    digest = hashlib.md5(body.replace(b" ", b"")).hexdigest() if body else ""
    signature = hmac.new(secret.encode(), f"{url}{digest}{epoch}".encode(), hashlib.sha256).hexdigest()
    return {
        "X-Client-Id": DEMO_CLIENT_ID,
        "X-Signature": signature,
        "Epoch": epoch,
        "Content-MD5": digest,
    }
