// The form to try a model, made from its metadata: numbers, text, or a picture that is drawn or dropped in.
import { Body, events } from "./body.js";
import { element, duration } from "./charts.js";
import { answer, elements, encode, exact, isWhole, lengthAndBytes, literal, numbers, request, resolve } from "./tensor.js";

const PAD = 224;
const SHOWN = 10; // classes of an answer
const MOST = 100000; // classes that are asked for and compared
const STREAMED = 500; // responses of a stream
const WRITTEN = 200; // values of an output that are shown, and read where none are compared
const LETTERS = 20000; // of a text that is shown
const DRAWN = 5000000; // values of a picture
let count = 0;
const labelled = (text, control, parent) => {
  control.id = control.id || `field-${++count}`;
  const label = element("label", text + " ", parent);
  label.htmlFor = control.id;
  parent.append(control);
  return control;
};
const choice = (options, chosen) => {
  const made = document.createElement("select");
  for (const [value, text] of options) element("option", text, made).value = value;
  made.value = chosen;
  return made;
};
const checkbox = (text, checked, parent) => {
  const label = element("label", null, parent), box = element("input", null, label);
  box.type = "checkbox";
  box.checked = checked;
  label.append(" " + text);
  return box;
};

// How a shape without its batch can be a picture: {width, height, channels, first}, first: channels come first. Or null.
export const pictureOf = (shape) => {
  const side = (size) => size < 0 ? 224 : size;
  if (shape.length === 1) {
    const edge = Math.sqrt(shape[0]);
    return Number.isInteger(edge) && edge >= 8 ? { width: edge, height: edge, channels: 1, first: true } : null;
  }
  if (shape.length === 2) return shape[0] === shape[1] && shape[0] >= 8 ? { width: shape[1], height: shape[0], channels: 1, first: true } : null;
  if (shape.length !== 3) return null;
  if ([1, 3].includes(shape[0]) && side(shape[1]) >= 8 && side(shape[2]) >= 8) return { width: side(shape[2]), height: side(shape[1]), channels: shape[0], first: true };
  if ([1, 3].includes(shape[2]) && side(shape[0]) >= 8 && side(shape[1]) >= 8) return { width: side(shape[1]), height: side(shape[0]), channels: shape[2], first: false };
  return null;
};
// True if a picture is what somebody would give first.
const probablyPicture = (shape) => shape.length > 1 || [64, 784].includes(shape[0]);

const scales = {
  "0 to 1": (v) => v, "-1 to 1": (v) => 2 * v - 1, "0 to 16": (v) => 16 * v, "0 to 127": (v) => 127 * v, "0 to 255": (v) => 255 * v,
  "ImageNet's mean and deviation": (v, channel) => (v - [0.485, 0.456, 0.406][channel]) / [0.229, 0.224, 0.225][channel],
};
const usualScale = (datatype, picture) => {
  if (datatype === "INT8") return "0 to 127";
  if (isWhole(datatype)) return "0 to 255";
  if (picture.channels === 1 && picture.width * picture.height === 64) return "0 to 16";
  return picture.channels === 3 && picture.width === 224 ? "ImageNet's mean and deviation" : "0 to 1";
};

// The box of what is lighter than the darkest, in pixels; the whole if there is nothing.
const boxOf = (light, width, height) => {
  let left = width, right = 0, top = height, bottom = 0;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      if (light(x, y) > 0.15) {
        left = Math.min(left, x); right = Math.max(right, x + 1);
        top = Math.min(top, y); bottom = Math.max(bottom, y + 1);
      }
  return right > left ? { left, top, width: right - left, height: bottom - top } : { left: 0, top: 0, width, height };
};

