"""The version of the library, which is released together with the portal."""

from typing import Final

__version__: Final = "2.0.1.dev0"
