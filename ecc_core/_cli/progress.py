"""A progress bar for those who wait."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ecc_core._optional import import_optional

__all__ = ["progress_bar"]

PATIENCE = 1.0  # seconds before it shows


@contextmanager
def progress_bar(steps: int) -> Iterator[Callable[[str], None]]:
    """Show a bar on stderr, if that is a terminal, once the work has taken a second.

    Yields the function to call, with what is being done, at the start of each step.
    """
    try:
        tqdm = import_optional("tqdm", extra="io", purpose="a progress bar")
    except ImportError:  # the work does without
        yield lambda _: None
        return
    form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}"
    with tqdm.tqdm(
        total=steps, delay=PATIENCE, disable=None, file=sys.stderr, leave=False, bar_format=form
    ) as bar:
        started = False

        def start(what: str) -> None:
            nonlocal started
            bar.set_description_str(what, refresh=False)
            if started:
                bar.update()
            started = True

        yield start
