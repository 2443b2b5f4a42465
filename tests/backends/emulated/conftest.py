"""The CUDA kernels of curves, compiled for the CPU: logic is tested without a device.

`cuda.hpp` has CUDA C++, `device.cuh` and `races.cuh` stand for the files of that name, which are
instructions of the device, and `grid.cpp` runs blocks. Plans and arguments are those of the
product. What a CPU cannot tell: time, the compiler for devices, and most races.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

HERE = Path(__file__).parent
STANDS_IN = ("device.cuh", "races.cuh")
SHARED_BYTES = 232_448  # of a block of an H200
FLAGS = "-std=c++17 -O1 -fPIC -shared -w -fpermissive -fno-strict-aliasing -frounding-math"


class DeviceArray(np.ndarray):
    """Memory with an address, as CuPy's arrays have it."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


def _backend() -> SimpleNamespace:
    """The modules of the CUDA backend that need no device, with a stand-in for CuPy."""
    cupy = mock.MagicMock()
    cupy.asarray = lambda values: np.array(values).view(DeviceArray)
    cupy.cuda.get_current_stream.return_value.is_capturing.return_value = False
    with mock.patch.dict(sys.modules, {"cupy": cupy}):  # and without these modules afterwards
        names = ("arrays", "bins", "compile", "recipe")
        found = [importlib.import_module(f"ecc_core._backends.cuda.{name}") for name in names]
    return SimpleNamespace(**dict(zip(names, found, strict=True)))


class Emulator:
    """Curves by the marching kernels.

    Attributes
    ----------
    processors : int
        Multiprocessors that the plans are made for.
    """

    def __init__(self, compiler: str, folder: Path) -> None:
        self.backend = _backend()
        self.processors = 4
        self._compiler, self._folder = compiler, folder
        sources = folder / "source"
        shutil.copytree(self.backend.compile.SOURCE, sources)
        for file in sources.iterdir():
            file.write_text(file.read_text().replace("extern __shared__", "extern"))
        for name in STANDS_IN:
            shutil.copy(HERE / name, sources)
        recipe = self.backend.recipe
        self.backend.compile.function = self._function
        recipe.processors = lambda _: self.processors
        recipe.shared_limit = lambda _: SHARED_BYTES
        recipe.compares_shorts = lambda _: True

    def _function(
        self, source: str, _name: str, _device: int, macros: tuple[tuple[str, object], ...]
    ):
        target = self._folder / f"{sum(1 for _ in self._folder.iterdir())}.so"
        command = [self._compiler, *FLAGS.split(), f"-I{HERE}", f"-I{self._folder / 'source'}"]
        command += [f'-DKERNEL="{source}.cu"', *(f"-DECC_{name}={value}" for name, value in macros)]
        subprocess.run([*command, str(HERE / "grid.cpp"), "-o", str(target)], check=True)
        library = ctypes.CDLL(str(target))
        library.launch.restype = ctypes.c_char_p
        return SimpleNamespace(kernel=(source, library), local_size_bytes=0)

    def curve(self, images, thresholds, construction, superlevel, nan="raise"):
        """The curves of a batch at levels, and the name of the kernel."""
        recipe = self.backend.recipe
        recipe.recipe.cache_clear()
        element = images.dtype.name
        kind = recipe.filtration(construction, superlevel, nan, element, False)
        prepared = self.backend.bins.prepare(thresholds, element, superlevel, 0)
        assert prepared.pick is None
        address = images.__array_interface__["data"][0]
        layout = self.backend.arrays.arrange(
            images.shape, images.strides, images.itemsize, address % 16, None, False
        )
        plan = recipe.recipe(layout, images.ndim - 1, None, kind, prepared.rules, 0)
        levels = prepared.rules.levels
        values = np.zeros((len(images), levels), np.int64)
        counts = np.zeros(max(plan.counts, 1), np.int64)
        tickets, flags = np.zeros((2, len(images)), np.int64)
        image, result = plan.image.copy(), plan.result.copy()
        image[..., recipe.DATA] = address + layout.offset
        places = (recipe.VALUES, recipe.COUNTS, recipe.TICKETS, recipe.NOT_FINITE)
        for place, array in zip(places, (values, counts, tickets, flags), strict=True):
            result[..., place] = array.__array_interface__["data"][0]
        bins = prepared.pair_bins if plan.pairs else prepared.bins
        structures = [np.ascontiguousarray(part) for part in (image, plan.tiling, bins, result)]
        source, library = plan.function
        broken = library.launch(
            (ctypes.c_uint * 3)(*plan.grid, *(1,) * (3 - len(plan.grid))),
            plan.threads,
            plan.shared,
            *(ctypes.c_void_p(part.__array_interface__["data"][0]) for part in structures),
        )
        assert not broken, broken.decode()
        if plan.accumulate:  # another kernel sums up
            order = slice(None, None, -1 if superlevel else 1)
            running = np.cumsum(counts.reshape(len(images), -1)[:, order], axis=1)[:, :levels]
            values = plan.sign * running[:, order]
        else:
            assert not counts.any()
        return values, source


@pytest.fixture(scope="session")
def emulator(tmp_path_factory) -> Emulator:
    if importlib.util.find_spec("cupy"):
        pytest.skip("CuPy is installed: tests/gpu runs the kernels")
    if sys.platform != "linux":
        pytest.skip("threads of a block are run by ucontext, as Linux has it")
    if not (compiler := shutil.which("g++")):
        pytest.skip("g++ is not installed: sh tools/ensure_system.sh")
    return Emulator(compiler, tmp_path_factory.mktemp("emulated"))
