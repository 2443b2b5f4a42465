/* The page "Try it": an image, the set at a threshold, and the curve, drawn in the browser. */
"use strict";

(() => {
  const MOST = 1024; // larger images are scaled down to this many pixels a side
  const find = (name) => document.getElementById(`try-${name}`);
  const [picture, plot, slider, readout] = ["picture", "plot", "threshold", "readout"].map(find);
  const image = { values: new Uint8Array(1), width: 1, height: 1 };
  let curve = new Int32Array(256);

  const options = () => ({
    connectivity: Number(find("connectivity").value),
    superlevel: find("superlevel").value === "true",
    threshold: Number(slider.value),
  });

  /** Smooth noise: sums of waves, the same at every visit. */
  function example(side) {
    const waves = [];
    for (let i = 1, seed = 7; i <= 60; i++) {
      const next = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
      const [angle, length] = [2 * Math.PI * next(), 14 + 22 * next()];
      waves.push([Math.cos(angle) / length, Math.sin(angle) / length, next()]);
    }
    const values = new Uint8Array(side * side);
    for (let y = 0; y < side; y++) {
      for (let x = 0; x < side; x++) {
        let sum = 0;
        for (const [u, v, phase] of waves) sum += Math.cos(2 * Math.PI * (u * x + v * y + phase));
        values[y * side + x] = Math.max(0, Math.min(255, 128 + 6 * sum));
      }
    }
    return { values, width: side, height: side };
  }

  async function read(file) {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, MOST / Math.max(bitmap.width, bitmap.height));
    const [width, height] = [bitmap.width, bitmap.height].map((n) => Math.max(1, Math.round(n * scale)));
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    context.drawImage(bitmap, 0, 0, width, height);
    const rgba = context.getImageData(0, 0, width, height).data;
    const values = new Uint8Array(width * height);
    for (let i = 0; i < values.length; i++) {
      values[i] = 0.2126 * rgba[4 * i] + 0.7152 * rgba[4 * i + 1] + 0.0722 * rgba[4 * i + 2] + 0.5;
    }
    return { values, width, height };
  }

  function drawSet({ threshold, superlevel }) {
    const context = picture.getContext("2d");
    const pixels = context.createImageData(image.width, image.height);
    const colours = new Uint32Array(256);
    for (let value = 0; value < 256; value++) {
      const inside = superlevel ? value >= threshold : value <= threshold;
      const [red, green, blue] = inside ? [0.35 * value, 60 + 0.6 * value, 120 + 0.5 * value] : [value, value, value];
      colours[value] = 0xff000000 | (blue << 16) | (green << 8) | red; // little-endian, as everywhere
    }
    const out = new Uint32Array(pixels.data.buffer);
    for (let i = 0; i < out.length; i++) out[i] = colours[image.values[i]];
    context.putImageData(pixels, 0, 0);
  }

  function drawCurve({ threshold }) {
    const context = plot.getContext("2d");
    const { width, height } = plot;
    const [left, right, top, bottom] = [58, 22, 12, 40];
    const low = Math.min(0, ...curve);
    const high = Math.max(1, ...curve);
    const x = (t) => left + ((width - left - right) * t) / 255;
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
    line(ink, 0.5, [[x(0), y(0)], [x(255), y(0)]]);
    line("#d55e00", 2, [[x(threshold), top], [x(threshold), height - bottom]]);
    line("#0a84c6", 2.5, [...curve].map((chi, t) => [x(t), y(chi)]));
    context.fillStyle = ink;
    context.font = "15px sans-serif";
    context.textAlign = "center";
    for (const t of [0, 64, 128, 192, 255]) context.fillText(t, x(t), height - bottom + 19);
    context.fillText("threshold", (left + width - right) / 2, height - 4);
    context.textAlign = "right";
    for (const chi of new Set([low, 0, high])) context.fillText(chi, left - 8, y(chi) + 5);
    context.fillText("χ", left - 8, y(0) - 20);
  }

  function draw() {
    const { connectivity, superlevel, threshold } = options();
    drawSet({ threshold, superlevel });
    drawCurve({ threshold });
    const { values, width, height } = image;
    const components = countComponents(values, width, height, connectivity, superlevel, threshold);
    const [chi, holes] = [curve[threshold], components - curve[threshold]];
    readout.textContent = `threshold ${threshold}: χ = ${components} components − ${holes} holes = ${chi}`;
  }

  function compute() {
    const { connectivity, superlevel } = options();
    curve = eulerCurve(image.values, image.width, image.height, connectivity, superlevel);
    draw();
  }

  function show(next) {
    Object.assign(image, next);
    Object.assign(picture, { width: image.width, height: image.height });
    compute();
  }

  async function open(file) {
    try {
      show(await read(file));
    } catch {
      readout.textContent = `${file.name} is not an image that this browser can read.`;
    }
  }

  let waiting = false; // at most one drawing a frame
  function later() {
    if (!waiting) requestAnimationFrame(() => ((waiting = false), draw()));
    waiting = true;
  }

  slider.addEventListener("input", later);
  for (const name of ["connectivity", "superlevel"]) find(name).addEventListener("change", compute);
  find("file").addEventListener("change", (event) => event.target.files[0] && open(event.target.files[0]));
  plot.addEventListener("pointerdown", (event) => plot.setPointerCapture(event.pointerId));
  plot.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    const place = (event.offsetX / plot.clientWidth) * plot.width;
    slider.value = Math.round((255 * (place - 58)) / (plot.width - 80));
    later();
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
  new MutationObserver(later).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  show(example(512));
})();
