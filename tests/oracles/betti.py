"""Errors of Betti numbers, by labels of sets."""

import numpy as np
from oracles.components import betti_numbers

__all__ = ["error_of", "mean_error"]


def error_of(prediction, target):
    """Return the sum of differences of the Betti numbers of two 2-D masks, 8-connected."""
    numbers = [betti_numbers(np.asarray(mask, bool), 2) for mask in (prediction, target)]
    return np.abs(np.subtract(*numbers)).sum()


def mean_error(predictions, targets):
    return np.mean([error_of(*pair) for pair in zip(predictions, targets, strict=True)])
