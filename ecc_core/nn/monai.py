"""The losses and the metric with the interfaces of MONAI (the extra ``monai``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor

from ecc_core._optional import naming_extra
from ecc_core.nn import loss, matching, metrics, persistence
from ecc_core.nn._segmentation import SegmentationLoss, masks_of_classes

try:
    from monai.metrics.metric import CumulativeIterationMetric
    from monai.metrics.utils import do_metric_reduction
except ModuleNotFoundError as error:
    raise naming_extra(error, "monai", extra="monai", purpose=__name__) from error

__all__ = ["BettiErrorMetric", "BettiMatchingLoss", "EulerCurveLoss", "PersistenceLoss"]

INSTEAD = {
    "from_logits": "use `sigmoid` or `softmax`",
    "ignore_index": "pass `mask` to a call, False where points are left out",
}
"""What to do in place of options of the losses of :mod:`ecc_core.nn`."""


class _MonaiLoss(SegmentationLoss):
    """The options that the losses of MONAI share."""

    logits_option: ClassVar[str] = "sigmoid=True or softmax=True"

    def _set_options(
        self,
        include_background: bool,
        to_onehot_y: bool,
        sigmoid: bool,
        softmax: bool,
        other_act: Callable[[Tensor], Tensor] | None,
    ) -> None:
        given = {"sigmoid": sigmoid, "softmax": softmax, "other_act": other_act is not None}
        if sum(given.values()) > 1:
            names = " and ".join(f"`{name}`" for name, value in given.items() if value)
            raise ValueError(
                f"at most one of `sigmoid`, `softmax` and `other_act` may be set, got {names}"
            )
        if other_act is not None and not callable(other_act):
            raise TypeError(f"`other_act` must be a function, got {type(other_act).__name__}")
        self.include_background = include_background
        self.to_onehot_y = to_onehot_y
        self.sigmoid = sigmoid
        self.softmax = softmax
        self.other_act = other_act

    def forward(self, input: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        input : (batch, channel, spatial) tensor
        target : tensor of the same shape
            The target, which may have one channel with ``to_onehot_y``.
        mask : bool tensor, optional
            The points that belong to the image, in the shape of the input or of its spatial axes.

        Returns
        -------
        tensor
            As `reduction` says.
        """
        if self.sigmoid:
            input = input.sigmoid()
        elif self.softmax:
            input = input.softmax(1)
        elif self.other_act is not None:
            input = self.other_act(input)
        if self.to_onehot_y:
            target = masks_of_classes(target, input.shape[1], self.n_spatial)
        if not self.include_background:
            _check_background(input, "input")
            input = input[:, 1:]
            target = target[:, 1:]
            if mask is not None and mask.dim() > self.n_spatial:
                mask = mask[:, 1:]
        return super().forward(input, target, mask)


class EulerCurveLoss(_MonaiLoss, loss.EulerCurveLoss):
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
    other_act : callable, optional
        Apply this function to the input instead.
    **options
        Options of :class:`ecc_core.nn.EulerCurveLoss` other than ``from_logits`` and
        ``ignore_index``.

    Raises
    ------
    TypeError
        If `other_act` is not callable, or an option is not one of this class; in a call, as for
        :class:`ecc_core.nn.EulerCurveLoss`.
    ValueError
        If more than one of `sigmoid`, `softmax` and `other_act` is set; in a call, as for
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
        other_act: Callable[[Tensor], Tensor] | None = None,
        **options: Any,
    ) -> None:
        _check_options(options)
        super().__init__(thresholds, **options)
        self._set_options(include_background, to_onehot_y, sigmoid, softmax, other_act)


class PersistenceLoss(_MonaiLoss, persistence.PersistenceLoss):
    """:class:`ecc_core.nn.PersistenceLoss` with the options of the losses of MONAI.

    Parameters
    ----------
    window : int, optional
        As for :class:`ecc_core.nn.PersistenceLoss`, like all options that are not listed here.
    include_background, to_onehot_y, sigmoid, softmax, other_act
        As for :class:`ecc_core.nn.monai.EulerCurveLoss`.
    **options
        Options of :class:`ecc_core.nn.PersistenceLoss` other than ``from_logits`` and
        ``ignore_index``.

    Raises
    ------
    TypeError, ValueError
        As for :class:`ecc_core.nn.monai.EulerCurveLoss`.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.monai import PersistenceLoss
    >>> criterion = PersistenceLoss(16, sigmoid=True)
    >>> criterion(torch.randn(2, 1, 32, 32), torch.rand(2, 1, 32, 32) > 0.5).shape
    torch.Size([])
    """

    def __init__(
        self,
        window: int | None = None,
        *,
        include_background: bool = True,
        to_onehot_y: bool = False,
        sigmoid: bool = False,
        softmax: bool = False,
        other_act: Callable[[Tensor], Tensor] | None = None,
        **options: Any,
    ) -> None:
        _check_options(options)
        super().__init__(window, **options)
        self._set_options(include_background, to_onehot_y, sigmoid, softmax, other_act)


