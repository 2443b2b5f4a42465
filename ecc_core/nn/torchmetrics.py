"""The error of Betti numbers as a metric of torchmetrics (the extra ``torchmetrics``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, SupportsIndex

import torch
from torch import Tensor

from ecc_core._optional import naming_extra
from ecc_core._request.filtration import check_flag
from ecc_core.nn import metrics

try:
    from torchmetrics import Metric
except ModuleNotFoundError as error:
    raise naming_extra(error, "torchmetrics", extra="torchmetrics", purpose=__name__) from error

__all__ = ["BettiError"]


class _Error(metrics.BettiError):
    _names: ClassVar = ("preds", "target")


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
    from_logits : bool, optional
        Whether floats in ``preds`` are logits. By default those of a batch are logits if any is not
        between 0 and 1, as for all metrics of torchmetrics. Set it, since the logits of a network
        may all lie between 0 and 1, at first. Not with `num_classes`.
    per_dimension : bool, default False
        The result is the mean error in each of b_0, b_1 and b_2, of shape (n_spatial,), instead of
        the mean of their sum.
    matched : bool, default False
        As for :class:`ecc_core.nn.BettiError`.
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
    shape (..., spatial), of booleans, integers (0 and 1, or 0 and 255) or floats. With it
    ``target`` holds indices, of shape (batch, spatial) or (batch, 1, spatial), and ``preds`` either
    indices of that shape or scores (batch, class, spatial), of which the greatest counts. Numbers
    are computed in host memory.

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
        window: SupportsIndex | Sequence[SupportsIndex] | None = None,
        from_logits: bool | None = None,
        per_dimension: bool = False,
        matched: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.num_classes = num_classes
        self.from_logits = None if from_logits is None else check_flag(from_logits, "from_logits")
        error = partial(
            _Error,
            n_spatial,
            threshold=threshold,
            connectivity=connectivity,
            window=window,
            per_dimension=per_dimension,
            matched=matched,
        )
        self.of_probabilities = error(
            num_classes=num_classes, include_background=include_background
        )
        if num_classes is None:
            self.of_logits = error(from_logits=True)
        elif from_logits is not None:
            raise ValueError(
                f"`from_logits` must be left out with `num_classes`, got {from_logits!r}"
            )
        start = torch.zeros((n_spatial,) if per_dimension else (), dtype=torch.float64)
        self.add_state("total", start, dist_reduce_fx="sum")
        self.add_state("count", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add the errors of a batch.

        Parameters
        ----------
        preds : tensor
            Probabilities, logits or classes, as the metric was made for.
        target : tensor
            Classes, or masks of classes.
        """
        preds = preds.detach().cpu()
        target = target.detach().cpu()
        error = self.of_probabilities
        if self.num_classes is None and preds.is_floating_point():
            error = self.of_logits if self._holds_logits(preds) else error
        errors = error(preds, target)
        shape = (-1, error.n_spatial) if error.per_dimension else (-1,)
        errors = errors.reshape(shape)
        self.total += errors.sum(0).to(self.total.device)
        self.count += len(errors)

    def _holds_logits(self, preds: Tensor) -> bool:
        if self.from_logits is not None:
            return self.from_logits
        if not preds.numel():
            return False
        low, high = preds.aminmax()
        return not (low >= 0 and high <= 1)

    def compute(self) -> Tensor:
        """Return the mean error of all images and classes.

        Returns
        -------
        float64 tensor
            A scalar, or (n_spatial,) with `per_dimension`; NaN if there was no image.
        """
        return self.total / self.count
