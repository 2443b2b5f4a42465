"""Host volumes, slab by slab, on all devices there are."""

import numpy as np
import pytest

from ecc_core import _reference

cupy = pytest.importorskip("cupy")
cupyx = pytest.importorskip("cupyx")
stream = pytest.importorskip("ecc_core._cuda.stream")

OPTIONS = {"superlevel": False, "nan": "raise"}


class Sliced:
    """Like a zarr array: shape, dtype, and slices that become arrays."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, index):
        return self.array[index].copy()


@pytest.mark.parametrize("construction", ["V", "T"])
@pytest.mark.parametrize("shape", [(1, 9, 20), (23, 18, 40), (50, 33)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_slabs_add_up(construction, shape, dtype):
    rng = np.random.default_rng(1)
    volume = (rng.random(shape) * 200).astype(dtype)
    pinned = cupyx.empty_like_pinned(volume)
    pinned[...] = volume
    levels = np.linspace(0, 200, 50)
    known = _reference.euler_curve(
        volume, levels, connectivity=1 if construction == "V" else volume.ndim
    )
    every = list(range(cupy.cuda.runtime.getDeviceCount()))
    size = volume[0].nbytes
    for source in (volume, pinned, Sliced(volume), volume[::-1]):
        for devices in (every[:1], every[:1] * 3, every):
            for slab in (1, 5 * size, 1 << 20):
                found = stream.curve(
                    source,
                    levels,
                    construction=construction,
                    devices=devices,
                    slab_bytes=slab,
                    **OPTIONS,
                )
                np.testing.assert_array_equal(found, known)


def test_nan_raises():
    volume = np.zeros((9, 8, 8), np.float32)
    volume[4, 0, 0] = np.nan
    options = {**OPTIONS, "construction": "V", "devices": [0], "slab_bytes": 1}
    with pytest.raises(ValueError, match="nan"):
        stream.curve(volume, np.array([0.0]), **options)
    volume[4, 0, 0] = np.inf
    assert stream.curve(volume, np.array([0.0, np.inf]), **options).tolist()[1] == 1
