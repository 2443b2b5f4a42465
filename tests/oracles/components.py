"""Betti numbers, and sizes of components, by labelling."""

import itertools

import numpy as np
from scipy.ndimage import generate_binary_structure, label
from skimage.measure import euler_number


def counted(foreground, connectivity):
    """Return how many components a set has, and its complement apart from the padded border."""
    ndim = foreground.ndim
    around = np.pad(~foreground, 1, constant_values=True)
    own = generate_binary_structure(ndim, connectivity)
    other = generate_binary_structure(ndim, ndim + 1 - connectivity if ndim > 1 else 1)
    return label(foreground, own)[1], label(around, other)[1] - 1


def betti_numbers(foreground, connectivity):
    """Return all Betti numbers; the middle one of a volume follows from its Euler number."""
    first, last = counted(foreground, connectivity)
    if foreground.ndim == 1:
        return [first]
    if foreground.ndim == 2:
        return [first, last]
    return [first, first + last - euler_number(foreground, connectivity), last]


def component_numbers(foreground, connectivity, shown=None, inlet=None, outlet=None):
    """Return the sizes of a set and of its largest component, and the number of spanning ones.

    Ends are an inlet and an outlet, or the first and last slice of the points `shown` along each
    axis.
    """
    shown = np.ones(foreground.shape, bool) if shown is None else shown
    structure = generate_binary_structure(foreground.ndim, connectivity)
    labels, _ = label(foreground & shown, structure)
    sizes = np.bincount(labels.ravel())[1:]
    firsts, lasts = outer_slices(shown)
    pairs = zip(
        firsts if inlet is None else [inlet] * foreground.ndim,
        lasts if outlet is None else [outlet] * foreground.ndim,
        strict=True,
    )
    if inlet is not None and outlet is not None:
        pairs = [(inlet, outlet)]
    on_both = [set(labels[low]) & set(labels[high]) for low, high in pairs]
    spanning = [len(found - {0}) for found in on_both]
    return [sizes.sum(), sizes.max(initial=0), *spanning]


def outer_slices(shown):
    """Return the first and the last slices of a set of points along each axis, as masks."""
    firsts = []
    lasts = []
    places = np.argwhere(shown)
    for axis, index in enumerate(np.indices(shown.shape)):
        along = places[:, axis]
        firsts.append(index == along.min(initial=shown.shape[axis]))
        lasts.append(index == along.max(initial=-1))
    return firsts, lasts


def steps_to_neighbours(ndim, connectivity):
    """Return the steps from a point to its neighbours; those along one axis for connectivity 1."""
    steps = [step for step in itertools.product((-1, 0, 1), repeat=ndim) if any(step)]
    if connectivity > 1:
        return steps
    return [step for step in steps if np.count_nonzero(step) == 1]


def component_numbers_on_a_torus(foreground, connectivity, shown, wraps):
    """Return `component_numbers` for periodic axes, found by steps from point to point.

    Each point is lifted to the image repeated along these axes. A component winds around one of
    them if it reaches a point again in another repetition.
    """
    shape = foreground.shape
    spanning = np.zeros(foreground.ndim, int)
    sizes = [0]
    lifts = {}
    steps = steps_to_neighbours(len(shape), connectivity)
    inside = np.argwhere(foreground & shown)
    points = set(map(tuple, inside.tolist()))
    firsts, lasts = outer_slices(shown)
    for start in sorted(points):
        if start in lifts:
            continue
        lifts[start], members, winds = (
            np.zeros(len(shape), int),
            [start],
            np.zeros(len(shape), bool),
        )
        for point in members:  # The list grows meanwhile.
            for step in steps:
                target = np.add(point, step)
                place = tuple(np.where(wraps, target % shape, target).tolist())
                if place not in points:
                    continue
                lift = lifts[point] + np.where(wraps, target // shape, 0)
                if place in lifts:
                    winds |= lifts[place] != lift
                else:
                    lifts[place] = lift
                    members.append(place)
        at = tuple(np.transpose(members))
        reaches = [
            low[at].any() and high[at].any() for low, high in zip(firsts, lasts, strict=True)
        ]
        spanning += np.where(wraps, winds, reaches)
        sizes.append(len(members))
    return [sum(sizes), max(sizes), *spanning.tolist()]
