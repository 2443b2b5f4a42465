"""Progress bars for those who wait."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from ecc_core._optional import import_optional

PATIENCE = 1.0  # seconds before a bar shows


@contextmanager
def bar(**settings: Any) -> Iterator[Any]:
    """Show a bar of tqdm on stderr, if that is a terminal, once the work has taken a second."""
    try:
        tqdm = import_optional("tqdm", extra="io", purpose="a progress bar")
    except ImportError:  # the work does without
        yield SimpleNamespace(update=lambda *_: None, set_description_str=lambda *_, **__: None)
        return
    with tqdm.tqdm(delay=PATIENCE, disable=None, file=sys.stderr, leave=False, **settings) as shown:
        yield shown


@contextmanager
def progress_bar(steps: int) -> Iterator[Callable[[str], None]]:
    """Yield the function to call, with what is being done, at the start of each step."""
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
