"""Loads our templates without indentation, which would be a tenth of a compressed page."""

import re

from django.template import Origin
from django.template.loaders import filesystem

_INDENTATION = re.compile(r"\n[ \t]+")


class Loader(filesystem.Loader):
    """Loads from ``DIRS``. Lines keep their numbers. No template may indent preformatted text."""

    def get_contents(self, origin: Origin) -> str:
        return _INDENTATION.sub("\n", super().get_contents(origin))
