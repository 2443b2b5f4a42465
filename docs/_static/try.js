/* The page "Try it": an image, the set at a threshold, and the curve, drawn in the browser. */
"use strict";

(() => {
  const find = (name) => document.getElementById(`try-${name}`);
  const [picture, plot, slider, least, readout] = ["picture", "plot", "threshold", "least", "readout"].map(find);
  let [image, of, components, holes, curve] = [];

  const options = () => ({ threshold: Number(slider.value), atLeast: Number(least.value) });
  const shown = (level) => Number((image.low + level * image.unit).toPrecision(6));

  /** Bright cells on a dark ground with noise, some of which touch: the same at every visit. */
  function example(side) {
    let seed = 7;
    const next = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const cells = Array.from({ length: 48 }, (_, i) => {
      const [x, y] = [(i % 7) + 0.1 + 0.9 * next(), Math.floor(i / 7) + 0.1 + 0.9 * next()].map((n) => (n * side) / 7);
      return [x, y, Math.PI * next(), 9 + 4 * next(), 13 + 6 * next(), 70 + 90 * next()];
    });
    const values = new Uint16Array(side * side);
    for (let y = 0; y < side; y++) {
      for (let x = 0; x < side; x++) {
        let light = 0;
        for (const [cx, cy, turn, a, b, strength] of cells) {
          const [u, v] = [x - cx, y - cy];
          const p = (u * Math.cos(turn) + v * Math.sin(turn)) / a;
          const q = (v * Math.cos(turn) - u * Math.sin(turn)) / b;
          light = Math.max(light, strength * Math.exp(-((p * p + q * q) ** 2) / 2) * (1 - 0.12 * (p * p + q * q)));
        }
        values[y * side + x] = Math.max(0, 22 + light + 9 * (next() + next() + next() - 1.5));
      }
    }
    return { values, width: side, height: side, levels: 256, low: 0, unit: 1 };
  }

  /** Grey; blue tones in the set; with objects, a colour for each one. */
  function drawSet({ threshold }) {
    const { width, height, levels } = image;
    const { labels, count, limit } = labelsOfBasins(components, threshold, of);
    const tints = [[0.1, 0.5, 0.9], [0.9, 0.45, 0.1], [0.1, 0.7, 0.4], [0.9, 0.75, 0.1], [0.75, 0.35, 0.6], [0.4, 0.75, 0.95]];
    const inColour = find("objects").checked;
    const context = picture.getContext("2d");
    const pixels = context.createImageData(width, height);
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i += 4) {
        const place = (y + 1) * of.stride + x + 1;
        const grey = (255 * image.values[y * width + x]) / Math.max(1, levels - 1);
        const label = labels[components.owners[place]];
        const inside = of.keys[place] <= limit;
        const tint = !inside ? [1, 1, 1] : !inColour ? tints[0] : label ? tints[label % tints.length] : [1, 1, 1];
        const lift = inside && (label || !inColour) ? 70 : 0;
        tint.forEach((part, k) => (pixels.data[i + k] = part * (grey * (lift ? 0.7 : 1) + lift)));
        pixels.data[i + 3] = 255;
      }
    }
    context.putImageData(pixels, 0, 0);
    return count;
  }

  function drawCurve({ threshold }) {
    const context = plot.getContext("2d");
    const { width, height } = plot;
    const [left, right, top, bottom] = [58, 22, 12, 40];
    const low = curve.reduce((a, b) => Math.min(a, b), 0);
    const high = curve.reduce((a, b) => Math.max(a, b), 1);
    const last = Math.max(1, image.levels - 1);
    const x = (t) => left + ((width - left - right) * t) / last;
    const y = (chi) => height - bottom - ((height - top - bottom) * (chi - low)) / (high - low);
    const line = (colour, thickness, points) => {
      context.beginPath();
      context.strokeStyle = colour;
      context.lineWidth = thickness;
      for (const [a, b] of points) context.lineTo(a, b);
      context.stroke();
    };
    context.clearRect(0, 0, width, height);
    const ink = getComputedStyle(plot).color;
    line(ink, 0.5, [[x(0), y(0)], [x(last), y(0)]]);
    line("#d55e00", 2, [[x(threshold), top], [x(threshold), height - bottom]]);
    line("#0a84c6", 2.5, Array.from(curve, (chi, t) => [x(t), y(chi)]));
    context.fillStyle = ink;
    context.font = "15px sans-serif";
    context.textAlign = "center";
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const t = Math.round(part * last);
      context.fillText(shown(t), x(t), height - bottom + 19);
    }
    context.fillText("threshold", (left + width - right) / 2, height - 4);
    context.textAlign = "right";
    for (const chi of new Set([low, 0, high])) context.fillText(chi, left - 8, y(chi) + 5);
    context.fillText("χ", left - 8, y(0) - 20);
  }

  function draw() {
    const { threshold, atLeast } = options();
    const count = drawSet({ threshold });
    drawCurve({ threshold });
    const [b0, b1] = [components, holes].map((found) => bettiCurve(found, atLeast, of)[threshold]);
    const some = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
    readout.textContent =
      `threshold ${shown(threshold)}, at least ${Number((atLeast * image.unit).toPrecision(6))}: ` +
      `χ = ${some(b0, "component")} − ${some(b1, "hole")} = ${b0 - b1}; ${some(count, "object")}`;
  }

  /** What depends on how long components and holes last. */
  function filter() {
    const { atLeast } = options();
    components = flood(of, atLeast);
    const [b0, b1] = [components, holes].map((found) => bettiCurve(found, atLeast, of));
    curve = b0.map((n, t) => n - b1[t]);
    draw();
  }

  function compute() {
    of = filtration(image, Number(find("connectivity").value), find("superlevel").value === "true");
    holes = holesOf(of);
    filter();
  }

  function show(next, threshold, atLeast) {
    image = next;
    const last = image.levels - 1;
    Object.assign(picture, { width: image.width, height: image.height });
    Object.assign(slider, { max: last, value: threshold ?? Math.round(last / 2) });
    Object.assign(least, { max: last, value: atLeast ?? Math.round(last / 10) });
    compute();
  }

  async function open(file) {
    try {
      show(await readImage(file));
    } catch (error) {
      readout.textContent = `${file.name} cannot be read: ${error.message}`;
    }
  }

  let waiting = null; // There is at most one drawing a frame.
  function later(what) {
    if (!waiting) requestAnimationFrame(() => (([what, waiting] = [waiting, null]), what()));
    waiting = waiting === filter ? filter : what;
  }

  slider.addEventListener("input", () => later(draw));
  least.addEventListener("input", () => later(filter));
  find("objects").addEventListener("change", () => later(draw));
  for (const name of ["connectivity", "superlevel"]) find(name).addEventListener("change", compute);
  find("file").addEventListener("change", (event) => event.target.files[0] && open(event.target.files[0]));
  plot.addEventListener("pointerdown", (event) => plot.setPointerCapture(event.pointerId));
  plot.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    const place = (event.offsetX / plot.clientWidth) * plot.width;
    slider.value = Math.round(((image.levels - 1) * (place - 58)) / (plot.width - 80));
    later(draw);
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
  new MutationObserver(() => later(draw)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  show(example(384), 60, 25);
})();
