"""Progress bars."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from ecc_core._optional import import_optional

DELAY = 1.0  # Seconds before a bar is shown.


@contextmanager
def bar(**settings: Any) -> Iterator[Any]:
    """Show a bar of tqdm on stderr if it is a terminal and the work takes more than a second."""
    try:
        tqdm = import_optional("tqdm", extra="io", purpose="a progress bar")
    except ImportError:  # Progress is not shown without tqdm.
        yield SimpleNamespace(update=lambda *_: None, set_description_str=lambda *_, **__: None)
        return
    with tqdm.tqdm(delay=DELAY, disable=None, file=sys.stderr, leave=False, **settings) as shown:
        yield shown


@contextmanager
def progress_bar(steps: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that is called at the start of each step, with a description of it."""
    with bar(
        total=steps, bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    ) as shown:
        started = False

        def start(what: str) -> None:
            nonlocal started
            shown.set_description_str(what, refresh=False)
            if started:
                shown.update()
            started = True

        yield start
