"""Soft curves and transforms, compared with plain PyTorch on any device."""

from typing import Any

import torch
from oracles import soft as reference
from torch import Tensor

from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform


def draw(
    shape: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0, device: str = "cpu"
) -> Tensor:
    """Return distinct values between 0 and 1, so that there are no ties."""
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return (order.to(dtype) / count).reshape(shape).to(device)


def relative(found: Tensor, wanted: Tensor) -> float:
    return ((found.double() - wanted).norm() / wanted.norm()).item()


def gradients(result: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    upstream = torch.rand(result.shape, generator=torch.Generator().manual_seed(0)) + 0.5
    return torch.autograd.grad(result, inputs, upstream.to(result))


def leaves(numbers: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Return copies that get gradients, in their dtype and in float64."""
    copies = [x.clone().requires_grad_() for x in numbers]
    wide = [x.detach().double() for x in numbers]
    return copies, [x.requires_grad_() for x in wide]


def plain_curve(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction: Tensor | None = None,
    scale: Tensor | None = None,
    spacing: float = 1.0,
    **options: Any,
) -> Tensor:
    """Return the curve of the oracle, with the arguments of the public function."""
    terms = None
    if direction is not None and scale is not None:
        unit = direction / direction.norm()
        places = [torch.arange(n).to(unit) - (n - 1) / 2 for n in image.shape[1:]]
        steps = [place * spacing for place in places]
        terms = torch.cat([scale * u * x for u, x in zip(unit, steps, strict=True)])
    options = {"mask": None, "superlevel": False, "ties": "raster", **options}
    return reference.soft_curve(image, thresholds, sharpness, direction_terms=terms, **options)


def check_transform(
    shape: tuple[int, ...],
    connectivity: int,
    extension: str,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    tolerances: tuple[float, float] = (1e-5, 1e-5),
) -> None:
    """Compare values, and gradients by weights, directions, heights and sharpness."""
    ndim = len(shape) - 1
    weights = draw(shape, dtype, device=device) * (draw(shape, seed=1, device=device) < 0.7)
    directions = torch.randn(5, ndim, generator=torch.Generator().manual_seed(2)).to(weights)
    heights = torch.linspace(-6, 6, 9).to(weights)
    sharpness = torch.tensor(1.5).to(weights)
    found, wanted = leaves([weights, directions, heights, sharpness])
    options: dict[str, Any] = {"connectivity": connectivity, "extension": extension}
    transform = soft_euler_transform(
        *found[:3], sharpness=found[3], n_spatial=ndim, spacing=0.8, **options
    )
    unit = wanted[1] / wanted[1].norm(dim=1, keepdim=True)
    steps = (0.8,) * ndim
    plain = reference.soft_transform(wanted[0], unit, *wanted[2:], spacing=steps, **options)
    assert relative(transform, plain) < tolerances[0]
    pairs = zip(gradients(transform, found), gradients(plain, wanted), strict=True)
    for name, (own, true) in zip(("weights", "u", "t", "l"), pairs, strict=True):
        if not (ndim == 1 and name == "u"):  # In 1-D a direction has no derivative.
            assert relative(own, true) < tolerances[1], name


def check_windows(
    image: Tensor, thresholds: Tensor, sharpness: float, rtol: float, atol: float
) -> None:
    """Compare with the oracle; gradients of very sharp steps are rounding errors only."""
    found, wanted = leaves([image, thresholds])
    curve = soft_euler_curve(*found, sharpness=sharpness)
    exact = plain_curve(*wanted, torch.tensor(sharpness).to(wanted[0]), connectivity=2)
    assert relative(curve, exact) < 1e-5
    for own, true in zip(gradients(curve, found), gradients(exact, wanted), strict=True):
        assert (own.double() - true).norm() <= rtol * true.norm() + atol * sharpness
