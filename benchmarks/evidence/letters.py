"""Graphs of distorted letters, classified by networks with a layer of transforms and without.

    pip install Hershey-Fonts==2.1.0
    python benchmarks/evidence/letters.py [--quick]

Writes benchmarks/results/evidence/letters.{json,md}. Scores of trained networks are kept in the
folder of temporary files, so that a study that was ended goes on there.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from outcome import ROOT, Outcome, Row, interval, report
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import ecc_core as ecc
from ecc_core.nn import SimplicialTransformLayer

sys.path.insert(0, str(ROOT / "benchmarks"))
from meshes import direct_sum

TITLE = "Letters as graphs"
QUESTION = "Does the layer of transforms of graphs tell distorted letters apart, as DECT's does?"
CONCLUSION = """
Yes: with the same weights to begin with the accuracies are those of DECT's method (0.926, 0.851 and
0.762 against 0.926, 0.851 and 0.761), and training takes as long (1.9 s). But nothing has to be
learned before the classifier: fixed directions do as well (0.927, 0.852 and 0.758), and so does a
support vector machine on exact transforms (0.924, 0.853 and 0.763). A graph network with as many
parameters is worse (0.839, 0.777 and 0.705), and so are the points without their edges (0.765,
0.639 and 0.477).
"""
TEXT = """
The 15 capital letters of straight lines that DECT's task has (A, E, F, H, I, K, L, M, N, T, V, W,
X, Y, Z), from the strokes of the font "futural" of the package Hershey-Fonts. These are not the
drawings of the IAM data base. Ends of strokes are points, strokes are edges. Each graph is
distorted: coordinates move by normal deviates of 0.06 (low), 0.12 (medium) or 0.18 (high) of the
height of a letter, one line in four graphs is left out, and one between two points is drawn in one
of four. Points are centred, and divided by the largest distance. There are 50 graphs of each letter
for training, validation and test each, drawn anew for each of 5 seeds. All networks have nearly as
many parameters, the same batches of 64 or less, 60 rounds of Adam with a rate that decays by a
cosine, and a rate of 0.003 or 0.01, whichever is better in validation; none stops early. Transforms
have 16 directions and 16 heights, the sharpness is the default of the layer, and two linear layers
follow with 64 numbers between them. DECT's method is the sum over all simplices in operators of
torch. The graph network has two rounds of sums over neighbours (GIN), and sums over the points
after each. The support vector machine takes exact transforms, with its C by the validation set.
Accuracies on the test set are means over the seeds with 95 % intervals; seconds are processor time
of one thread, the median of all trainings, and for the support vector machine everything.
"""
LETTERS = "AEFHIKLMNTVWXYZ"
FONT = "futural"
DISTORTIONS = {"low": 0.06, "medium": 0.12, "high": 0.18}
"""Standard deviations of each coordinate of a point, in heights of a letter."""
CHANGED = 0.25
"""The probability that a line is missing, and that there is another one."""
OF_EACH = 50
"""Graphs of each letter in each of the three sets."""
DIRECTIONS = 16
HEIGHTS = 16
REACH = 1.1
HIDDEN = 64
BATCH = 64
EPOCHS = 60
RATES = (0.003, 0.01)
SEEDS = range(5)

Array = NDArray[np.float64]


class Graph(NamedTuple):
    points: Array
    edges: NDArray[np.int64]


class Batch(NamedTuple):
    """Graphs whose points and edges follow each other."""

    points: Tensor
    edges: Tensor
    graph: Tensor
    """The number of the graph of each point."""
    kinds: Tensor

    @property
    def count(self) -> int:
        return len(self.kinds)


class Data(NamedTuple):
    graphs: list[Graph]
    kinds: NDArray[np.int64]

    def batch(self, chosen: Iterable[int]) -> Batch:
        numbers = list(chosen)
        graphs = [self.graphs[i] for i in numbers]
        sizes = np.array([len(graph.points) for graph in graphs])
        starts = np.cumsum(sizes) - sizes
        edges = [graph.edges + start for graph, start in zip(graphs, starts, strict=True)]
        points = np.concatenate([graph.points for graph in graphs]).astype(np.float32)
        graph_of_each = np.repeat(np.arange(len(graphs)), sizes)
        return Batch(
            torch.from_numpy(points),
            torch.from_numpy(np.concatenate(edges)),
            torch.from_numpy(graph_of_each),
            torch.from_numpy(self.kinds[numbers]),
        )


def prototypes() -> list[Graph]:
    """Return the strokes of each letter as edges between their ends; letters are 1 high."""
    from HersheyFonts import HersheyFonts

    font = HersheyFonts()
    font.load_default_font(FONT)
    found = []
    for letter in LETTERS:
        strokes = [np.array(stroke) for stroke in font.strokes_for_text(letter)]
        ends = np.concatenate([np.stack([own[:-1], own[1:]], axis=1) for own in strokes])
        points, number = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
        low, high = points.min(axis=0), points.max(axis=0)
        found.append(Graph((points - (low + high) / 2) / (high - low)[1], number.reshape(-1, 2)))
    return found


def distorted(letter: Graph, deviation: float, rng: np.random.Generator) -> Graph:
    """Move the points; perhaps leave out a line, or draw one more between two points."""
    edges = letter.edges
    if rng.random() < CHANGED and len(edges) > 1:
        edges = np.delete(edges, rng.integers(len(edges)), axis=0)
    if rng.random() < CHANGED:
        edges = np.concatenate([edges, rng.choice(len(letter.points), (1, 2), replace=False)])
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    used, number = np.unique(edges, return_inverse=True)
    points = letter.points[used] + rng.normal(0, deviation, (len(used), 2))
    points -= points.mean(axis=0)
    return Graph(points / np.linalg.norm(points, axis=1).max(), number.reshape(-1, 2))


def make_letters(deviation: float, of_each: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    graphs = [distorted(letter, deviation, rng) for letter in prototypes() for _ in range(of_each)]
    return Data(graphs, np.repeat(np.arange(len(LETTERS)), of_each))


class Head(nn.Sequential):
    """Two linear layers, after one of transforms."""

    def __init__(self) -> None:
        inner = nn.Linear(DIRECTIONS * HEIGHTS, HIDDEN)
        super().__init__(nn.Flatten(), inner, nn.ReLU(), nn.Linear(HIDDEN, len(LETTERS)))


class Learned(nn.Module):
    """Soft transforms by the layer, with directions that are learned, or not."""

    def __init__(self, learned: bool = True, with_edges: bool = True) -> None:
        super().__init__()
        self.layer = SimplicialTransformLayer(
            DIRECTIONS,
            HEIGHTS,
            range=(-REACH, REACH),
            n_spatial=2,
            learn_directions=learned,
            learn_thresholds=False,
        )
        self.with_edges = with_edges
        self.head = Head()

    def forward(self, batch: Batch) -> Tensor:
        edges = [batch.edges] if self.with_edges else []
        return self.head(self.layer(batch.points, edges, batch=batch.graph, shapes=batch.count))


class Dect(Learned):
    """Soft transforms by a sum over simplices, DECT's published method."""

    def forward(self, batch: Batch) -> Tensor:
        found = direct_sum(
            batch.points,
            [batch.edges],
            self.layer.directions,
            self.layer.thresholds,
            batch.graph,
            batch.count,
            float(self.layer.sharpness),
        )
        return self.head(found)


