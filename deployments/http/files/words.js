// Figures and moments as people read them.

const NUMBER = new Intl.NumberFormat("en");
export const number = (value) => NUMBER.format(value);

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

export function ago(moment, now = Date.now()) {
  const seconds = Math.max(0, (now - new Date(moment)) / 1000);
  const [unit, size] = UNITS.find(([, least]) => seconds >= least) ?? ["second", 1];
  const count = Math.floor(seconds / size);
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
}

const STATES = {
  healthy: "healthy",
  watch: "watch",
  handoff_required: "handoff required",
  renew_required: "renewal required",
  unknown: "unknown",
  no_session: "no session",
};

// One word: what happens to the worker, else how full it is.
export const stateKey = (row) => (row.lifecycleState === "idle" ? row.contextState : row.lifecycleState);
export const stateWords = (row) => {
  const key = stateKey(row);
  const context = STATES[row.contextState] ?? row.contextState;
  if (key === row.contextState) return context;
  return `${key}${row.phase && key === "renewing" ? `: ${row.phase}` : ""} · ${context}`;
};

// The figure that is held against the limits.
export const figure = (row) => (row.signal === "session_total" && row.tokens !== null ? row.sessionTotal : row.tokens);

export function figures(row) {
  const now = figure(row);
  if (now !== null) {
    const percent = Math.round((100 * now) / row.policy.handoffTokens);
    const how = row.signal === "session_total" ? "billed so far" : { api_log: "as the agent logged", counted: "estimated", bound: "at most" }[row.tokensSource];
    return `${number(now)} tokens, ${percent} % of the handoff limit (${how ?? row.tokensSource})`;
  }
  if (row.lastGood) return `unknown; ${number(row.lastGood.tokens)} tokens ${ago(row.lastGood.readAt)}`;
  return row.contextState === "no_session" ? "no session yet" : "unknown";
}

export const limits = ({ policy }) =>
  `soft ${number(policy.softTokens)} · handoff ${number(policy.handoffTokens)} · hard ${number(policy.hardTokens)}`;
