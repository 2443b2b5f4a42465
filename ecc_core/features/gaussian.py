"""Expected curves of Gaussian random fields, on the grid and in the continuum."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._optional import import_optional
from ecc_core._request.filtration import Filtration, check_spacing, filtration_of
from ecc_core._request.resources import check_unused
from ecc_core._request.thresholds import check_threshold_array
from ecc_core._types import AnyBoundary
from ecc_core.curves import euler_curve
from ecc_core.features._gaussian import (
    Counts,
    Field,
    Mask,
    check_moments,
    check_positive,
    check_real,
    check_region,
    count_cells,
    kinematic_curve,
    lattice_curve,
)
from ecc_core.features._group_results import draw_band, new_panel
from ecc_core.features._steps import Floats, check_level
from ecc_core.results import CurveResult, agree, curve_facts, meaning
from ecc_core.results._words import EULER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Seed = int | np.random.Generator | None
Covariance = Callable[[Floats], Floats] | ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedCurve(CurveResult[Any]):
    """Thresholds, the expected curve, and a band for the curve of one image.

    Unpacks into its five arrays.

    Attributes
    ----------
    thresholds, mean : (n,) float64 arrays
    error : (n,) float64 array
        Standard error of the numerical integration in `mean`.
    lower, upper : (n,) float64 arrays or None
        The band; None without replicas.
    connectivity : int or None
        None for the kinematic formula, which does not depend on it.
    superlevel, ndim, boundary, units
        As in :class:`ecc_core.EulerCurve`.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import expected_gaussian_curve
    >>> expected = expected_gaussian_curve((64, 64), [-1, 0, 1], spectral_moments=[0.1, 0.1])
    >>> thresholds, mean, error, lower, upper = expected
    >>> mean.round(1), lower
    (array([ 19.3,   6.8, -10.6]), None)
    """

    thresholds: Floats
    mean: Floats
    error: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    boundary: str | tuple[str, ...] = "closed"
    units: str | None = None
    _fields: ClassVar = ("thresholds", "mean", "error", "lower", "upper")

    @property
    def values(self) -> Floats:
        """The expected curve."""
        return self.mean

    def _preview(self) -> Self:
        return self

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Plot the expected curve and its band, for example over measured curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        **line
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If curves that :func:`ecc_core.plotting.plot_curve` has drawn on the axes are of the
            other direction (sublevel or superlevel sets), connectivity or boundary.
        """
        ax = ax or new_panel("threshold", EULER, self.units)
        drawn = (getattr(there, "ecc_meaning", {}) for there in ax.lines)
        agree(
            {"the expected curve": meaning(self)}
            | {f"line {i} of the axes": known for i, known in enumerate(drawn)}
        )
        line = {"label": "expected", **line}
        if self.lower is None or self.upper is None:
            ax.plot(self.thresholds, self.mean, **line)
            return ax
        return draw_band(
            ax, self.thresholds, middle=self.mean, lower=self.lower, upper=self.upper, **line
        )


