"""Tests that CUDA sources compile for every type and option, also without a device."""

import ctypes
import importlib.util
import itertools
import math
import random
import struct
from pathlib import Path

import pytest

from ecc_core._backends.cuda.resources import REGISTERS, RESOURCES

SOURCE = Path(__file__).parents[2] / "ecc_core/_backends/cuda/source"

FLOATS = ("Half", "BFloat", "float", "double")
SHORT = ("unsigned char", "signed char", "unsigned short", "short")
ELEMENTS = (*SHORT, "unsigned int", "int", "unsigned long long", "long long", *FLOATS)
BLOCK = {"THREADS": (256,), "BLOCKS": (1,)}
FILTRATION = {"DOWN": (0, 1), "CUBES": (0, 1), "SUPER": (0, 1)}
FLAGS = {"MASK": (0,), "DIRECTIONAL": (0,), "VECTOR": (0, 1), "SHARED_TABLE": (0,), "BATCH": (0,)}
FLAGS |= BLOCK
UNIFORM, SEARCH, CONSECUTIVE, TABLE, AFFINE, CELLS, COMPLEMENT, PIECES = range(8)
COUNTS = ("int", "long long")
VALUES = ("unsigned char", "short", "unsigned long long", "float", "double")
LABELS = ("signed char", "unsigned short", "int", "long long", "unsigned long long")


def _curves(elements, rules, **more):
    return {"ELEMENT": elements, **FILTRATION, "NAN": (0,), "BINS": rules, **FLAGS, **more}


def _floats(rules, **more):
    return _curves(FLOATS, rules, **{"NAN": (1, 2), **more})


