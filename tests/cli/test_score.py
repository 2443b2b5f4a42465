"""``ecc score``: scores by the definitions, and the errors of its inputs."""

import csv

import nibabel
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from skimage.morphology import skeletonize

import ecc_core as ecc
from ecc_core.cli import main


def blobs(*places, shape=(12, 16)):
    image = np.zeros(shape, np.uint8)
    for y, x in places:
        image[y : y + 3, x : x + 3] = 1
    return image


TARGETS = {"a": blobs((1, 1), (6, 9)), "b": blobs((4, 4)), "c": blobs((2, 8), (7, 2))}
PREDICTIONS = {
    "a": blobs((1, 1), (6, 2)) * np.float32(0.9),  # One object is missing and one is false.
    "b": np.where(blobs((4, 4)), 0.8, 0.3),
    "c": blobs((2, 8)) * 255,
}


@pytest.fixture
def folders(tmp_path):
    found = []
    for name, images in (("predictions", PREDICTIONS), ("targets", TARGETS)):
        folder = tmp_path / name
        folder.mkdir()
        for stem, image in images.items():
            np.save(folder / f"{stem}.npy", image)
        found.append(folder)
    return found


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_scores(folders, tmp_path, capsys):
    out = tmp_path / "scores.csv"
    plot = tmp_path / "worst.png"
    assert main(["score", *map(str, folders), "--out", str(out), "--plot", str(plot)]) == 0
    first, second, third = rows_of(out)
    assert plot.stat().st_size > 10_000
    assert [float(row["betti_error_b0"]) for row in (first, second, third)] == [0, 0, 1]
    assert [float(row["matched_error_b0"]) for row in (first, second, third)] == [2, 0, 1]
    assert [first["false_b0"], first["missing_b0"]] == ["1", "1"]
    assert float(first["dice"]) == pytest.approx(0.5)
    assert [second[name] for name in ("dice", "cldice", "surface_distance")] == [
        "1.0",
        "1.0",
        "0.0",
    ]
    at = (np.arange(64) + 0.5) / 64
    of_prediction = ecc.euler_curve(PREDICTIONS["b"], at, superlevel=True).values
    of_target = ecc.euler_curve(TARGETS["b"].astype(float), at, superlevel=True).values
    distance = np.abs(of_prediction - of_target).mean()
    assert float(second["euler_distance"]) == pytest.approx(distance)
    assert "dice              0.7222 [0.5" in capsys.readouterr().out


def test_surface_distance(folders, tmp_path):
    """The distances of all points next to one of the background, measured one by one."""
    out = tmp_path / "scores.csv"
    pair = [str(folder / "c.npy") for folder in folders]
    assert main(["score", *pair, "--out", str(out), "--spacing", "2,1", "--quiet"]) == 0
    surfaces = []
    for image in (PREDICTIONS["c"], TARGETS["c"]):
        padded = np.pad(image > 0, 1)
        inner = padded[1:-1, 2:] & padded[1:-1, :-2] & padded[2:, 1:-1] & padded[:-2, 1:-1]
        surfaces.append(np.argwhere((image > 0) & ~inner) * [2, 1])
    apart = cdist(*surfaces)
    wanted = np.concatenate([apart.min(axis=1), apart.min(axis=0)])
    (row,) = rows_of(out)
    assert float(row["surface_distance"]) == pytest.approx(wanted.mean())


def test_only_the_worst_images_are_kept_and_drawn(folders, tmp_path, monkeypatch):
    """The worst first: a has a false and a missing component, c a missing one, b neither."""
    drawn = []
    monkeypatch.setattr("ecc_core._cli.score.write_figure", lambda _, figure: drawn.append(figure))
    monkeypatch.setattr("ecc_core._cli.score.MOST_DRAWN", 2)
    plot = str(tmp_path / "worst.png")
    assert main(["score", *map(str, folders), "--plot", plot]) == 0
    assert [ax.get_title() for ax in drawn[0].axes] == ["a.npy: 2", "c.npy: 1"]


def test_classes(tmp_path, monkeypatch):
    target = blobs((1, 1), (1, 8)) + 2 * blobs((7, 4))
    prediction = np.where(target == 2, 0, target)
    paths = [tmp_path / "prediction.npy", tmp_path / "target.npy"]
    for path, image in zip(paths, (prediction, target), strict=True):
        np.save(path, image)
    drawn = []
    monkeypatch.setattr("ecc_core._cli.score.write_figure", lambda _, figure: drawn.append(figure))
    out = tmp_path / "scores.csv"
    plot = str(tmp_path / "worst.png")
    assert main(["score", *map(str, paths), "--out", str(out), "--plot", plot]) == 0
    titles = [ax.get_title() for ax in drawn[0].axes]
    assert titles == ["prediction.npy, class 2: 1", "prediction.npy, class 1: 0"]
    rows = rows_of(out)
    assert [row["class"] for row in rows] == ["1", "2"]
    assert [row["matched_error_b0"] for row in rows] == ["0", "1"]


