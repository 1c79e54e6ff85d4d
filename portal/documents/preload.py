"""Loads what rendering needs into the process that the rendering processes are forked from."""

import signal
import sys
import tempfile
from contextlib import suppress

# WeasyPrint writes fonts to it. Removed at the exit of this process, which the forked ones don't have.
folder = tempfile.TemporaryDirectory(prefix="documents-")
tempfile.tempdir = folder.name
signal.signal(signal.SIGTERM, lambda *_: sys.exit())

with suppress(OSError):  # Without the libraries of WeasyPrint. The first document reports it.
    from portal.documents.html_to_pdf import style

    style()