class Messages(nn.Module):
    """A graph network (GIN): two rounds of sums over neighbours, and sums over the points."""

    WIDTH = 56

    def __init__(self) -> None:
        super().__init__()
        sizes = [2, self.WIDTH, self.WIDTH]
        self.rounds = nn.ModuleList()
        for own in sizes[:2]:
            layers = nn.Linear(own, self.WIDTH), nn.ReLU(), nn.Linear(self.WIDTH, self.WIDTH)
            self.rounds.append(nn.Sequential(*layers))
        self.head = nn.Sequential(
            nn.Linear(2 * self.WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, len(LETTERS))
        )

    def forward(self, batch: Batch) -> Tensor:
        here, there = torch.cat([batch.edges, batch.edges.flip(1)]).T
        values = batch.points
        pooled = []
        for update in self.rounds:
            values = update(values.index_add(0, here, values[there])).relu()
            empty = values.new_zeros(batch.count, self.WIDTH)
            pooled.append(empty.index_add(0, batch.graph, values))
        return self.head(torch.cat(pooled, dim=1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "layer, learned directions": Learned,
    "DECT's method, learned directions": Dect,
    "layer, fixed directions": lambda: Learned(learned=False),
    "layer, points without edges": lambda: Learned(with_edges=False),
    "graph network": Messages,
}


class Trained(NamedTuple):
    validation: float
    test: float
    seconds: float


def accuracy(model: nn.Module, batch: Batch) -> float:
    with torch.no_grad():
        found = model(batch).argmax(1)
        is_right = found == batch.kinds
        return float(is_right.float().mean())


def train(
    make: Callable[[], nn.Module],
    parts: tuple[Data, Data, Data],
    seed: int,
    rate: float,
    epochs: int,
) -> Trained:
    torch.manual_seed(seed)
    training, validation, test = parts
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), rate)
    order = np.random.default_rng(seed)
    size = len(training.graphs)
    batches = []
    for _ in range(epochs):
        parts = np.array_split(order.permutation(size), size // BATCH + 1)
        batches += [training.batch(chosen) for chosen in parts]
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(batches))
    start = time.process_time()
    for batch in batches:
        optimizer.zero_grad()
        cross_entropy(model(batch), batch.kinds).backward()
        optimizer.step()
        schedule.step()
    seconds = time.process_time() - start
    accuracies = []
    for part in (validation, test):
        whole = part.batch(range(len(part.graphs)))
        accuracies.append(accuracy(model, whole))
    return Trained(*accuracies, seconds)


