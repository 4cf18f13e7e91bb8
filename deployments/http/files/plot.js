// Generations with their tokens, as a small plot of bars.

import { number } from "./words.js";

const WIDTH = 330;
const HEIGHT = 130;
const FOOT = 16;
const HEAD = 14;

function drawn(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

export function plot(generations, policy) {
  const shown = generations.slice(-12);
  const top = Math.max(policy.hardTokens, ...shown.map((one) => one.tokens ?? 0)) * 1.05;
  const words = shown.map((one) => `generation ${one.generation}: ${one.tokens === null ? "unknown" : `${number(one.tokens)} tokens`}`);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words.join("; ") });
  const height = (tokens) => ((HEIGHT - FOOT - HEAD) * tokens) / top;
  const step = WIDTH / Math.max(shown.length, 4);
  shown.forEach((one, place) => {
    const x = place * step;
    const tall = height(one.tokens ?? 0);
    const now = one.endedAt === null ? " now" : "";
    svg.append(drawn("rect", { class: `bar${now}`, x: x + step * 0.15, y: HEIGHT - FOOT - tall, width: step * 0.7, height: tall }));
    const middle = { x: x + step / 2, "text-anchor": "middle" };
    const short = one.tokens === null ? "?" : one.tokens < 10000 ? number(one.tokens) : `${Math.round(one.tokens / 1000)}k`;
    svg.append(drawn("text", { ...middle, y: HEIGHT - FOOT - tall - 3 }, short));
    svg.append(drawn("text", { ...middle, y: HEIGHT - 4 }, `${one.generation}`));
  });
  const y = HEIGHT - FOOT - height(policy.handoffTokens);
  svg.append(drawn("line", { class: "at", x1: 0, x2: WIDTH, y1: y, y2: y }));
  const caption = document.createElement("figcaption");
  caption.textContent = "Tokens at the end of each generation, and now; the dashed line is the handoff limit.";
  return [svg, caption];
}
