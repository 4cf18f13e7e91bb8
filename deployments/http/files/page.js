// The fleet, live.

import { act, begin, detail, listen, logOut, run } from "./api.js";
import { Card } from "./card.js";
import { stateWords } from "./words.js";

const at = (id) => document.getElementById(id);
const cards = new Map();
const unmanaged = new Set();
const template = at("worker");

// Messages

function tell(words, { bad = false, link } = {}) {
  const message = document.createElement("p");
  message.className = bad ? "bad" : "";
  const text = document.createElement("span");
  text.textContent = words;
  message.append(text);
  if (link) {
    const anchor = document.createElement("a");
    anchor.href = link;
    anchor.textContent = "run";
    message.append(anchor);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet";
  close.textContent = "Close";
  close.addEventListener("click", () => message.remove());
  message.append(close);
  at("messages").append(message);
  while (at("messages").childElementCount > 4) at("messages").firstElementChild.remove();
}

const later = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

// Tells how a run ends; asks less often the longer it takes.
async function follow({ flowRunId, flowRunUrl }, what) {
  for (let seconds = 2; ; seconds = Math.min(seconds * 1.6, 20)) {
    await later(seconds);
    let found;
    try {
      found = await run(flowRunId);
    } catch {
      continue;
    }
    if (!found.isFinal) continue;
    const bad = ["Failed", "Crashed", "Refused", "Blocked", "Cancelled"].includes(found.state);
    tell(`${what}: ${found.state}. ${found.message}`, { bad, link: flowRunUrl });
    return;
  }
}

async function order(what, action, more) {
  try {
    const done = await act(action, more);
    if (!done.flowRunId) {
      tell(done.message ?? `${what}: done`);
      return;
    }
    tell(`${what}: begun`, { link: done.flowRunUrl });
    follow(done, what);
  } catch (error) {
    tell(`${what}: ${error.message}`, { bad: true });
  }
}

// The question before an act that ends a session

function ask({ title, words, yes, force = false, text = false, order: wanted }) {
  const dialog = at("ask");
  const form = dialog.querySelector("form");
  form.reset();
  at("ask-title").textContent = title;
  at("ask-words").textContent = words;
  at("ask-yes").textContent = yes;
  at("ask-force").hidden = !force;
  at("ask-text").hidden = !text;
  form.elements.text.required = text;
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "yes") return;
    const { action, ...more } = wanted;
    const why = form.elements.why.value.trim();
    order(`${yes} ${more.workerId}`, action, {
      ...more,
      ...(why && { why }),
      ...(force && form.elements.force.checked && { force: true }),
      ...(text && { text: form.elements.text.value }),
    });
  };
  dialog.showModal();
}

const acts = {
  ask,
  load: (row) => detail(row.workerId),
  toggle: (row) => order(`Automatic renewal of ${row.workerId}`, row.automatic ? "disable" : "enable", { workerId: row.workerId }),
  hold: (row) => order(row.workerId, row.lifecycleState === "held" ? "release" : "hold", { workerId: row.workerId }),
  request: (row) => order(`Handoff of ${row.workerId}`, "request-handoff", { workerId: row.workerId }),
  reset: (row) =>
    ask({
      title: `Reset ${row.workerId}?`,
      words: "An open renewal that nobody works on is closed, and runtime.json says what the pane shows. Nothing is stopped.",
      yes: "Reset",
      order: { action: "reset", workerId: row.workerId },
    }),
};

// The fleet

function show(row) {
  if (!row.managed) {
    unmanaged.add(row.workerId);
    remove(row.workerId);
    return;
  }
  unmanaged.delete(row.workerId);
  if (!cards.has(row.workerId)) {
    cards.set(row.workerId, new Card(template, acts));
    at("fleet").append(cards.get(row.workerId).element);
  }
  cards.get(row.workerId).show(row);
}

function remove(workerId) {
  cards.get(workerId)?.element.remove();
  cards.delete(workerId);
}

function summarize() {
  const rows = [...cards.values()].map((card) => card.row);
  const count = (is) => rows.filter(is).length;
  const parts = [
    `${rows.length} worker${rows.length === 1 ? "" : "s"}`,
    [count((row) => row.block !== null), "blocked"],
    [count((row) => row.lifecycleState === "renewing"), "renewing"],
    [count((row) => ["handoff_required", "renew_required"].includes(row.contextState)), "over a limit"],
    [count((row) => row.contextState === "unknown"), "unknown"],
  ];
  at("summary").textContent = parts.map((part) => (Array.isArray(part) ? part[0] && part.join(" ") : part)).filter(Boolean).join(", ");
  at("unmanaged").hidden = unmanaged.size === 0;
  at("unmanaged").textContent = `Unmanaged, never touched: ${[...unmanaged].join(", ")}`;
  filter();
}

function filter() {
  const wanted = at("find").value.trim().toLowerCase();
  let found = 0;
  for (const { element, row } of cards.values()) {
    element.hidden = !`${row.workerId} ${stateWords(row)}`.toLowerCase().includes(wanted);
    found += element.hidden ? 0 : 1;
  }
  at("none").hidden = found > 0;
}

// Those that wait for a human first. Later changes move no card: what one is about to press stays where it is.
const urgency = (row) =>
  row.block !== null ? 0 : ["renew_required", "unknown"].includes(row.contextState) ? 1 : row.contextState === "handoff_required" ? 2 : 3;
const byUrgency = (rows) => [...rows].sort((one, other) => urgency(one) - urgency(other));

function changed({ workers, gone = [] }) {
  at("trouble").hidden = true;
  workers.forEach(show);
  gone.forEach((workerId) => (unmanaged.delete(workerId), remove(workerId)));
  summarize();
}

at("find").addEventListener("input", filter);
at("filter").addEventListener("submit", (event) => event.preventDefault());
at("sweep").addEventListener("click", () => order("Sweep", "auto-sweep", {}));
at("log-out").addEventListener("click", () => logOut().catch((error) => tell(error.message, { bad: true })));
setInterval(() => cards.forEach((card) => card.tick()), 15000);

begin()
  .then(() =>
    listen({
      fleet: ({ workers }) => {
        const names = new Set(workers.map((row) => row.workerId));
        changed({ workers: byUrgency(workers), gone: [...cards.keys(), ...unmanaged].filter((name) => !names.has(name)) });
      },
      change: changed,
      trouble: (error) => {
        at("trouble").hidden = false;
        at("trouble").textContent = error;
      },
      connection: (live) => {
        at("connection").textContent = live ? "live" : "connection lost; trying again";
      },
    }),
  )
  .catch((error) => tell(error.message, { bad: true }));