SCANNED = (*SHORT, "unsigned int", *FLOATS[:3])
GUESSED = (UNIFORM, AFFINE, CELLS, PIECES)
CODED = {"BATCH": (0, 1), "MANY_CODES": (0, 1), "TABLE_COPIES": (1, 16)}
PAIRS = [
    _curves(SHORT[:2], (TABLE,), BATCH=(0, 1)),
    _curves(SHORT[2:], (*GUESSED, COMPLEMENT), **CODED),
    _floats(GUESSED, ELEMENT=FLOATS[:3], **CODED),
    _floats((UNIFORM,), ELEMENT=FLOATS[2:3], FOUND=(1,), **CODED),
]
CHANNELLED = [{**case, "BATCH": (0,), "VECTOR": (1,), "CHANNELS": (2, 3, 4)} for case in PAIRS[1:]]
MASKED = [_floats(GUESSED, ELEMENT=FLOATS[:3], MASK=(1,), VECTOR=(1,)) | {**CODED, "BATCH": (0,)}]
TILED = [{**case, "BATCH": (0,), "LINES": (1, 2, 3, 5, 8)} for case in PAIRS + MASKED]
STEPPED = [{**case, "BATCH": (0,), "VECTOR": (1,), "STEP": (2,)} for case in PAIRS]
FOLDED = [{**case, "BATCH": (0,), "FOLD": (2,)} for case in PAIRS + MASKED]
SAMPLES = _curves(
    ("Bool", *ELEMENTS),
    (SEARCH, CELLS, UNIFORM),
    MASK=(0, 1),
    DIRECTIONAL=(0, 1),
    SHARED_TABLE=(0, 1),
    NAN=(0, 1, 2),
)
CODES = ("unsigned char", "unsigned short", "unsigned int")
CORNERS = "1,17,5,85,3,51,15,255"
PROJECTED = {"REAL": ("float", "double"), "AXES": (1, 2, 3), "IMAGES": (1, 8), "THREADS": (128,)}
SOFT = {"SUPER": (0, 1), **BLOCK}
CASES = {
    "pairs2d": PAIRS + MASKED + TILED + STEPPED,
    "pairs3d": PAIRS + MASKED + FOLDED + CHANNELLED + STEPPED,
    "bytes2d": [_curves(SHORT[:2], (TABLE,), VECTOR=(1, 2))],
    "bytes3d": [_curves(SHORT[:2], (TABLE,), VECTOR=(1, 2), CHANNELS=(1, 2, 3, 4))],
    "points": [
        {**SAMPLES, "OUTPUT": (0, 1), "LABEL": LABELS, "COUNT": COUNTS, **rows}
        for rows in (
            {"FLAT": (0,), "ROWS": (1, 4), "BLOCKS": (2,)},
            {"FLAT": (1,), "ROWS": (1, 4, 14), "BLOCKS": (3,)},
        )
    ],
    **{
        f"coefficients{ndim}d": [
            _curves(("Bool", *SCANNED, "int"), (SEARCH,), NAN=(0, 1), COUNTS=(0,)),
            _curves(SCANNED, (SEARCH, CELLS, UNIFORM), NAN=(0, 1), COUNTS=(1,)),
            _curves(FLOATS[:3], (SEARCH,), COUNTS=(0,), MASK=(1,)),
        ]
        for ndim in (2, 3)
    },
    "number": [_curves(SHORT[:2], (SEARCH,), FLAT=(0, 1), ROWS=(4,))],
    "range": [SAMPLES],
    "even": [_curves(("float",), (SEARCH,), NAN=(2,))],
    "counts": [
        SAMPLES | {"MASK": (0,), "NAN": (0,), "COUNTS": (0, 1), "LINE": (0,)},
        SAMPLES | {"COUNTS": (0, 1), "LINE": (1,)},
    ],
    "recode": [{**SAMPLES, "CODE": CODES, "ALONG_ROWS": (0, 1), "REPEAT": (0, 1)}],
    "betti": [
        {"CODE": CODES, "PLANAR": (0, 1), "WIDE": (0, 1), "REVERSE": (0, 1), "COUNTS": (0, 1)}
        | {"SETS": (sets,), "OUTSIDE": (1 - sets, 1), "PAIRS": (0, 1), "TORUS": (0, 1)}
        | {"THREADS": (256,)}
        for sets in (0, 1)
    ],
    "keys": [
        {"VALUE": ("unsigned",), "CODE": ("unsigned",), "FLOAT": (1,), "BOOL": (0,)}
        | {"SUPER": (0, 1), "MASK": (0, 1), "THREADS": (256,)},
        {"VALUE": SHORT, "CODE": CODES[1:], "FLOAT": (0,), "BOOL": (0,)}
        | {"SUPER": (0, 1), "MASK": (0, 1), "THREADS": (256,)},
    ],
    "sheets": [{"CODE": CODES}],
    "labels": [{"LABEL": LABELS, "COUNT": COUNTS, "SUPER": (0, 1), "THREADS": (256,)}],
    "cells": [
        {"CODE": CODES, "LABEL": ("unsigned char",), "GROUPS": ("1,3", "1,3,17,51", CORNERS)}
        | {"LAST": (0, 1), "SUPER": (0, 1), "COPIES": (8, 32), "PAIRED": (0, 1)}
        | {"LABELLED": (0,), "SHIFT": (0, 129), "THREADS": (1024,)},
        {"CODE": CODES, "LABEL": LABELS, "GROUPS": ("1,3,17,51",), "LAST": (0, 1), "SUPER": (0, 1)}
        | {"COPIES": (0,), "PAIRED": (0,), "LABELLED": (0, 1), "SHIFT": (0,), "THREADS": (256,)},
    ],
    "classes": [{"CODE": CODES, "COMPLEMENT": (0, 1), "THREADS": (256,)}],
    "components": [
        {"CODE": CODES, "PLANAR": (0, 1), "REVERSE": (0,), "TORUS": (0, 1), "THREADS": (256,)}
    ],
    "exact": [{"FLOAT": (0, 1), "THREADS": (256,)}],
    "flood": [
        {"CODE": CODES, "PLANAR": (0, 1), "REVERSE": (0,), "WIDE": (0, 1), "TORUS": (0, 1)}
        | {"THREADS": (256,)}
    ],
    "gathering": [
        {"ITEM": ("unsigned char", "unsigned short", "unsigned", "unsigned long long")}
        | {"THREADS": (256,)}
    ],
    "pair_errors": [{"THREADS": (256,)}],
    "same": [{"THREADS": (256,)}],
    "simplices": [{"SIZE": (2, 3, 4, 7), "NUMBER": ("int", "long long"), "THREADS": (256,)}],
    "simplicial": [
        {"LANES": (1, 8, 32), "PACKED": (0,), "SHARED": (0, 1), "PARTS": (1,), "WEIGHTED": (0,)}
        | {"VALUE": VALUES, "WEIGHT": ("long long",), "THREADS": (256, 1024)},
        {"LANES": (32,), "PACKED": (0, 1), "SHARED": (0, 1), "PARTS": (1,), "WEIGHTED": (0, 1)}
        | {"VALUE": ("double",), "WEIGHT": ("long long",), "THREADS": (1024,)},
        {"LANES": (4, 32), "PACKED": (1,), "SHARED": (0, 1), "PARTS": (2,), "WEIGHTED": (1,)}
        | {"VALUE": ("double",), "WEIGHT": ("double",), "THREADS": (1024,)},
    ],
    "soft_parameters": [{"REAL": ("float", "double"), "AXES": (1, 2, 3), "THREADS": (32,)}],
    "soft_windows": [{"REAL": ("float", "double"), "AXES": (1, 2, 3), "THREADS": (256,)}],
    "soft_heights": [{"REAL": ("float", "double"), "AXES": (1, 2, 3), "THREADS": (128,)}],
    "soft_loss": [{"TARGET": ("float", "unsigned char"), "AXES": (1, 2, 3), "THREADS": (256,)}],
    "soft_levels": [{"SUPER": (0, 1)}],
    "soft_scan": [{"ELEMENT": FLOATS[:3], **SOFT}],
    "soft_small": [{"ELEMENT": FLOATS[:3], **SOFT}],
    "soft_gather": [{"ELEMENT": FLOATS[:3], "OUT": FLOATS[:3], "SMALL": (0, 1), **SOFT}],
    "soft_values": [SAMPLES | {"NAN": (0,), "VALUE": ("float", "double")}],
    "soft_orthants": [{"REAL": ("float", "double"), "AXES": (1, 2, 3), "THREADS": (128,)}],
    "soft_shapes": [{"REAL": ("float", "double"), "THREADS": (256,)}],
    "soft_transform": [{"REAL": ("float",), "AXES": (1, 2, 3), "THREADS": (128,)}],
    "soft_simplices": [{"REAL": ("float", "double"), "THREADS": (128,)}],
    "soft_project": [PROJECTED],
    "soft_by_points": [PROJECTED | {"PARTS": (1, 4)}],
    "stars": [
        {"LANES": (1, 8, 32), "PACKED": (0,), "THREADS": (256,)},
        {"LANES": (32,), "PACKED": (1,), "THREADS": (256,)},
    ],
    "sums": [{"SUPER": (0, 1), "THREADS": (256,)}],
    "surface": [
        {"CODE": CODES, "FLAT": (0, 1)} | {"CUBES": (0, 1), "SHARED": (0, 1), "THREADS": (256,)}
    ],
    "reduction": [{"MERGED": (2, 256), "THREADS": (128,)}],
    "tunnels": [
        {"CODE": CODES[1:], "PLANAR": (0,), "REVERSE": (0,), "COMPLEMENT": (0, 1)}
        | {"HEAP": (64,), "TORUS": (0, 1), "THREADS": (128,)}
    ],
    "transform_mask": [{"SHARED": (0, 1), "PLACES": (0, 1), "THREADS": (512,)}],
    "transform_pack": [{"THREADS": (256,)}],
    "transform_regions": [{"LABEL": LABELS, "THREADS": (256,)}],
    "transform_sums": [{"THREADS": (256,)}],
    "transform_weights": [
        {"SHARED": (0, 1), "PARTS": (1, 2), "WEIGHT": ("double", "long long"), "THREADS": (256,)}
    ],
}
FEW, MOST = 1, 5
"""Variants of a source that are compiled each time, and every week."""
STL, ALWAYS = 0x387, 7
"""The opcode of stores to local memory, and the predicate that always holds."""


