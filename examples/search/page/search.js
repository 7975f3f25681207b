// Search by meaning: the vectors of all sentences are asked for once, that of a question as it is typed; the nearest are found here.

import { element, find, infer, say } from "./example.js";

const SHOWN = 8; // sentences
const AT_ONCE = 32; // sentences in a request; the model takes 64
const TRIES = ["why is the ocean salty?", "how do animals find their way home?", "my door makes a noise", "keep hackers out", "saving money for later"];

let sentences = [], vectors = [], question = new AbortController();

const embed = async (texts, signal) => {
  const inputs = [{ name: "TEXT", datatype: "BYTES", shape: [texts.length, 1], strings: texts }];
  const { EMBEDDING } = await infer("embedding", inputs, [{ name: "EMBEDDING", datatype: "FP32" }], signal);
  const size = EMBEDDING.shape[1];
  return texts.map((_, at) => EMBEDDING.values.slice(at * size, (at + 1) * size));
};

// The vectors have length 1, so this is the cosine of the angle between them.
const nearness = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);

const longWords = (text) => text.toLowerCase().match(/\p{L}{4,}/gu) ?? [];

const row = (asked, { sentence, near }) => {
  const words = element("span", {}, sentence);
  if (!longWords(asked).some((word) => longWords(sentence).includes(word))) words.append(element("span", { className: "hint" }, "no word in common"));
  const bar = element("meter", { max: 1, value: Math.max(0, near), ariaLabel: "nearness" });
  return element("li", {}, words, bar, element("span", { className: "number" }, near.toFixed(2)));
};

// Takes back the question before, whose answer nobody waits for any more.
const search = async () => {
  question.abort();
  question = new AbortController();
  const asked = find("#query").value.trim();
  if (!asked || !vectors.length) {
    find("#found").replaceChildren();
    find("#took").textContent = "";
    return;
  }
  const began = performance.now();
  const [vector] = await embed([asked], question.signal);
  const answered = performance.now();
  const found = sentences.map((sentence, at) => ({ sentence, near: nearness(vector, vectors[at]) }));
  found.sort((a, b) => b.near - a.near);
  const compared = performance.now();
  find("#found").replaceChildren(...found.slice(0, SHOWN).map((each) => row(asked, each)));
  find("#took").textContent = `The vector of the question took ${(answered - began).toFixed(0)} ms, comparing ${(compared - answered).toFixed(1)} ms.`;
  find("#said").textContent = `The nearest: ${found[0].sentence}`;
};

const read = async (text) => {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean), made = [];
  for (let at = 0; at < lines.length; at += AT_ONCE) {
    say("waiting", `Reading the sentences: ${at} of ${lines.length}`);
    made.push(...(await embed(lines.slice(at, at + AT_ONCE))));
  }
  [sentences, vectors] = [lines, made];
  say("ready", `${lines.length} sentences`);
  await search();
};

const telling = (work) => work().catch((error) => error.name === "AbortError" || say("gone", error.message));

for (const text of TRIES) {
  const ask = () => {
    find("#query").value = text;
    telling(search);
  };
  find("#tries").append(element("button", { type: "button", onclick: ask }, text));
}
find("#query").addEventListener("input", () => telling(search));
find("#form").addEventListener("submit", (event) => {
  event.preventDefault();
  telling(search);
});
find("#use").addEventListener("click", () => telling(() => read(find("#sentences").value)));
telling(async () => {
  find("#sentences").value = await (await fetch("sentences.txt")).text();
  await read(find("#sentences").value);
});
