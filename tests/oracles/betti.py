"""Errors of Betti numbers from labels and Euler numbers of scikit-image."""

import numpy as np
from skimage.measure import euler_number, label

__all__ = ["error_of", "mean_error"]


def error_of(prediction, target):
    """Of two 2-D masks, whose objects are 8-connected."""
    masks = [np.asarray(mask) for mask in (prediction, target)]
    components = [label(mask, connectivity=2, return_num=True)[1] for mask in masks]
    holes = [c - euler_number(mask, 2) for c, mask in zip(components, masks, strict=True)]
    return abs(components[0] - components[1]) + abs(holes[0] - holes[1])


def mean_error(predictions, targets):
    return np.mean([error_of(*pair) for pair in zip(predictions, targets, strict=True)])