@pytest.fixture(scope="module")
def nvrtc():
    """NVIDIA's run-time compiler, which needs neither a device nor a driver."""
    if not (found := importlib.util.find_spec("nvidia")):
        pytest.skip("nvidia-cuda-nvrtc-cu12 is not installed")
    for folder in found.submodule_search_locations:
        for file in Path(folder).glob("*/lib/libnvrtc.so.*"):
            return ctypes.CDLL(str(file))
    pytest.skip("nvidia-cuda-nvrtc-cu12 is not installed")


def _compile(nvrtc, source, macros, *options, arch="compute_90"):
    """What the compiler has to say, None where all is well, and the machine code, if any."""
    program = ctypes.c_void_p()
    size = ctypes.c_size_t()
    text = (SOURCE / source).with_suffix(".cu").read_bytes()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None)
    options = [f"-arch={arch}", "--std=c++17", "-ftz=true", f"-I{SOURCE}", *options]
    options += [f"-DECC_{name}={value}" for name, value in macros.items()]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return f"{source} with {macros}: {log.value.decode()}" if failed else None, code.raw


def _variants(cases):
    """Some variants of each case, as macros, in an order of its own."""
    draw = random.Random(0)
    found = []
    for case in cases:
        variants = list(itertools.product(*case.values()))
        count = min(math.ceil(MOST / len(cases)), len(variants))
        chosen = draw.sample(variants, count)
        found += [dict(zip(case, values, strict=True)) for values in chosen]
    draw.shuffle(found)
    return found


