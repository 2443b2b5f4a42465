/* Euler characteristic curves of 8-bit images, as in ecc_core: all 256 thresholds in one pass. */
"use strict";

const LEVELS = 256; // a value beyond them, LEVELS itself, marks what is outside of the image

/** The image in a frame of one pixel; the values in reverse for superlevel sets. */
function framed(values, width, height, superlevel) {
  const stride = width + 2;
  const cells = new Uint16Array(stride * (height + 2)).fill(LEVELS);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const value = values[y * width + x];
      cells[(y + 1) * stride + x + 1] = superlevel ? LEVELS - 1 - value : value;
    }
  }
  return cells;
}

/**
 * The Euler characteristic of {image <= t}, or of {image >= t} if superlevel, for t = 0 ... 255.
 *
 * A pixel, the edges to the right and below, and the square between them count +1, -1, -1, +1, at
 * the largest value of the pixels that they need. That is connectivity 1 (4 neighbours). With
 * connectivity 2 (8 neighbours) pixels are closed squares, and an edge or a corner is there with
 * the first square that has it.
 */
function eulerCurve(values, width, height, connectivity = 2, superlevel = false) {
  const cells = framed(values, width, height, superlevel);
  const stride = width + 2;
  // The largest of some values is the smallest of them in reverse.
  if (connectivity === 1) cells.forEach((value, i) => (cells[i] = LEVELS - value));
  const changes = new Int32Array(LEVELS + 1);
  for (let y = 0; y <= height; y++) {
    let at = y * stride;
    let left = Math.min(cells[at], cells[at + stride]);
    for (let x = 0; x <= width; x++, at++) {
      const right = Math.min(cells[at + 1], cells[at + 1 + stride]);
      changes[cells[at]]++;
      changes[Math.min(cells[at], cells[at + 1])]--;
      changes[left]--;
      changes[Math.min(left, right)]++;
      left = right;
    }
  }
  if (connectivity === 1) changes.reverse();
  const curve = new Int32Array(LEVELS);
  for (let t = 0, sum = 0; t < LEVELS; t++) curve[t] = sum += changes[t];
  return superlevel ? curve.reverse() : curve;
}

/** The number of components of the set at one threshold, by union and find. */
function countComponents(values, width, height, connectivity, superlevel, threshold) {
  const cells = framed(values, width, height, superlevel);
  const stride = width + 2;
  const limit = superlevel ? LEVELS - 1 - threshold : threshold;
  const steps = connectivity === 1 ? [1, stride] : [1, stride - 1, stride, stride + 1];
  const parents = new Int32Array(cells.length);
  for (let i = 0; i < parents.length; i++) parents[i] = i;
  const root = (i) => {
    while (parents[i] !== i) i = parents[i] = parents[parents[i]];
    return i;
  };
  let count = 0;
  for (let i = 0; i < cells.length; i++) {
    if (cells[i] > limit) continue;
    count++;
    for (const step of steps) {
      if (cells[i + step] > limit) continue;
      const a = root(i);
      const b = root(i + step);
      if (a !== b) {
        parents[Math.max(a, b)] = Math.min(a, b);
        count--;
      }
    }
  }
  return count;
}
