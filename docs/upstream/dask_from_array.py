"""How much memory ``dask.array.from_array`` takes for arrays whose data lie in a file."""

import tempfile
import tracemalloc
from pathlib import Path

import dask.array as da
import numpy as np

SHAPE = (256, 1024, 1024)  # 256 MiB of uint8

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "image.raw")
    np.memmap(path, np.uint8, "w+", shape=SHAPE).flush()
    image = np.memmap(path, np.uint8, "r", shape=SHAPE)
    tracemalloc.start()
    lazy = da.from_array(image, chunks=(8, 1024, 1024), name="image")
    print(f"{tracemalloc.get_traced_memory()[0] / 2**20:.0f} MiB after from_array of a memory map")
    shared = np.shares_memory(lazy.blocks[0, 0, 0].compute(scheduler="sync"), image)
    print("blocks are parts of the map" if shared else "blocks are copies")
    del lazy

    class Opaque:
        """The same array without the method that dask calls."""

        shape, dtype, ndim = image.shape, image.dtype, image.ndim

        def __getitem__(self, index):
            return image[index]

    lazy = da.from_array(Opaque(), chunks=(8, 1024, 1024), name="opaque")
    print(f"{tracemalloc.get_traced_memory()[0] / 2**20:.0f} MiB without `copy`")
