"""Losses of curves, and their arguments."""

import math

import torch
from soft_helpers import draw

from ecc_core.nn import EulerCurveLoss

CASES = {
    "images": ((2, 3, 7, 9), EulerCurveLoss()),
    "sum": ((2, 1, 8, 8), EulerCurveLoss(5, p=2, reduction="sum", normalize=False)),
    "each": ((2, 2, 6, 7), EulerCurveLoss(p=3.5, reduction="none", connectivity=1)),
    "greatest": ((3, 6, 7), EulerCurveLoss(p=math.inf)),
    "windows": ((2, 1, 9, 8), EulerCurveLoss(window=4)),
    "each by windows": ((2, 2, 5, 7), EulerCurveLoss(4, window=3, reduction="none")),
    "volume": ((1, 1, 5, 4, 6), EulerCurveLoss(4, window=3, n_spatial=3)),
}


def errors(loss, shape, masked, device="cpu", dtype=torch.float32, **backward):
    """Return a loss and its gradient by the image; if `masked`, the target is boolean."""
    image = draw(shape, dtype, device=device).requires_grad_()
    target = draw(shape, dtype, seed=1, device=device)
    mask = None
    if masked:
        target = target < 0.4
        mask = draw(shape, seed=2, device=device) < 0.9
    found = loss(image, target, mask)
    upstream = torch.linspace(0.5, 2, found.numel(), dtype=dtype, device=device)
    (slopes,) = torch.autograd.grad(found, image, upstream.reshape(found.shape), **backward)
    return found.detach(), slopes
