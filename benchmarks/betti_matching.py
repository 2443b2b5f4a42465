"""Betti matching, compared with the authors' code, on one core.

    python benchmarks/betti_matching.py --peer FOLDER [--out benchmarks/results/betti_matching.md]

FOLDER has the module `betti_matching` of https://github.com/nstucki/Betti-Matching-3D, built as its
README says. Both match the same images in turns, and the smallest of the processor times counts.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from scipy import ndimage

import ecc_core as ecc

SHAPES = [(512, 512), (64, 64, 64), (128, 128, 128)]
KINDS = ("noise", "probabilities", "masks")
TURNS = 5
LONG = 20
"""Seconds; longer turns are not repeated."""


def images(shape, kind):
    """Return a prediction and its target, in which objects are 0 and the background is 1."""
    rng = np.random.default_rng(0)
    if kind == "noise":
        return rng.random((2, *shape))
    target = (ndimage.gaussian_filter(rng.standard_normal(shape), 4) > 0).astype(float)
    blurred = ndimage.gaussian_filter(target + 0.8 * rng.standard_normal(shape), 1.5)
    prediction = (blurred - blurred.min()) / np.ptp(blurred)
    if kind == "masks":
        prediction = (prediction > 0.5).astype(float)
    return 1 - prediction, 1 - target


def seconds(function):
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def compare(peer, shape, kind):
    """Return the times and the numbers of matches of both; the peer's lack the oldest component."""
    prediction, target = images(shape, kind)
    own = tuple(image.astype(np.float32) for image in (prediction, target))
    ecc.betti_matching(*(image[..., :8] for image in own), connectivity=1)  # It compiles.
    best = [np.inf, np.inf]
    for _ in range(TURNS):
        ours, found = seconds(lambda: ecc.betti_matching(*own, connectivity=1, workers=1))
        theirs, other = seconds(lambda: peer.compute_matching(prediction, target))
        best = [min(best[0], ours), min(best[1], theirs)]
        if theirs > LONG:
            break
    matches = found.matched[0].counts
    return best, matches, tuple(int(count) for count in np.ravel(other.num_matched))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True, type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="how many of the shapes")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.peer))
    import betti_matching as peer

    lines = [
        "# Betti matching: `ecc.betti_matching` and Betti-Matching-3D",
        "",
        "Seconds of processor time, the least of up to five turns. Both match the same images;",
        "the authors' code leaves out the oldest component, which is one match more here.",
        "",
        "| image | kind | here | authors | ratio | matches here | authors |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for shape in SHAPES[: arguments.shapes]:
        for kind in KINDS:
            (ours, theirs), matches, others = compare(peer, shape, kind)
            size = " x ".join(map(str, shape))
            numbers = f"{ours:.3f} | {theirs:.2f} | {theirs / ours:.1f}"
            lines.append(f"| {size} | {kind} | {numbers} | {matches} | {others} |")
            print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
