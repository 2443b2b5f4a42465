"""Make the same random calls in two checkouts, and compare all results and messages bit by bit.

    python tools/random_calls.py BASE [--calls 20000] [--seed 0]

BASE is the folder of another checkout, such as the main branch. Calls are of the public functions
of `ecc_core`, of small images of NumPy, and some of torch, of dask or by layers of `ecc_core.nn`
where these are installed. About one of eight has an argument that is an error. Each field of what a
checkout returns is reduced to a digest of types, dtypes, shapes and bytes, so that a difference of
one bit is found. The calls that differ are printed with the fields that do, or with both messages;
the exit code is 1 if there are any. Calls of functions, and fields of results, that only one of the
checkouts has are counted and not compared.

`--list NUMBER` prints a call and what this checkout answers, to look at a difference.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from random_arguments import Call, call_of

HERE = Path(__file__).resolve()
MISSING = "missing"
"""The outcome of a call of a function that the checkout does not have."""
MOST_PRINTED = 50
"""Calls that differ."""


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


class Outcome(NamedTuple):
    """What came of a call."""

    number: int
    kind: str
    """Whether there is a result, of which type an error is, or that the function is missing."""
    name: str
    message: str
    digests: dict[str, str]
    """Of each field of a result."""

    def differences(self, other: Outcome) -> list[str]:
        """Return what is not the same, but for fields that only one of them has."""
        if self.kind != other.kind:
            return [f"{self.kind} {self.message!r}", f"{other.kind} {other.message!r}"]
        if self.message != other.message:
            return [repr(self.message), repr(other.message)]
        common = self.digests.keys() & other.digests.keys()
        return sorted(field for field in common if self.digests[field] != other.digests[field])


def digest_of(value: Any) -> str:
    """Return a short text that differs for values that differ."""
    digest = hashlib.sha256()
    for part in parts_of(value):
        digest.update(part)
    return digest.hexdigest()[:16]


def digests_of(result: Any) -> dict[str, str]:
    """Return a digest for each field of a result, or for what is no dataclass."""
    if isinstance(result, tuple) and len(result) == 1:  # as computed by dask
        (result,) = result
    if not dataclasses.is_dataclass(result):
        return {"value": digest_of(result)}
    found = {"type": type(result).__name__}
    for field in dataclasses.fields(result):
        if not field.name.startswith("_"):
            found[field.name] = digest_of(getattr(result, field.name))
    return found


def outcome_of(seed: int, number: int, ecc: Any) -> Outcome:
    """Return what comes of a call in this checkout."""
    try:
        call = call_of(seed, number, ecc)
    except AttributeError:
        return Outcome(number, MISSING, "", "", {})
    found = answer(call)
    failed = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], str)
    if failed:
        kind, message = found
        return Outcome(number, kind, call.name, message, {})
    return Outcome(number, "result", call.name, "", digests_of(found))


def record(seed: int, calls: int) -> None:
    """Print the outcome of each call as a line of JSON."""
    import ecc_core as ecc

    print(ecc.__file__, flush=True)
    warnings.simplefilter("ignore")
    for number in range(calls):
        print(json.dumps(outcome_of(seed, number, ecc)), flush=True)


def recording(folder: Path, seed: int, calls: int) -> list[Outcome]:
    """Return what comes of the calls in a checkout, in another process."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, str(HERE), "--record", "--seed", str(seed), "--calls", str(calls)]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    first, *lines = printed.stdout.splitlines()
    if folder not in Path(first).parents:
        raise SystemExit(f"{folder} has no package ecc_core: {first} was imported")
    return [Outcome(*json.loads(line)) for line in lines]


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
    raise SystemExit(report(base, here))


def report(base: list[Outcome], here: list[Outcome]) -> int:
    """Print how many calls there are, and which differ; return the exit code."""
    kinds = collections.Counter(outcome.kind for outcome in here)
    print(f"{len(here)} calls:", ", ".join(f"{n} {word}" for word, n in kinds.most_common()))
    pairs = []
    only = collections.Counter[str]()
    for one, other in zip(base, here, strict=True):
        if one.kind != MISSING:
            pairs.append((one, other))
            only.update(one.digests.keys() ^ other.digests.keys() if one.kind == other.kind else ())
    print(f"{len(here) - len(pairs)} are of functions that the base lacks.")
    if only:
        print("Fields that only one checkout has:", ", ".join(sorted(only)))
    different = 0
    for one, other in pairs:
        found = one.differences(other)
        if found:
            different += 1
        if found and different <= MOST_PRINTED:
            print(other.number, other.name, *found, sep="\n    ")
    if different:
        print(f"{different} calls differ")
        return 1
    print("All results and messages are equal.")
    return 0


if __name__ == "__main__":
    main()
