// One worker's card. What a worker or a file wrote is only ever put in as text.

import { plot } from "./plot.js";
import { ago, figure, figures, limits, stateKey, stateWords } from "./words.js";

const ANSWERS = {
  retry: ["Retry", "The same renewal goes on from where it stands."],
  force: ["Force", "A busy turn is ended too, after a handoff is put together from its transcript."],
  synthesize: ["Synthesize", "It goes on with a handoff that is put together from the transcript."],
  "use-text": ["Use a text", "It goes on with the handoff that you write here."],
  dismiss: ["Dismiss", "The renewal is closed; a stopped worker is started again first."],
  hold: ["Close and hold", "The renewal is closed and nothing touches the worker until it is released."],
};

export class Card {
  // *acts* is what the buttons do: { ask(question), toggle(row), hold(row), request(row), reset(row), load(row) }.
  constructor(template, acts) {
    this.element = template.content.firstElementChild.cloneNode(true);
    this.acts = acts;
    this.blockKey = "";
    this.detailKey = "";
    const on = (name, event, does) => this.part(name).addEventListener(event, does);
    on(".automatic", "click", () => acts.toggle(this.row));
    on(".renew", "click", () => acts.ask(renewal(this.row)));
    on(".request", "click", () => acts.request(this.row));
    on(".hold", "click", () => acts.hold(this.row));
    on(".reset", "click", () => acts.reset(this.row));
    on("details", "toggle", () => this.loadDetail());
  }

  part(selector) {
    return this.element.querySelector(selector);
  }

  say(selector, words) {
    const part = this.part(selector);
    if (part.textContent !== words) part.textContent = words;
    part.hidden = words === "";
  }

  show(row) {
    this.row = row;
    const { element } = this;
    element.id = `worker-${row.workerId}`;
    element.classList.toggle("blocked", row.block !== null);
    element.setAttribute("aria-labelledby", `${element.id}-name`);
    this.part("h2").id = `${element.id}-name`;
    this.say("h2", row.workerId);
    this.say(".state", stateWords(row));
    this.part(".state").className = `state is-${stateKey(row)}`;
    this.say(".generation", `generation ${row.generation}`);
    this.say(".session", [row.model, row.title].filter(Boolean).join(" · "));
    this.say(".figures", figures(row));
    this.say(".limits", limits(row));
    this.say(".why", row.error ?? row.why);
    this.showMeter(row);
    this.showBlock(row);
    this.showActs(row);
    this.tick();
    this.loadDetail();
  }

  // What changes with time alone.
  tick() {
    const { lastHandoffAt } = this.row;
    this.say(".handoff-age", lastHandoffAt === null ? "No handoff yet" : `Last handoff ${ago(lastHandoffAt)}`);
  }

  showMeter(row) {
    const { softTokens, handoffTokens, hardTokens } = row.policy;
    const now = figure(row) ?? 0;
    const scale = Math.max(hardTokens * 1.1, now);
    const share = (tokens) => `${(100 * tokens) / scale}%`;
    const meter = this.part(".meter");
    meter.className = `meter is-${row.contextState}`;
    meter.setAttribute("aria-label", `Context of ${row.workerId}`);
    meter.setAttribute("aria-valuemax", Math.round(scale));
    meter.setAttribute("aria-valuenow", now);
    meter.setAttribute("aria-valuetext", `${figures(row)}; limits: ${limits(row)}`);
    this.part(".fill").style.width = share(now);
    this.part(".limit.soft").style.left = share(softTokens);
    this.part(".limit.handoff").style.left = share(handoffTokens);
    this.part(".limit.hard").style.left = share(hardTokens);
  }

  showBlock(row) {
    const { block } = row;
    const key = block === null ? "" : JSON.stringify(block);
    if (key === this.blockKey) return;
    this.blockKey = key;
    const group = this.part(".block");
    group.hidden = block === null;
    if (block === null) return;
    group.setAttribute("aria-label", `Block of ${row.workerId}`);
    this.say(".block h3", `Blocked: ${block.reason}`);
    this.say(".block .detail", `${block.detail}${block.workerDown ? " The worker is DOWN." : ""}`);
    this.say(".evidence", block.evidence ?? "");
    this.say(".remedy", block.remedy ?? "");
    this.part(".answers").replaceChildren(...block.choices.map((choice) => this.answer(choice)));
  }

  answer(choice) {
    const button = document.createElement("button");
    const [label, words] = ANSWERS[choice] ?? [choice, ""];
    button.type = "button";
    button.textContent = label;
    button.dataset.choice = choice;
    button.addEventListener("click", () =>
      this.acts.ask({
        title: `${label}: ${this.row.workerId}`,
        words,
        yes: label,
        text: choice === "use-text",
        order: { action: "answer", workerId: this.row.workerId, choice },
      }),
    );
    return button;
  }

  showActs(row) {
    const held = row.lifecycleState === "held";
    const rests = row.block === null && !held;
    this.part(".automatic").setAttribute("aria-checked", String(row.automatic));
    this.part(".automatic").setAttribute("aria-label", `Automatic renewal of ${row.workerId}`);
    for (const [name, words] of [["renew", "Renew"], ["request", "Ask for a handoff"], ["hold", held ? "Release" : "Hold"], ["reset", "Reset"]]) {
      const button = this.part(`button.${name}`);
      button.textContent = words;
      button.setAttribute("aria-label", `${words}: ${row.workerId}`);
    }
    this.part("button.renew").disabled = !rests || row.lifecycleState === "renewing";
    this.part("button.request").disabled = !rests || row.lifecycleState === "renewing";
  }

  // Read again when it is open and something behind it has changed.
  async loadDetail() {
    const { row } = this;
    if (!this.part("details").open || !row) return;
    const key = [row.generation, row.renewalId, row.phase, row.lastHandoffAt, row.tokens].join();
    if (key === this.detailKey) return;
    this.detailKey = key;
    try {
      this.showDetail(await this.acts.load(row));
      this.say(".detail-note", "");
    } catch (error) {
      this.detailKey = "";
      this.say(".detail-note", error.message);
    }
  }

  showDetail({ generations, handoff }) {
    this.part(".plot").replaceChildren(...plot(generations, this.row.policy));
    const changed = handoff && !handoff.intact ? "; the file is not what was stored" : "";
    this.say(".handoff-head", handoff ? `Handoff of generation ${handoff.generation}, ${handoff.quality}${changed}` : "No handoff is stored");
    this.say(".handoff-text", handoff?.text ?? "");
    this.part(".handoff-text").setAttribute("aria-label", `Handoff of ${this.row.workerId}`);
  }
}

const renewal = (row) => ({
  title: `Renew ${row.workerId}?`,
  words: "It is asked for a handoff, stopped once that is saved, and started in a clean session.",
  yes: "Renew",
  force: true,
  order: { action: "renew", workerId: row.workerId },
});
