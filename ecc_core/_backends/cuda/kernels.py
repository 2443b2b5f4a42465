"""The kernels in `source/` as Python sees them: structures, options and compiled functions."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.resources import REGISTERS
from ecc_core._request.filtration import Filtration

SOURCE = Path(__file__).parent / "source"
NUMBERS = {
    "bool": "?",
    "int": "i4",
    "unsigned": "u4",
    "float": "f4",
    "double": "f8",
    "long long": "i8",
    "unsigned long long": "u8",
}
TYPE = r"\s*(?:const |volatile )*((?:unsigned )?long long|\w+)(.*)"
FIELD = r"[\w\s]*?(\*?)\s*(\w+)(?:\[(\d+)\])?\s*"


class Struct:
    """A structure that kernels take by value.

    It is defined in the file `source`. Its fields are those before any member function; pointers
    are addresses, and `types` those that the kernel's options define.
    """

    def __init__(self, source: str, name: str, **types: Any) -> None:
        self.dtype = _dtype(_text(source), name, NUMBERS | types)
        self._zero = dict(zip(self.dtype.names or (), np.zeros((), self.dtype).item(), strict=True))
        self._ranges = {
            field: range(np.iinfo(layout.base).min, np.iinfo(layout.base).max + 1)
            for field, (layout, *_) in (self.dtype.fields or {}).items()
            if layout.base.kind in "iu"
        }

    def __call__(self, **fields: Any) -> NDArray[Any]:
        """Return a structure as integers; fields that are not given are zero."""
        found = np.zeros(1, self.dtype)
        found[0] = tuple((self._zero | fields).values())
        for name, value in fields.items():  # NumPy drops fractions, and NumPy 1 wraps.
            fitting = self._ranges.get(name)
            if fitting is None or (type(value) in (int, bool) and value in fitting):
                continue
            kept = found[name][0]
            if not (kept == value).all():
                raise OverflowError(f"`{name}` of a kernel must fit {kept.dtype}, got {value}")
        return found.view(np.int32 if self.dtype.itemsize % 8 else np.int64)

    def word(self, field: str, size: int = 8) -> int:
        """Return the index of a field where the structure is seen as integers of `size` bytes."""
        assert self.dtype.fields is not None
        return int(self.dtype.fields[field][1]) // size


@programs.fact
def _text(source: str) -> str:
    """Return a file with those that it includes, without comments."""
    text = re.sub(r"//.*", "", (SOURCE / source).read_text())
    return re.sub(r'#include "(.*)"', lambda include: _text(include[1]), text)


def _dtype(text: str, name: str, types: dict[str, Any]) -> np.dtype[Any]:
    """Return the layout of a structure, padded as in C++."""
    found = re.search(rf"struct {name} {{(.*?)(?:__device__|ECC_DEVICE|\n}};)", text, re.S)
    if found is None:
        raise LookupError(f"no structure {name}")
    fields: list[tuple[Any, ...]] = []
    for declaration in found[1].split(";")[:-1]:
        given, declared = re.fullmatch(TYPE, declaration, re.S).groups()  # type: ignore[union-attr]
        for field in declared.split(",") if given != "static" else ():
            pointer, label, length = re.fullmatch(FIELD, field, re.S).groups()  # type: ignore[union-attr]
            dtype = "i8" if pointer else types.get(given) or _dtype(text, given, types)
            fields.append((label, dtype, *([int(length)] if length else [])))
    return np.dtype(fields, align=True)


# The type of a sample in the kernels.
ELEMENTS = {
    "bool": "unsigned char",  # Any byte but 0 is true.
    "uint8": "unsigned char",
    "int8": "signed char",
    "uint16": "unsigned short",
    "int16": "short",
    "uint32": "unsigned int",
    "int32": "int",
    "uint64": "unsigned long long",
    "int64": "long long",
    "float16": "Half",
    "bfloat16": "BFloat",
    "float32": "float",
    "float64": "double",
}
ITEM_BYTES = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in ELEMENTS}
NAN_NONE, NAN_REPORT, NAN_OMIT = range(3)
WIDE = ("uint32", "int32", "float64", "int64", "uint64")
"""Types whose keys are not float32."""


class Variant(NamedTuple):
    """The variant of a kernel, apart from its thresholds."""

    cubes: bool
    superlevel: bool
    nan: int
    element: str
    masked: bool

    def options(self) -> dict[str, Any]:
        """Return the macros of options.cuh that every kernel needs."""
        return {
            "ELEMENT": ELEMENTS[self.element],
            "DOWN": int(self.cubes != self.superlevel),
            "CUBES": int(self.cubes),
            "SUPER": int(self.superlevel),
            "NAN": self.nan,
            "MASK": int(self.masked),
            "VECTOR": 0,
            "BINS": 1,
            "SHARED_TABLE": 0,
            "BATCH": 0,
        }


def variant_of(filtration: Filtration, element: str, mask: Any = None) -> Variant:
    """Return the variant for a filtration, in which integers have no NaN.

    The element is the type of values that are compared with thresholds: float64 along a direction.
    """
    element = element if filtration.direction is None else "float64"
    policy = NAN_OMIT if filtration.nan == "omit" else NAN_REPORT
    nan = policy if "float" in element else NAN_NONE
    return Variant(
        cubes=filtration.cubes,
        superlevel=filtration.superlevel,
        nan=nan,
        element=element,
        masked=mask is not None,
    )


@programs.fact
def _digest() -> str:
    """Return a hash of all sources; CuPy's cache depends on the main file and the options only."""
    digest = hashlib.sha256()
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def function(source: str, name: str, device: int, macros: Mapping[str, Any]) -> Any:
    """Return a kernel of a source file, with these macros, for the current device.

    The names of macros lack their prefix ``ECC_`` (``options.cuh``). The number of the device is
    given since limits of shared memory are set for a kernel on a device.
    """
    return _compiled(source, name, device, tuple(macros.items()))


@programs.kernel
def _compiled(source: str, name: str, device: int, macros: tuple[tuple[str, Any], ...]) -> Any:
    options = [f"-DECC_{macro}={value}" for macro, value in macros]
    if source in REGISTERS:
        options.append(f"--maxrregcount={REGISTERS[source]}")
    module = cupy.RawModule(
        code=(SOURCE / f"{source}.cu").read_text(),
        options=("--std=c++17", f"-I{SOURCE}", f"-DECC_DIGEST=0x{_digest()}ull", *options),
    )
    found = module.get_function(name)
    found.max_dynamic_shared_size_bytes = shared_limit(device) - found.shared_size_bytes
    return found


@programs.fact
def shared_limit(device: int) -> int:
    """Return the number of bytes of shared memory that a block may have."""
    attributes = cupy.cuda.Device(device).attributes
    return int(attributes["MaxSharedMemoryPerBlockOptin"])


@programs.fact
def processors(device: int) -> int:
    """Return the number of multiprocessors."""
    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
