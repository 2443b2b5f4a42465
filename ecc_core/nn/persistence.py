"""A loss on the births and deaths of components and holes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._request.persistence import check_persistence
from ecc_core.nn import _arguments
from ecc_core.nn._segmentation import SegmentationLoss, check_probabilities
from ecc_core.topology import persistence_pairs


class PersistenceLoss(SegmentationLoss):
    """Distance of the persistence diagram of a prediction from the classes of a segmentation.

    As many components, holes (tunnels) and cavities as the target has, those of the largest
    persistence, are moved to birth 1 and death 0, and the others to the diagonal, where they vanish
    [1]_. Gradients go to the points that cause the births and deaths. Combine it with a loss over
    points, such as cross entropy.

    Parameters
    ----------
    window : int, optional
        Compare square (cubic) windows of this side length, which tile the image, one by one, and
        average over them. By default whole images are compared.
    min_persistence : float, default 0
        Of the classes that the target does not have, only penalize those that last at least so
        long.
    connectivity : {None, 1, n_spatial}
        Connectivity of the objects, as in :func:`ecc_core.persistence_pairs`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    reduction : {"mean", "sum", "none"}
        Reduction over images and channels.
    from_logits : bool, default False
        Apply a sigmoid to the input.

    Raises
    ------
    TypeError
        If `window` is not an int. In a call, if the input is not a tensor of floats.
    ValueError
        If `window` is less than 1, or `min_persistence`, `connectivity`, `n_spatial` or `reduction`
        is invalid. In a call, if the shapes differ, or values are not between 0 and 1.

    See Also
    --------
    EulerCurveLoss : Compares curves, which takes less time and no pairs.

    Notes
    -----
    The loss is called with an ``input`` of probabilities (..., spatial) and a ``target`` of masks
    of the same shape, and returns a scalar, or has shape (...) with ``reduction="none"``. Pairs are
    found in host memory, whatever the device of the input.

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

    described = "window", "min_persistence", "connectivity", "n_spatial", "reduction"

    def __init__(
        self,
        window: int | None = None,
        *,
        min_persistence: float = 0,
        connectivity: int | None = None,
        n_spatial: int = 2,
        reduction: Literal["mean", "sum", "none"] = "mean",
        from_logits: bool = False,
    ) -> None:
        super().__init__(window, connectivity, n_spatial, reduction, from_logits)
        self.min_persistence = check_persistence(min_persistence)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of probabilities (..., spatial) and masks of the same shape."""
        input, _ = _arguments.images(input, self.n_spatial, "input")
        target, _ = _arguments.images(target, self.n_spatial, "target")
        if target.shape != input.shape:
            raise ValueError(
                f"`target` must have the shape of `input`, {tuple(input.shape)}, got "
                f"{tuple(target.shape)}"
            )
        values = input.sigmoid() if self.from_logits else input
        for name, given in (("input", values), ("target", target)):
            if given.numel():
                check_probabilities(given, name, "as probabilities are")
        own, true = (self._in_windows(given) for given in (values, target))
        size = own.shape[own.dim() - self.n_spatial :]
        errors = self._errors(own.reshape(-1, *size), true.reshape(-1, *size) >= 0.5)
        batch = input.shape[: input.dim() - self.n_spatial]
        found = errors.reshape(*batch, -1).mean(-1) if errors.numel() else errors.new_zeros(batch)
        return self._reduced(found, found.numel())

    def _errors(self, images: Tensor, targets: Tensor) -> Tensor:
        """The error of each image, whose classes are those of a boolean target."""
        count, ndim = len(images), images.dim() - 1
        if not images.numel():
            return images.new_zeros(count)
        classes, points, _ = _pairs(targets, self.connectivity)
        inside = targets.flatten().cpu().numpy()[points]
        numbers = np.bincount(classes[inside], minlength=ndim * count)
        groups, births, deaths = _pairs(images, self.connectivity)
        values = torch.cat([images.flatten(), images.new_zeros(1)])
        birth, death = values[births], values[deaths]
        lengths = (birth - death).detach()
        order = torch.from_numpy(np.lexsort([-lengths.double().cpu().numpy(), groups]))
        groups = torch.from_numpy(groups)[order]
        ranks = torch.arange(len(groups)) - torch.searchsorted(groups, groups)
        wanted = (ranks < torch.from_numpy(numbers)[groups]).to(images.device)
        order = order.to(images.device)
        birth, death, lengths = birth[order], death[order], lengths[order]
        others = (birth - death).square().where(lengths >= self.min_persistence, 0)
        errors = torch.where(wanted, (1 - birth).square() + death.square(), others)
        image = (groups // ndim).to(images.device)
        return images.new_zeros(count).index_add(0, image, errors)


def _pairs(images: Tensor, connectivity: int) -> tuple[Any, Any, Any]:
    """Numbers of image and dimension, and flat indices of the points of birth and death.

    All images are computed at once, side by side with points between them that never enter. A class
    that never dies has the index after the last one for its death.
    """
    count, *spatial = images.shape
    side = spatial[-1]
    given = images.detach().cpu()
    given = given if given.dtype in (torch.bool, torch.float64) else given.float()
    row = pad(given, (0, 1)).movedim(0, -2).flatten(-2).numpy()
    mask = np.broadcast_to(np.arange(row.shape[-1]) % (side + 1) < side, row.shape)
    pairs = persistence_pairs(row, mask=mask, connectivity=connectivity, superlevel=True)
    image = pairs.birth_points[:, -1] // (side + 1)
    births, deaths = (
        np.ravel_multi_index(
            (image, *points[:, :-1].T, points[:, -1] % (side + 1)), (count, *spatial)
        )
        for points in (pairs.birth_points, np.maximum(pairs.death_points, 0))
    )
    deaths[pairs.essential] = images.numel()
    return len(spatial) * image + pairs.dimensions, births, deaths