def _stores_to_local_memory(cubin):
    """Number of instructions that store to local memory, and of those that do so conditionally."""
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names = struct.unpack_from("<HH", cubin, 0x3C)
    sections = [struct.unpack_from("<IIQQQQ", cubin, offset + 64 * i) for i in range(count)]
    stores = []
    for name, _, _, _, start, size in sections:
        if cubin[sections[names][4] + name :].startswith(b".text"):
            words = [struct.unpack_from("<Q", cubin, start + i)[0] for i in range(0, size, 16)]
            stores += [word >> 12 & 15 != ALWAYS for word in words if word & 0xFFF == STL]
    return len(stores), sum(stores)


def test_every_source_has_its_case():
    assert set(CASES) == {file.stem for file in SOURCE.glob("*.cu")}


@pytest.mark.parametrize(
    "part",
    [slice(FEW), pytest.param(slice(FEW, None), marks=pytest.mark.slow)],
    ids=["few", "most"],
)
@pytest.mark.parametrize("source", CASES)
def test_sources_compile(nvrtc, source, part):
    """Kernels of curves store nothing to local memory under a condition.

    Before CUDA 13.4, such a value may be reloaded as it was before (docs/design/cuda.md).
    """
    options = [f"--maxrregcount={REGISTERS[source]}"] if source in REGISTERS else []
    assembled = source in RESOURCES
    arch = "sm_90" if assembled else "compute_90"
    bounds = dict(zip(("THREADS", "BLOCKS"), RESOURCES.get(source, ()), strict=False))
    for macros in _variants(CASES[source])[part]:
        macros |= bounds
        log, cubin = _compile(nvrtc, source, macros, *options, arch=arch)
        assert log is None
        assert not (assembled and _stores_to_local_memory(cubin)[1]), macros


def test_a_wrong_source_is_noticed(nvrtc):
    assert "ECC_THREADS" in _compile(nvrtc, "transform_sums", {})[0]


def test_conditional_stores_are_found(nvrtc, tmp_path, monkeypatch):
    """A kernel in which a store to an array in local memory depends on the thread."""
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "local.cu").write_text(
        'extern "C" __global__ void local(int *out, int n) { volatile int kept[8];'
        " kept[n] = n; if (threadIdx.x & 1) kept[n + 1] = 3; *out = kept[out[1]]; }"
    )
    log, cubin = _compile(nvrtc, "local", {}, arch="sm_90")
    assert log is None
    assert _stores_to_local_memory(cubin) == (2, 1)
