"""A loss on the components and holes that a prediction and its target have at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ecc_core._request.persistence import check_persistence
from ecc_core.nn._matching import match_errors
from ecc_core.nn._segmentation import Pair, SegmentationLoss


class BettiMatchingLoss(SegmentationLoss):
    """Distance of the classes of a prediction from those of its target at the same place.

    Components, holes (tunnels) and cavities of the prediction that match one of the target
    (:func:`ecc_core.betti_matching`) are moved to its birth and death (1 and 0 for a mask), and the
    others to the diagonal, where they vanish [1]_ [2]_. Gradients go to the points that cause the
    births and deaths. Unlike :class:`PersistenceLoss`, it knows which of two holes is the true one.
    Combine it with a loss over points, such as cross entropy.

    Parameters
    ----------
    window : int, optional
        Compare square (cubic) windows of this side length, which tile the image, one by one, and
        average over them. By default whole images are compared.
    min_persistence : float, default 0
        Penalize classes that do not match only if they last at least so long.
    connectivity : {None, 1, n_spatial}
        Connectivity of the objects, as in :func:`ecc_core.betti_matching`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    reduction : {"mean", "sum", "none"}
        Reduction over images and channels.
    from_logits, ignore_index, weight
        As for :class:`EulerCurveLoss`.

    Raises
    ------
    TypeError, ValueError
        As for :class:`PersistenceLoss`.

    See Also
    --------
    PersistenceLoss : Compares numbers only, which takes less time.

    Notes
    -----
    The loss is called with ``input``, ``target`` and ``mask`` as :class:`EulerCurveLoss` is: masks,
    probabilities or class indices, and points that are left out. It is the sum over the classes
    that match of ``(birth - birth_target) ** 2 + (death - death_target) ** 2``, and over those of
    either that do not of ``(birth - death) ** 2 / 2``: half of that of the authors. Classes that
    never die count as if they died at 0. The result is a scalar, or has shape (...) with
    ``reduction="none"``; it is float64 for a prediction of float64, otherwise float32. Classes are
    matched in host memory, and errors summed in float64, whatever the device and dtype of the
    input. A target, or a window of it, without objects is no error: all classes of the prediction
    but the oldest component are false then.

    A call is an operator of torch, which ``torch.compile``, ``torch.func`` and forward mode take.
    There are no second derivatives: a call that needs them raises an error.

    References
    ----------
    .. [1] Stucki, Paetzold, Shit, Menze, Bauer, "Topologically faithful image segmentation via
       induced matching of persistence barcodes", ICML 2023, arXiv:2211.15272.
    .. [2] Stucki, Bürgin, Paetzold, Bauer, "Efficient Betti matching enables topology-aware 3D
       segmentation via persistent homology", 2024, arXiv:2407.04683.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import BettiMatchingLoss
    >>> ring = torch.ones(1, 1, 5, 5)
    >>> ring[..., 2, 2] = 0
    >>> torn = ring.clone()
    >>> torn[..., 2, 3:] = 0.2  # the hole lasts from 0.2 to 0
    >>> loss = BettiMatchingLoss()
    >>> loss(ring, ring).item(), round(loss(torn, ring).item(), 2)
    (0.0, 0.64)
    """

    described: ClassVar = "window", "min_persistence", "connectivity", "n_spatial", "reduction"
    waits: ClassVar = True
    """True: the values of the input are matched on the host."""

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
        if prediction.dtype != torch.float64:
            prediction = prediction.float()
        targets = pair.masks.to(prediction.dtype)

        def errors_of(images: Tensor, targets: Tensor, shown: Tensor | None) -> Tensor:
            errors: Tensor = match_errors(
                images, targets, shown, self.connectivity, self.min_persistence
            )[0]
            return errors

        return self._mean_errors(prediction, targets, pair.shown, errors_of)
