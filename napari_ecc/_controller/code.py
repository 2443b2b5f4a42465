"""Python code that reproduces what a dock shows."""

from typing import Any

import numpy as np
from napari.layers import Layer


def call(target: str, action: str, *arguments: Any, **options: Any) -> str:
    """A statement that assigns the result of one of `napari_ecc.actions`.

    Layers become ``viewer.layers[name]``, indices ``np.s_[...]``; None is left out.

    Examples
    --------
    >>> from napari_ecc._controller.code import call
    >>> print(call("t, chi", "layer_curve", part=(3, slice(None)), superlevel=True, region=None))
    t, chi = actions.layer_curve(
        part=np.s_[3, :],
        superlevel=True,
    )
    """
    written = [_written(argument) for argument in arguments]
    written += [f"{name}={_written(at)}" for name, at in options.items() if at is not None]
    lines = [f"    {argument}," for argument in written]
    return "\n".join([f"{target} = actions.{action}(", *lines, ")"])


def _written(value: Any) -> str:
    if isinstance(value, Layer):
        return f"viewer.layers[{value.name!r}]"
    if isinstance(value, tuple) and any(isinstance(at, slice) for at in value):
        return f"np.s_[{', '.join(':' if isinstance(at, slice) else str(at) for at in value)}]"
    if isinstance(value, list):
        return f"[{', '.join(_written(at) for at in value)}]"
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    return repr(value)
