"""A loss on the births and deaths of components and holes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ecc_core._request.persistence import check_persistence
from ecc_core.nn._pairs import pair_errors
from ecc_core.nn._segmentation import Pair, SegmentationLoss

INSIDE_FROM = 0.5
"""The probability from which a point belongs to the objects of a target."""


class PersistenceLoss(SegmentationLoss):
    """Distance of the persistence diagram of a prediction from the classes of a segmentation.

    The target has some number of components, of holes (tunnels) and of cavities. As many of the
    prediction, the most persistent ones, are moved to birth 1 and death 0, and the others to the
    diagonal, where they vanish [1]_. Gradients go to the points that cause the births and deaths.
    Combine it with a loss over points, such as cross entropy.

    Parameters
    ----------
    window : int, optional
        Compare square (cubic) windows of this side length, which tile the image, one by one, and
        average over them. By default whole images are compared.
    min_persistence : float, default 0
        Penalize classes that the target does not have only if they last at least so long.
    connectivity : {None, 1, n_spatial}
        Connectivity of the objects, as in :func:`ecc_core.persistence_pairs`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    reduction : {"mean", "sum", "none"}
        Reduction over images and channels.
    from_logits, ignore_index, weight
        As for :class:`EulerCurveLoss`.

    Raises
    ------
    TypeError
        If `window` is not an int. In a call, if the input is not a tensor of floats or the target
        is not a tensor of real numbers.
    ValueError
        If `window` is less than 1, `min_persistence`, `connectivity`, `n_spatial` or `reduction`
        is invalid, or a `weight` is negative or all are 0. In a call, if the shapes or devices do
        not match, values are NaN or not between 0 and 1, or integers for a mask have other values
        than 0 and 1, or 0 and 255. Compiled calls and those of ``torch.func`` only check for NaN.

    See Also
    --------
    EulerCurveLoss : Compares curves, which takes less time and no pairs.

    Notes
    -----
    The loss is called with ``input``, ``target`` and ``mask`` as :class:`EulerCurveLoss` is: masks
    or class indices, and points that are left out. In a target of probabilities, points of at least
    0.5 belong to the objects. The result is a scalar, or has shape (...) with ``reduction="none"``;
    it is float64 for a prediction of float64, otherwise float32. Errors are summed in float64.
    Pairs of a batch of fewer than 2**16 points are found in host memory, whatever its device.

    A call is an operator of torch, which ``torch.compile``, ``torch.func`` and forward mode take.
    There are no second derivatives: a call that needs them raises an error.

    References
    ----------
    .. [1] Hu, Li, Samaras, Chen, "Topology-preserving deep image segmentation", NeurIPS 2019,
       arXiv:1906.05404.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import PersistenceLoss
    >>> ring = torch.ones(1, 1, 5, 5)
    >>> ring[..., 2, 2] = 0
    >>> torn = ring.clone()
    >>> torn[..., 2, 3:] = 0.2  # the hole lasts from 0.2 to 0
    >>> loss = PersistenceLoss()
    >>> loss(ring, ring).item(), round(loss(torn, ring).item(), 2)
    (0.0, 0.64)
    """

    described: ClassVar = "window", "min_persistence", "connectivity", "n_spatial", "reduction"
    waits: ClassVar = True
    """True: for the numbers of pairs, or for the input where the host finds them."""

    def __init__(
        self,
        window: int | None = None,
        *,
        min_persistence: float = 0,
        connectivity: int | None = None,
        n_spatial: int = 2,
        reduction: Literal["mean", "sum", "none"] = "mean",
        from_logits: bool = False,
        ignore_index: int | None = None,
        weight: Tensor | Sequence[float] | None = None,
    ) -> None:
        super().__init__(
            window, connectivity, n_spatial, reduction, from_logits, ignore_index, weight
        )
        self.min_persistence = check_persistence(min_persistence)

    def _errors(self, pair: Pair) -> Tensor:
        prediction = pair.prediction
        masks = pair.masks
        if masks.is_floating_point():
            masks = masks >= INSIDE_FROM
        if prediction.dtype != torch.float64:
            prediction = prediction.float()

        def errors_of(images: Tensor, targets: Tensor, shown: Tensor | None) -> Tensor:
            errors: Tensor = pair_errors(
                images, targets, shown, self.connectivity, self.min_persistence
            )[0]
            return errors

        return self._mean_errors(prediction, masks, pair.shown, errors_of)
