"""Work that zarr leaves behind where it raises an error."""

import asyncio
import sys
from typing import Any

LONGEST_WAIT = 10.0
"""Seconds after which an error is raised while others are on their way, as in a hanging store."""
_waiting: set[asyncio.Task[Any] | None] = set()
"""The tasks that wait for others, of all threads. Only the loop of zarr changes it."""


def finish_zarr_tasks() -> None:
    """Wait for the chunks that zarr still reads or writes after it has failed at one of them.

    It works at many chunks at a time and raises the first error while the others are on their way.
    If the process ends before these do, asyncio writes a traceback for each of them to stderr. What
    takes longer than `LONGEST_WAIT`, and may never end, is left alone.
    """
    if "zarr" in sys.modules:
        from zarr.core.sync import sync  # Nothing public waits for tasks.

        sync(_other_tasks())


async def _other_tasks() -> None:
    own = asyncio.current_task()
    _waiting.add(own)
    try:
        # Threads that fail at the same time would wait for one another without end.
        others = asyncio.all_tasks() - _waiting
        if others:
            ended = asyncio.gather(*others, return_exceptions=True)
            await asyncio.wait([ended], timeout=LONGEST_WAIT)
    finally:
        _waiting.discard(own)
