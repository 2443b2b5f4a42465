"""JAX arrays in host memory."""

from __future__ import annotations

import sys
from typing import Any

from ecc_core._arrays.numpy import ArrayLikes


class JAX(ArrayLikes):
    """Arrays that are not being traced. Results are 64-bit, whether JAX enables 64 bits or not."""

    name = "jax"

    def supports(self, array: Any) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and isinstance(array, jax.Array)

    def wrap(self, result: Any, like: Any) -> Any:
        import jax

        with jax.enable_x64(True):
            return jax.device_put(result, like.device)

    def as_integers(self, array: Any) -> Any:
        import jax

        with jax.enable_x64(True):
            return array.astype("int64")
