/* Images from files: what the browser reads, PNG of 16 bits, and TIFF. */
"use strict";

const MOST = 1024; // Larger images are averaged down to at most this many pixels a side.

const inflated = async (bytes) => {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};
const grey = (red, green, blue) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;

/** The first channel, or the grey of the first three, of interleaved samples. */
function asGrey(samples, channels) {
  const found = new Float64Array(samples.length / channels);
  for (let i = 0, j = 0; i < found.length; i++, j += channels) {
    found[i] = channels < 3 ? samples[j] : Math.round(grey(samples[j], samples[j + 1], samples[j + 2]));
  }
  return found;
}

/** Blocks of pixels averaged until no side is too long. */
function shrunk({ samples, width, height }) {
  const block = Math.ceil(Math.max(width, height) / MOST);
  if (block === 1) return { samples, width, height };
  const [w, h] = [width, height].map((n) => Math.max(1, Math.floor(n / block)));
  const found = new Float64Array(w * h);
  for (let y = 0; y < h * block && y < height; y++) {
    for (let x = 0; x < w * block && x < width; x++) {
      found[Math.floor(y / block) * w + Math.floor(x / block)] += samples[y * width + x];
    }
  }
  const counts = Math.min(block, width) * Math.min(block, height);
  return { samples: found.map((sum) => Math.round(sum / counts)), width: w, height: h };
}

/** Values as numbers 0 ... levels - 1; of level k the value is low + k * unit. */
function coded(image) {
  const { samples, width, height } = image.whole ? shrunk(image) : image;
  let [least, most] = [Infinity, -Infinity];
  for (const value of samples) {
    if (!Number.isFinite(value)) throw new Error("the image has values that are not finite");
    [least, most] = [Math.min(least, value), Math.max(most, value)];
  }
  const whole = image.whole && most - least < 65536;
  const [low, unit] = whole ? [Math.min(0, least), 1] : [least, (most - least) / 65535 || 1];
  const values = Uint16Array.from(samples, (value) => Math.round((value - low) / unit));
  return { values, width, height, levels: Math.round((most - low) / unit) + 1, low, unit };
}

async function readBitmap(file) {
  const bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  const { width, height } = bitmap;
  const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  return { samples: asGrey(data, 4), width, height, whole: true };
}

/** A PNG of 16 bits that is not interlaced, or null: browsers make 8 bits of them. */
async function readPng(bytes) {
  const view = new DataView(bytes.buffer);
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  const channels = { 0: 1, 2: 3, 4: 2, 6: 4 }[bytes[25]];
  if (bytes[24] !== 16 || bytes[28]) return null;
  const parts = [];
  for (let at = 8; at < bytes.length; at += 12 + view.getUint32(at)) {
    const data = bytes.subarray(at + 8, at + 8 + view.getUint32(at));
    if (String.fromCharCode(...bytes.subarray(at + 4, at + 8)) === "IDAT") parts.push(data);
  }
  const filtered = await inflated(await new Blob(parts).arrayBuffer());
  const [bpp, row] = [2 * channels, 2 * channels * width];
  const raw = new Uint8Array(row * height);
  for (let y = 0; y < height; y++) {
    const kind = filtered[y * (row + 1)];
    for (let x = 0; x < row; x++) {
      const at = y * row + x;
      const a = x >= bpp ? raw[at - bpp] : 0;
      const b = y ? raw[at - row] : 0;
      const c = x >= bpp && y ? raw[at - row - bpp] : 0;
      const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
      const paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
      raw[at] = filtered[y * (row + 1) + 1 + x] + [0, a, b, (a + b) >> 1, paeth][kind];
    }
  }
  const samples = Float64Array.from({ length: raw.length / 2 }, (_, i) => 256 * raw[2 * i] + raw[2 * i + 1]);
  return { samples: asGrey(samples, channels), width, height, whole: true };
}

