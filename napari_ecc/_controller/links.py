"""Groups of connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any


class Links(ExitStack):
    """Signals and events that are connected until `close`, and what else is undone then."""

    def add(self, callback: Callable[..., Any], *signals: Any, **options: Any) -> None:
        """Connect a function to signals, with options of their ``connect``."""
        for signal in signals:
            signal.connect(callback, **options)
            self.callback(signal.disconnect, callback)