// Reads a picture of a model's size out of a canvas: channels of width * height values from 0 to 1. Each is the mean of what it
// covers, so that thin strokes of large pictures stay.
export const sample = (image, picture, { invert, cut }) => {
  const { data, width, height } = image, { channels } = picture;
  const at = (x, y, channel) => {
    const i = 4 * (y * width + x), alpha = data[i + 3] / 255;
    const value = channels === 3 ? data[i + channel] : 0.299 * data[i] + 0.587 * data[i + 1] + 0.114 * data[i + 2];
    return invert ? 1 - (value / 255) * alpha - (1 - alpha) : (value / 255) * alpha;
  };
  let box = { left: 0, top: 0, width, height };
  if (cut) {
    box = boxOf((x, y) => at(x, y, 0), width, height);
    const margin = picture.width >= 20 ? 1.4 : 1, edge = Math.max(box.width, box.height) * margin;
    box = { left: box.left + (box.width - edge) / 2, top: box.top + (box.height - edge) / 2, width: edge, height: edge };
  }
  const planes = Array.from({ length: channels }, () => new Float32Array(picture.width * picture.height));
  const stepX = box.width / picture.width, stepY = box.height / picture.height;
  for (let channel = 0; channel < channels; channel++)
    for (let y = 0; y < picture.height; y++)
      for (let x = 0; x < picture.width; x++) {
        const fromX = Math.floor(box.left + x * stepX), toX = Math.max(fromX + 1, Math.round(box.left + (x + 1) * stepX));
        const fromY = Math.floor(box.top + y * stepY), toY = Math.max(fromY + 1, Math.round(box.top + (y + 1) * stepY));
        let sum = 0;
        for (let v = Math.max(0, fromY); v < Math.min(height, toY); v++)
          for (let u = Math.max(0, fromX); u < Math.min(width, toX); u++) sum += at(u, v, channel);
        planes[channel][y * picture.width + x] = sum / ((toX - fromX) * (toY - fromY));
      }
  return planes;
};

// A pad to draw on, or to drop a picture on.
class Picture {
  constructor(parent, datatype, picture) {
    this.datatype = datatype;
    this.picture = picture;
    const box = element("div", null, parent, "picture"), drop = element("div", null, box, "drop"), side = element("div", null, box, "side");
    this.drop = drop;
    this.pad = element("canvas", null, drop);
    this.pad.width = this.pad.height = PAD;
    this.pad.setAttribute("role", "img");
    this.pad.setAttribute("aria-label", "Draw here with a pointer, or drop a picture; the button below chooses a file");
    this.file = element("input");
    this.file.type = "file";
    this.file.accept = "image/*";
    labelled("Picture", this.file, side);
    const clear = element("button", "Clear", element("div", null, side, "bar"));
    clear.type = "button";
    this.scale = labelled("Values", choice(Object.keys(scales).filter((name) => picture.channels === 3 || !name.startsWith("Image")).map((name) => [name, name]), usualScale(datatype, picture)), element("div", null, side, "bar"));
    const marks = element("div", null, side, "bar");
    this.invert = checkbox("dark on light: turn around", false, marks);
    this.cut = checkbox("cut to what is drawn", picture.channels === 1, marks);
    element("div", `What the model gets: ${picture.width} × ${picture.height}${picture.channels === 3 ? ", colours" : ", greys"}`, side, "hint");
    this.preview = element("canvas", null, side);
    this.preview.width = picture.width;
    this.preview.height = picture.height;
    this.preview.style.width = `${Math.min(160, Math.max(96, picture.width))}px`;
    this.preview.setAttribute("aria-hidden", "true");
    this.listen(drop, clear);
    this.clear();
  }

