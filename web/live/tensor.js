// Tensors: numbers out of text, bytes out of numbers, requests and answers of the protocol. Nothing here knows the page.

const plain = { UINT8: Uint8Array, UINT16: Uint16Array, UINT32: Uint32Array, INT8: Int8Array, INT16: Int16Array, INT32: Int32Array, FP32: Float32Array, FP64: Float64Array };
const halves = { FP16: Uint16Array, BF16: Uint16Array };
const wide = { UINT64: BigUint64Array, INT64: BigInt64Array };
const tooLarge = { FP16: 65520, BF16: 2 ** 128 - 2 ** 119, FP32: 2 ** 128 - 2 ** 103, FP64: Infinity }; // what is rounded to infinity, and all above
const ranges = { UINT8: [0, 255], UINT16: [0, 65535], UINT32: [0, 4294967295], INT8: [-128, 127], INT16: [-32768, 32767], INT32: [-2147483648, 2147483647] };

export const elements = (shape) => shape.reduce((product, each) => product * each, 1);
export const isWhole = (datatype) => datatype in ranges || datatype in wide;

// As FP16 and BF16, which have no typed array everywhere.
const single = new Float32Array(1), bits = new Uint32Array(single.buffer), double = new Float64Array(1), doubleBits = new Uint32Array(double.buffer);
// The nearest number of so many binary digits and no exponent below `least`; the even one of two that are as near.
const nearest = (value, digits, least) => {
  double[0] = value;
  const exponent = Math.min(127, Math.max(least, ((doubleBits[1] >>> 20) & 2047) - 1023)), large = 1.5 * 2 ** (53 + exponent - digits);
  return Math.sign(value) * (Math.abs(value) + large - large); // the sum has no room for further digits
};
const toHalf = (value) => {
  single[0] = nearest(value, 11, -14);
  const sign = (bits[0] >>> 16) & 0x8000, magnitude = bits[0] & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x47800000) return sign | 0x7c00;
  if (magnitude < 0x38800000) return sign | Math.abs(single[0]) * 16777216;
  return sign | ((magnitude - 0x38000000) >>> 13);
};
const fromHalf = (half) => {
  const sign = half & 0x8000 ? -1 : 1, exponent = (half >>> 10) & 31, fraction = half & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : fraction * 2 ** -24);
};
const toBrain = (value) => {
  single[0] = nearest(value, 8, -126);
  return Number.isNaN(value) ? 0x7fc0 : bits[0] >>> 16;
};
const fromBrain = (brain) => {
  bits[0] = brain << 16;
  return single[0];
};

// Numbers of a text: parted by blanks, commas or brackets, so JSON and what people type are both right.
export const words = (text) => text.split(/[\s,;[\]()]+/).filter(Boolean);

const numberOf = (word, datatype) => {
  if (datatype === "BOOL") {
    if (/^(1|true)$/i.test(word)) return 1;
    if (/^(0|false)$/i.test(word)) return 0;
    throw new Error(`expected true, false, 1 or 0, found “${word}”`);
  }
  if (isWhole(datatype) && !/^[+-]?\d+$/.test(word)) throw new Error(`expected a whole number, found “${word}”`);
  if (datatype in wide) {
    const value = BigInt(word.replace("+", ""));
    const kept = datatype === "INT64" ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value);
    if (kept !== value) throw new Error(`${word} does not fit into ${datatype}`);
    return value;
  }
  const special = /^([+-]?)(inf|infinity)$/i.exec(word);
  const value = special ? (special[1] === "-" ? -Infinity : Infinity) : Number(word);
  if (Number.isNaN(value) && !/^nan$/i.test(word)) throw new Error(`expected a number, found “${word}”`);
  if (!special && Math.abs(value) >= tooLarge[datatype]) throw new Error(`${word} does not fit into ${datatype}`);
  const range = ranges[datatype];
  if (range && (value < range[0] || value > range[1])) throw new Error(`${word} does not fit into ${datatype}: ${range[0]} to ${range[1]}`);
  return value;
};
export const numbers = (text, datatype) => words(text).map((word) => numberOf(word, datatype));

// A value as JSON writes it, and as the server besides reads and writes NaN, infinities and whole numbers of 64 bits.
export const literal = (value) => typeof value === "string" ? JSON.stringify(value) : `${value}`;
// What such JSON holds, its numbers as the texts that stand there.
export const exact = (text) => JSON.parse(text.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|-?(?:\d[\d.eE+-]*|Infinity|NaN)/g, (word, string) => string || `"${word}"`));

