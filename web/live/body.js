// Bodies of answers, however long: they are read piece by piece, the browser has its turns meanwhile, and only what is asked for is held.
import { exact } from "./tensor.js";

const TURN_MS = 10; // a body is read for so long, then the browser has its turn
const READ = 1000000; // letters of an event of a stream

// What hands out the pieces of a body in turn: null behind the last one. It throws if the question was ended meanwhile.
const pieces = (stream) => {
  const reader = stream.getReader();
  let begun = performance.now();
  return async () => {
    if (performance.now() - begun > TURN_MS) {
      await new Promise((turn) => setTimeout(turn));
      begun = performance.now();
    }
    const { done, value } = await reader.read();
    return done ? null : value;
  };
};

export class Body {
  constructor(reply) {
    this.reply = reply;
    this.piece = new Uint8Array(0);
  }

  // All of it, where nothing was read before.
  all() {
    return this.reply.arrayBuffer();
  }

  // The next part of the body, `most` bytes at most.
  async part(most) {
    this.next ||= pieces(this.reply.body);
    while (!this.piece.length) {
      const piece = await this.next();
      if (!piece) throw new Error("the answer ends before its last output does");
      this.piece = piece;
    }
    const part = this.piece.subarray(0, most);
    this.piece = this.piece.subarray(part.length);
    return part;
  }

  // The next `length` bytes, in a buffer of their own.
  async take(length) {
    const made = new Uint8Array(length);
    for (let at = 0, part; at < length; at += part.length) {
      part = await this.part(length - at);
      made.set(part, at);
    }
    return made;
  }

  async skip(length) {
    for (let left = length; left > 0; ) left -= (await this.part(left)).length;
  }
}

// The events of a stream, each as the response that it holds, or as its length if it is too long to be read.
export async function* events(stream) {
  const next = pieces(stream.pipeThrough(new TextDecoderStream()));
  for (let text = "", dropped = 0, piece; (piece = await next()) !== null; ) {
    const parts = (text + piece).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      if (dropped || part.length > READ) yield { length: dropped + part.length };
      else if (part.startsWith("data:")) yield { response: exact(part.slice(5)) };
      dropped = 0;
    }
    if (text.length <= READ) continue;
    dropped += text.length - 1;
    text = text.slice(-1); // may be half of an end
  }
}
