"""Betti numbers, and sizes of components, by labelling."""

import numpy as np
from scipy.ndimage import generate_binary_structure, label
from skimage.measure import euler_number


def counted(foreground, connectivity):
    """Components of a set, and those of its complement that do not reach the padded border."""
    ndim = foreground.ndim
    around = np.pad(~foreground, 1, constant_values=True)
    own = generate_binary_structure(ndim, connectivity)
    other = generate_binary_structure(ndim, ndim + 1 - connectivity if ndim > 1 else 1)
    return label(foreground, own)[1], label(around, other)[1] - 1


def betti_numbers(foreground, connectivity):
    """All Betti numbers: the middle one of a volume follows from its Euler number."""
    first, last = counted(foreground, connectivity)
    if foreground.ndim == 1:
        return [first]
    if foreground.ndim == 2:
        return [first, last]
    return [first, first + last - euler_number(foreground, connectivity), last]


def component_numbers(foreground, connectivity):
    """Points of a set, of its largest component, and components that span each axis."""
    labels, _ = label(foreground, generate_binary_structure(foreground.ndim, connectivity))
    sizes = np.bincount(labels.ravel())[1:]
    ends = [(labels.take(0, axis), labels.take(-1, axis)) for axis in range(foreground.ndim)]
    spanning = [len(set(low.flat) & set(high.flat) - {0}) for low, high in ends]
    return [sizes.sum(), sizes.max(initial=0), *spanning]
