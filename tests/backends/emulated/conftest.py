"""The CUDA backend on the CPU: its logic is tested without a device.

`cuda.hpp` has CUDA C++, `device.cuh` stands for the file of that name, which has the instructions
of the device, and `grid.cpp` runs blocks of the kernels of a source, which `kernel.cpp` compiles.
Around the kernels is the product's own Python, with `fake_cupy.py` in place of CuPy. What a CPU
cannot tell: time, the compiler for devices, and most races.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from ecc_core._request.filtration import Filtration

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from fake_cupy import KERNELS, fake_cupy, guarded  # noqa: E402

sys.path.pop(0)
SHARED_BYTES = 232_448
"""Bytes of a block of an H200."""
FLAGS = "-std=c++17 -fPIC -shared -w -fpermissive -fno-strict-aliasing -frounding-math"
KERNEL_FLAGS = ("-Og", "-nostdlib")
"""A kernel takes longer to compile than to run, and finds the library of C++ in the process."""
GRID_FLAG = "-O2"
KERNEL = re.compile(r"__global__ void (?:__launch_bounds__\([^()]*\)\s+)?(\w+)\(")
MODULES = (
    "programs arrays bins calls kernels scan_plans recipe scan samples value_range points "
    "recode regions coefficients curves curve_plans launch keys forests torus tunnels pairs "
    "betti pair_errors gathering region_betti surface cells component_sizes flooding "
    "transform_sampling transform_masks transform_regions wide_sums transform complexes "
    "simplicial_layout stars simplicial_plans simplicial_memory simplicial"
)


def _backend() -> SimpleNamespace:
    """The modules of the CUDA backend for curves, with a stand-in for CuPy."""
    # This module needs numba, which cannot be imported twice.
    importlib.import_module("ecc_core._backends.cpu.betti.flood")
    # On leaving, the patch forgets the modules that are imported here.
    with mock.patch.dict(sys.modules, {"cupy": fake_cupy()}):
        names = MODULES.split()
        found = [importlib.import_module(f"ecc_core._backends.cuda.{name}") for name in names]
    return SimpleNamespace(**dict(zip(names, found, strict=True)))


class Emulator:
    """The CUDA backend's functions.

    Attributes
    ----------
    launch : module
        The backend.
    launched : list of str
        The sources of the kernels that ran.
    scans : list of str
        Likewise, but for kernels that sum bins and pick levels.
    processors : int
        Multiprocessors that the plans are made for.

    Parameters
    ----------
    compiler : str
        The compiler of C++.
    folder : Path
        Where this process keeps the sources.
    shared : Path
        Where all processes of the suite keep the kernels that they compiled.
    """

    def __init__(self, compiler: str, folder: Path, shared: Path) -> None:
        self.backend = _backend()
        self.launch = self.backend.launch
        self.launched: list[str] = []
        self.processors = 4
        self._compiler = compiler
        self._folder = folder
        self._shared = shared
        self._libraries: dict[object, ctypes.CDLL] = {}
        sources = folder / "source"
        shutil.copytree(self.backend.kernels.SOURCE, sources)
        for file in sources.iterdir():
            file.write_text(file.read_text().replace("extern __shared__", "extern"))
        for file in HERE.glob("*.[ch]*"):
            shutil.copy(file, sources)
        # What kernels call is found here.
        grid = self._compile("grid.cpp", "grid.so", GRID_FLAG)
        self._launch = ctypes.CDLL(str(grid), ctypes.RTLD_GLOBAL).launch
        self._launch.restype = ctypes.c_char_p
        # Each kernel reads this header.
        header = "source/cuda.hpp.gch"
        self._compile("cuda.hpp", header, *KERNEL_FLAGS, "-x", "c++-header")
        # Without the header g++ must use its compiled form, or fail. It would otherwise read the
        # header again where, say, the name of a macro on its command line occurs there.
        (sources / "cuda.hpp").unlink()
        self.backend.scan_plans.SLICED_LEAST = 0  # Images of tests are small.
        for module in vars(self.backend).values():
            for name, value in (
                ("function", self._function),
                ("processors", lambda _: self.processors),
                ("shared_limit", lambda _: SHARED_BYTES),
            ):
                if hasattr(module, name):
                    setattr(module, name, value)

    def _function(self, source: str, name: str, _device: int, macros: dict[str, object]):
        key = source, tuple(macros.items())
        if key not in self._libraries:
            self._libraries[key] = ctypes.CDLL(str(self._kernel(source, macros)))
        run = getattr(self._libraries[key], f"run_{name}")
        return _Kernel(source, partial(self._launch, run), self.launched)

    def _kernel(self, source: str, macros: dict[str, object]) -> Path:
        """Return the compiled source. Another process may have compiled it, or do so now."""
        defined = [f'-DSOURCE="{source}.cu"', f"-DRUN_KERNELS={self._runs(source)}"]
        defined += [f"-DECC_{macro}={value}" for macro, value in macros.items()]
        digest = hashlib.sha256(repr(defined).encode())
        name = digest.hexdigest()[:16]
        library = self._shared / f"{source}-{name}.so"
        if not library.exists():
            self._compile("kernel.cpp", library.name, *KERNEL_FLAGS, *defined).replace(library)
        return library

    def _runs(self, source: str) -> str:
        """What defines a function for each kernel of a source, which are compiled at once."""
        text = (self._folder / "source" / f"{source}.cu").read_text()
        return " ".join(f"RUN({name})" for name in KERNEL.findall(text))

    def _compile(self, file: str, name: str, *options: str) -> Path:
        target = self._folder / name
        command = [self._compiler, *FLAGS.split(), *options]
        subprocess.run([*command, self._folder / "source" / file, "-o", target], check=True)
        return target

    @property
    def scans(self) -> list[str]:
        return [source for source in self.launched if source != "sums"]

    def clear(self) -> None:
        """Forget plans, which depend on the number of multiprocessors."""
        self.launched.clear()
        self.backend.programs.forget_plans()

    def curve(self, images, thresholds, filtration: Filtration, mask=None):
        """The curves of a batch."""
        self.clear()
        shown = None if mask is None else guarded(mask)
        return self.launch.curve(guarded(images), thresholds, filtration, mask=shown)


class _Kernel:
    """A compiled kernel."""

    local_size_bytes = 0
    max_dynamic_shared_size_bytes = SHARED_BYTES

    def __init__(self, source: str, launch: Callable[..., bytes], launched: list[str]) -> None:
        self.source, self.launch, self.launched = source, launch, launched
        self.kernel = SimpleNamespace(ptr=len(KERNELS))  # The driver launches it.
        KERNELS[self.kernel.ptr] = self.run

    def run(self, grid, threads, shared, arguments):
        """Run with the address of the arguments' addresses."""
        self.launched.append(self.source)
        given = ctypes.c_void_p(arguments)
        broken = self.launch((ctypes.c_uint * 3)(*grid), threads, shared, given)
        assert not broken, broken.decode()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory) -> Emulator:
    if importlib.util.find_spec("cupy"):
        pytest.skip("CuPy is installed: tests/gpu runs the kernels")
    if sys.platform != "linux":
        pytest.skip("threads of a block are run by ucontext, as Linux has it")
    if not (compiler := shutil.which("g++")):
        pytest.skip("g++ is not installed: sh tools/ensure_system.sh")
    folder = tmp_path_factory.mktemp("emulated")
    shared = folder
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = tmp_path_factory.getbasetemp().parent / "kernels"
        shared.mkdir(exist_ok=True)
    return Emulator(compiler, folder, shared)


@pytest.fixture
def emulator(compiled) -> Emulator:
    compiled.clear()
    return compiled


# `make test` runs the tests of other kernels while torch is being installed.
@pytest.fixture
def soft(emulator):
    """The modules of soft curves, for tensors of the CPU."""
    from emulated_soft import soft_modules

    return soft_modules(emulator)


@pytest.fixture
def on_device(soft, monkeypatch):
    """What sends layers and losses of the CPU the way of CUDA devices for a while."""
    from emulated_soft import sender

    return sender(soft, monkeypatch)
