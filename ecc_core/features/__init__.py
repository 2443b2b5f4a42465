"""Descriptors, distances and statistics of curves, and scikit-learn transformers.

- :func:`curve_descriptors`, :func:`descriptor_table`: descriptors of curves
- :func:`align_curves`, :func:`curve_distance`, :func:`distance_matrix`,
  :func:`feature_matrix`: comparison of curves
- :func:`expected_gaussian_curve`, :func:`expected_mesh_curve`: expected curves of Gaussian noise
- :func:`gaussian_threshold`: the level that noise exceeds with a given probability
- :func:`mean_band`, :func:`permutation_test`: statistics of groups of curves
- :class:`EulerCurveTransformer`, :class:`RegionCurvesTransformer`,
  :class:`EulerTransformTransformer`, :class:`RegionTransformsTransformer`: curves and transforms as
  steps of a scikit-learn pipeline
- :func:`track_regions`: tracks of regions from frame to frame, with splits and merges
- :func:`to_anndata`: curves and transforms of objects as an AnnData table

Curves are step functions, so that integrals are exact: for sublevel sets, a value holds from its
threshold up to the next one; for superlevel sets, down to the previous one.

Tables require pandas, bands and expected curves SciPy, and the transformers scikit-learn (extra
``features``). AnnData is an extra of its own (``anndata``).
"""

from typing import Any

from ecc_core._optional import import_optional
from ecc_core.features._group_results import CurveBand, PermutationTest
from ecc_core.features._replicates import MixedUnitsError
from ecc_core.features.anndata import to_anndata
from ecc_core.features.descriptors import CurveDescriptors, curve_descriptors, descriptor_table
from ecc_core.features.distances import (
    align_curves,
    curve_distance,
    distance_matrix,
    feature_matrix,
)
from ecc_core.features.gaussian import ExpectedCurve, expected_gaussian_curve
from ecc_core.features.groups import mean_band, permutation_test
from ecc_core.features.inference import GaussianThreshold, gaussian_threshold
from ecc_core.features.mesh_fields import expected_mesh_curve
from ecc_core.features.tracking import RegionTracks, track_regions

__all__ = [
    "CurveBand",
    "CurveDescriptors",
    "EulerCurveTransformer",
    "EulerTransformTransformer",
    "ExpectedCurve",
    "GaussianThreshold",
    "MixedUnitsError",
    "PermutationTest",
    "RegionCurvesTransformer",
    "RegionTracks",
    "RegionTransformsTransformer",
    "align_curves",
    "curve_descriptors",
    "curve_distance",
    "descriptor_table",
    "distance_matrix",
    "expected_gaussian_curve",
    "expected_mesh_curve",
    "feature_matrix",
    "gaussian_threshold",
    "mean_band",
    "permutation_test",
    "to_anndata",
    "track_regions",
]


def __getattr__(name: str) -> Any:
    """Import scikit-learn when a transformer is first used."""
    if name in __all__:
        import_optional("sklearn", extra="features", purpose=name)
        from ecc_core.features import region_curves, transformers

        return getattr(region_curves if hasattr(region_curves, name) else transformers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
