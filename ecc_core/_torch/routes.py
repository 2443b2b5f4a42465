"""Which route a soft curve takes: by kernels alone, or by what torch knows of an operator.

A call takes the short route, on which autograd only calls a function for the gradients, if it
`bypasses_torch`. On a CUDA device layers and functions then give whole passes to kernels
(`cuda.py`, `cuda_layers.py`, `cuda_losses.py`, `cuda_simplicial.py`), unless CuPy is missing
(`_backends/fallback.py`). All other calls are those of registered operators (`operators.py`), which
can be traced, transformed by `torch.func`, and exported.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

PLAIN = (Tensor, torch.nn.Parameter)


def is_traced() -> bool:
    """Whether a graph is recorded, by torch.compile, torch.jit or the export to ONNX."""
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def is_transformed() -> bool:
    """Whether a transform of `torch.func` or differentiation in forward mode is active."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def bypasses_torch(args: tuple[Any, ...]) -> bool:
    """Whether a call needs nothing of torch but gradients in reverse mode.

    That is so if it is neither traced nor transformed, and none of its tensors is of a subclass.
    """
    if is_traced() or is_transformed() or torch._C._len_torch_dispatch_stack():
        return False
    for arg in args:  # noqa: SIM110, because a loop is faster than a generator.
        if isinstance(arg, Tensor) and type(arg) not in PLAIN:
            return False
    return True


def is_plain(gradient: Tensor) -> bool:
    """Whether kernels can read a gradient, and no operations on it are recorded."""
    return not (
        torch.is_grad_enabled()
        or gradient.is_neg()
        or torch._C._functorch.is_legacy_batchedtensor(gradient)
    ) and bypasses_torch((gradient,))