class BettiMatchingLoss(_MonaiLoss, matching.BettiMatchingLoss):
    """:class:`ecc_core.nn.BettiMatchingLoss` with the options of the losses of MONAI.

    Parameters
    ----------
    window : int, optional
        As for :class:`ecc_core.nn.BettiMatchingLoss`, like all options that are not listed here.
    include_background, to_onehot_y, sigmoid, softmax, other_act
        As for :class:`ecc_core.nn.monai.EulerCurveLoss`.
    **options
        Options of :class:`ecc_core.nn.BettiMatchingLoss` other than ``from_logits`` and
        ``ignore_index``.

    Raises
    ------
    TypeError, ValueError
        As for :class:`ecc_core.nn.monai.EulerCurveLoss`.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn.monai import BettiMatchingLoss
    >>> criterion = BettiMatchingLoss(16, sigmoid=True)
    >>> criterion(torch.randn(2, 1, 32, 32), torch.rand(2, 1, 32, 32) > 0.5).shape
    torch.Size([])
    """

    def __init__(
        self,
        window: int | None = None,
        *,
        include_background: bool = True,
        to_onehot_y: bool = False,
        sigmoid: bool = False,
        softmax: bool = False,
        other_act: Callable[[Tensor], Tensor] | None = None,
        **options: Any,
    ) -> None:
        _check_options(options)
        super().__init__(window, **options)
        self._set_options(include_background, to_onehot_y, sigmoid, softmax, other_act)


class _Error(metrics.BettiError):
    _names: ClassVar = ("y_pred", "y")


class BettiErrorMetric(CumulativeIterationMetric):
    """Mean of :class:`ecc_core.nn.BettiError` over the images and channels of batches.

    Parameters
    ----------
    n_spatial : {2, 1, 3}
        Number of spatial axes. Volumes need 3.
    include_background : bool, default True
        If False, leave out the first channel, or class 0 of `num_classes`.
    reduction : str, default "mean"
        As for the metrics of MONAI: "none", "mean", "sum", "mean_batch", "sum_batch",
        "mean_channel" or "sum_channel".
    get_not_nans : bool, default False
        `aggregate` also returns how many errors are not NaN, which is all of them.
    num_classes : int, optional
        Count class indices, of shape (batch, 1, spatial), one class after another, as
        :class:`monai.metrics.DiceMetric` does. Without it, channels are masks or probabilities.
    **options
        Options of :class:`ecc_core.nn.BettiError`. With ``per_dimension`` the errors in b_0, b_1
        and b_2 are reduced one by one, and lie along the last axis.

    Raises
    ------
    TypeError, ValueError
        As for :class:`ecc_core.nn.BettiError`; in a call also if the shape is not
        (batch, channel, spatial), or `include_background` is False for one channel.

    Notes
    -----
    Results have the shapes of those of MONAI's metrics: (batch, channel) for each call and for the
    reduction "none", and (channel,) for "mean_batch".

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
        get_not_nans: bool = False,
        num_classes: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        own = True if num_classes is None else include_background
        self.error = _Error(n_spatial, num_classes=num_classes, include_background=own, **options)
        self.include_background = include_background
        self.reduction = reduction
        self.get_not_nans = get_not_nans

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **_: Any) -> Tensor:
        """Errors (batch, channel), or (batch, channel, n_spatial)."""
        if y is None:
            raise ValueError("`y` must be the target, got None")
        n_spatial = self.error.n_spatial
        for name, given in (("y_pred", y_pred), ("y", y)):
            if given.dim() != n_spatial + 2:
                raise ValueError(
                    f"`{name}` must have the axes batch, channel and n_spatial={n_spatial} more, "
                    f"got {tuple(given.shape)}; pass n_spatial=3 for volumes"
                )
        if self.error.num_classes is None and not self.include_background:
            _check_background(y_pred, "y_pred")
            y_pred = y_pred[:, 1:]
            y = y[:, 1:]
        found: Tensor = self.error(y_pred, y)
        return found

    def aggregate(self, reduction: str | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """Reduce the errors of all batches.

        Parameters
        ----------
        reduction : str, optional
            One of MONAI's words, such as ``"mean"``, in place of that of the metric.

        Returns
        -------
        tensor, or two tensors
            The errors, and how many are not NaN if the metric was made with ``get_not_nans``.
        """
        errors = self.get_buffer()  # type: ignore[no-untyped-call]
        found, not_nans = do_metric_reduction(errors, reduction or self.reduction)
        return (found, not_nans) if self.get_not_nans else found


def _check_options(options: dict[str, Any]) -> None:
    """Refuse options of losses of MONAI that have another form here, which the message names."""
    for name, instead in INSTEAD.items():
        if name in options:
            raise TypeError(f"`{name}` is not an option here; {instead}")


def _check_background(channels: Tensor, name: str) -> None:
    if channels.shape[1] == 1:
        raise ValueError(
            f"`include_background` must be True for one channel, got False for `{name}` of shape "
            f"{tuple(channels.shape)}"
        )
