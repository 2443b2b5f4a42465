"""Tasks that zarr leaves unfinished when it raises an error."""

import asyncio
import sys
from typing import Any

MOST_SECONDS = 10.0
"""The longest wait for other tasks, which never end if a store hangs."""
_waiting: set[asyncio.Task[Any] | None] = set()
"""The tasks of all threads that wait for others. Only the event loop of zarr changes this set."""


def finish_zarr_tasks() -> None:
    """Wait for the chunks that zarr still reads or writes after one of them has failed.

    Zarr processes many chunks at a time, and raises the first error while others are unfinished. If
    the process ends before they do, asyncio writes a traceback for each to stderr. Tasks that take
    longer than `MOST_SECONDS`, and may never end, are not waited for.
    """
    if "zarr" in sys.modules:
        from zarr.core.sync import sync  # There is no public function for it.

        sync(_other_tasks())


async def _other_tasks() -> None:
    own = asyncio.current_task()
    _waiting.add(own)
    try:
        # Tasks that wait are left out: threads that fail at the same time would wait for one
        # another without end.
        others = asyncio.all_tasks() - _waiting
        if others:
            ended = asyncio.gather(*others, return_exceptions=True)
            await asyncio.wait([ended], timeout=MOST_SECONDS)
    finally:
        _waiting.discard(own)
