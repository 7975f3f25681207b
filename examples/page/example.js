// What the pages of the examples share: a question to a model, and what is said when there is no answer.

import { Body } from "./body.js";
import { answer, request } from "./tensor.js";

// The server runs on the machine that this page comes from, on the port that the page's address names: ?server=8000.
export const server = `http://${location.hostname}:${new URLSearchParams(location.search).get("server") ?? 8000}`;

export const find = (selector) => document.querySelector(selector);

export const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

// The outputs of a model by their names, each {shape, values}. inputs and outputs: see tensor.js.
export const infer = async (model, inputs, outputs, signal) => {
  const { body, headers } = request(inputs, outputs);
  const response = await fetch(`${server}/v2/models/${model}/infer`, { method: "POST", body, headers, signal }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Error(`The server at ${server} cannot be reached. Is “make example” still running?`);
  });
  if (!response.ok) throw new Error((await response.json()).error);
  const jsonLength = response.headers.get("Inference-Header-Content-Length");
  return Object.fromEntries((await answer(new Body(response), jsonLength)).map((each) => [each.name, each]));
};

// state: waiting, ready or gone, which is the colour of the dot; the words are read out, too.
export const say = (state, words) => {
  find("#state").dataset.state = state;
  find("#state-text").textContent = words;
};
