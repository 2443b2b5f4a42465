"""Soft curves of the sliding windows of images.

If the stride divides the side of the windows, every window consists of tiles whose side is the
stride. The curve of a window is then the sum of the curves of its tiles and of corrections where
tiles meet. Both are computed once for all windows that contain them.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._torch import windows
from ecc_core.nn import _arguments, functional

__all__ = ["Curves", "operator_curves", "padded", "tiled_curves", "window_curves"]

LEAST = 4  # smallest side of tiles that pays, for each image that describes where they meet
MANY = 28  # for which an operation for tiles pays: their side times the windows that share one


class Curves(NamedTuple):
    """Settings of the curves of images (..., *spatial)."""

    thresholds: Tensor
    sharpness: Tensor | float
    connectivity: int
    superlevel: bool
    n_spatial: int

    def __call__(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        return functional.soft_euler_curve(
            images,
            self.thresholds,
            sharpness=self.sharpness,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            mask=mask,
            n_spatial=self.n_spatial,
        )


def padded(image: Tensor, before: list[int], after: list[int], value: float) -> Tensor:
    """Pad the last axes of an image; negative numbers crop them."""
    sides = zip(reversed(before), reversed(after), strict=True)
    return pad(image, [n for pair in sides for n in pair], value=value)


def window_curves(
    image: Tensor, curves: Curves, side: int, stride: int, mask: Tensor | None = None
) -> Tensor:
    """Curves (..., *positions, n) of the windows of images (..., *spatial), without padding.

    The window at a position begins at position * stride along each axis and is an image of its own.
    Points where `mask`, of the shape of the images, is False never enter.
    """
    first = image.dim() - curves.n_spatial
    count = side // stride
    if windows.supported(image, mask, curves.thresholds, curves.sharpness):
        compute = operator_curves
        pays = stride > 1 and stride * count**curves.n_spatial >= MANY
    else:
        compute = tiled_curves
        pays = stride >= LEAST * _kinds(curves)
    # The shapes of tiles of images of unknown size are too involved for exported graphs.
    known = all(type(length) is int for length in image.shape) and image.numel() > 0
    if known and pays and count > 1 and side % stride == 0:
        if mask is not None:
            never = -math.inf if curves.superlevel else math.inf
            image = image.masked_fill(~mask, never)
        for axis in range(first, image.dim()):
            image = image.narrow(axis, 0, image.shape[axis] // stride * stride)
        return compute(image, curves, count, stride)
    if torch.onnx.is_in_onnx_export() and torch._C._get_tracing_state() is not None:
        raise RuntimeError(
            "curves of windows can only be exported to ONNX with `torch.onnx.export(dynamo=True)`"
        )
    for axis in range(first, first + curves.n_spatial):
        image = image.unfold(axis, side, stride)
        mask = None if mask is None else mask.unfold(axis, side, stride)
    return curves(image, mask)


def operator_curves(image: Tensor, curves: Curves, count: int, stride: int) -> Tensor:
    """Curves of windows of `count` tiles along each axis, computed by one operation."""
    first = image.dim() - curves.n_spatial
    dtype = torch.float64 if image.dtype == torch.float64 else torch.float32
    found = windows.soft_windows(
        _arguments.plain(image).flatten(0, first - 1) if first else image[None],
        curves.thresholds.to(dtype),
        _arguments.positive_scalar(curves.sharpness, "sharpness", image, dtype),
        curves.connectivity,
        curves.superlevel,
        count,
        stride,
    )
    return found.reshape(*image.shape[:first], *found.shape[1:])


def tiled_curves(image: Tensor, curves: Curves, count: int, stride: int) -> Tensor:
    """Same as :func:`operator_curves`, composed of curves of small images, on any device."""
    ndim = curves.n_spatial
    lead = image.shape[: image.dim() - ndim]
    spatial = image.shape[image.dim() - ndim :]
    grid = [part for length in spatial for part in (length // stride, stride)]
    tiles = image.reshape(math.prod(lead), *grid)
    groups: dict[int, list[tuple[tuple[bool, ...], Tensor]]] = {}
    for joined in itertools.product((False, True), repeat=ndim):
        groups.setdefault(ndim - sum(joined), []).append((joined, _pieces(tiles, joined, curves)))
    total: Tensor | float = 0.0
    for sides, found in groups.items():
        pieces = [piece for _, piece in found]
        values = _curves_of_pieces(pieces, sides, curves)
        for (joined, _), of_pieces in zip(found, values, strict=True):
            total = total + _in_windows(of_pieces, joined, count)
    assert isinstance(total, Tensor)
    return total.reshape(*lead, *total.shape[1:])


def _kinds(curves: Curves) -> int:
    """Number of images that describe where two tiles meet along one axis, see `_pieces`."""
    return 1 if curves.connectivity == 1 else 3


def _pieces(tiles: Tensor, joined: tuple[bool, ...], curves: Curves) -> Tensor:
    """Images of the tiles, or of the places where neighbouring tiles meet.

    Parameters
    ----------
    tiles : (batch, number, stride, number, stride, ...) tensor
        The image, with the number of tiles and their side for each axis.
    joined : tuple of bool
        For each axis, whether to take the places where tiles meet instead of the tiles.

    Returns
    -------
    (batch, *numbers, kinds, *sides) tensor
        The axes that are joined have no side. Each of them triples the number of kinds unless the
        connectivity is 1.

    Notes
    -----
    With connectivity 1, the edges between two tiles form an image of their own, with one point for
    each pair of points. Otherwise the tiles share faces: the three kinds are the faces in the union
    of both tiles, in the first tile alone, and in the second tile alone. Axes are joined from the
    last to the first, so that among equal points the first in raster order gets the gradient.
    """
    ndim = len(joined)
    highest = (curves.connectivity == 1) != curves.superlevel
    for axis in range(ndim):
        if joined[axis]:  # take the first and the last points of the tiles
            side = 2 + 2 * axis
            ends = slice(None, None, max(tiles.shape[side] - 1, 1))
            tiles = tiles[(slice(None),) * side + (ends,)]
    for axis in reversed(range(ndim)):
        if not joined[axis]:
            continue
        number, side = 1 + 2 * axis, 2 + 2 * axis
        last = tiles.narrow(side, -1, 1).narrow(number, 0, tiles.shape[number] - 1)
        first = tiles.narrow(side, 0, 1).narrow(number, 1, tiles.shape[number] - 1)
        both = torch.where(last >= first if highest else last <= first, last, first)
        tiles = torch.stack([both, last, first][: _kinds(curves)], -1)
    sides = [2 + 2 * axis for axis in range(ndim)]
    order = [0, *(side - 1 for side in sides), *range(1 + 2 * ndim, tiles.dim()), *sides]
    tiles = tiles.permute(order)
    numbers, lengths = tiles.shape[: 1 + ndim], tiles.shape[tiles.dim() - ndim :]
    kept = [length for length, join in zip(lengths, joined, strict=True) if not join]
    return tiles.reshape(*numbers, _kinds(curves) ** sum(joined), *kept)


def _curves_of_pieces(pieces: list[Tensor], sides: int, curves: Curves) -> list[Tensor]:
    """Signed sums over the kinds of the curves of pieces: (batch, *numbers, n) for each piece.

    All pieces have the same number of spatial axes, `sides`, and are computed in one call.
    """
    signs = [1]
    for _ in range(curves.n_spatial - sides):
        own = (1, -1, -1) if _kinds(curves) == 3 else (-1,)
        signs = [one * other for one in own for other in signs]
    if sides and len(signs) > 1:
        pieces = [_merged(piece, signs, sides, curves) for piece in pieces]
        signs = [1, -1]
    shapes = [piece.shape[: piece.dim() - sides] for piece in pieces]
    rows_of = [piece.flatten(0, piece.dim() - sides - 1) for piece in pieces]
    flat = rows_of[0] if len(rows_of) == 1 else torch.cat(rows_of)
    if sides:
        connectivity = 1 if curves.connectivity == 1 else sides
        rows = curves._replace(connectivity=connectivity, n_spatial=sides)(flat)
    else:
        rows = _steps(flat, curves)
    if sides == curves.n_spatial:  # the tiles themselves
        return [rows.reshape(*shapes[0][:-1], rows.shape[1])]
    factors = torch.tensor(signs, dtype=rows.dtype, device=rows.device)
    split = torch.split(rows, [math.prod(shape) for shape in shapes])
    return [
        torch.einsum("...kn,k->...n", part.reshape(*shape, rows.shape[1]), factors)
        for part, shape in zip(split, shapes, strict=True)
    ]


def _merged(piece: Tensor, signs: list[int], sides: int, curves: Curves) -> Tensor:
    """Join the kinds whose curves are added into one image, and those that are subtracted.

    The kinds are placed one after another along the first axis, separated by points that never
    enter. Two large images take less time than 3 or 9 small ones.
    """
    kinds = piece.dim() - sides - 1
    never = -math.inf if curves.superlevel else math.inf
    apart = pad(piece, [0, 0] * (sides - 1) + [0, 1, 0, 1], value=never)
    places = [[i for i, own in enumerate(signs) if own == sign] for sign in (1, -1)]
    longest = max(map(len, places))
    filled = [i for own in places for i in own + [len(signs)] * (longest - len(own))]
    chosen = apart.index_select(kinds, torch.tensor(filled, device=piece.device))
    lengths = (longest * chosen.shape[kinds + 1], *chosen.shape[kinds + 2 :])
    return chosen.reshape(*piece.shape[:kinds], 2, *lengths)


def _steps(points: Tensor, curves: Curves) -> Tensor:
    """Curves (points, n) of single points."""
    dtype = torch.float64 if points.dtype == torch.float64 else torch.float32
    largest = torch.finfo(dtype).max
    # The gradients of an infinite value would be NaN.
    values = points.to(dtype).clamp(-largest, largest)
    distance = curves.thresholds.to(dtype) - values[:, None]
    sharpness = -curves.sharpness if curves.superlevel else curves.sharpness
    return torch.sigmoid(sharpness * distance)


def _in_windows(values: Tensor, joined: tuple[bool, ...], count: int) -> Tensor:
    """Sum the curves (batch, *numbers, n) of the pieces of each window."""
    for axis, join in enumerate(joined):
        values = values.unfold(1 + axis, count - join, 1).sum(-1)
    return values
