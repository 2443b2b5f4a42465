"""Operators on batches of images: registration with torch, derivatives and vmap rules.

`torch.library.custom_op` is not used, because it would check in every call that no result shares
memory with an argument, which takes longer than the kernels.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ecc_core._torch.routes import bypasses_torch, is_traced, is_transformed

DEVICES = ("cpu", "cuda")


def _save_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Save nothing for derivatives that only raise an error."""


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Save the results after the first, which have no derivatives, and the arguments."""
    ctx.set_materialize_grads(False)
    others: tuple[Tensor, ...] = () if isinstance(output, Tensor) else output[1:]
    if others:
        ctx.mark_non_differentiable(*others)
    tensors = [x for x in inputs if x is None or isinstance(x, Tensor)]
    ctx.options = inputs[len(tensors) :]
    ctx.save_for_backward(*others, *tensors)
    ctx.save_for_forward(*others, *tensors)


def operator(
    fake: Callable[..., Any],
    stacked: tuple[int, ...],
    backward: Callable[..., Any] | None = None,
    push: Callable[..., Any] | None = None,
    plain: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as an operator of torch, and return a function that calls it.

    `fake` returns empty results, and `plain` the same results in operators of torch, for models
    that are exported to ONNX. `stacked` are the positions of the arguments with a leading batch
    axis, which all results have. `backward` takes the gradients of the results, and `push` the
    tangents of the arguments. In the context of both, `saved_tensors` are all results but the first
    and then the arguments that may be tensors, and `options` are the other arguments, which come
    last. Without `push`, `backward` must be a function that raises an error, and serves for both.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        name = f"ecc::{implementation.__name__}"
        schema = torch.library.infer_schema(implementation, mutates_args=())
        torch.library.define(name, schema, tags=torch.Tag.pt2_compliant_tag)
        torch.library.impl(name, DEVICES, implementation)
        torch.library.register_fake(name, fake)
        registered: Callable[..., Any] = getattr(torch.ops.ecc, implementation.__name__).default
        torch.library.register_vmap(name, _vmapped(registered, stacked))
        if backward is None:
            return registered
        setup = _save if push else _save_nothing
        torch.library.register_autograd(name, backward, setup_context=setup)
        return _differentiable(
            registered,
            implementation,
            pull=backward,
            push=push or backward,
            setup=setup,
            plain=plain or registered,
        )

    return register


def no_second_derivatives(results: str) -> Callable[..., Any]:
    """Return a function that raises an error in the place of derivatives of the `results`."""

    def refuse(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(f"{results} have no second derivatives")

    return refuse


def _resolved(argument: Any) -> Any:
    """Return an argument, as a tensor of its own if it is a negated view."""
    if isinstance(argument, Tensor) and argument.is_neg():
        return argument.resolve_neg()
    return argument


def _differentiable(
    operator: Callable[..., Any],
    implementation: Callable[..., Any],
    pull: Callable[..., Any],
    push: Callable[..., Any],
    setup: Callable[..., Any],
    plain: Callable[..., Any],
) -> Callable[..., Any]:
    """Make an operator differentiable by `torch.func` and in forward mode.

    The formulas of `torch.library.register_autograd` serve only compiled graphs and tensor
    subclasses. Calls with plain tensors bypass them, which is faster.
    """

    def run(*args: Any) -> Any:
        # The first argument of a backward operator is the gradient, which may be batched by
        # `is_grads_batched`.
        first = args[0]
        mapped = torch._C._functorch.is_legacy_batchedtensor(first)
        if first.device.type in DEVICES and not mapped:
            # The dispatcher takes as long as some kernels, and is left out. It would also resolve
            # negated views, which is done here.
            return implementation(*map(_resolved, args))
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*args)

    class Transformable(torch.autograd.Function):
        generate_vmap_rule = True
        forward = staticmethod(operator)
        setup_context = staticmethod(setup)
        backward = staticmethod(pull)
        jvp = staticmethod(push)

    class Direct(torch.autograd.Function):
        backward = staticmethod(pull)

        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            output = run(*args)
            setup(ctx, args, output)
            return output

    def call(*args: Any) -> Any:
        if bypasses_torch(args):
            found = Direct.apply if torch.is_grad_enabled() else run
        elif is_traced():
            found = plain if torch.onnx.is_in_onnx_export() else operator
        else:
            found = Transformable.apply if is_transformed() else operator
        return found(*args)

    return call


def gradients_in_torch(
    values: Tensor, tensors: Sequence[Tensor], needed: Sequence[bool], gradient: Tensor
) -> tuple[Tensor | None, ...]:
    """Return the gradients of tensors by operators of torch, which are recorded."""
    wanted = [tensor for tensor, is_needed in zip(tensors, needed, strict=True) if is_needed]
    found = iter(torch.autograd.grad(values, wanted, gradient, create_graph=True))
    gradients = [next(found) if is_needed else None for is_needed in needed]
    return tuple(gradients)


def _vmapped(operator: Callable[..., Any], stacked: tuple[int, ...]) -> Callable[..., Any]:
    """Return the vmap rule of an operator on batches.

    If only arguments with a batch axis have the mapped axis, it is merged with the batch axis.
    Otherwise the operator is called for each index along the mapped axis.
    """

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        size = info.batch_size
        mapped = [i for i, dim in enumerate(in_dims) if isinstance(dim, int)]
        given = list(args)
        for i in mapped:
            given[i] = args[i].movedim(in_dims[i], 0)
        if set(mapped) <= set(stacked):
            batched = [i for i in stacked if isinstance(args[i], Tensor)]
            for i in batched:
                given[i] = given[i] if i in mapped else given[i][None]
            batch = max(given[i].shape[1] for i in batched)
            for i in batched:
                given[i] = given[i].expand(size, batch, *given[i].shape[2:]).flatten(0, 1)

            def apart(result: Tensor) -> Tensor:
                return result.reshape(size, result.shape[0] // size, *result.shape[1:])

            results = tree_map(apart, operator(*given))
        else:
            each = []
            for k in range(size):
                own = [arg[k] if i in mapped else arg for i, arg in enumerate(given)]
                each.append(operator(*own))
            results = tree_map(lambda *parts: torch.stack(parts), *each)
        return results, tree_map(lambda _: 0, results)

    return rule
