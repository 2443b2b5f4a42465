"""Make the same random calls in two checkouts, and compare all results and messages bit by bit.

    python tools/random_calls.py BASE [--calls 20000] [--seed 0]

BASE is the folder of another checkout, such as the main branch. Calls are of the public functions
of `ecc_core`, of small images of NumPy, and some of torch, of dask or by layers of `ecc_core.nn`
where these are installed. About one of eight has an argument that is an error. What a checkout
returns is reduced to a digest of the types, the fields, the dtypes, the shapes and the bytes, so
that a difference of one bit is found. The calls that differ are printed; the exit code is 1 if
there are any. Calls of functions that BASE lacks are counted and not compared.

`--list NUMBER` prints a call and what this checkout answers, to look at a difference.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import hashlib
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from random_arguments import Call, call_of

HERE = Path(__file__).resolve()
MISSING = "missing"
"""The outcome of a call of a function that the checkout does not have."""


def answer(call: Call) -> Any:
    """Return what a call returns, or the type and the message of its error."""
    try:
        return call.function(*call.given, **call.options)
    except Exception as error:
        return type(error).__name__, str(error)


def parts_of(value: Any) -> Iterator[bytes]:
    """Return what is compared of a result, as bytes."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape} ".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif dataclasses.is_dataclass(value):
        yield type(value).__name__.encode()
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                yield field.name.encode()
                yield from parts_of(getattr(value, field.name))
    elif isinstance(value, dict):
        for name, one in value.items():
            yield repr(name).encode()
            yield from parts_of(one)
    elif isinstance(value, (list, tuple)):
        yield f"{len(value)} of {type(value).__name__}".encode()
        for one in value:
            yield from parts_of(one)
    else:
        yield f"{type(value).__name__} {value!r}".encode()


def record(seed: int, calls: int) -> None:
    """Print the number, the outcome, the name and the digest of each call."""
    import ecc_core as ecc

    print(ecc.__file__, flush=True)
    warnings.simplefilter("ignore")
    for number in range(calls):
        try:
            call = call_of(seed, number, ecc)
        except AttributeError:
            print(number, MISSING, sep="\t", flush=True)
            continue
        found = answer(call)
        failed = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], str)
        digest = hashlib.sha256()
        for part in parts_of(found):
            digest.update(part)
        outcome = found[0] if failed else "result"
        print(number, outcome, digest.hexdigest()[:16], call.name, sep="\t", flush=True)


def recording(folder: Path, seed: int, calls: int) -> list[str]:
    """Return what another process says of the calls of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, str(HERE), "--record", "--seed", str(seed), "--calls", str(calls)]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    first, *lines = printed.stdout.splitlines()
    if folder not in Path(first).parents:
        raise SystemExit(f"{folder} has no package ecc_core: {first} was imported")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path, nargs="?", help="the folder of another checkout")
    parser.add_argument("--calls", type=int, default=20_000, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--list", type=int, metavar="NUMBER", help="print one call and its answer")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.seed, arguments.calls)
        return
    if arguments.list is not None:
        import ecc_core as ecc

        call = call_of(arguments.seed, arguments.list, ecc)
        print(call, answer(call), sep="\n")
        return
    if arguments.base is None:
        parser.error("BASE is missing")
    base = recording(arguments.base.resolve(), arguments.seed, arguments.calls)
    here = recording(HERE.parents[1], arguments.seed, arguments.calls)
    outcomes = collections.Counter(line.split("\t")[1] for line in here)
    print(f"{len(here)} calls:", ", ".join(f"{n} {word}" for word, n in outcomes.most_common()))
    outcomes_of_base = [line.split("\t")[1] for line in base]
    print(f"{outcomes_of_base.count(MISSING)} are of functions that the base lacks.")
    different = [
        (one, other)
        for one, other, outcome in zip(base, here, outcomes_of_base, strict=True)
        if outcome != MISSING and one != other
    ]
    for one, other in different[:50]:
        print(f"base: {one}\nhere: {other}")
    if different:
        raise SystemExit(f"{len(different)} calls differ")
    print("All results and messages are equal.")


if __name__ == "__main__":
    main()
