"""A store of arrays on the disk, from which an interrupted computation can continue."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ecc_core._io.lazy import Array
from ecc_core._io.parts import Parts, fingerprint


class KeptParts:
    """The arrays of a computation in a folder, by kind and number."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self.folder = folder
        self.stamp = fingerprint(facts)
        """A fingerprint of all that the arrays depend on."""
        self._parts: dict[str, Parts] = {}

    def _of(self, kind: str) -> Parts:
        if kind not in self._parts:
            job = fingerprint({"facts": self.stamp, "kind": kind})
            self._parts[kind] = Parts(self.folder, job)
        return self._parts[kind]

    def load(self, kind: str, number: int) -> Array | None:
        """Return an array, or None if it is missing or damaged."""
        return self._of(kind).load(number, self.stamp)

    def keep(self, kind: str, number: int, values: Array) -> None:
        """Write an array, completely or not at all."""
        self._of(kind).keep(number, self.stamp, values)

    def drop(self, kind: str) -> None:
        """Remove all arrays of a kind."""
        for path in self.folder.glob(f"{self._of(kind).job}-*.npy"):
            with suppress(OSError):
                path.unlink()
