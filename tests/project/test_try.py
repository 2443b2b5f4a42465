"""The page "Try it here", in a real browser: its numbers and labels are those of `ecc_core`."""

import base64
import http.server
import io
import json
import queue
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

import ecc_core as ecc

DOCS = Path(__file__).parents[2] / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900")
N_IMAGES = 200

IN_THE_BROWSER = """
const given = (name) => JSON.parse(document.getElementById(name).textContent);
const told = (text) => fetch(given("server"), { method: "POST", mode: "no-cors", body: text });
addEventListener("error", ({ message }) => told(message));
addEventListener("unhandledrejection", ({ reason }) => told(String(reason.stack)));
const results = given("cases").map((given_case) => {
  const { height, width, least, threshold } = given_case;
  const of = filtration(given_case, given_case.connectivity, given_case.superlevel);
  const components = flood(of, least);
  const { labels, limit } = labelsOfBasins(components, threshold, of);
  const found = [];
  for (let y = 1; y <= height; y++) {
    for (let x = 1; x <= width; x++) {
      const i = y * of.stride + x;
      found.push(of.keys[i] <= limit ? labels[components.owners[i]] : 0);
    }
  }
  const curves = [components, holesOf(of)].map((part) => [...bettiCurve(part, least, of)]);
  return { curves, labels: found };
});
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const element = (name) => document.getElementById(`try-${name}`);
const readouts = [element("readout").textContent];
const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
(async () => {
  for (const [name, value] of [["threshold", 70], ["least", 0]]) {
    element(name).value = value;
    element(name).dispatchEvent(new Event("input"));
    await drawn();
    readouts.push(element("readout").textContent);
  }
  const { data } = element("picture").getContext("2d").getImageData(0, 0, 384, 384);
  const coloured = data.filter((value, i) => i % 4 === 0 && value !== data[i + 2]).length;
  element("superlevel").value = "false";
  element("superlevel").dispatchEvent(new Event("change"));
  readouts.push(element("readout").textContent);
  const files = [];
  for (const text of given("files")) {
    const read = readImage(new Blob([bytesOf(text)]));
    const image = await read.catch((error) => ({ values: [String(error)] }));
    files.push({ ...image, values: [...image.values], shape: [image.height, image.width] });
  }
  await told(JSON.stringify({ results, readouts, coloured, files }));
})();
"""


def random_case(rng):
    height, width = rng.integers(1, 25, 2).tolist()
    levels = rng.choice([2, 4, 30, 256, 65_536])
    image = rng.integers(0, levels, (height, width))
    case = {"height": height, "width": width, "values": image.ravel().tolist()}
    case |= {"connectivity": int(rng.integers(1, 3)), "superlevel": bool(rng.integers(2))}
    least, threshold = rng.integers(0, levels, 2).tolist()
    return image.astype(np.uint16), case | {
        "levels": 256 if levels <= 256 else 65_536,
        "least": least // 2,
        "threshold": threshold,
    }


def file_of(image, kind, **options):
    """An image as the bytes of a file."""
    buffer = io.BytesIO()
    if kind == "tifffile":
        tifffile.imwrite(buffer, image, **options)
    else:
        Image.fromarray(image).save(buffer, kind, **options)
    return buffer.getvalue()


def files():
    """Images, and files that hold them."""
    rng = np.random.default_rng(1)
    image = np.cumsum(rng.integers(0, 900, (70, 90)), axis=1).astype(np.uint16)
    bytes_ = (image >> 8).astype(np.uint8)
    return [
        (bytes_, file_of(bytes_, "png")),
        (image, file_of(image, "png")),
        (image, file_of(image, "tiff", compression="tiff_lzw")),
        (bytes_, file_of(bytes_, "tiff", compression="packbits")),
        (image, file_of(image, "tiff", compression="tiff_lzw", tiffinfo={317: 2})),
        (image, file_of(image, "tifffile", byteorder=">", rowsperstrip=16)),
        (image, file_of(image, "tifffile", compression="zlib", tile=(32, 48))),
        (image.astype(np.int16) - 900, file_of(image.astype(np.int16) - 900, "tifffile")),
        (image / np.float32(7), file_of(image / np.float32(7), "tifffile")),
    ]


@pytest.fixture(scope="module")
def posted():
    """The address of a server, and the texts that are posted to it."""
    texts = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            texts.put(self.rfile.read(length).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", texts
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def seen(tmp_path_factory, posted):
    """The images with their options, and what the browser says of them and of the page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("needs a browser: tools/ensure_system.sh installs chromium")
    rng = np.random.default_rng(0)
    cases = [random_case(rng) for _ in range(N_IMAGES)]
    text = (DOCS / "try.md").read_text(encoding="utf-8")
    body = re.search(r"```{raw} html\n(.*?)```", text, re.DOTALL)[1]
    body = body.replace('src="_static', f'src="{DOCS.as_uri()}/_static')
    address, texts = posted
    given = {"server": address, "cases": [case for _, case in cases]}
    given["files"] = [base64.b64encode(data).decode() for _, data in files()]
    folder = tmp_path_factory.mktemp("try")
    page = folder / "page.html"
    parts = (
        f'<script type="application/json" id="{name}">{json.dumps(data)}</script>'
        for name, data in given.items()
    )
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><body>{body}{"".join(parts)}'
        f"<script>{IN_THE_BROWSER}</script>",
        encoding="utf-8",
    )
    command = [browser, *OPTIONS, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            text = texts.get(timeout=120)
        except queue.Empty:
            pytest.fail((folder / "log").read_text())
        finally:
            running.kill()
            running.wait()
    assert text.startswith("{"), text
    return cases, json.loads(text)


def test_curves_and_objects_are_those_of_the_library(seen):
    cases, found = seen
    curves = []
    labels = []
    for image, case in cases:
        options = {name: case[name] for name in ("connectivity", "superlevel")}
        least = case["least"]
        t = np.arange(case["levels"])
        curves.append(ecc.betti_curves(image, t, min_persistence=least, **options).values)
        regions = ecc.persistent_regions(image, least, threshold=case["threshold"], **options)
        labels.append(regions.labels.ravel())
    np.testing.assert_equal([np.array(result["curves"]) for result in found["results"]], curves)
    np.testing.assert_equal([np.array(result["labels"]) for result in found["results"]], labels)


def test_files_keep_their_values(seen):
    for (image, _), file in zip(files(), seen[1]["files"], strict=True):
        assert file["shape"] == list(image.shape), file["values"][:1]
        values = file["low"] + file["unit"] * np.array(file["values"], float)
        off = np.abs(values - image.ravel()).max()
        assert off <= (0 if image.dtype.kind in "iu" else 0.51 * file["unit"])


def test_the_sliders_can_be_dragged(seen):
    number = r"(-?\d+)"
    pattern = (
        f"threshold {number}, at least {number}: χ = {number} components? \N{MINUS SIGN} "
        f"{number} holes? = {number}; {number} objects?"
    )
    readouts = [re.fullmatch(pattern, text).groups() for text in seen[1]["readouts"]]
    numbers = np.array(readouts, int)
    assert numbers[:, :2].tolist() == [[60, 25], [70, 25], [70, 0], [70, 0]]
    np.testing.assert_array_equal(numbers[:, 2] - numbers[:, 3], numbers[:, 4])
    assert 40 <= numbers[0, 5] <= 50  # Some of the 48 cells are hidden by others.
    assert numbers[2, 2] > numbers[1, 2]  # The noise has components of its own.
    assert numbers[2, 5] != numbers[3, 5]
    assert 0.1 < seen[1]["coloured"] / 384**2 < 0.5
