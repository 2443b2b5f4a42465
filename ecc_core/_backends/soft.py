"""What a backend must have for soft curves of torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["SoftCurves", "SoftImages"]


class SoftImages(NamedTuple):
    """Images (batch, *spatial), and what their soft curves are computed from.

    `direction_terms` are those that a direction adds along each axis, one axis after another. The
    mask is (batch or 1, *spatial). The numbers are float64 for float64 images, otherwise float32.
    """

    image: Tensor
    thresholds: Tensor
    sharpness: Tensor
    direction_terms: Tensor | None
    mask: Tensor | None
    connectivity: int
    superlevel: bool


class SoftCurves(Protocol):
    """Soft curves of images, and of points projected on directions."""

    def curves(self, images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Curves (images, n), their derivatives by threshold and sharpness, and coefficients.

        The coefficients are those that `gradient` takes, in any form, empty without `keep`.
        """
        ...

    def gradient(
        self,
        upstream: Tensor,
        packed: Tensor,
        images: SoftImages,
        split: bool,
        dtype: torch.dtype,
        double: bool,
    ) -> Tensor:
        """The gradient of the images in `dtype`, by that of the curves (images, n).

        Cells are divided between points with equal values if `split` is set. `double` asks for sums
        in double precision where that matters.
        """
        ...

    projections: Callable[..., tuple[Tensor, Tensor, Tensor]]
    projection_gradients: Callable[..., tuple[Tensor, Tensor]]
