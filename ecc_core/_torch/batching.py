"""Derivatives and vmap rules of operators on batches of images, for `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

__all__ = ["bypasses_torch", "keep_nothing", "saving", "transformable", "vmapped"]


PLAIN = (Tensor, torch.nn.Parameter)
Setup = Callable[[Any, tuple[Any, ...], Any], tuple[Tensor | None, ...]]


def keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> tuple[Tensor | None, ...]:
    """`setup` of an operator whose derivatives need no saved tensors."""
    return ()


def saving(setup: Setup) -> Callable[..., None]:
    """Make a `setup_context` that saves the tensors which `setup` returns."""

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*setup(ctx, inputs, output))

    return setup_context


def transformable(
    operator: Callable[..., Any],
    setup: Setup,
    backward: Callable[..., Any],
    push: Callable[..., Any],
    implementations: Mapping[str, Callable[..., Any]] | None = None,
    plain: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Make an operator differentiable by `torch.func` and in forward mode.

    Neither uses the formulas of `torch.library.register_autograd`, which serve compiled graphs and
    tensor subclasses. Calls with plain tensors bypass the registered formulas too, which is faster.

    Parameters
    ----------
    operator : callable
        The registered operator.
    setup : callable
        Takes the context, the arguments and the result, and returns the tensors to save.
    backward : callable
        Takes the context and the gradients of the results, and returns those of the arguments.
    push : callable
        Takes the context and the tangents of the arguments, and returns those of the results.
    implementations : mapping, optional
        What the operator is for plain tensors, by type of device. They are called without torch's
        dispatcher, which takes as long as some of them.
    plain : callable, optional
        The same in operators of torch, for models that are exported to ONNX.
    """
    run = _runner(operator, implementations or {})

    class Transformable(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            return operator(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            saved = setup(ctx, inputs, output)
            ctx.save_for_backward(*saved)
            ctx.save_for_forward(*saved)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return backward(ctx, *gradients)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return push(ctx, *tangents)

    class Direct(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            output = run(*args)
            ctx.save_for_backward(*setup(ctx, args, output))
            return output

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return backward(ctx, *gradients)

    def call(*args: Any) -> Any:
        if _is_traced():
            exported = torch.onnx.is_in_onnx_export() and plain
            return (exported or operator)(*args)
        if _is_transformed():
            return Transformable.apply(*args)  # type: ignore[no-untyped-call]
        if not _are_plain(args):
            return operator(*args)
        if torch.is_grad_enabled():
            return Direct.apply(*args)  # type: ignore[no-untyped-call]
        return run(*args)

    return call


def _is_traced() -> bool:
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def _is_transformed() -> bool:
    """Whether `torch.func` or forward mode need to see the operator."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def bypasses_torch(args: tuple[Any, ...]) -> bool:
    """Whether a call with these arguments needs nothing of torch but gradients in reverse mode."""
    return not (_is_traced() or _is_transformed() or torch._C._len_torch_dispatch_stack()) and (
        _are_plain(args)
    )


def _are_plain(args: tuple[Any, ...]) -> bool:
    """Whether no argument is of a subclass of tensors."""
    for arg in args:  # noqa: SIM110, faster than a generator
        if isinstance(arg, Tensor) and type(arg) not in PLAIN:
            return False
    return True


def _runner(
    operator: Callable[..., Any], implementations: Mapping[str, Callable[..., Any]]
) -> Callable[..., Any]:
    """The operator for plain tensors, without derivatives."""

    def run(*args: Any) -> Any:
        implementation = implementations.get(args[0].device.type)
        # The first argument of a backward pass is batched by `is_grads_batched`.
        special = torch._C._functorch.is_legacy_batchedtensor(args[0])
        if implementation and not special and not torch._C._len_torch_dispatch_stack():
            # The dispatcher would resolve lazily negated views, whose memory has other values.
            return implementation(
                *[a.resolve_neg() if isinstance(a, Tensor) and a.is_neg() else a for a in args]
            )
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*args)

    return run


def vmapped(operator: Callable[..., Any], stacked: tuple[int, ...]) -> Callable[..., Any]:
    """Make the vmap rule of an operator on batches.

    The arguments at the positions `stacked`, and all results, have a leading batch axis. If only
    these arguments have the mapped axis, it is merged with the batch axis. Otherwise the operator
    is called for each index along the mapped axis.
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
