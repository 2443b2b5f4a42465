"""Groups of connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Links:
    """Signals and events that are connected until `close`."""

    def __init__(self) -> None:
        self._links: list[tuple[Any, Callable[..., Any]]] = []

    def add(self, callback: Callable[..., Any], *signals: Any, **options: Any) -> None:
        """Connect a function to signals, with options of their ``connect``."""
        for signal in signals:
            signal.connect(callback, **options)
            self._links.append((signal, callback))

    def close(self) -> None:
        """Disconnect all of them."""
        while self._links:
            signal, callback = self._links.pop()
            signal.disconnect(callback)
