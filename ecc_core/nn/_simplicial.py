"""Soft Euler characteristic transforms of batches of meshes, graphs and point sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ecc_core._arrays.origin import origin_of
from ecc_core._backends import has_kernels
from ecc_core._request.simplicial import as_simplices
from ecc_core._torch.routes import bypasses_torch
from ecc_core._torch.simplicial import soft_simplices
from ecc_core.errors import BackendError
from ecc_core.nn import _arguments as arguments
from ecc_core.nn._arguments import Scalar, Vector

__all__ = ["soft_simplicial_transform"]

DEVICES = ("cpu", "cuda", "meta")
"""Types of devices; tensors on "meta" have a shape, but no values."""


def soft_simplicial_transform(
    points: Tensor,
    simplices: Tensor | Sequence[Tensor],
    directions: Tensor | Sequence[Sequence[float]],
    thresholds: Vector,
    *,
    sharpness: Scalar,
    scale: Scalar = 1.0,
    weights: Tensor | None = None,
    batch: Tensor | None = None,
    shapes: int | None = None,
) -> Tensor:
    """Soft transforms of simplicial complexes, differentiable in every real argument.

    A simplex of weight w whose highest point has the height h contributes
    ``w * sigmoid(sharpness * (t - h))`` at the height t, with the sign of its dimension [1]_. With
    growing sharpness the transform converges to :func:`ecc_core.simplicial_transform`.

    Parameters
    ----------
    points : (n, d) tensor
        Coordinates of the points of all shapes. Integers are converted to floats.
    simplices : (m, k) tensor of integers, or sequence of such tensors
        Numbers of points. A sequence such as ``[edges, triangles]`` is taken as it is: each simplex
        once, with all its faces. If one tensor has the largest simplices, their faces are added in
        each call. ``edge_index.T`` of PyTorch Geometric lists each edge twice: keep one direction.
    directions : (k, d) tensor or sequence of vectors
        Directions, which need not have unit length.
    thresholds : (m,) tensor or sequence of float
        Heights in any order.
    sharpness : float or scalar tensor
        Positive sharpness of the steps, in inverse units of the heights.
    scale : float or scalar tensor, default 1
        Factor of the heights.
    weights : (n,) tensor, optional
        A simplex weighs as much as the heaviest of its points, which gets its gradient.
    batch : (n,) tensor of integers, optional
        The shape of each point, from 0 on, as in PyTorch Geometric. A simplex must not have points
        of several shapes.
    shapes : int, optional
        Number of shapes, only with `batch`. Default: the largest number in `batch` plus 1, which
        breaks the graph of a compiled function.

    Returns
    -------
    (k, m) or (shapes, k, m) tensor
        With an axis of shapes if there is a `batch`. float64 for points of float64 or of integers
        with more than 16 bits, otherwise float32. The gradient of a simplex goes to one point, if
        several have the same height.

    Raises
    ------
    TypeError
        If `points` is not a tensor of real numbers, or `simplices` are not integers.
    ValueError
        If an argument has the wrong shape, for coordinates, weights and directions that are not
        finite, a `sharpness` that is not positive, indices of points that do not exist, and
        simplices with points of several shapes or with a point twice, such as the loops that
        PyTorch Geometric may add to graphs.
    BackendError
        If `points` are neither in host memory nor on a CUDA device.

    See Also
    --------
    ecc_core.nn.SimplicialTransformLayer : The same as a layer, with learned directions.

    References
    ----------
    .. [1] Roell and Rieck, "Differentiable Euler characteristic transforms for shape
       classification", ICLR 2024, arXiv:2310.07630.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.functional import soft_simplicial_transform
    >>> points = torch.tensor([[0.0, 1], [0, 0], [1, 0], [1, 1]], requires_grad=True)
    >>> strokes = torch.tensor([[0, 1], [1, 2], [2, 3]])  # the letter U
    >>> down = soft_simplicial_transform(points, strokes, [[0, -1]], [-0.5, 0.5], sharpness=60.0)
    >>> down.detach().round().tolist()  # two arms, which join
    [[2.0, 1.0]]
    """
    given = arguments.widened(arguments.check_tensor(points, "points"))
    if given.dim() != 2:
        raise ValueError(f"`points` must have shape (n, d), got {tuple(given.shape)}")
    if given.device.type not in DEVICES:
        raise BackendError(
            f"`points` must be in host memory or on a CUDA device, got {given.device}"
        )
    dtype = torch.float64 if given.dtype == torch.float64 else torch.float32
    given = given.to(dtype)
    count, ndim = given.shape
    vectors = arguments.numbers_of(directions, "directions", given, dtype, "k", ndim)
    levels = arguments.numbers_of(thresholds, "thresholds", given, dtype, "m")
    slope = arguments.positive_scalar(sharpness, "sharpness", given, dtype)
    factor = arguments.finite_scalar(scale, "scale", given, dtype)
    own = None
    if weights is not None:
        own = arguments.numbers_of(weights, "weights", given, dtype, count)
    members, number = _shapes(batch, shapes, given)
    rows = _rows(simplices, given)
    values = None
    if own is None:
        numbers = vectors, factor, levels, None, slope
        values = _by_kernels(given, (members, number, rows), numbers, is_logarithm=False)
    if values is None:
        values = soft_simplices(given, own, vectors, factor, levels, slope, members, number, rows)
    return values if batch is not None else values[0]


def layer_transform(
    points: Any,
    simplices: Any,
    numbers: tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor],
    batch: Tensor | None,
    shapes: int | None,
) -> Tensor | None:
    """Transforms by the parameters of a layer in few launches on a CUDA device, else None.

    `numbers` are directions, the logarithm of the scale, levels or their free numbers, the step of
    these or None, and the logarithm of the sharpness.
    """
    if not (isinstance(points, Tensor) and points.is_cuda and points.is_floating_point()):
        return None
    if points.dim() != 2 or torch.compiler.is_compiling():
        return None
    complexes: tuple[Any, ...] = batch, shapes, simplices
    if not _are_complexes(points, *complexes):
        complexes = *_shapes(batch, shapes, points), _rows(simplices, points)
    values = _by_kernels(points, complexes, numbers, is_logarithm=True)
    return values if values is None or batch is not None else values[0]


def _by_kernels(
    points: Tensor,
    complexes: tuple[Tensor, int, Sequence[Tensor]],
    numbers: tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor],
    is_logarithm: bool,
) -> Tensor | None:
    """Transforms in few launches on a CUDA device, in one function of autograd, else None."""
    members, _, rows = complexes
    # torch.compile can trace neither `has_kernels` nor what follows.
    if not (points.is_cuda and bypasses_torch((points, members, *rows, *numbers))):
        return None
    if not has_kernels("cuda"):
        return None
    from ecc_core._torch import cuda_simplicial

    given = cuda_simplicial.Complexes(*complexes), cuda_simplicial.Numbers(*numbers)
    return cuda_simplicial.fused_shapes(points, *given, is_logarithm=is_logarithm)


def _are_complexes(points: Tensor, batch: Any, shapes: Any, simplices: Any) -> bool:
    """Whether `_shapes` and `_rows` would return these as they are, which takes them longer."""
    if type(shapes) is not int or shapes < 0 or not isinstance(simplices, list | tuple):
        return False
    place = points.get_device()
    for tensor in (batch, *simplices):
        if type(tensor) is not Tensor or tensor.dtype is not torch.int64:
            return False
        if tensor.get_device() != place:
            return False
        if tensor.layout is not torch.strided or tensor.is_nested:
            return False
    if batch.shape != points.shape[:1]:
        return False
    return all(part.dim() == 2 and part.shape[1] >= 2 for part in simplices)


def _shapes(batch: Any, shapes: int | None, points: Tensor) -> tuple[Tensor, int]:
    """Return the shape of each point, and the number of shapes."""
    if batch is None:
        if shapes is not None:
            raise ValueError(f"`shapes` must come with a `batch`, got {shapes} and no batch")
        return torch.zeros(len(points), dtype=torch.int64, device=points.device), 1
    found = _integers(batch, "batch", points)
    if found.shape != points.shape[:1]:
        wanted = f"({len(points)},)"
        got = tuple(found.shape)
        raise ValueError(f"`batch` must have shape {wanted}, one number for each point, got {got}")
    if shapes is None:
        shapes = int(found.max()) + 1 if len(found) else 0
    elif type(shapes) is not int or shapes < 0:
        raise ValueError(f"`shapes` must be a number of shapes, got {shapes!r}")
    return found, shapes


def _integers(tensor: Any, name: str, points: Tensor) -> Tensor:
    found = arguments.check_tensor(tensor, name)
    if found.device != points.device:
        raise ValueError(
            f"`{name}` must be on the device of `points`, {points.device}, got {found.device}"
        )
    if found.dtype not in (*arguments.INTEGERS, torch.uint8):
        raise TypeError(f"`{name}` must hold integers, got {found.dtype}")
    return found.to(torch.int64)


def _rows(simplices: Any, points: Tensor) -> list[Tensor]:
    """Return the simplices of each dimension; of one tensor with all faces."""
    if isinstance(simplices, Tensor):
        return _with_faces(_integers(simplices, "simplices", points), points)
    if not isinstance(simplices, list | tuple):
        raise TypeError(
            f"`simplices` must be a tensor or a sequence of tensors, got {type(simplices).__name__}"
        )
    rows_by_size = [_integers(part, "simplices", points) for part in simplices]
    for part in rows_by_size:
        if part.dim() != 2 or part.shape[1] < 2:
            raise ValueError(
                f"`simplices` must have shape (m, k) with k of at least 2, got {tuple(part.shape)}"
            )
    return rows_by_size


def _with_faces(simplices: Tensor, points: Tensor) -> list[Tensor]:
    """Return the simplices of each dimension of a complex whose largest ones are given."""
    origin = origin_of(simplices, "simplices")
    with origin.transforms().numbers(origin.unwrap(simplices, "simplices")) as numbers:
        (rows,), _ = as_simplices(numbers, lambda part: part)
        found = origin.simplicial_complexes().make_complex([rows], len(points), True)
        return [torch.from_dlpack(part).to(points.device, torch.int64) for part in found]
