"""The organization's logo, from the file named by the setting LOGO."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.templatetags.static import static
from django.urls import reverse


class Logo(NamedTuple):
    content: bytes
    media_type: str

    @property
    def url(self) -> str:
        """Its address. Another file has another address, so that browsers can cache it."""
        return f"{reverse('operations:logo')}?v={sha256(self.content).hexdigest()[:8]}"

    @property
    def data_url(self) -> str:
        """The logo as a data URL, for documents, which load nothing from elsewhere."""
        return f"data:{self.media_type};base64,{b64encode(self.content).decode()}"


@cache
def _read(path: str) -> Logo | None:
    media_type = "image/svg+xml" if path.lower().endswith(".svg") else "image/png"
    try:
        return Logo(Path(path).read_bytes(), media_type)
    except OSError:  # It existed at the start. Pages and error pages must work without it.
        return None


def logo() -> Logo | None:
    return _read(settings.LOGO) if settings.LOGO else None


def icon_url() -> str:
    """The address of the browser tab's icon: the logo, or the product's mark."""
    found = logo()
    return found.url if found else static("icon.svg")
