"""What a backend must have for soft curves of torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from torch import Tensor

    from ecc_core._backends.image_cuts import Cut


class SoftImages(NamedTuple):
    """Images (batch, *spatial), and what their soft curves are computed from.

    `direction_terms` holds what a directional filtration adds along each axis, one axis after
    another. The mask is (batch or 1, *spatial). Numbers are float64 for float64 images, otherwise
    float32.
    """

    image: Tensor
    thresholds: Tensor
    sharpness: Tensor
    direction_terms: Tensor | None
    mask: Tensor | None
    connectivity: int
    superlevel: bool


class LayerParameters(NamedTuple):
    """Parameters of a layer of curves."""

    levels: Tensor
    """Thresholds (n,), or with a step the free numbers from which they are computed."""
    step: Tensor | None
    log_sharpness: Tensor
    directions: Tensor | None
    """(k, d), of any length."""
    log_scales: Tensor | None
    """(k,), of the directions."""


class LayerOptions(NamedTuple):
    """What is known of a layer of curves besides its tensors."""

    n_spatial: int
    connectivity: int
    superlevel: bool
    spacing: tuple[float, ...]
    cut: Cut | None = None
    """The places of windows, whose curves are computed in place of those of images."""


class Projected(NamedTuple):
    """Weights (batch, orthants, *grid) of the vertices of a grid, and vectors (k, d) along it.

    The height of a vertex is the product of a vector and of its index relative to the centre of the
    grid. The bits of the number of an orthant tell which components of its vectors are negative;
    the first axis has the highest bit. The numbers have the dtype of the weights.
    """

    weights: Tensor
    vectors: Tensor
    heights: Tensor
    sharpness: Tensor


class Transformed(NamedTuple):
    """The checked arguments of a transform.

    `weights` are (..., spatial), and `directions` (k, d) may have any length.
    """

    weights: Tensor
    directions: Tensor
    heights: Tensor
    sharpness: Tensor
    connectivity: int
    extension: str
    spacing: tuple[float, ...]


class SoftShapes(NamedTuple):
    """A batch of simplicial complexes, and what their soft transforms are computed from.

    The numbers have the dtype of the points, float32 or float64.
    """

    points: Tensor
    """(n, d)."""
    weights: Tensor | None
    """(n,); None if all weigh 1. A simplex weighs as much as its heaviest point."""
    simplices: Sequence[Tensor]
    """int64, one tensor (m, k) for all simplices of k points."""
    vectors: Tensor
    """(k, d)."""
    levels: Tensor
    """(levels,), in any order."""
    sharpness: Tensor
    batch: Tensor
    """(n,) int64: the number of the shape to which each point belongs."""
    shapes: int
    """Number of shapes."""


class SoftShapeGradients(NamedTuple):
    """Gradients of what soft transforms of complexes are computed from."""

    points: Tensor
    vectors: Tensor
    weights: Tensor | None = None
    levels: Tensor | None = None
    sharpness: Tensor | None = None


class SoftCurves(Protocol):
    """Soft curves of images, of weighted points projected on directions, and of complexes."""

    def curves(self, images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Curves (images, n), their derivatives by threshold and sharpness, and coefficients.

        The coefficients are those that `gradient` takes, in any form, empty without `keep`.
        """

    def weighted_curves(
        self, images: SoftImages, coefficients: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Curves of points with these coefficients (images, points) of int8, and derivatives."""

    def gradient(
        self,
        upstream: Tensor,
        coefficients: Tensor,
        images: SoftImages,
        split: bool,
        dtype: torch.dtype,
        double: bool,
    ) -> Tensor:
        """The gradient of the images in `dtype`, by that of the curves (images, n).

        Cells are divided between points with equal values if `split` is set. `double` asks for sums
        in double precision where that matters.
        """

    def by_orthant(self, weights: Tensor, connectivity: int, extension: str) -> Tensor:
        """Sums (batch, orthants, *grid) of the signed weights of cells, for their highest vertex.

        With the extension "max" a cell has the weight of its greatest vertex for connectivity 1,
        and otherwise of the least of the cubes that contain it; "min" exchanges both. Points of
        weight zero are not in the object.
        """

    def gradients_by_orthant(
        self, weights: Tensor, upstream: Tensor, connectivity: int, extension: str
    ) -> Tensor:
        """Gradients of the weights by those of the sums, for the first of equal points."""

    def projections(self, given: Projected) -> tuple[Tensor, Tensor, Tensor]:
        """Curves (batch, k, n) of heights, and their derivatives by height and by sharpness."""

    def projection_gradients(
        self, given: Projected, upstream: Tensor, images_a_group: int, of_weights: bool
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the weights and, for each group of images, of the vectors: (groups, k, d).

        Groups are images that follow each other. Gradients of the weights are undefined unless
        `of_weights`.
        """

    def layer_curves(
        self, image: Tensor, parameters: LayerParameters, options: LayerOptions
    ) -> Tensor | None:
        """Curves of a layer in one function of autograd, or None if operators must compute them.

        They are (..., n) for images (..., spatial), (..., k, n) along directions, and of windows
        (..., channel * n, *positions) for images (..., channel, spatial). The caller has excluded
        compiled graphs, `torch.func` and tensor subclasses.
        """

    def fused_transform(
        self, given: Transformed, step: Tensor | None, is_logarithm: bool
    ) -> Tensor | None:
        """Transforms (..., k, n) in one function of autograd, or None if operators must do it.

        With a step, heights are the free numbers from which increasing levels are computed. With
        `is_logarithm` the sharpness is given by its logarithm. The caller has excluded compiled
        graphs, `torch.func` and tensor subclasses.
        """

    def simplicial_curves(self, given: SoftShapes) -> Tensor:
        """Curves (shapes, k, n). Values are checked."""

    def simplicial_gradients(
        self, given: SoftShapes, upstream: Tensor, all_arguments: bool
    ) -> SoftShapeGradients:
        """Gradients by those of the curves; `all_arguments` adds those of weights and levels."""