  listen(drop, clear) {
    let last = null;
    const place = (event) => {
      const box = this.pad.getBoundingClientRect();
      return [(event.clientX - box.left) * this.pad.width / box.width, (event.clientY - box.top) * this.pad.height / box.height];
    };
    this.pad.addEventListener("pointerdown", (event) => {
      if (this.dropped) this.clear();
      this.pad.setPointerCapture(event.pointerId);
      last = place(event);
      this.stroke(last, last);
    });
    this.pad.addEventListener("pointermove", (event) => {
      if (!last) return;
      const next = place(event);
      this.stroke(last, next);
      last = next;
    });
    const end = () => {
      if (last) this.show();
      last = null;
    };
    this.pad.addEventListener("pointerup", end);
    this.pad.addEventListener("pointercancel", end);
    clear.addEventListener("click", () => this.clear());
    for (const box of [this.scale, this.invert, this.cut]) box.addEventListener("change", () => this.show());
    this.file.addEventListener("change", () => this.take(this.file.files[0]));
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.take(event.dataTransfer.files[0]);
    });
  }

  stroke(from, to) {
    const pen = this.pad.getContext("2d", { willReadFrequently: true });
    pen.strokeStyle = "#fff";
    pen.lineWidth = 24;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(to[0] + 0.01, to[1]);
    pen.stroke();
    this.drawn = true;
  }

  clear() {
    this.pad.width = this.pad.height = PAD;
    const pen = this.pad.getContext("2d", { willReadFrequently: true });
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, PAD, PAD);
    this.drawn = this.dropped = false;
    this.invert.checked = false;
    this.show();
  }

  async take(file) {
    if (!file) return;
    let image;
    try {
      image = await createImageBitmap(file);
    } catch {
      this.problem(`“${file.name}” is no picture that this browser reads`);
      return;
    }
    const shrink = Math.min(1, 1024 / Math.max(image.width, image.height));
    this.pad.width = Math.max(1, Math.round(image.width * shrink));
    this.pad.height = Math.max(1, Math.round(image.height * shrink));
    const pen = this.pad.getContext("2d", { willReadFrequently: true });
    pen.fillStyle = "#fff"; // below what is transparent
    pen.fillRect(0, 0, this.pad.width, this.pad.height);
    pen.drawImage(image, 0, 0, this.pad.width, this.pad.height);
    this.drawn = this.dropped = true;
    if (this.picture.channels === 1) {
      const { data } = pen.getImageData(0, 0, this.pad.width, this.pad.height);
      let sum = 0;
      for (let i = 0; i < data.length; i += 4) sum += data[i];
      this.invert.checked = sum / (data.length / 4) > 127;
    }
    this.problem("");
    this.show();
  }

  problem(text) {
    this.trouble = text;
    if (this.said) this.said(text);
  }

  planes() {
    const pen = this.pad.getContext("2d", { willReadFrequently: true });
    return sample(pen.getImageData(0, 0, this.pad.width, this.pad.height), this.picture, { invert: this.invert.checked, cut: this.cut.checked && this.drawn });
  }

  show() {
    const planes = this.planes(), pen = this.preview.getContext("2d"), made = pen.createImageData(this.picture.width, this.picture.height);
    for (let i = 0; i < planes[0].length; i++) {
      for (let c = 0; c < 3; c++) made.data[4 * i + c] = 255 * planes[planes.length === 3 ? c : 0][i];
      made.data[4 * i + 3] = 255;
    }
    pen.putImageData(made, 0, 0);
  }

  values() {
    const planes = this.planes(), scale = scales[this.scale.value], size = planes[0].length, values = new Array(size * planes.length);
    planes.forEach((plane, channel) => plane.forEach((value, at) => {
      const scaled = scale(value, channel);
      values[this.picture.first ? channel * size + at : at * planes.length + channel] = isWhole(this.datatype) ? Math.round(scaled) : scaled;
    }));
    return values;
  }
}

// One input of the model.
class Field {
  constructor(parent, input, batched, optional) {
    Object.assign(this, input, { batched, optional });
    this.shape = input.shape.map(Number);
    const box = element("fieldset", null, parent, "field");
    element("legend", `${this.name} · ${this.datatype} ${JSON.stringify(this.shape).replaceAll("-1", "any")}${optional ? " · optional" : ""}`, box);
    const own = batched ? this.shape.slice(1) : this.shape;
    let picture = this.datatype === "BYTES" ? null : pictureOf(own);
    this.body = element("div", null, box);
    if (picture && picture.width * picture.height * picture.channels > DRAWN) {
      element("p", `As a picture, ${picture.width} × ${picture.height}, it is too large to be drawn here.`, box, "hint");
      picture = null;
    }
    const modes = [];
    if (picture) modes.push(["picture", "a picture"]);
    modes.push(this.datatype === "BYTES" ? ["text", "text, a string a line"] : ["numbers", "numbers"]);
    if (this.datatype === "BYTES") modes.push(["file", "a file, as one string"]);
    this.mode = choice(modes, picture && !probablyPicture(own) ? "numbers" : modes[0][0]);
    if (modes.length > 1) labelled("Give", this.mode, this.body);
    this.place = element("div", null, box);
    this.own = own;
    this.form = picture;
    this.mode.addEventListener("change", () => this.build());
    this.build();
  }

