"""Tables for scanpy, squidpy and SpatialData."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from skimage.measure import regionprops_table

import ecc_core as ecc
from ecc_core.features import to_anndata

anndata = pytest.importorskip("anndata", reason="anndata, which needs pandas < 3, is missing")
RNG = np.random.default_rng(3)
IMAGE = RNG.integers(0, 9, (12, 15))
LABELS = np.kron(np.array([[7, 0, 3], [2, 2, 0]]), np.ones((6, 5), int))
RESULTS = {
    "curves": ecc.region_curves(IMAGE, LABELS, 4),
    "betti": ecc.region_betti_curves(IMAGE, LABELS, 4),
    "minkowski": ecc.region_minkowski(IMAGE, LABELS, 4),
    "transforms": ecc.region_transforms(LABELS, 3, 5),
}


@pytest.mark.parametrize("regions", RESULTS.values(), ids=RESULTS)
def test_rows_are_regions_and_columns_their_values(regions):
    table = to_anndata(regions)
    assert table.X.dtype == regions.values.dtype
    assert_array_equal(table.X, regions.values.reshape(len(regions.labels), -1))
    assert_array_equal(table.obs["label"], regions.labels)
    assert list(table.obs_names) == ["2", "3", "7"]
    assert table.uns["ecc"]["type"] == type(regions).__name__
    assert table.uns["ecc"]["connectivity"] == 2
    assert "spatial" not in table.obsm
    assert "spatialdata_attrs" not in table.uns


def test_columns_say_where_their_values_are():
    table = to_anndata(RESULTS["transforms"])
    _, directions, heights, values = RESULTS["transforms"]
    assert list(table.var.columns) == ["direction", "direction_0", "direction_1", "height"]
    at = [(row.direction, list(heights).index(row.height)) for row in table.var.itertuples()]
    columns = table.var[["direction_0", "direction_1"]]
    assert_array_equal(columns, [directions[direction] for direction, _ in at])
    assert_array_equal(table.X, np.stack([values[:, *place] for place in at], axis=1))
    assert list(to_anndata(RESULTS["curves"]).var.columns) == ["threshold"]
    assert list(to_anndata(RESULTS["betti"]).var.columns) == ["dimension", "threshold"]
    assert list(to_anndata(RESULTS["minkowski"]).var.columns) == ["measure", "threshold"]


def test_centroids():
    table = to_anndata(RESULTS["curves"], LABELS, spacing=(2, 0.5))
    known = regionprops_table(LABELS, spacing=(2, 0.5), properties=("label", "centroid"))
    assert_array_equal(table.obs["label"], known["label"])
    expected = np.stack([known["centroid-1"], known["centroid-0"]], axis=1)
    np.testing.assert_allclose(table.obsm["spatial"], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="`label_image` must contain all labels, 3 is missing"):
        to_anndata(RESULTS["curves"], np.where(LABELS == 3, 0, LABELS))
    with pytest.raises(ValueError, match="`spacing` must be one number or 2 of them"):
        to_anndata(RESULTS["curves"], LABELS, spacing=(1, 1, 1))


@pytest.mark.parametrize("regions", RESULTS.values(), ids=RESULTS)
def test_files_and_the_link_to_labels_of_a_spatialdata_object(regions, tmp_path):
    table = to_anndata(regions, LABELS, element="cells")
    link = {"region": "cells", "region_key": "region", "instance_key": "label"}
    assert table.uns["spatialdata_attrs"] == link
    assert table.obs["region"].tolist() == ["cells"] * 3
    assert table.obs["region"].dtype == "category"
    table.write_h5ad(tmp_path / "table.h5ad")
    found = anndata.read_h5ad(tmp_path / "table.h5ad")
    assert_array_equal(found.X, table.X)
    assert_array_equal(found.obs["label"], table.obs["label"])
    assert list(found.var.columns) == list(table.var.columns)


def test_no_regions():
    empty = ecc.region_curves(IMAGE, np.zeros_like(LABELS), [1, 2])
    table = to_anndata(empty, np.zeros_like(LABELS))
    assert table.shape == (0, 2)
    assert table.obsm["spatial"].shape == (0, 2)


def test_other_results_are_refused():
    with pytest.raises(TypeError, match="result of labelled regions, got a EulerCurve"):
        to_anndata(ecc.euler_curve(IMAGE))
