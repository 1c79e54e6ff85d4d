"""The version of the library, and of the project that it is released with."""

from typing import Final

__version__: Final = "0.1.0"
