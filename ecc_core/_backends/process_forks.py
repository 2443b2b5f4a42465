"""Let forks wait until no other thread imports modules or compiles kernels.

A forked child has one thread only. It would wait forever for a lock that another thread held.
"""

import concurrent.futures.thread  # noqa: F401 (see below)
import logging  # noqa: F401
import os
import threading
from typing import Any

paused = threading.RLock()
"""Held by a thread during each step of importing or compiling, so that forks wait for its end."""

_locks: list[Any] = [paused]
_held: list[Any] = []


def wait_for(lock: Any) -> None:
    """Let forks wait for a lock that threads may acquire while they hold `paused`."""
    _locks.append(lock)


def _acquire() -> None:
    for lock in _locks:
        lock.acquire()
        _held.append(lock)


def _release() -> None:
    while _held:
        _held.pop().release()


# Handlers that are registered last are called first. Those of `logging` and `concurrent.futures`
# take locks that a thread needs to finish its step, so they must be registered by now.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
