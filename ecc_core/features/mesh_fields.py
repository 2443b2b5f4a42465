"""Expected curves of Gaussian fields on meshes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._request.filtration import check_flag
from ecc_core._request.thresholds import check_threshold_array
from ecc_core.features._mesh_fields import maps_on, mesh_field
from ecc_core.features.gaussian import ExpectedCurve


def expected_mesh_curve(
    thresholds: ArrayLike,
    simplices: Any,
    residuals: ArrayLike,
    *,
    superlevel: bool = False,
) -> ExpectedCurve:
    r"""Expected Euler characteristic curve of Gaussian noise on a mesh, whose smoothness is known.

    The curve is that of :func:`ecc_core.simplicial_curve`, averaged over maps of noise of mean 0
    and variance 1 at every point. It depends on the correlations of neighbouring points only, which
    may differ from place to place.

    Parameters
    ----------
    thresholds : (n,) array
        Increasing thresholds, in standard deviations.
    simplices : (k, 3) or (k, 2) integer array, or sequence of both
        Triangles of the mesh, or edges, as for :func:`ecc_core.simplicial_curve`.
    residuals : (m, points) array
        Maps of noise, such as the residuals of a linear model at each point. They are divided by
        their root mean square at each point, and correlations are estimated from all of them.
    superlevel : bool, default False
        Whether the curve is that of the sets ``values >= t``.

    Returns
    -------
    ExpectedCurve
        ``thresholds``, ``mean`` and ``error``, which is 0.

    Raises
    ------
    ImportError
        If SciPy is not installed.
    TypeError, ValueError
        If arguments are not real numbers, thresholds decrease, residuals are not finite or 0 at a
        point of all maps, or simplices are invalid or have more than 3 points.

    See Also
    --------
    gaussian_threshold : The level that a map of noise exceeds with a given probability.
    expected_gaussian_curve : The same on a grid.

    Notes
    -----
    The expectation is exact for the given correlations, without an assumption of smoothness:

    .. math:: E\,\chi(t) = \sum_{p} P(f_p \ge t) - \sum_{pq} P(f_p, f_q \ge t)
       + \sum_{pqr} P(f_p, f_q, f_r \ge t)

    Probabilities of two and three points are integrals of Plackett's derivative [1]_. For smooth
    fields the sum tends to the formula of Lipschitz-Killing curvatures, the Euler characteristic,
    half the length of the boundary and the area of the mesh in units of the noise's smoothness
    [2]_.

    References
    ----------
    .. [1] Plackett, "A reduction formula for normal multivariate integrals", Biometrika 41,
       351-360, 1954.
    .. [2] Taylor, Worsley, "Detecting sparse signals in random fields, with an application to brain
       mapping", Journal of the American Statistical Association 102, 913-928, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import expected_mesh_curve
    >>> noise = np.random.default_rng(0).normal(size=(200, 4))
    >>> curve = expected_mesh_curve([-1.0, 9.0], [[0, 1, 2], [1, 2, 3]], noise, superlevel=True)
    >>> curve.mean.round(1)
    array([1., 0.])
    """
    at = check_threshold_array(thresholds, "thresholds").astype(np.float64)
    above = check_flag(superlevel, "superlevel")
    maps = maps_on(residuals, None)
    field = mesh_field(simplices, maps.shape[1])
    levels = at if above else -at
    mean = field.curve(levels, field.correlations(maps))
    return ExpectedCurve(at, mean, np.zeros(at.size), superlevel=above)
