"""What the desk remembers on a Redis or Valkey, which may go away while people work.

What was only remembered is then worked out anew: reading finds nothing and writing is let go. What the cache alone can
know, such as how often somebody tried to sign in, is nothing that may be guessed: :class:`CacheAway`.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.core.cache import cache
from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.redis import RedisCache

from portal.disk import rest_from_writes, write_if_possible

PATIENCE = 1
"""Seconds that it has for an answer."""
REST = 5
"""Seconds for which it is then not asked again, so that pages do not wait for it one after the other."""

logger = logging.getLogger(__name__)
_missing = object()
# Until when each one that did not answer is left alone, for all threads of the process.
_left_alone: dict[str, float] = {}


class CacheAway(Exception):
    """The cache does not answer, and nothing but it knows."""


def is_answering() -> bool:
    """Whether the cache of this deployment does."""
    try:
        cache.has_key("nothing")
    except CacheAway:
        return False
    return True


class TableCache(DatabaseCache):
    """Django's own, which writes even as it reads: nobody fails or waits for that while nothing can be written."""

    def _base_set(self, mode: str, *args: Any, **options: Any) -> bool:
        is_set = write_if_possible(lambda: DatabaseCache._base_set(self, mode, *args, **options))  # type: ignore[attr-defined]
        if mode == "set" and is_set is False:  # Django holds the error back.
            rest_from_writes()
        return bool(is_set)

    def _base_delete_many(self, keys: Any) -> bool:
        return bool(write_if_possible(lambda: DatabaseCache._base_delete_many(self, keys)))  # type: ignore[attr-defined]


class ForgivingCache(RedisCache):
    """``get``, ``set``, ``delete`` and their likes do without it; ``add`` and ``has_key`` ask what only it can say."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        patience = {"socket_connect_timeout": PATIENCE, "socket_timeout": PATIENCE}
        options = patience | {"retry": Retry(NoBackoff(), 0)} | params.get("OPTIONS", {})
        super().__init__(server, params | {"OPTIONS": options})
        self._name = str(server)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        from redis import RedisError

        if time.monotonic() < _left_alone.get(self._name, 0):
            raise CacheAway("It did not answer a moment ago.")
        try:
            yield
        except RedisError as error:
            if self._name not in _left_alone:
                logger.warning("The cache does not answer: %s", error)
            _left_alone[self._name] = time.monotonic() + REST
            raise CacheAway(str(error)) from error
        if _left_alone.pop(self._name, None):
            logger.warning("The cache answers again.")

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        with suppress(CacheAway), self._asked():
            return super().get(key, default, version)
        return default

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        with suppress(CacheAway), self._asked():
            super().set(key, value, timeout, version)

    def get_or_set(
        self, key: Any, default: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        """Django's own keeps by ``add``; what two work out at once may as well be kept twice."""
        value = self.get(key, _missing, version)
        if value is _missing:
            value = default() if callable(default) else default
            if value is not None:
                self.set(key, value, timeout, version)
        return value

    def set_many(self, data: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> list[Any]:
        with suppress(CacheAway), self._asked():
            return super().set_many(data, timeout, version)
        return list(data)

    def delete(self, key: Any, version: int | None = None) -> bool:
        with suppress(CacheAway), self._asked():
            return super().delete(key, version)
        return False

    def delete_many(self, keys: Any, version: int | None = None) -> None:
        with suppress(CacheAway), self._asked():
            super().delete_many(keys, version)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        with self._asked():
            return super().add(key, value, timeout, version)

    def has_key(self, key: Any, version: int | None = None) -> bool:
        with self._asked():
            return super().has_key(key, version)
