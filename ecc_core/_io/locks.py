"""Locks on files, which the system takes back when a process ends, however it ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

if sys.platform == "win32":

    def lock_file(file: IO[bytes]) -> bool:  # noqa: ARG001
        """Do nothing: on Windows a file that is open cannot be removed."""
        return True

else:
    import fcntl

    def lock_file(file: IO[bytes]) -> bool:
        """Lock an open file. Return False if another process has locked it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # some network file systems have no locks
            return True
        return True


def is_in_use(path: Path) -> bool:
    """Whether a process holds the lock of a file."""
    with path.open("rb") as file:
        return not lock_file(file)


@contextmanager
def sole_run(path: Path, message: str) -> Iterator[None]:
    """Let one process at a time enter the block; raise BlockingIOError for another one.

    The lock file is removed at the end.
    """
    while True:
        with path.open("ab") as file:
            if not lock_file(file):
                raise BlockingIOError(message)
            if is_removed(file):  # by its last owner, meanwhile
                continue
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()
            return


def is_removed(file: IO[bytes]) -> bool:
    """Whether an open file has been removed."""
    return os.fstat(file.fileno()).st_nlink == 0