def expected_gaussian_curve(
    shape: Sequence[int],
    thresholds: ArrayLike,
    *,
    covariance: Covariance | None = None,
    spectral_moments: ArrayLike | None = None,
    mean: float = 0.0,
    variance: float | None = None,
    spacing: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    boundary: AnyBoundary = "closed",
    replicas: int | None = None,
    level: float | None = None,
    rng: Seed = None,
) -> ExpectedCurve:
    r"""Expected Euler characteristic curve of a stationary Gaussian random field.

    With `covariance` it is that of the field on the grid, exact but for the error of a numerical
    integration, which is reported. With `spectral_moments` it is the Gaussian kinematic formula,
    which holds for smooth fields in the limit of a fine grid.

    Parameters
    ----------
    shape : sequence of 1 to 3 ints
        Shape of the image.
    thresholds : (n,) array
        Increasing.
    covariance : callable or array
        A function that takes lags, an array (..., d) in units of `spacing`, and returns the
        covariances (...); or an array with the covariances on a torus that is at least as large as
        the image: element k is that of points k apart, and negative lags wrap around, as in
        ``np.fft.ifftn(power_spectrum).real``.
    spectral_moments : float, (d,) or (d, d) array
        Covariance matrix of the gradient of the field per squared unit of `spacing`, or its
        diagonal. For white noise smoothed by a Gaussian of width s, it is the variance divided by
        2 s².
    mean : float, default 0.0
        Mean of the field.
    variance : float, optional
        Variance of the field. Only with `spectral_moments`. Default: 1.
    spacing : float or (d,) array, optional
        Distance between neighbouring points along each axis. Not with an array of covariances.
        Default: 1.
    mask : boolean array of shape `shape`, optional
        Points to use. Requires connectivity 1 with `covariance`, and a closed boundary.
    connectivity : {None, 1, d}
        As for :func:`ecc_core.euler_curve`. Only with `covariance`; the kinematic formula does not
        depend on it.
    superlevel : bool, default False
        Use the sets ``image >= t`` instead.
    boundary : str, or one for each spatial axis
        As for :func:`ecc_core.euler_curve`.
    replicas : int, optional
        Number of fields to simulate to find the width of the band, at least 2. Only with
        `covariance`. Default: no band.
    level : float, optional
        Probability that the value of one image lies within the band, at each threshold. Only with
        `replicas`. Default: 0.95.
    rng : int or numpy.random.Generator, optional
        Seed or generator, for reproducible results. Only with `covariance`.

    Returns
    -------
    ExpectedCurve
        ``thresholds``, ``mean`` and ``error``, (n,) float64, and ``lower`` and ``upper``, (n,)
        float64 or None. It records which sets it is the curve of, and is only drawn over curves of
        such sets.

    Raises
    ------
    ImportError
        If SciPy is not installed.
    TypeError
        If arguments are not real numbers.
    ValueError
        If not exactly one of `covariance` and `spectral_moments` is given, an argument does not
        belong to it, shapes do not match, or the covariances are not those of any field.

    Notes
    -----
    *On the grid*, with connectivity 1, the expected curve is the sum over cells of
    :math:`(-1)^{\dim}` times the probability that all vertices of the cell are at most t; otherwise
    that at least one of the cubes that contain it is. The probabilities depend only on the axes
    along which a cell has two points, so that :math:`2^d` of them are needed. The field at the
    corners of a cell is the sum of their weighted mean (by generalised least squares), which is
    integrated exactly, and of independent differences, which are integrated by randomly shifted
    Richtmyer lattices [1]_.

    *In the continuum*, for superlevel sets of a field of mean 0 and variance 1 on a box [2]_ [3]_,

    .. math::

        E \chi(u) = \sum_{j=0}^{d} \rho_j(u) \sum_{|J| = j} |\det \Lambda_J|^{1/2} \prod_{i \in J}
        T_i, \qquad \rho_j(u) = (2\pi)^{-(j+1)/2} H_{j-1}(u)\, e^{-u^2/2}, \quad
        \rho_0(u) = 1 - \Phi(u),

    where :math:`\Lambda_J` are the spectral moments of the axes in J, H are Hermite polynomials,
    and the sides are :math:`T_i = (n_i - 1) \cdot` spacing. A torus, with sides
    :math:`n_i \cdot` spacing, and a half-open window have only the term j = d. If only some axes
    are of these kinds, the terms are those whose J contains them all. For a mask, the
    products of sides are alternating sums of the numbers of cells between its points [5]_.

    *The band* is mean ± q s(t), where s is the root mean square deviation of the curves of the
    replicas, simulated by fast Fourier transforms [4]_, from the mean, and q a quantile of
    Student's distribution with as many degrees of freedom as there are replicas. It takes the
    values at one threshold for normally distributed, which they nearly are for images much larger
    than the correlation length.

    References
    ----------
    .. [1] Genz, Bretz, "Computation of multivariate normal and t probabilities", Springer, 2009.
    .. [2] Adler, Taylor, "Random fields and geometry", Springer, 2007, theorem 11.7.2.
    .. [3] Worsley, "Boundary corrections for the expected Euler characteristic of excursion sets
       of random fields", Advances in Applied Probability 27, 943-959, 1995.
    .. [4] Dietrich, Newsam, "Fast and exact simulation of stationary Gaussian processes through
       circulant embedding of the covariance matrix", SIAM Journal on Scientific Computing 18,
       1088-1107, 1997.
    .. [5] Worsley, Marrett, Neelin, Vandal, Friston, Evans, "A unified statistical approach for
       determining significant signals in images of cerebral activation", Human Brain Mapping 4,
       58-73, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import expected_gaussian_curve
    >>> t = np.array([-1.0, 0.0, 1.0])
    >>> smooth = lambda lags: np.exp(-(lags**2).sum(-1) / 4)
    >>> found = expected_gaussian_curve((100, 100), t, covariance=smooth, rng=0)
    >>> np.round(found.mean)
    array([ 182.,    3., -175.])
    >>> found = expected_gaussian_curve((100, 100), t, spectral_moments=0.5)
    >>> np.round(found.mean)
    array([ 202.,   23., -174.])
    """
    sizes = check_shape(shape)
    at = check_threshold_array(thresholds).astype(np.float64)
    filtration = filtration_of(
        len(sizes),
        connectivity,
        superlevel=superlevel,
        nan="raise",
        direction=None,
        boundary=boundary,
    )
    kept = check_region(mask, sizes, filtration.boundary)
    centre = check_real(mean, "mean")
    if (covariance is None) == (spectral_moments is None):
        raise ValueError("one of `covariance` and `spectral_moments` must be given, and not both")
    if spectral_moments is not None:
        check_unused(
            "with `spectral_moments`",
            connectivity=connectivity,
            replicas=replicas,
            level=level,
            rng=rng,
        )
        moments = check_moments(spectral_moments, len(sizes))
        steps = check_spacing(spacing, len(sizes))
        scale = 1.0 if variance is None else check_positive(variance, "variance")
        counts = count_cells(sizes, filtration.boundary, cubes=False, mask=kept)
        u = (at - centre) / math.sqrt(scale)
        return _curve_in_continuum(at, u, counts, steps, moments / scale, filtration)
    check_unused("with `covariance`", variance=variance)
    if kept is not None and filtration.connectivity != 1:
        got = filtration.connectivity
        raise ValueError(f"`connectivity` must be 1 with `covariance` and `mask`, got {got}")
    generator = np.random.default_rng(rng)
    field = Field(covariance, sizes, spacing, filtration.boundary)
    found = _curve_on_grid(at, centre, field, filtration, mask=kept, rng=generator)
    if replicas is None:
        check_unused("without `replicas`", level=level)
        return found
    count = _check_replicas(replicas)
    inside = check_level(0.95 if level is None else level)
    images = (image + centre for image in field.simulate(count, generator))
    return _with_band(found, images, count, boundary=boundary, mask=kept, level=inside)