/** Codes of 9 to 12 bits, as TIFF writes them. */
function lzw(bytes) {
  const out = [];
  let [table, bits, last, buffer, held] = [[], 9, null, 0, 0];
  const reset = () => {
    table = Array.from({ length: 258 }, (_, i) => [i]);
    [bits, last] = [9, null];
  };
  for (const byte of bytes) {
    [buffer, held] = [((buffer << 8) | byte) & 0xffffff, held + 8];
    if (held < bits) continue;
    held -= bits;
    const code = (buffer >> held) & ((1 << bits) - 1);
    if (code === 257) break;
    if (code === 256) {
      reset();
      continue;
    }
    const found = code < table.length ? table[code] : [...last, last[0]];
    for (const value of found) out.push(value);
    if (last) table.push([...last, found[0]]);
    last = found;
    bits = table.length >= 2047 ? 12 : table.length >= 1023 ? 11 : table.length >= 511 ? 10 : 9;
  }
  return Uint8Array.from(out);
}

function packBits(bytes) {
  const out = [];
  for (let at = 0; at < bytes.length; ) {
    const n = (bytes[at++] << 24) >> 24;
    if (n >= 0) for (let k = 0; k <= n; k++) out.push(bytes[at++]);
    else if (n > -128) for (let k = bytes[at++], left = 1 - n; left > 0; left--) out.push(k);
  }
  return Uint8Array.from(out);
}

/** The first page of a TIFF of whole numbers or floats. */
async function readTiff(bytes) {
  const little = bytes[0] === 0x49;
  const view = new DataView(bytes.buffer);
  if (view.getUint16(2, little) !== 42) throw new Error("BigTIFF is not read here");
  const tags = {};
  const start = view.getUint32(4, little);
  for (let k = 0; k < view.getUint16(start, little); k++) {
    const at = start + 2 + 12 * k;
    const [type, count] = [view.getUint16(at + 2, little), view.getUint32(at + 4, little)];
    const size = { 1: 1, 3: 2, 4: 4 }[type];
    if (!size) continue;
    const place = size * count <= 4 ? at + 8 : view.getUint32(at + 8, little);
    const read = `getUint${8 * size}`;
    tags[view.getUint16(at, little)] = Array.from({ length: count }, (_, i) => view[read](place + i * size, little));
  }
  const of = (tag, other) => (tags[tag] ?? [other])[0];
  const [width, height, bits, channels] = [of(256), of(257), of(258, 1), of(277, 1)];
  const [method, predictor, format, tiled] = [of(259, 1), of(317, 1), of(339, 1), 324 in tags];
  const [partWidth, partHeight] = tiled ? [of(322), of(323)] : [width, Math.min(height, of(278, height))];
  const name = { 1: "Uint", 2: "Int", 3: "Float" }[format] + bits;
  const unpack = { 1: (part) => part, 5: lzw, 8: inflated, 32946: inflated, 32773: packBits }[method];
  if (!unpack || !view[`get${name}`] || predictor > 2 || (of(284, 1) === 2 && channels > 1)) {
    throw new Error(`compression ${method}, predictor ${predictor} or type ${name} of TIFF is not read here`);
  }
  const [offsets, lengths] = tiled ? [tags[324], tags[325]] : [tags[273], tags[279]];
  const samples = new Float64Array(width * height * channels);
  const across = Math.ceil(width / partWidth);
  for (let k = 0; k < offsets.length; k++) {
    const part = await unpack(bytes.subarray(offsets[k], offsets[k] + lengths[k]));
    const data = new DataView(part.buffer, part.byteOffset, part.byteLength);
    const [left, top] = [(k % across) * partWidth, Math.floor(k / across) * partHeight];
    for (let y = 0; y < partHeight && top + y < height; y++) {
      const sums = new Float64Array(channels);
      for (let x = 0; x < partWidth * channels; x++) {
        let value = data[`get${name}`](((y * partWidth * channels + x) * bits) / 8, little);
        if (predictor === 2) {
          value = sums[x % channels] += value;
          value = format === 1 ? value % 2 ** bits : bits < 32 ? (value << (32 - bits)) >> (32 - bits) : value | 0;
        }
        if (left * channels + x < width * channels) samples[((top + y) * width + left) * channels + x] = value;
      }
    }
  }
  return { samples: asGrey(samples, channels), width, height, whole: format < 3 };
}

/** An image file as levels, by what its first bytes say that it is. */
async function readImage(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const [a, b, c] = bytes;
  const tiff = (a === 0x49 && b === 0x49 && c === 42) || (a === 0x4d && b === 0x4d) || (a === 0x49 && c === 43);
  const png = a === 0x89 && b === 0x50;
  return coded((tiff && (await readTiff(bytes))) || (png && (await readPng(bytes))) || (await readBitmap(file)));
}