class Kept:
    """A file of the scores of networks that this version of the study has trained."""

    def __init__(self) -> None:
        code = Path(__file__).read_text().partition("LETTERS =")[2]
        version = hashlib.sha256(code.encode()).hexdigest()[:16]
        self.path = Path(tempfile.gettempdir()) / f"ecc-letters-{version}.json"
        there = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.found = {key: Trained(*values) for key, values in there.items()}

    def get(self, key: str, compute: Callable[[], Trained]) -> Trained:
        if key not in self.found:
            self.found[key] = compute()
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.found))
            part.replace(self.path)
        return self.found[key]


def best_of(found: Iterable[Trained]) -> Trained:
    return max(found, key=lambda one: one.validation)


def by_machine(parts: tuple[Data, Data, Data]) -> Trained:
    """Train a support vector machine on exact transforms; the validation set chooses C."""
    start = time.process_time()
    directions = ecc.sample_directions(DIRECTIONS, 2)
    heights = np.linspace(-REACH, REACH, HEIGHTS)

    def features(part: Data) -> np.ndarray:
        rows = []
        for graph in part.graphs:
            transform = ecc.simplicial_transform(*graph, directions, heights)
            rows.append(transform.values.ravel())
        return np.stack(rows)

    training, validation, test = map(features, parts)
    known = np.concatenate([training, validation])
    fold = np.repeat([-1, 0], [len(training), len(validation)])
    kinds = np.concatenate([parts[0].kinds, parts[1].kinds])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": [1.0, 10.0, 100.0]},
        cv=PredefinedSplit(fold),
        refit=False,
    ).fit(known, kinds)
    model = make_pipeline(StandardScaler(), SVC(C=search.best_params_["svc__C"]))
    model.fit(training, parts[0].kinds)
    found = model.score(test, parts[2].kinds)
    return Trained(search.best_score_, found, time.process_time() - start)


def row_of(name: str, parameters: int | str, found: dict[str, list[Trained]]) -> Row:
    row: Row = {"method": name, "parameters": parameters}
    for level, runs in found.items():
        row[level] = interval(run.test for run in runs)
    spent = [run.seconds for runs in found.values() for run in runs]
    row["training, s"] = float(np.median(spent))
    return row


def run(quick: bool) -> Outcome:
    torch.set_num_threads(1)
    of_each, epochs, seeds = (10, 20, range(2)) if quick else (OF_EACH, EPOCHS, SEEDS)
    rates = RATES[1:] if quick else RATES

    def parts_of(deviation: float, seed: int) -> tuple[Data, ...]:
        """Return data for training, for validation and for the test."""
        seeds = range(3 * seed, 3 * seed + 3)
        return tuple(make_letters(deviation, of_each, own) for own in seeds)

    data = {}
    for level, deviation in DISTORTIONS.items():
        data[level] = [parts_of(deviation, seed) for seed in seeds]
    rows = []
    kept = Kept()
    for name, make in NETWORKS.items():
        found: dict[str, list[Trained]] = {level: [] for level in data}
        for level, drawn in data.items():
            for seed, parts in zip(seeds, drawn, strict=True):
                runs = []
                for rate in rates:
                    key = f"{name}, {level}, {of_each}, {epochs}, {seed}, {rate}"
                    call = partial(train, make, parts, seed, rate, epochs)
                    runs.append(kept.get(key, call))
                found[level].append(best_of(runs))
        learned = [p.numel() for p in make().parameters() if p.requires_grad]
        parameters = sum(learned)
        rows.append(row_of(name, parameters, found))
        print(rows[-1], flush=True)
    by_svm = {level: [by_machine(parts) for parts in drawn] for level, drawn in data.items()}
    rows.append(row_of("exact transform, SVM", "", by_svm))
    return Outcome(TITLE, TEXT, {"Accuracy by distortion": rows}, {}, QUESTION, CONCLUSION)


if __name__ == "__main__":
    report("letters", run)
