"""What the commands refuse, each in one line that says why, before anything is written."""

import shlex
from importlib.util import find_spec

import numpy as np
import pytest
from io_helpers import noise

from ecc_core.quantities._base import Joins
from ecc_core.quantities.components import Components

CURVE = [
    ("--thresholds 9,1", "--thresholds"),
    ("--thresholds 1,nan", "--thresholds"),
    ("--thresholds 0", "at least 1, got '0'; the one threshold 0 is '0,'"),
    ("--thresholds -3", "at least 1, got '-3'; the one threshold -3 is '-3,'"),
    ("--thresholds some", "must be how many, exact, or numbers"),
    ("--thresholds 1,,2", "must be how many, exact, or numbers"),
    ("--range 1", "must be two numbers lo,hi, got '1'"),
    ("--range 1,2,3", "must be two numbers lo,hi"),
    ("--range 5,1", "--range"),
    ("--range 0,1 --thresholds exact", "--range"),
    ("--connectivity 3", "--connectivity must be 1 or 2 for a 2-D image, got 3"),
    ("--connectivity x", "invalid int value: 'x'"),
    ("--smooth 0", "must be a positive number, or one for each axis, got '0'"),
    ("--smooth x", "must be a positive number, or one for each axis"),
    ("--smooth nan", "must be a positive number, or one for each axis"),
    ("--smooth 1,2,3", "--smooth must be one number or 2 of them, got 3"),
    ("--smooth 1 --spacing 2", "--spacing needs --direction, --mink"),
    ("--unit mm", "--unit needs --direction, --minkowski or --smooth"),
    ("--unit parsnip", "must be one of kilometer, meter"),
    ("--nan drop", "invalid choice: 'drop'"),
    ("--channel 0", "--channel must be left out"),
    ("--level 1", "has levels 0 to 0, got level 1"),
    ("--axes X", "--axes must be one letter per axis"),
    ("--conn 1", "unrecognized arguments"),
    ("--minkowski exact --spacing 1,2,3", "be one number or 2 of them"),
    ("--betti --boundary half-open", "must be closed or periodic"),
    ("--thresholds exact --minkowski", "a list together with --minkow"),
    ("--persistence 2", "together with --betti"),
    ("--minkowski --density --labels {plane}", "--labels: it divides by the size of the whole"),
    ("--minkowski --density --betti", "--betti: it divides measures"),
    ("--minkowski --density --components", "--components: it divides measures"),
    ("--components --labels {plane}", "--labels: regions have no components"),
    ("--components --boundary half-open", "closed or periodic together with --components"),
    ("--components --boundary closed,half-open", "--components, got closed,half-open"),
    ("--betti --boundary closed,half-open", "closed or periodic together with --betti, got closed"),
    ("--boundary closed,open", "--boundary: must be closed or periodic or half-open, or one of"),
    (
        "--boundary closed,periodic,closed",
        "one for each of the 2 spatial axes, got closed,periodic,clo",
    ),
    ("--mask {nothing}", "nothing.npy: --mask must be 0 or not at every point, got NaN"),
    ("--boundary half-open,closed --mask {plane}", "half-open along all axes or along none"),
    ("--boundary half-open,closed --labels {plane}", "stands alone along others, got half-open,cl"),
    ("--components --thresholds exact", "a list together with --components"),
    ("--device cuda", "--device: ecc curve computes in this process"),
    ("--resume", "--resume: ecc curve computes in this process"),
    ("--json --out {out}.csv", "--json must not be given together with --out"),
]
STACK = [
    ("--range 300,400", "--range 300,400 has no value of uint8"),
    ("--range 4,1", "--range must be finite with low <= high"),
    ("--thresholds 2,1", "--thresholds must be increasing"),
    ("--thresholds 9223372036854775808", "must be how many, exact, or numbers"),
    ("--thresholds exact", "a number or a list, since the image is not in memory: use ecc curve"),
    ("--connectivity 2", "--connectivity must be 1 or 3"),
    ("--roi :,:", "--roi must have a range for each of the axes ZYX, got 2"),
    ("--roi :-9,:,:", "--roi leaves nothing of axis Z, of 9"),
    ("--thresholds 1,2 --range 0,3", "--range must be left out where --thresholds are a list"),
    ("--roi 3:3,:,:", "--roi leaves nothing of axis Z, of 9"),
    ("--channel 0", "--channel must be left out, the axes ZYX have none, got 0"),
    ("--axes ABC", "none of its axes ABC of shape (9, 20, 17) is Z, Y or X"),
    ("--direction 1,0", "--direction must have shape (3,), got (2,)"),
    ("--direction 0,0,0", "--direction must be finite and not zero"),
    ("--direction 1,0,0 --direction-scale 1e308", "must keep the added heights finite"),
    ("--direction 1,0,0 --spacing 0", "--spacing must be positive and finite"),
    ("--spacing 2", "--spacing needs --direction"),
    ("--unit mm", "--unit needs --direction, --minkowski or --smooth"),
    ("--direction-scale 2", "--direction-scale must be given together with --direction"),
    ("--max-memory 1", "need --max-memory of at least 85, got 1"),
    (f"--betti --persistence {10**400}", "--persistence must be within the range of floats"),
    ("--betti --persistence 3 --resume", "must have no --resume with --persistence"),
    ("--betti --persistence 3 --minkowski exact", "must have no --minkowski with --persistence"),
    ("--betti --labels x", "must not be given together with --labels"),
    ("--betti --device cuda", "given with --device cpu, got cuda"),
    ("--betti --boundary periodic", "must be closed together with"),
    ("--betti --boundary closed,closed,periodic", "must be closed together with --betti"),
    ("--components --boundary periodic", "must be closed together with --components"),
    ("--boundary periodic --direction 1,0,0 --range 0,9", "heights differ on opposite sides"),
    ("--minkowski crofton-4", "'exact', 'crofton-3' or 'crofton-13'"),
]
TRANSFORM = [
    ("--out {out}.npy", "argument --out: "),
    ("--out {out}.npz --directions 0", "must be a positive number, got '0'"),
    ("--out {out}.npz --spacing a", "must be numbers, got 'a'"),
    ("--out {out}.npz --labels --spacing 0", "--spacing must be positive and finite"),
    ("--out {out}.npz", "0 and one other value; --threshold T takes the points of at least T"),
    ("--out {out}.npz --threshold a", "must be a number, got 'a'"),
    ("--out {out}.npz --threshold 2,3", "must be a number, got '2,3'"),
    ("--out {out}.npz --labels --connectivity 3", "must be 1 or 2 for a 2-D image"),
    ("--out {out}.npz --labels --weighted", "not allowed with argument"),
    ("--out {out}.npz --normalize radius", "--normalize needs --labels"),
    ("--out {out}.npz --betti", "--betti: a transform counts"),
    ("--out {out}.npz --density", "--density: a transform counts"),
    ("--out {out}.npz --persistence 2", "--persistence: a transform counts"),
    ("--out {out}.npz --smooth 1", "--smooth needs --threshold or --weighted"),
    ("", "nothing to write: give --out, --plot or both"),
]
OTHERS = [
    ("", "COMMAND"),
    ("curve", "INPUT"),
    ("frob", "invalid choice: 'frob'"),
    ("info {out}.png", "no such file or folder"),
    ("curve none.png --out {out}.txt", "must be one of .csv, .parquet, .json"),
    ("curve none.png --plot {out}.csv", "must be one of .png, .pdf, .svg"),
    ("curve none.png --out {out}/c.csv", "there is no folder"),
    ("curve {plane} none.png --out {out}.csv --plot {out}.png", "none.png: no such file"),
    ("stack {out}.zarr --out {out}.csv", "no such file or folder"),
    ("stack memory://no/a.zarr --out {out}.csv", "error: memory://no/a.zarr: no Zarr image there"),
    ("stack nonsense://a.zarr --out {out}.csv", "nonsense://a.zarr: Protocol not known: nonsense"),
    pytest.param(
        "stack s3://bucket/a.zarr --out {out}.csv",
        "error: Install s3fs to access S3",
        marks=pytest.mark.skipif(find_spec("s3fs") is not None, reason="s3fs is installed"),
    ),
    pytest.param(
        "stack {volume} --out {out}.csv --device cuda",
        '--device cuda needs cupy: pip install ".[cuda12]"',
        marks=pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed"),
    ),
    ("batch {plane} --out {out}.csv --thresholds 5", "--range must be given, so that all images"),
    ("batch {plane} --out {out}.csv --thresholds 1,1", "--thresholds must differ"),
    ("batch {plane} --out {out}.csv --thresholds 1, --unit mm", "--unit needs --direction"),
    ("batch {out}*.zarr --out {out}.csv --thresholds 1,", "*.zarr: no such file or folder"),
    (
        "batch {plane} --out {out}.csv --thresholds exact --labels x",
        "a list together with --labels",
    ),
    ("objects {plane}", "required: --persistence"),
    ("objects {plane} {volume} --persistence 2", "volume.npy: objects are those of one image"),
    ("objects {plane} --persistence 2 --density", "--density: ecc curve computes this"),
    ("objects {plane} --persistence -2", "must be a number that is not negative"),
    ("objects {plane} --persistence nan", "must be a number that is not negative"),
    ("objects {plane} --persistence 2 --cut 50", "--cut: must be half or a number from 0 to 1"),
    ("objects {plane} --persistence 2 --out {plane}", "overwrite the input"),
    ("objects {plane} --persistence 2 --out l.png", ".tif, .tiff, .npy"),
    ("objects {plane} --persistence 2 --mask {volume}", "--mask must have"),
    ("objects {plane} --persistence 2 --unit um", "--unit micrometer needs --spacing"),
    ("objects {volume} --axes CYX --persistence 2", "one with --channel"),
    ("surface {plane} {plane}", "nothing to write: give --out, --plot or both"),
    ("surface {plane} {volume} --axes CYX --out {out}.npz", "--axes must be one letter"),
    ("surface {volume} {volume} --axes CYX --out {out}.npz", "choose one with --channel"),
    ("surface {plane} {plane} --out {out}.npz --thresholds-first exact", "--thresholds-first must"),
    ("surface {plane} {volume} --out {out}.npz", "second image must have the same shape"),
]
LINES = [
    *((f"curve {{plane}} {flags}", words) for flags, words in CURVE),
    *((f"stack {{volume}} --out {{out}}.csv {flags}", words) for flags, words in STACK),
    *((f"transform {{plane}} {flags}", words) for flags, words in TRANSFORM),
    *OTHERS,
]


@pytest.mark.parametrize(("line", "words"), LINES)
def test_one_line_says_why(tmp_path, refuse, line, words):
    images = {
        "plane": noise(12, 9),
        "volume": noise(9, 20, 17),
        "nothing": np.full((12, 9), np.nan, np.float32),
    }
    paths = {name: tmp_path / f"{name}.npy" for name in images}
    for name, image in images.items():
        np.save(paths[name], image)
    command = line.format(**paths, out=tmp_path / "out")
    assert words in refuse(*shlex.split(command))
    assert sorted(tmp_path.iterdir()) == sorted(paths.values())


def test_a_quantity_that_blocks_do_not_have_says_why(tmp_path, refuse, monkeypatch):
    """There is none today: the components of a quantity whose boxes cannot be joined."""
    monkeypatch.setattr(Components, "joins", Joins("not", "its boxes cannot be joined"))
    np.save(tmp_path / "volume.npy", noise(9, 20, 17))
    paths = str(tmp_path / "volume.npy"), "--out", str(tmp_path / "out.csv")
    message = refuse("stack", *paths, "--components")
    assert "--components must not be given (its boxes cannot be joined)" in message