  build() {
    this.place.replaceChildren();
    this.pad = this.text = this.file = null;
    if (this.mode.value === "picture") {
      this.pad = new Picture(this.place, this.datatype, this.form);
      const trouble = element("p", "", this.place, "hint");
      trouble.setAttribute("role", "status");
      this.pad.said = (text) => { trouble.textContent = text; };
    } else if (this.mode.value === "file") {
      this.file = labelled("File", element("input"), this.place);
      this.file.type = "file";
    } else {
      this.text = labelled(this.datatype === "BYTES" ? "Text" : "Numbers", element("textarea"), this.place);
      this.text.spellcheck = false;
      this.text.value = this.usual();
    }
  }

  // So that the form can be sent as it is.
  usual() {
    if (this.optional) return "";
    const wanted = elements(this.own.map((size) => Math.max(1, size)));
    if (this.datatype === "BYTES") return Array.from({ length: Math.min(wanted, 64) }, () => "hello").join("\n");
    return wanted > 4096 ? "" : Array.from({ length: wanted }, () => "0").join(" ");
  }

  // What is sent: an input of tensor.js's request; null if an optional one is left empty.
  async read() {
    const tell = { name: this.name, datatype: this.datatype };
    const open = this.batched ? [1, ...this.own] : this.own;
    if (this.pad) {
      const { width, height, channels, first } = this.form;
      const shape = this.own.length < 3 ? this.own : first ? [channels, height, width] : [height, width, channels];
      const values = this.pad.values();
      return { ...tell, shape: this.batched ? [1, ...shape] : shape, bytes: encode(values, this.datatype), values };
    }
    if (this.file) {
      if (!this.file.files[0]) throw new Error("choose a file");
      return { ...tell, shape: resolve(open, 1), bytes: lengthAndBytes(new Uint8Array(await this.file.files[0].arrayBuffer())) };
    }
    if (this.optional && !this.text.value.trim()) return null;
    const values = this.datatype === "BYTES" ? this.text.value.split("\n") : numbers(this.text.value, this.datatype);
    const shape = resolve(this.own.some((size) => size < 0) ? open : this.batched ? [-1, ...this.own] : open, values.length);
    return this.datatype === "BYTES" ? { ...tell, shape, strings: values, values } : { ...tell, shape, bytes: encode(values, this.datatype), values };
  }
}

// Where the largest of some numbers are, the largest first.
const largest = (numbers) => {
  const places = [];
  numbers.forEach((number, at) => {
    if (places.length === SHOWN && number <= numbers[places[SHOWN - 1]]) return;
    let place = Math.min(places.length, SHOWN - 1);
    for (; place && number > numbers[places[place - 1]]; place--) places[place] = places[place - 1];
    places[place] = at;
  });
  return places;
};
// The best of all classes, {name, value, share}, whose numbers are probabilities or logarithms of such; null if one is no number. There
// may be many: nothing is made for each.
const best = (numbers, nameOf) => {
  if (!numbers.length || !numbers.every(Number.isFinite)) return null;
  const places = largest(numbers), most = numbers[places[0]];
  const shares = numbers.every((number) => number >= 0 && number <= 1) && numbers.reduce((a, b) => a + b, 0) < 1.01;
  const powers = shares ? 1 : numbers.reduce((sum, number) => sum + Math.exp(number - most), 0);
  return places.map((at) => ({ name: nameOf(at), value: numbers[at], share: shares ? numbers[at] : Math.exp(numbers[at] - most) / powers }));
};
// Of a class as the server tells of one: VALUE:INDEX or VALUE:INDEX:LABEL.
const labelOf = (text) => {
  const [, index, ...label] = text.split(":");
  return label.join(":") || index;
};

const bars = (classes, parent) => {
  const list = element("ol", null, parent, "classes");
  for (const { name, value, share } of classes) {
    const line = element("li", null, list);
    element("span", name, line, "name").title = name;
    const meter = element("meter", null, line);
    meter.min = 0; meter.max = 1; meter.value = share;
    meter.setAttribute("aria-label", `${name}: ${(100 * share).toFixed(1)} percent`);
    element("span", `${(100 * share).toFixed(1)} %`, line, "number").title = `${value}`;
  }
};
const more = (all, shown, what = "") => all > shown ? `, … ${all - shown} more${what}` : "";
const cut = (text) => text.slice(0, LETTERS) + more(text.length, LETTERS, " characters");
const brief = (values, count) => {
  const shown = values.slice(0, WRITTEN).map((value) => typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value);
  return cut(shown.map(literal).join(", ")) + more(count, shown.length);
};

