"""Keeps Python's frames in one piece of memory.

CPython keeps frames in small pieces of memory. Where one ends in the middle of a loop, each call across its end has the
system map memory and take it back, and the same page costs up to three times as much, depending only on how deep its
calls happen to lie.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
FRAME_SLOTS = 40_000


def with_large_frame(work: Callable[P, R]) -> Callable[P, R]:
    """Give a function a frame so large that all frames below it fit into the piece that Python takes for it."""

    def framed(*args: P.args, **kwargs: P.kwargs) -> R:
        return work(*args, **kwargs)

    framed.__code__ = framed.__code__.replace(co_stacksize=FRAME_SLOTS)
    return wraps(work)(framed)
