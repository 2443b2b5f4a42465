"""The loss and the metric with the interfaces of MONAI (the extra ``monai``)."""

from __future__ import annotations

from typing import Any

from monai.metrics.metric import CumulativeIterationMetric
from monai.metrics.utils import do_metric_reduction
from torch import Tensor

from ecc_core.nn import loss, metrics
from ecc_core.nn._segmentation import masks_of_classes

__all__ = ["BettiErrorMetric", "EulerCurveLoss"]


class EulerCurveLoss(loss.EulerCurveLoss):
    """:class:`ecc_core.nn.EulerCurveLoss` with the options of the losses of MONAI.

    Parameters
    ----------
    thresholds : int, default 8
        As for :class:`ecc_core.nn.EulerCurveLoss`, like all options that are not listed here.
    include_background : bool, default True
        If False, leave out the first channel.
    to_onehot_y : bool, default False
        The target, of shape (batch, 1, spatial), holds class indices.
    sigmoid, softmax : bool, default False
        Apply one of them to the input.
    **options
        Options of :class:`ecc_core.nn.EulerCurveLoss` other than ``from_logits`` and
        ``ignore_index``.

    Raises
    ------
    ValueError
        If both `sigmoid` and `softmax` are set; in a call, as for
        :class:`ecc_core.nn.EulerCurveLoss`, or if `include_background` is False for one channel.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.monai import EulerCurveLoss
    >>> criterion = EulerCurveLoss(include_background=False, to_onehot_y=True, softmax=True)
    >>> logits, target = torch.randn(2, 3, 32, 32), torch.randint(3, (2, 1, 32, 32))
    >>> criterion(logits, target).shape
    torch.Size([])
    """

    def __init__(
        self,
        thresholds: int = 8,
        *,
        include_background: bool = True,
        to_onehot_y: bool = False,
        sigmoid: bool = False,
        softmax: bool = False,
        **options: Any,
    ) -> None:
        if sigmoid and softmax:
            raise ValueError("at most one of `sigmoid` and `softmax` may be set, got both")
        if taken := {"from_logits", "ignore_index"} & set(options):
            raise TypeError(f"`{min(taken)}` is not an option here; use `sigmoid` or `softmax`")
        super().__init__(thresholds, **options)
        self.include_background, self.to_onehot_y = include_background, to_onehot_y
        self.sigmoid, self.softmax = sigmoid, softmax

    def forward(self, input: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute the loss of inputs (batch, channel, spatial) and targets of the same shape."""
        if self.sigmoid or self.softmax:
            input = input.sigmoid() if self.sigmoid else input.softmax(1)
        if self.to_onehot_y:
            target = masks_of_classes(target, input.shape[1], self.n_spatial)
        if not self.include_background:
            if input.shape[1] == 1:
                raise ValueError("`include_background` must be True for one channel, got False")
            input, target = input[:, 1:], target[:, 1:]
        return super().forward(input, target, mask)


class BettiErrorMetric(CumulativeIterationMetric):
    """Mean of :class:`ecc_core.nn.BettiError` over the images and channels of batches.

    Parameters
    ----------
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    include_background : bool, default True
        If False, leave out the first channel.
    reduction : str, default "mean"
        As for the metrics of MONAI: "none", "mean", "sum", "mean_batch", "sum_batch",
        "mean_channel" or "sum_channel".
    **options
        Options of :class:`ecc_core.nn.BettiError`.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.monai import BettiErrorMetric
    >>> target = torch.ones(1, 1, 8, 8, dtype=torch.bool)
    >>> prediction = target.clone()
    >>> prediction[..., 3:5, 3:5] = False  # a hole
    >>> metric = BettiErrorMetric()
    >>> metric(prediction, target).tolist()
    [[1.0]]
    >>> metric.aggregate().item()
    1.0
    """

    def __init__(
        self,
        n_spatial: int = 2,
        *,
        include_background: bool = True,
        reduction: str = "mean",
        **options: Any,
    ) -> None:
        super().__init__()
        self.error = metrics.BettiError(n_spatial, **options)
        self.include_background, self.reduction = include_background, reduction

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **_: Any) -> Tensor:
        """Errors (batch, channel)."""
        if y is None:
            raise ValueError("`y` must be the target, got None")
        first = 0 if self.include_background else 1
        return self.error(y_pred[:, first:], y[:, first:])

    def aggregate(self, reduction: str | None = None) -> Tensor:
        """Reduce the errors of all batches."""
        errors = self.get_buffer()  # type: ignore[no-untyped-call]
        return do_metric_reduction(errors, reduction or self.reduction)[0]