// Whether an output is a row of numbers: those of classes, which are compared.
const compared = (datatype, shape) => {
  const row = shape[shape.length - 1];
  return datatype !== "BYTES" && datatype !== "BOOL" && elements(shape) === row && row >= 2 && row <= MOST;
};

// Shows an answer; returns it in a sentence.
const show = (outputs, asked, parent) => {
  let sentence = "";
  for (const { name, datatype, shape, values } of outputs) {
    const { classes: wanted } = asked.find((each) => each.name === name) || {}, numbered = compared(datatype, shape);
    const counted = wanted ? `the best ${Math.min(SHOWN, wanted)} of ${wanted} classes` : `${datatype} [${shape.join(", ")}]`;
    element("h3", `${name} · ${counted}`, parent);
    const classes = wanted ? best(Float64Array.from(values.slice(0, wanted), parseFloat), (at) => labelOf(values[at])) : numbered ? best(Float64Array.from(values, Number), String) : null;
    if (classes) bars(classes, parent);
    if (!wanted || !classes) {
      const box = classes ? element("details", null, parent) : parent;
      if (classes) element("summary", "Values", box);
      element("pre", brief(values, elements(shape)), box);
    }
    if (!sentence && classes) sentence = `${name}: ${classes[0].name}, ${(100 * classes[0].share).toFixed(1)} percent`;
  }
  return sentence || `${outputs.length} outputs`;
};

const parts = [["Waiting for an instance", "queue"], ["Inputs", "compute_input"], ["Model", "compute_infer"], ["Outputs", "compute_output"]];
// Where the time of a call went, by what the statistics grew between before and after.
const timeline = (before, after, took, parent) => {
  const grown = (name, what) => (after.inference_stats[name][what] || 0) - (before.inference_stats[name][what] || 0);
  const calls = grown("success", "count");
  if (calls < 1) return;
  const rows = parts.map(([text, name]) => [text, grown(name, "ns") / 1000 / calls]);
  rows.push(["HTTP, network, browser", Math.max(0, took - rows.reduce((sum, row) => sum + row[1], 0))]);
  const box = element("details", null, parent);
  element("summary", `Where its ${duration(took)} went${calls > 1 ? ` (mean of ${calls} calls that were answered meanwhile)` : ""}`, box);
  const list = element("ol", null, box, "classes");
  for (const [text, us] of rows) {
    const line = element("li", null, list), meter = (element("span", text, line, "name"), element("meter", null, line));
    meter.max = took; meter.value = us;
    meter.setAttribute("aria-label", `${text}: ${duration(us)}`);
    element("span", duration(us), line, "number");
  }
};

const line = (outputs, texts) => cut(Object.entries(outputs).map(([name, value]) => {
  if (!Array.isArray(value)) return `${name}: ${value}`;
  const shown = value.slice(0, WRITTEN).map((each) => texts.has(name) ? JSON.stringify(each) : each);
  return `${name}: [${shown}${more(value.length, WRITTEN)}]`;
}).join("   "));
// What a model that answers as often as it likes (decoupled) says, response by response.
const showStream = async (reply, asked, parent) => {
  const texts = new Set(asked.filter(({ datatype }) => datatype === "BYTES").map(({ name }) => name));
  const list = element("ol", null, parent, "responses");
  let count = 0;
  for await (const { length, response } of events(reply.body)) {
    const { id, model_name: model, model_version: version, error, ...outputs } = response || {};
    if (error) throw new Error(error);
    if (++count <= STREAMED) element("li", length ? `${length} characters, too many to be shown here` : line(outputs, texts), list);
  }
  if (count > STREAMED) element("p", `… ${count - STREAMED} more`, parent, "hint");
  return count === 1 ? "1 response" : `${count} responses`;
};
const flat = (inputs) => `{${inputs.map(({ name, datatype, values }) => {
  if (!values) throw new Error(`Input ${name}: this model answers with a stream, which takes no files`);
  return `${JSON.stringify(name)}:[${values.map((value) => literal(datatype === "BOOL" ? Boolean(value) : value))}]`;
})}}`;

