"""The cache on Redis, Valkey or a database table, any of which may fail while people work.

While it is down, reads find nothing, writes are dropped, and values are computed again. What only the cache knows,
such as the number of failed sign-ins, raises :class:`CacheUnavailable`.
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

from portal.runtime.database import pause_optional_writes, write_if_possible

# How long the cache may take to answer, and how long it is left alone after a failure. Otherwise every page would wait
# for it.
TIMEOUT_SECONDS = 1
PAUSE_SECONDS = 5

logger = logging.getLogger(__name__)
_missing = object()
# Until when a failed server is left alone, for all threads of this process.
_paused_until: dict[str, float] = {}


class CacheUnavailable(Exception):
    """The cache doesn't answer, and only it knows the value."""


def is_answering() -> bool:
    """Whether the configured cache answers."""
    try:
        cache.has_key("nothing")
    except CacheUnavailable:
        return False
    return True


class TableCache(DatabaseCache):
    """Django's database cache, which writes even on reads, without failures or waits while writes are impossible."""

    def _base_set(self, mode: str, *args: Any, **options: Any) -> bool:
        is_set = write_if_possible(lambda: DatabaseCache._base_set(self, mode, *args, **options))  # type: ignore[attr-defined]
        if mode == "set" and is_set is False:  # Django swallows the error.
            pause_optional_writes()
        return bool(is_set)

    def _base_delete_many(self, keys: Any) -> bool:
        # Django asks this after every read, mostly without keys.
        return bool(keys and write_if_possible(lambda: DatabaseCache._base_delete_many(self, keys)))  # type: ignore[attr-defined]


class ForgivingCache(RedisCache):
    """A cache that survives a failed server. ``add``, ``has_key`` and ``clear`` raise: only the server can do them."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        timeouts = {"socket_connect_timeout": TIMEOUT_SECONDS, "socket_timeout": TIMEOUT_SECONDS}
        options = timeouts | {"retry": Retry(NoBackoff(), 0)} | params.get("OPTIONS", {})
        super().__init__(server, params | {"OPTIONS": options})
        self._name = str(server)

    @contextmanager
    def _pause_on_failure(self) -> Iterator[None]:
        from redis import RedisError

        if time.monotonic() < _paused_until.get(self._name, 0):
            raise CacheUnavailable("The cache did not answer a moment ago.")
        try:
            yield
        except RedisError as error:
            if self._name not in _paused_until:
                logger.warning("The cache does not answer: %s", error)
            _paused_until[self._name] = time.monotonic() + PAUSE_SECONDS
            raise CacheUnavailable(str(error)) from error
        if _paused_until.pop(self._name, None):
            logger.warning("The cache answers again.")

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        with suppress(CacheUnavailable), self._pause_on_failure():
            return super().get(key, default, version)
        return default

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        with suppress(CacheUnavailable), self._pause_on_failure():
            super().set(key, value, timeout, version)

    def get_or_set(
        self, key: Any, default: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        """Like Django's, but with ``set`` instead of ``add``: storing a value twice does no harm."""
        value = self.get(key, _missing, version)
        if value is _missing:
            value = default() if callable(default) else default
            if value is not None:
                self.set(key, value, timeout, version)
        return value

    def get_many(self, keys: Any, version: int | None = None) -> dict[Any, Any]:
        with suppress(CacheUnavailable), self._pause_on_failure():
            return super().get_many(keys, version)
        return {}

    def set_many(self, data: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> list[Any]:
        with suppress(CacheUnavailable), self._pause_on_failure():
            return super().set_many(data, timeout, version)
        return list(data)

    def delete(self, key: Any, version: int | None = None) -> bool:
        with suppress(CacheUnavailable), self._pause_on_failure():
            return super().delete(key, version)
        return False

    def delete_many(self, keys: Any, version: int | None = None) -> None:
        with suppress(CacheUnavailable), self._pause_on_failure():
            super().delete_many(keys, version)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        with self._pause_on_failure():
            return super().add(key, value, timeout, version)

    def has_key(self, key: Any, version: int | None = None) -> bool:
        with self._pause_on_failure():
            return super().has_key(key, version)

    def clear(self) -> None:
        with self._pause_on_failure():
            super().clear()
