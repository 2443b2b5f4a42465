"""The error of Betti numbers as a metric of torchmetrics (the extra ``torchmetrics``)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from ecc_core._request.resources import check_positive_int
from ecc_core.nn import metrics
from ecc_core.nn._segmentation import masks_of_classes

__all__ = ["BettiError"]


class BettiError(Metric):
    """Mean of :class:`ecc_core.nn.BettiError` over all images and classes of an evaluation.

    Parameters
    ----------
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    num_classes : int, optional
        Compare class indices, one class after another, and take the mean over the classes.
    include_background : bool, default True
        If False, leave out class 0 of `num_classes`.
    threshold, connectivity, window
        As for :class:`ecc_core.nn.BettiError`. With `num_classes` there is no threshold.
    **options
        Options of :class:`torchmetrics.Metric`.

    Raises
    ------
    TypeError
        In a call, if class indices are not integers.
    ValueError
        As for :class:`ecc_core.nn.BettiError`; in a call also if shapes do not match.

    Notes
    -----
    The metric is called with ``preds`` and ``target``. Without `num_classes` they have the same
    shape (..., spatial), and floats in ``preds`` are probabilities, or logits if any is not between
    0 and 1, as for all metrics of torchmetrics. With it ``target`` holds indices, of shape
    (batch, spatial) or (batch, 1, spatial), and ``preds`` either indices of that shape or scores
    (batch, class, spatial), of which the greatest counts. Numbers are computed in host memory.

    Examples
    --------
    >>> import torch
    >>> from torchmetrics import MetricCollection
    >>> from torchmetrics.classification import BinaryF1Score
    >>> from ecc_core.nn.torchmetrics import BettiError
    >>> target = torch.ones(1, 8, 8, dtype=torch.int64)
    >>> preds = target.clone()
    >>> preds[0, 3:5, 3:5] = 0  # a hole
    >>> found = MetricCollection([BettiError(), BinaryF1Score()])(preds, target)
    >>> found["BettiError"].item(), round(found["BinaryF1Score"].item(), 2)
    (1.0, 0.97)
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    total: Tensor
    count: Tensor

    def __init__(
        self,
        n_spatial: int = 2,
        *,
        num_classes: int | None = None,
        include_background: bool = True,
        threshold: float = 0.5,
        connectivity: int | None = None,
        window: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if num_classes is not None:
            check_positive_int(num_classes, "num_classes")
        self.num_classes, self.include_background = num_classes, include_background
        given: dict[str, Any] = {"threshold": threshold, "connectivity": connectivity}
        self.of_probabilities = metrics.BettiError(n_spatial, **given, window=window)
        self.of_logits = metrics.BettiError(n_spatial, **given, window=window, from_logits=True)
        self.add_state("total", torch.tensor(0.0, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add the errors of a batch."""
        preds, target = preds.detach().cpu(), target.detach().cpu()
        error = self.of_probabilities
        if self.num_classes is not None:
            preds, target = self._masks(preds, target, self.num_classes)
        elif preds.is_floating_point() and preds.numel():
            low, high = preds.aminmax()
            error = error if low >= 0 and high <= 1 else self.of_logits
        errors = error(preds, target)
        self.total += errors.sum().to(self.total.device)
        self.count += errors.numel()

    def compute(self) -> Tensor:
        """The mean error of an image and class; NaN if there was none."""
        return self.total / self.count

    def _masks(self, preds: Tensor, target: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Masks (batch, class, spatial) of the points of each class."""
        n_spatial = self.of_probabilities.n_spatial
        if preds.is_floating_point():
            if preds.dim() != n_spatial + 2 or preds.shape[1] != count:
                raise ValueError(
                    f"`preds` must have shape (batch, {count}, spatial) if it holds "
                    f"scores of `num_classes`, got {tuple(preds.shape)}"
                )
            preds = preds.argmax(1)
        first = 0 if self.include_background else 1
        found = []
        for name, given in (("preds", preds), ("target", target)):
            if given.is_floating_point() or given.dtype == torch.bool:
                raise TypeError(f"`{name}` must hold class indices, got {given.dtype}")
            single = given.dim() == n_spatial + 2 and given.shape[1] == 1
            if not single and given.dim() != n_spatial + 1:
                raise ValueError(
                    f"`{name}` must have shape (batch, spatial) if it holds class indices, got "
                    f"{tuple(given.shape)}"
                )
            given = given if single else given.unsqueeze(1)
            found.append(masks_of_classes(given, count, n_spatial, first))
        return found[0], found[1]
