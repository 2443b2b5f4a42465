"""Make the same random calls in two checkouts, and compare all results and messages bit by bit.

    python tools/random_calls.py BASE [--calls 20000] [--seed 0]

BASE is the folder of another checkout, such as the main branch. Calls are of the public functions
of `ecc_core`, of small images of NumPy, and some of torch, of dask or by layers of `ecc_core.nn`
where these are installed. About one of eight has an argument that is an error. Each field of what a
checkout returns is reduced to a digest of types, dtypes, shapes and bytes, so that a difference of
one bit is found. Each difference has a class: what was an error and is none, or the reverse,
another message, other last bits, or other fields. Those that are wanted, with the reasons in
`call_differences.py`, are counted; all others are printed, and the exit code is 1 if there are any.
Calls of functions, and fields of results, that only one of the checkouts has are counted and not
compared.

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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from call_differences import Answer, Difference, numbers_of, reason_of
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
    """Yield the bytes of a result that are compared."""
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
    """The outcome of a call: digests of its result, or its error."""

    number: int
    kind: str
    """ "result", the type of the error, or `MISSING`."""
    name: str
    message: str
    digests: dict[str, str]
    """A digest for each field of the result."""

    def differs(self, other: Outcome) -> bool:
        """Whether something is not the same, but for fields that only one of them has."""
        same = (self.kind, self.message) == (other.kind, other.message)
        return not same or bool(self.fields_that_differ(other))

    def fields_that_differ(self, other: Outcome) -> tuple[str, ...]:
        common = self.digests.keys() & other.digests.keys()
        return tuple(sorted(name for name in common if self.digests[name] != other.digests[name]))


def digest_of(value: Any) -> str:
    """Return a short text that differs for values that differ."""
    digest = hashlib.sha256()
    for part in parts_of(value):
        digest.update(part)
    return digest.hexdigest()[:16]


def fields_of(result: Any) -> dict[str, Any]:
    """Return the fields of a result by name; a value that is no dataclass is one field."""
    if isinstance(result, tuple) and len(result) == 1:  # dask.compute returns a tuple.
        (result,) = result
    if not dataclasses.is_dataclass(result):
        return {"value": result}
    names = [field.name for field in dataclasses.fields(result) if not field.name.startswith("_")]
    return {"type": type(result).__name__} | {name: getattr(result, name) for name in names}


def failed(found: Any) -> bool:
    """Whether an answer is the type and the message of an error."""
    return isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], str)


def outcome_of(seed: int, number: int, ecc: Any) -> Outcome:
    """Return the outcome of a call in this checkout."""
    try:
        call = call_of(seed, number, ecc)
    except AttributeError:
        return Outcome(number, MISSING, "", "", {})
    found = answer(call)
    if failed(found):
        kind, message = found
        return Outcome(number, kind, call.name, message, {})
    digests = {name: digest_of(field) for name, field in fields_of(found).items()}
    return Outcome(number, "result", call.name, "", digests)


def answer_of(seed: int, number: int, ecc: Any) -> tuple[str, str, Answer]:
    """Return a call as text, the name of its function, and all that comes of it."""
    call = call_of(seed, number, ecc)
    found = answer(call)
    if failed(found):
        kind, message = found
        return str(call), call.name, Answer(kind, message, {})
    fields = {name: numbers_of(field) for name, field in fields_of(found).items()}
    return str(call), call.name, Answer("result", "", fields)


def record(seed: int, numbers: Iterable[int], *, whole: bool) -> None:
    """Print the outcome of each call, or the whole answer, as a line of JSON."""
    import ecc_core as ecc

    print(ecc.__file__, flush=True)
    warnings.simplefilter("ignore")
    answered = answer_of if whole else outcome_of
    for number in numbers:
        print(json.dumps(answered(seed, number, ecc)), flush=True)


def recording(folder: Path, seed: int, *which: str) -> list[Any]:
    """Return what comes of some calls in a checkout, in another process."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, str(HERE), "--record", "--seed", str(seed), *which]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    first, *lines = printed.stdout.splitlines()
    if folder not in Path(first).parents:
        raise SystemExit(f"{folder} has no package ecc_core: {first} was imported")
    return [json.loads(line) for line in lines]


def recorded(folder: Path, seed: int, calls: int) -> list[Outcome]:
    """Return the outcomes of all calls in a checkout."""
    return [Outcome(*line) for line in recording(folder, seed, "--calls", str(calls))]


def differences_of(
    base: Path, seed: int, pairs: Sequence[tuple[Outcome, Outcome]]
) -> list[Difference]:
    """Make the calls that differ once more in both checkouts, for their numbers."""
    differing = [(one, other) for one, other in pairs if one.differs(other)]
    if not differing:
        return []
    numbers = "--numbers", ",".join(str(one.number) for one, _ in differing)
    before = recording(base, seed, *numbers)
    now = recording(HERE.parents[1], seed, *numbers)
    found = []
    for (one, other), (_, _, old), (call, name, new) in zip(differing, before, now, strict=True):
        fields = one.fields_that_differ(other)
        found.append(Difference(call, name, Answer(*old), Answer(*new), fields))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path, nargs="?", help="the folder of another checkout")
    parser.add_argument("--calls", type=int, default=20_000, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--list", type=int, metavar="NUMBER", help="print one call and its answer")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--numbers", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record and arguments.numbers:
        record(arguments.seed, map(int, arguments.numbers.split(",")), whole=True)
        return
    if arguments.record:
        record(arguments.seed, range(arguments.calls), whole=False)
        return
    if arguments.list is not None:
        import ecc_core as ecc

        call = call_of(arguments.seed, arguments.list, ecc)
        print(call, answer(call), sep="\n")
        return
    if arguments.base is None:
        parser.error("BASE is missing")
    folder = arguments.base.resolve()
    base = recorded(folder, arguments.seed, arguments.calls)
    here = recorded(HERE.parents[1], arguments.seed, arguments.calls)
    pairs = compared(base, here)
    raise SystemExit(report(differences_of(folder, arguments.seed, pairs)))


def compared(base: list[Outcome], here: list[Outcome]) -> list[tuple[Outcome, Outcome]]:
    """Print how many calls there are, and return the outcomes of those that both have."""
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
    return pairs


def report(differences: Sequence[Difference]) -> int:
    """Print how many differences are wanted for which reason, and all others; return a code."""
    reasons = [reason_of(difference) for difference in differences]
    for reason, count in collections.Counter(filter(None, reasons)).most_common():
        print(f"{count} differ as wanted: {reason}")
    others = [one for one, reason in zip(differences, reasons, strict=True) if not reason]
    for difference in others:
        print(difference.told())
    print(f"{len(others)} calls differ for no reason that is listed.")
    return 1 if others else 0


if __name__ == "__main__":
    main()
