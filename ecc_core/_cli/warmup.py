"""``ecc warmup``: compile kernels ahead of time."""

import sys
from argparse import ArgumentParser, Namespace

from ecc_core._cli.progress import progress_bar
from ecc_core._cli.version import kernels
from ecc_core._warmup import steps

DESCRIPTION = (
    "Compile the kernels for common images in 2-D and 3-D, so that no later command or program has "
    "to wait for them, and print their folder. What has been compiled already is only loaded."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add no arguments: the command has none of its own."""


def run(_: Namespace) -> None:
    """Compile kernels, and print their folder."""
    tasks = list(steps())
    with progress_bar(len(tasks)) as start:
        for name, call in tasks:
            start(name)
            call()
    sys.stdout.write(kernels() + "\n")
