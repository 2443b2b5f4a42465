"""Component curves of dask arrays are those of arrays in memory, for all chunks."""

import dask.array as da
import numpy as np
import pytest
from oracles.components import component_numbers
from scipy import ndimage

import ecc_core as ecc

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("sigma", [0, 1, 3])
def test_components_that_grow_across_many_blocks(connectivity, superlevel, sigma):
    """Beside the sets, labelled one by one."""
    image = np.random.default_rng(1).normal(size=(23, 30, 37))
    image = ndimage.gaussian_filter(image, sigma).astype(np.float32)
    at = np.quantile(image, np.linspace(0, 1, 40))
    options = {"connectivity": connectivity, "superlevel": superlevel}
    lazy = da.from_array(image, chunks=(6, (1, 9, 20), 10))
    found = ecc.component_curves(lazy, at, **options).to_numpy()
    sets = (image >= t if superlevel else image <= t for t in at)
    known = [component_numbers(foreground, connectivity) for foreground in sets]
    np.testing.assert_array_equal(found.values.T, known)


def test_batches_spacing_and_errors():
    image = np.random.default_rng(2).integers(0, 9, (3, 10, 11)).astype(np.float32)
    lazy = da.from_array(image, chunks=(2, 4, 5))
    options = {"axis": (2, 0), "spacing": (0.5, 2)}
    known = ecc.component_curves(image, [1, 4, 7], **options)
    assert ecc.component_curves(lazy, [1, 4, 7], **options).to_numpy() == known
    assert ecc.component_curves(da.zeros((0, 4)), [1.0]).values.compute().shape == (4, 1)
    with pytest.raises(ValueError, match="NaN"):
        ecc.component_curves(lazy * np.nan, [1.0]).values.compute()
    with pytest.raises(ValueError, match="`spacing`"):
        ecc.component_curves(lazy, [1.0], spacing=-1)
