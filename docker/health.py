"""Whether the web server of this container may be sent requests: exit code 0 if it may. Standard library only."""

import os
import sys
import urllib.error
import urllib.request

# The server answers to its own names alone.
host = os.environ.get("ALLOWED_HOSTS", "localhost").split(",")[0].strip().lstrip(".*") or "localhost"
request = urllib.request.Request("http://127.0.0.1:8000/readyz", headers={"Host": host})
try:
    with urllib.request.urlopen(request, timeout=4) as answer:  # noqa: S310  (this very machine)
        sys.stdout.write(answer.read().decode())
except urllib.error.HTTPError as refusal:
    sys.exit(f"{refusal.code}: {refusal.read().decode()}")
except OSError as problem:
    sys.exit(f"no answer: {problem}")
