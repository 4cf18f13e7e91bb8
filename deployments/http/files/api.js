// What the page asks of the service. Nothing here touches the document.

const API = "/api/swarm-lifecycle";
let csrf = "";

export class Refused extends Error {}

async function ask(path, options = {}) {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  if (answer.status === 401) {
    location.assign("/login");
    throw new Refused("The session has ended.");
  }
  const body = await answer.json().catch(() => ({ error: `The service answered ${answer.status}.` }));
  if (!answer.ok) throw new Refused(body.error);
  return body;
}

export async function begin() {
  csrf = (await ask(`${API}/session`)).csrf;
}

const post = (path, body) =>
  ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
    body: JSON.stringify(body),
  });

export const act = (action, more) => post(API, { action, actor: "the page", ...more });
export const detail = (workerId) => ask(`${API}/workers/${encodeURIComponent(workerId)}`);
export const run = (flowRunId) => ask(`${API}/runs/${encodeURIComponent(flowRunId)}`);

export async function logOut() {
  await post("/logout", {});
  location.assign("/login");
}

// Calls back for the whole fleet, for changes and for troubles; the browser connects again by itself.
export function listen({ fleet, change, trouble, connection }) {
  let source;
  const open = () => {
    source = new EventSource(`${API}/events`);
    source.addEventListener("open", () => connection(true));
    source.addEventListener("fleet", (event) => fleet(JSON.parse(event.data)));
    source.addEventListener("change", (event) => change(JSON.parse(event.data)));
    source.addEventListener("trouble", (event) => trouble(JSON.parse(event.data).error));
    source.addEventListener("error", async () => {
      connection(false);
      if (source.readyState !== EventSource.CLOSED) return;
      // Refused for good: the session has ended, or all places for live pages are taken.
      await begin().catch(() => undefined);
      setTimeout(open, 5000);
    });
  };
  open();
}
