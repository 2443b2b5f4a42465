"""Runs of `ecc stack` that tests kill. A module, so that other processes can import it."""

import time
from collections.abc import Sequence

import numpy as np

from ecc_core._io.parts import Parts
from ecc_core.cli import main

LONG = 600
"""Seconds, much longer than it takes to be killed."""


def run_until_killed(arguments: Sequence[str], most: int) -> None:
    """Run the command, but wait to be killed instead of keeping more parts than this."""
    keep, kept = Parts.keep, []

    def keep_or_wait(self: Parts, number: int, stamp: str, values: np.ndarray) -> None:
        if len(kept) == most:
            time.sleep(LONG)
        keep(self, number, stamp, values)
        kept.append(number)

    Parts.keep = keep_or_wait
    main(arguments)
