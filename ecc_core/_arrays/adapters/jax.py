"""Arrays of JAX."""

import sys
from functools import partial
from typing import Any

from ecc_core._arrays.adapters.array_likes import ArrayLikes
from ecc_core._backends.plain.namespaces import Standard


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

    def standard(self, array: Any) -> Standard | None:
        import jax

        return Standard(jax.numpy, partial(jax.enable_x64, True))