// Numbers as the bytes that go over the wire, little-endian as every machine that runs a browser.
export const encode = (values, datatype) => {
  if (datatype === "BOOL") return new Uint8Array(values);
  if (datatype === "FP16") return new Uint8Array(Uint16Array.from(values, toHalf).buffer);
  if (datatype === "BF16") return new Uint8Array(Uint16Array.from(values, toBrain).buffer);
  const kind = plain[datatype] || wide[datatype];
  if (!kind) throw new Error(`this page cannot write ${datatype}`);
  return new Uint8Array(kind.from(values, datatype in wide ? BigInt : undefined).buffer);
};

// The first `most` strings among the first `room` bytes of an output, which has `length` in the body. All of it is read.
const readStrings = async (body, length, most, room) => {
  const bytes = await body.take(Math.min(length, room)), view = new DataView(bytes.buffer), texts = [], decoder = new TextDecoder();
  await body.skip(length - bytes.length);
  for (let at = 0; at + 4 <= bytes.length && texts.length < most; ) {
    const begin = at + 4, lacks = begin + view.getUint32(at, true) - bytes.length;
    at = bytes.length + lacks;
    texts.push(decoder.decode(bytes.subarray(begin, at), { stream: lacks > 0 }) + (lacks > 0 ? `… ${lacks} more bytes` : ""));
  }
  return texts;
};
// The same of values of any datatype.
const readValues = async (body, datatype, length, most, room) => {
  if (datatype === "BYTES") return readStrings(body, length, most, room);
  const kind = datatype === "BOOL" ? Uint8Array : plain[datatype] || wide[datatype] || halves[datatype];
  if (!kind) throw new Error(`this page cannot read ${datatype}`);
  const wanted = Math.min(length, most * kind.BYTES_PER_ELEMENT), bytes = await body.take(wanted);
  await body.skip(length - wanted);
  return Array.from(new kind(bytes.buffer), { BOOL: Boolean, FP16: fromHalf, BF16: fromBrain }[datatype]);
};

// A string of bytes, such as an image as it lies in a file.
export const lengthAndBytes = (bytes) => {
  const made = new Uint8Array(4 + bytes.byteLength);
  new DataView(made.buffer).setUint32(0, bytes.byteLength, true);
  made.set(bytes, 4);
  return made;
};

// The shape that `count` values have where the model leaves sizes open: the first open size is taken by as many as there are if
// it is that of the batch and nothing else is open, else the last.
export const resolve = (shape, count) => {
  const open = shape.map((each, at) => (each < 0 ? at : -1)).filter((at) => at >= 0);
  const known = elements(shape.filter((each) => each >= 0));
  if (!open.length) {
    if (known !== count) throw new Error(`expected ${known} values, found ${count}`);
    return shape.slice();
  }
  if (!count || !known || count % known) throw new Error(`expected a multiple of ${known || 1} values, found ${count}`);
  const made = shape.map((each) => (each < 0 ? 1 : each));
  made[open[open.length - 1]] = count / known;
  return made;
};

// inputs: {name, datatype, shape, bytes} or {..., strings}. outputs: {name, datatype, classes}.
export const request = (inputs, outputs, parameters) => {
  const head = { inputs: [], outputs: [] }, parts = [];
  for (const { name, datatype, shape, bytes, strings: texts } of inputs) {
    const told = { name, datatype, shape };
    if (bytes) {
      told.parameters = { binary_data_size: bytes.byteLength };
      parts.push(bytes);
    } else {
      told.data = texts;
    }
    head.inputs.push(told);
  }
  for (const { name, classes } of outputs)
    head.outputs.push({ name, parameters: classes ? { classification: classes, binary_data: false } : { binary_data: true } });
  if (parameters) head.parameters = parameters;
  const json = new TextEncoder().encode(JSON.stringify(head));
  return {
    body: new Blob([json, ...parts]),
    headers: { "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": String(json.byteLength) },
  };
};

// The outputs of an answer, out of its body (body.js): {name, datatype, shape, values}, of each the first values, as many as
// most(datatype, shape) says, else all; of strings those in the first `room` bytes.
// jsonLength: bytes of its JSON, with which it begins; null if it is nothing else.
export const answer = async (body, jsonLength, most = () => Infinity, room = Infinity) => {
  const head = JSON.parse(new TextDecoder().decode(await (jsonLength ? body.take(Number(jsonLength)) : body.all()))), outputs = [];
  for (const { name, datatype, shape, data, parameters } of head.outputs || []) {
    const length = parameters && parameters.binary_data_size;
    const values = length === undefined ? data || [] : await readValues(body, datatype, length, most(datatype, shape), room);
    outputs.push({ name, datatype, shape, values });
  }
  return outputs;
};