def _curve_in_continuum(
    at: Floats,
    u: Floats,
    counts: Counts,
    steps: Floats,
    moments: Floats,
    filtration: Filtration,
) -> ExpectedCurve:
    """Return the expected curve by the kinematic formula, at standardised thresholds `u`."""
    above = u if filtration.superlevel else -u
    expected = kinematic_curve(above, counts, steps, moments)
    facts = {**curve_facts(filtration), "connectivity": None}
    return ExpectedCurve(at, expected, np.zeros(at.size), **facts)


def _curve_on_grid(
    at: Floats,
    centre: float,
    field: Field,
    filtration: Filtration,
    *,
    mask: Mask | None,
    rng: np.random.Generator,
) -> ExpectedCurve:
    """Return the expected curve of a field with the mean `centre`, without a band."""
    counts = count_cells(field.shape, filtration.boundary, filtration.cubes, mask)
    u = (at - centre) / math.sqrt(field.variance) * (-1 if filtration.superlevel else 1)
    expected, error = lattice_curve(
        u, field.correlation, counts=counts, cubes=filtration.cubes, rng=rng
    )
    return ExpectedCurve(at, expected, error, **curve_facts(filtration))


def _with_band(
    expected: ExpectedCurve,
    images: Iterator[Floats],
    count: int,
    *,
    boundary: AnyBoundary,
    mask: Mask | None,
    level: float,
) -> ExpectedCurve:
    """Return an expected curve with a band from the curves of `count` images."""
    squares = np.zeros(expected.mean.size)
    for image in images:
        curve = euler_curve(
            image,
            expected.thresholds,
            connectivity=expected.connectivity,
            superlevel=expected.superlevel,
            axis=range(image.ndim),
            boundary=boundary,
            mask=mask,
        )
        squares += (curve.values - expected.mean) ** 2
    special = import_optional("scipy.special", extra="features", purpose="bands")
    quantile = special.stdtrit(count, (1 + level) / 2)
    reach = quantile * np.sqrt(squares / count)
    return replace(expected, lower=expected.mean - reach, upper=expected.mean + reach)


def check_shape(shape: Any) -> tuple[int, ...]:
    """Return the checked shape of an image with 1 to 3 axes."""
    try:
        sizes = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise TypeError(f"`shape` must be 1 to 3 ints, got {shape!r}") from None
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise ValueError(f"`shape` must be 1 to 3 positive ints, got {shape!r}")
    return sizes


def _check_replicas(replicas: Any) -> int:
    try:
        count = operator.index(replicas)
    except TypeError:
        raise TypeError(f"`replicas` must be an int, got {replicas!r}") from None
    if count < 2:
        raise ValueError(f"`replicas` must be at least 2, got {count}")
    return count
