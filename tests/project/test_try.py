"""The page "Try it here", in a real browser: its numbers are those of `ecc_core`."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ecc_core as ecc

DOCS = Path(__file__).parents[2] / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", "--dump-dom")
N_IMAGES = 200

IN_THE_BROWSER = """
const cases = JSON.parse(document.getElementById("cases").textContent);
const results = cases.map(({ pixels, height, width, connectivity, superlevel, threshold }) => {
  const values = Uint8Array.from(pixels);
  const of = [values, width, height, connectivity, superlevel];
  return { curve: [...eulerCurve(...of)], components: countComponents(...of, threshold) };
});
const slider = document.getElementById("try-threshold");
const readout = document.getElementById("try-readout");
const readouts = [readout.textContent];
const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
(async () => {
  slider.value = 140;
  slider.dispatchEvent(new Event("input"));
  await drawn();
  readouts.push(readout.textContent);
  const picture = document.getElementById("try-picture");
  const values = [...picture.getContext("2d").getImageData(0, 0, 512, 512).data];
  const inside = values.filter((value, i) => i % 4 === 2 && value > values[i - 2]).length;
  const superlevel = document.getElementById("try-superlevel");
  superlevel.value = "true";
  superlevel.dispatchEvent(new Event("change"));
  readouts.push(readout.textContent);
  const found = document.createElement("output");
  found.textContent = JSON.stringify({ results, readouts, inside });
  document.body.append(found);
})();
"""


def random_case(rng):
    height, width = rng.integers(1, 33, 2).tolist()
    levels = rng.choice([2, 4, 30, 256])
    image = rng.integers(0, levels, (height, width)) * (255 // (levels - 1))
    case = {"height": height, "width": width, "pixels": image.ravel().tolist()}
    case |= {"connectivity": int(rng.integers(1, 3)), "superlevel": bool(rng.integers(2))}
    return image.astype(np.uint8), case | {"threshold": int(rng.integers(256))}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The images with their options, and what the browser says of them and of the page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("needs a browser: tools/ensure_system.sh installs chromium")
    rng = np.random.default_rng(0)
    cases = [random_case(rng) for _ in range(N_IMAGES)]
    text = (DOCS / "try.md").read_text(encoding="utf-8")
    body = re.search(r"```{raw} html\n(.*?)```", text, re.DOTALL)[1]
    body = body.replace('src="_static', f'src="{DOCS.as_uri()}/_static')
    data = json.dumps([case for _, case in cases])
    page = tmp_path_factory.mktemp("try") / "page.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><body>{body}'
        f'<script type="application/json" id="cases">{data}</script>'
        f"<script>{IN_THE_BROWSER}</script>",
        encoding="utf-8",
    )
    command = [browser, *OPTIONS, "--virtual-time-budget=10000", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    output = re.search(r"<output>(.*?)</output>", done.stdout, re.DOTALL)
    assert output, done.stderr
    return [image for image, _ in cases], cases, json.loads(html.unescape(output[1]))


def test_curves_are_those_of_the_library(seen):
    images, cases, found = seen
    for image, (_, case), result in zip(images, cases, found["results"], strict=True):
        options = {name: case[name] for name in ("connectivity", "superlevel")}
        curve = ecc.euler_curve(image, np.arange(256), **options)
        np.testing.assert_array_equal(result["curve"], curve.values)
        t = case["threshold"]
        chosen = image >= t if case["superlevel"] else image <= t
        components, _ = ecc.betti_numbers(chosen, case["connectivity"])
        assert result["components"] == components


def test_the_threshold_can_be_dragged(seen):
    _, _, found = seen
    number = r"(-?\d+)"
    pattern = (
        f"threshold {number}: χ = {number} components \N{MINUS SIGN} {number} holes = {number}"
    )
    readouts = [re.fullmatch(pattern, text).groups() for text in found["readouts"]]
    numbers = np.array(readouts, int)
    assert numbers[:, 0].tolist() == [135, 140, 140]
    np.testing.assert_array_equal(numbers[:, 1] - numbers[:, 2], numbers[:, 3])
    assert len(set(numbers[:, 3].tolist())) == 3
    assert 0.5 < found["inside"] / 512**2 < 0.7  # blue where the example is at most 140
