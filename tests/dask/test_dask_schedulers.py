"""Every scheduler of dask gives the numbers of arrays in memory."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import dask
import numpy as np
import pytest
from dask_helpers import local_cluster
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st

import ecc_core as ecc
from ecc_core.testing import in_chunks, strategies


@pytest.fixture(
    scope="module",
    params=["threads", "processes", pytest.param("distributed", marks=pytest.mark.slow)],
)
def scheduler(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Options of `compute`, with two workers that stay for all examples."""
    if request.param == "threads":
        with ThreadPoolExecutor(2) as pool:
            yield {"scheduler": "threads", "pool": pool}
    elif request.param == "processes":
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            yield {"scheduler": "processes", "pool": pool}
    else:
        with local_cluster() as cluster, Client(cluster) as client:
            yield {"scheduler": client}


def check_chunks(scheduler: dict[str, Any], data: st.DataObject) -> None:
    image = data.draw(strategies.images(dtypes=("uint8", "float32"), nan=True))
    connectivity = data.draw(st.sampled_from([1, image.ndim]))
    mask = data.draw(st.none() | strategies.masks(image.shape))
    labels = data.draw(strategies.labels(image.shape))
    image[labels > 0] = np.nan_to_num(image[labels > 0])  # Regions must not have NaN.
    at = data.draw(strategies.thresholds(image))
    array = in_chunks(image, data.draw(strategies.chunkings(image.shape)))
    curve = ecc.euler_curve(array, at, mask=mask, nan="omit", connectivity=connectivity)
    regions = ecc.region_curves(array, labels, at, connectivity=connectivity)
    found = dask.compute(curve.values, regions.labels, regions.values, **scheduler)
    expected = ecc.euler_curve(image, at, mask=mask, nan="omit", connectivity=connectivity)
    alone = ecc.region_curves(image, labels, at, connectivity=connectivity)
    np.testing.assert_array_equal(found[0], expected.values)
    np.testing.assert_array_equal(found[1], alone.labels)
    np.testing.assert_array_equal(found[2], alone.values)


@settings(max_examples=6)
@given(st.data())
def test_all_chunks(scheduler, data):
    check_chunks(scheduler, data)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.data())
def test_more_chunks(scheduler, data):
    check_chunks(scheduler, data)
