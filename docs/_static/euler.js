/* Components and holes of grey images at all thresholds, and how long they last, as in ecc_core. */
"use strict";

/**
 * The image in a frame of one pixel. Keys are the values, in reverse for superlevel sets, so that a
 * pixel with key k is in the set from threshold k on. Neighbours are 4 (connectivity 1) or 8 (2).
 */
function filtration({ values, width, height, levels }, connectivity, superlevel) {
  const stride = width + 2;
  const keys = new Int32Array(stride * (height + 2));
  const firsts = new Int32Array(levels + 1); // Where the pixels of each key start in their order.
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const value = values[y * width + x];
      const key = superlevel ? levels - 1 - value : value;
      keys[(y + 1) * stride + x + 1] = key;
      firsts[key + 1]++;
    }
  }
  for (let key = 0; key < levels; key++) firsts[key + 1] += firsts[key];
  const order = new Int32Array(width * height);
  for (let y = 1; y <= height; y++) {
    for (let i = y * stride + 1; i <= y * stride + width; i++) order[firsts[keys[i]]++] = i;
  }
  return { keys, order, stride, width, height, levels, connectivity, superlevel };
}

/**
 * Flood the pixels in their order. Each one belongs to the oldest basin beside it, and where
 * components meet all but the oldest die. A component that lasts less than `least` becomes part
 * of the basin there (`joined`); basins are numbered from the oldest. If `framed`, the outermost
 * pixels are a basin that is there before all others.
 */
function flood({ keys, order, stride, connectivity, levels }, least, framed = false) {
  const steps = [-stride, -1, 1, stride];
  if (connectivity === 2) steps.push(-stride - 1, -stride + 1, stride - 1, stride + 1);
  const owners = new Int32Array(keys.length).fill(-1);
  const [births, deaths, joined, basins, components] = [[], [], [], [], []];
  const begin = (key) => {
    const number = births.push(key) - 1;
    deaths.push(levels);
    for (const parents of [joined, basins, components]) parents.push(number);
  };
  const root = (parents, i) => {
    while (parents[i] !== i) i = parents[i] = parents[parents[i]];
    return i;
  };
  if (framed) {
    begin(-1);
    owners.fill(0);
    for (const point of order) owners[point] = -1;
  }
  for (const point of order) {
    let home = births.length;
    for (const step of steps) {
      const owner = owners[point + step];
      if (owner >= 0) home = Math.min(home, root(basins, owner));
    }
    const key = keys[point];
    if (home === births.length) begin(key);
    owners[point] = home;
    let oldest = root(components, home);
    for (const step of steps) {
      const owner = owners[point + step];
      const other = owner < 0 ? oldest : root(components, owner);
      if (other === oldest) continue;
      const young = Math.max(oldest, other);
      oldest = Math.min(oldest, other);
      components[young] = oldest;
      deaths[young] = key;
      const gap = key - births[young];
      if (gap === 0 || gap < least) basins[young] = joined[young] = home;
    }
  }
  return { owners, births, deaths, joined };
}

/**
 * Births and deaths of the holes. A hole is a component of the complement, for the other
 * neighbours, that does not reach the frame: with falling thresholds it is born where the hole ends.
 */
function holesOf(of) {
  const { order, keys, levels, connectivity } = of;
  const turned = (key) => levels - 1 - key;
  const complement = { keys: keys.map(turned), order: order.slice().reverse(), connectivity: 3 - connectivity };
  const { births, deaths } = flood({ ...of, ...complement }, 0, true);
  return { births: deaths.slice(1).map(turned), deaths: births.slice(1).map(turned) };
}

/** How many classes that last for `least` or longer there are at every threshold. */
function bettiCurve({ births, deaths }, least, { levels, superlevel }) {
  const curve = new Int32Array(levels + 1);
  for (let i = 0; i < births.length; i++) {
    if (deaths[i] < levels && deaths[i] - births[i] < least) continue;
    curve[births[i]]++;
    curve[deaths[i]]--;
  }
  for (let t = 1; t < levels; t++) curve[t] += curve[t - 1];
  const found = curve.subarray(0, levels);
  return superlevel ? found.reverse() : found;
}

/** The label of each basin at a threshold: 1, 2, ... for those that last, oldest first, or 0. */
function labelsOfBasins({ births, deaths, joined }, threshold, { levels, superlevel }) {
  const limit = superlevel ? levels - 1 - threshold : threshold;
  const labels = new Int32Array(births.length);
  let count = 0;
  for (let i = 0; i < births.length; i++) {
    if (joined[i] === i) labels[i] = births[i] <= limit ? ++count : 0;
    else labels[i] = deaths[i] <= limit ? labels[joined[i]] : 0;
  }
  return { labels, count, limit };
}
