"""How operators on a batch of images behave under `torch.vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["vmapped"]


def vmapped(operator: Callable[..., Any], stacked: tuple[int, ...]) -> Callable[..., Any]:
    """The vmap rule of an operator whose arguments number `stacked`, and results, are batches.

    Where only these have the new axis it joins the batch; otherwise the operator is called for each
    index of the axis.
    """

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        moved = [
            arg.movedim(dim, 0) if isinstance(arg, Tensor) and dim is not None else arg
            for arg, dim in zip(args, in_dims, strict=True)
        ]
        size = info.batch_size
        if all(not isinstance(dim, int) or i in stacked for i, dim in enumerate(in_dims)):
            joined = list(moved)
            batch = max(
                moved[i].shape[int(in_dims[i] is not None)]
                for i in stacked
                if isinstance(args[i], Tensor)
            )
            for i in stacked:
                if isinstance(args[i], Tensor):
                    whole = moved[i] if in_dims[i] is not None else moved[i][None]
                    whole = whole.expand(size, batch, *whole.shape[2:])
                    joined[i] = whole.flatten(0, 1)
            return _split(operator(*joined), size)
        each = [
            operator(
                *(
                    arg[k] if isinstance(dim, int) else arg
                    for arg, dim in zip(moved, in_dims, strict=True)
                )
            )
            for k in range(size)
        ]
        if isinstance(each[0], Tensor):
            return torch.stack(each), 0
        results = tuple(torch.stack(part) for part in zip(*each, strict=True))
        return results, (0,) * len(results)

    return rule


def _split(results: Any, size: int) -> tuple[Any, Any]:
    if isinstance(results, Tensor):
        return _unjoin(results, size), 0
    parts = tuple(_unjoin(part, size) for part in results)
    return parts, (0,) * len(parts)


def _unjoin(result: Tensor, size: int) -> Tensor:
    return result.reshape(size, result.shape[0] // size, *result.shape[1:])