// Makes the form of a model in `parent`. ask(path, options) is fetch with the keys; say(text) tells what happened; left is the
// signal that the form is gone.
export const makeForm = (parent, { path, metadata, config, ask, say, left }) => {
  const streams = Boolean(config && config.model_transaction_policy && config.model_transaction_policy.decoupled);
  if (streams && config.sequence_batching && !config.sequence_batching.iterative_sequence) {
    element("p", "Only clients of gRPC can try it: it answers with a stream and wants the number of a sequence, and streams over HTTP take none.", parent, "hint");
    return;
  }
  const form = element("form", null, parent), batched = Boolean(config && config.max_batch_size > 0);
  const given = (input) => config && (config.input || []).find((each) => each.name === input.name);
  const fields = metadata.inputs.map((input) => new Field(form, input, batched && !(given(input) || {}).is_shape_tensor, Boolean((given(input) || {}).optional)));
  let sequence = null;
  if (config && config.sequence_batching && !streams) {
    const box = element("fieldset", null, form, "field");
    element("legend", "Sequence", box);
    sequence = { id: labelled("Number", element("input"), box) };
    sequence.id.type = "number";
    sequence.id.value = "1";
    sequence.start = checkbox("begins here", true, box);
    sequence.end = checkbox("ends here", true, box);
  }
  const asked = metadata.outputs.map(({ name, datatype, shape }) => {
    const own = config && (config.output || []).find((each) => each.name === name), sizes = shape.map(Number), row = sizes[sizes.length - 1];
    return { name, datatype, classes: own && own.label_filename && datatype !== "BYTES" && row > 1 && row <= MOST ? row : 0 };
  });
  const buttons = element("div", null, form, "bar"), run = element("button", "Run", buttons, "main"), stop = element("button", "Stop", buttons);
  stop.type = "button";
  stop.hidden = true;
  let stopping = new AbortController();
  stop.addEventListener("click", () => stopping.abort());
  left.addEventListener("abort", () => stopping.abort());
  const result = element("div", null, parent);
  result.setAttribute("role", "region");
  result.setAttribute("aria-label", "Answer of the model");
  const fail = (text) => {
    element("p", text, result, "problem");
    say(`Failed: ${text}`);
  };
  const statistics = async () => {
    try {
      return (await (await ask(`${path}/stats`)).json()).model_stats.pop();
    } catch {
      return null; // who may run a model need not be one who may see statistics
    }
  };
  const send = async () => {
    const inputs = [];
    for (const field of fields) {
      try {
        const input = await field.read();
        if (input) inputs.push(input);
      } catch (error) {
        throw new Error(`Input ${field.name}: ${error.message}`);
      }
    }
    if (streams) {
      const begun = performance.now(), body = flat(inputs);
      const sentence = await showStream(await ask(`${path}/generate_stream`, { method: "POST", body, signal: stopping.signal }), asked, result);
      say(`${sentence}, after ${duration((performance.now() - begun) * 1000)}`);
      return;
    }
    const parameters = sequence ? { sequence_id: Number(sequence.id.value), sequence_start: sequence.start.checked, sequence_end: sequence.end.checked } : null;
    const message = request(inputs, asked, parameters), before = await statistics(), begun = performance.now();
    const reply = await ask(`${path}/infer`, { method: "POST", ...message, signal: stopping.signal }), length = reply.headers.get("Inference-Header-Content-Length");
    const outputs = await answer(new Body(reply), length, (datatype, shape) => compared(datatype, shape) ? MOST : WRITTEN, LETTERS / 2), took = (performance.now() - begun) * 1000;
    result.replaceChildren();
    const sentence = show(outputs, asked, result), after = before && await statistics();
    if (left.aborted) return;
    if (after) timeline(before, after, took, result);
    say(`${sentence}, after ${duration(took)}`);
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    run.disabled = true;
    stopping = new AbortController();
    stop.hidden = false;
    result.replaceChildren();
    try {
      await send();
    } catch (error) {
      if (left.aborted) return; // nobody sees it
      fail(error.name === "AbortError" ? "stopped" : error.message);
    }
    stopping.abort(); // a stream that goes on behind an error
    run.disabled = false;
    stop.hidden = true;
    run.focus();
  });
};
