"""Keeps Python's frames in one piece of memory.

CPython allocates frames in small chunks. If a chunk ends in the middle of a loop, every call across its end maps
memory and unmaps it again. The same page then costs up to three times as much, depending only on the depth of its
calls.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
FRAME_SLOTS = 40_000


def with_large_frame(work: Callable[P, R]) -> Callable[P, R]:
    """Run a function in a frame so large that all frames below it fit into the chunk allocated for it."""

    def framed(*args: P.args, **kwargs: P.kwargs) -> R:
        return work(*args, **kwargs)

    framed.__code__ = framed.__code__.replace(co_stacksize=FRAME_SLOTS)
    return wraps(work)(framed)