def test_compare_reads_scores(tmp_path, say, monkeypatch):
    rows = [("x", 0.9), ("x", 0.8), ("x", 0.85), ("y", 0.1), ("y", 0.2), ("y", 0.15)]
    table = tmp_path / "scores.csv"
    lines = [f"{group}{i}.npy,t.npy,{group},{dice}" for i, (group, dice) in enumerate(rows)]
    table.write_text("\n".join(["input,target,group,dice", *lines]) + "\n")
    drawn = []
    monkeypatch.setattr(
        "ecc_core._cli.compare.write_figure", lambda _, figure: drawn.append(figure)
    )
    plot = tmp_path / "dice.png"
    text = say("compare", table, "--by", "group", "--measure", "dice", "--plot", plot)
    assert "x (3 scores) and y (3 scores)" in text
    assert "p = 0.1 (all 20 permutations, by score)" in text
    assert "mean dice: x 0.85, y 0.15\n" in text
    (ax,) = drawn[0].axes
    assert [text.get_text() for text in ax.get_xticklabels()] == [
        "x\n(n = 3 scores)",
        "y\n(n = 3 scores)",
    ]
    points = [line.get_ydata() for line in ax.lines if line.get_marker() == "o"]
    assert [list(one) for one in points] == [[0.9, 0.8, 0.85], [0.1, 0.2, 0.15]]


@pytest.mark.parametrize("threshold", ["0", "-1", "1.5", "nan"])
def test_refused_thresholds(folders, capsys, threshold):
    assert main(["score", *map(str, folders), f"--threshold={threshold}"]) == 2
    words = f"--threshold must be above 0 and at most 1, got {threshold}"
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prediction", "target", "message"),
    [
        (blobs((1, 1)), blobs((1, 1), shape=(12, 15)), "the target must have the shape (12, 16)"),
        (blobs((1, 1)), blobs(), "the target must have points inside, got an empty mask"),
        (
            blobs((1, 1)) * 1.5,
            blobs((1, 1)),
            "the prediction must be probabilities between 0 and 1",
        ),
        (blobs((1, 1)) * np.nan, blobs((1, 1)), "between 0 and 1, got NaN"),
        (blobs((1, 1)) * 0.5, blobs((1, 1)) * 0.5, "the target must be a mask or class indices"),
        (blobs((1, 1)) * 3, blobs((1, 1)) + 2 * blobs((7, 7)), "must have classes of the target"),
        (blobs((1, 1)) * 0.5, 7 * blobs((1, 1)), "must hold class indices where the target does"),
    ],
)
def test_refusals(tmp_path, capsys, prediction, target, message):
    paths = [tmp_path / "prediction.npy", tmp_path / "target.npy"]
    for path, image in zip(paths, (prediction, target), strict=True):
        np.save(path, image)
    assert main(["score", *map(str, paths)]) == 1
    assert message in capsys.readouterr().err


def test_spacings_that_differ(tmp_path, capsys):
    paths = []
    for name, step in (("prediction", 1.0), ("target", 2.0)):
        paths.append(str(tmp_path / f"{name}.nii"))
        image = np.stack([blobs((1, 1))] * 3)
        nibabel.save(nibabel.Nifti1Image(image, np.diag([step, 1, 1, 1])), paths[-1])
    assert main(["score", *paths]) == 1
    assert "the target must lie where the image does" in capsys.readouterr().err


def test_missing_targets(folders, refuse):
    (folders[1] / "b.npy").unlink()
    assert "b.npy" in refuse("score", *folders)


def test_missing_predictions_are_said(folders, capsys):
    (folders[0] / "b.npy").unlink()
    assert main(["score", *map(str, folders)]) == 0
    said = capsys.readouterr().err
    assert "1 of 3 targets have no prediction" in said
    assert "b.npy" in said


def solid(*boxes, shape=(14, 16, 18)):
    """Return a volume of cuboids, each given by its corner and its sides."""
    volume = np.zeros(shape, bool)
    for corner, sides in boxes:
        place = (slice(first, first + n) for first, n in zip(corner, sides, strict=True))
        volume[tuple(place)] = True
    return volume


def test_objects_whose_skeleton_scikit_image_erases_count(tmp_path):
    """The clDice of a volume and itself is 1, and half of what is missing is missed."""
    cube = (1, 1, 1), (6, 6, 6)
    rod = (9, 1, 0), (4, 4, 18)
    line = (2, 12, 1), (1, 1, 9)
    assert not skeletonize(solid(cube, rod)).any()
    target = solid(cube, rod, line)
    prediction = solid(cube, line)
    for name, volume in (("target", target), ("same", target), ("prediction", prediction)):
        np.save(tmp_path / f"{name}.npy", volume)
    codes = []
    found = {}
    for name in ("same", "prediction"):
        images = [str(tmp_path / f"{one}.npy") for one in (name, "target")]
        codes.append(main(["score", *images, "--out", str(tmp_path / f"{name}.csv")]))
        (row,) = rows_of(tmp_path / f"{name}.csv")
        found[name] = float(row["cldice"])
    assert codes == [0, 0]
    assert found["same"] == 1
    # The ridge of the cube has 2**3 points and that of the rod 2 * 2 * (18 - 2), as its ends are
    # less deep; the line of 9 points is its own skeleton, without the ends that thinning removes.
    line_points = skeletonize(solid(line)).sum()
    recall = (8 + line_points) / (8 + line_points + 2 * 2 * 16)
    assert found["prediction"] == pytest.approx(2 * recall / (1 + recall))
