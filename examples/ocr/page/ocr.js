// Read a picture: its file goes to the server as it is; the boxes that come back are drawn over it.

import { element, find, infer, say } from "./example.js";
import { lengthAndBytes } from "./tensor.js";

const OUTPUTS = [{ name: "TEXT", datatype: "BYTES" }, { name: "SCORE", datatype: "FP32" }, { name: "BOXES", datatype: "INT32" }];
const TRIES = {
  "A receipt": {
    paper: "#fdfcf7", ink: "#222", font: "monospace",
    rows: [["CORNER CAFE", 46], ["12 Harbour Street", 30], ["", 20], ["2 Cappuccino", 34, "7.60"], ["1 Apple cake", 34, "4.20"], ["1 Lemonade", 34, "3.90"], ["", 10], ["Total", 40, "15.70"], ["", 20], ["Thank you, come again!", 30]],
  },
  "A poster": {
    paper: "#123c5a", ink: "#ffd166", font: "sans-serif",
    rows: [["", 20], ["SUMMER CONCERT", 64], ["in the old town square", 40], ["", 40], ["Saturday 12 July", 52], ["doors open at 19:30", 40], ["", 40], ["Free entry", 58]],
  },
};
const [WIDTH, MARGIN] = [720, 50];

let picture, boxes = [], asked = new AbortController();

// Draws the picture, and its boxes; that of the line `marked` is filled.
const draw = (marked) => {
  const canvas = find("#picture"), pen = canvas.getContext("2d");
  [canvas.width, canvas.height] = [picture.width, picture.height];
  pen.drawImage(picture, 0, 0);
  pen.lineWidth = Math.max(2, picture.width / 350);
  boxes.forEach(([left, top, right, bottom], at) => {
    pen.strokeStyle = "#e0245e";
    pen.fillStyle = "#e0245e44";
    if (at === marked) pen.fillRect(left, top, right - left, bottom - top);
    pen.strokeRect(left, top, right - left, bottom - top);
  });
};

const row = (text, score, at) => {
  const mark = () => draw(at), unmark = () => draw();
  const button = element("button", { type: "button", onfocus: mark, onmouseenter: mark, onblur: unmark, onmouseleave: unmark });
  button.append(element("span", {}, text), element("span", { className: "number" }, `${(100 * score).toFixed(0)} %`));
  return element("li", {}, button);
};

const read = async (file) => {
  asked.abort();
  asked = new AbortController();
  const { signal } = asked;
  find("#found").replaceChildren();
  find("#took").textContent = "";
  find("#copy").hidden = true;
  const opened = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name ?? "this"} is no picture that the browser can show`);
  });
  [picture, boxes] = [opened, []];
  draw();
  say("waiting", "Reading");
  const began = performance.now(), bytes = lengthAndBytes(new Uint8Array(await file.arrayBuffer()));
  const { TEXT, SCORE, BOXES } = await infer("ocr", [{ name: "IMAGE", datatype: "BYTES", shape: [1], bytes }], OUTPUTS, signal);
  boxes = TEXT.values.map((_, at) => BOXES.values.slice(4 * at, 4 * at + 4));
  draw();
  find("#found").replaceChildren(...TEXT.values.map((text, at) => row(text, SCORE.values[at], at)));
  find("#took").textContent = `The answer took ${(performance.now() - began).toFixed(0)} ms. Behind each line: how sure the reader is.`;
  find("#copy").hidden = !boxes.length;
  say("ready", boxes.length ? `${boxes.length} lines` : "No text was found");
};

const show = (file) => read(file).catch((error) => error.name === "AbortError" || say("gone", error.message));

const sample = ({ paper, ink, font, rows }) => {
  const canvas = element("canvas", { width: WIDTH, height: rows.reduce((sum, [, size]) => sum + 1.5 * size, 2 * MARGIN) });
  const pen = canvas.getContext("2d");
  pen.fillStyle = paper;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = ink;
  let y = MARGIN;
  for (const [text, size, right = ""] of rows) {
    y += 1.5 * size;
    pen.font = `${size}px ${font}`;
    pen.textAlign = "left";
    pen.fillText(text, MARGIN, y - size / 2);
    pen.textAlign = "right";
    pen.fillText(right, WIDTH - MARGIN, y - size / 2);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
};

for (const [name, drawn] of Object.entries(TRIES))
  find("#samples").append(element("button", { type: "button", onclick: async () => show(await sample(drawn)) }, name));

const first = (files) => files.length && show(files[0]);
find("#file").addEventListener("change", () => first(find("#file").files));
document.addEventListener("paste", (event) => first(event.clipboardData.files));
for (const kind of ["dragenter", "dragover", "dragleave", "drop"])
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    find("#drop").classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop") first(event.dataTransfer.files);
  });
find("#copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText([...document.querySelectorAll("#found button > span:first-child")].map((each) => each.textContent).join("\n"));
  say("ready", "The text is copied");
});
show(await sample(TRIES["A receipt"]));
