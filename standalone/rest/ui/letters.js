// Dead letters: list the queues, show their records, replay them.

import { get, post } from "./api.js";
import { h, keyed, newId, setText } from "./dom.js";
import { count, plural, pretty, time } from "./format.js";
import { listView } from "./lists.js";
import { paced } from "./live.js";
import { ask, busy, say } from "./notes.js";

const EVERY_MS = 5000;

export function queuesView() {
  return listView({
    title: "Dead letters",
    hint: "Queues that connectors write to (errors.deadletterqueue.topic.name).",
    heads: ["Queue", "Connectors"],
    none: "No connector has a dead letter queue.",
    ask: () => get("ui/api/dead-letters"),
    keyOf: (row) => row.queue,
    first: (row) => (row.exists ? h("a", { class: "name", href: `#/dead-letters/${encodeURIComponent(row.queue)}` }, row.queue) : `${row.queue} (no letter yet)`),
    cells: (row) => [row.connectors.join(", ")],
  });
}

export function queueView(queue) {
  const path = `ui/api/dead-letters/${encodeURIComponent(queue)}`;
  const all = h("button", { type: "button", class: "primary", onclick: (event) => busy(event.currentTarget, () => replay({})) }, "Replay all…");
  const shown = h("p", { class: "hint", role: "status" });
  const problem = h("p", { class: "error", role: "alert" });
  const heads = ["Offset", "Time", "From", "Error", "Value", "Replay"];
  const rows = h("table", { class: "list records" }, h("caption", { class: "visually-hidden" }, "Dead letters, the newest first"), h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))));
  const table = h("div", { class: "scroll", hidden: true, tabindex: 0, role: "group", "aria-label": "Table of dead letters" }, rows);
  const node = h(
    "section",
    {},
    h("p", { class: "crumbs" }, h("a", { href: "#/dead-letters" }, "Dead letters")),
    h("div", { class: "head" }, h("h1", { tabindex: -1, class: "name" }, queue), h("div", { class: "buttons" }, all)),
    shown,
    problem,
    table,
  );

  async function look() {
    try {
      const { total, letters } = await get(path);
      setText(shown, `${plural(letters.length, "letter")} of ${count(total)}, the newest first`);
      keyed(rows, letters, (each) => `${each.partition}:${each.offset}`, (each) => makeLetter(each, replay), (body, each) => body.show(each));
      table.hidden = !letters.length;
      setText(problem, "");
    } catch (error) {
      setText(problem, error.message);
    }
  }

  // First a dry run, then the replay.
  async function replay(choice) {
    const would = await post(`${path}/replay`, { ...choice, dry_run: true });
    const parts = [...Object.entries(would.sent).map(([topic, number]) => `${plural(number, "record")} to ${topic}`), would.before && `${count(would.before)} replayed before stay`, ...Object.entries(would.left).map(([why, number]) => `${count(number)} stay: ${why}`)].filter(Boolean);
    if (!Object.keys(would.sent).length) {
      say(["Nothing to replay", ...parts].join(". "));
      return;
    }
    const sure = await ask({ title: "Replay dead letters?", body: ["They are written into the topics that they come from, as they were before they failed.", h("ul", {}, parts.map((part) => h("li", {}, part)))], action: "Replay" });
    if (!sure) return;
    const done = await post(`${path}/replay`, choice);
    say(`Replayed: ${Object.entries(done.sent).map(([topic, number]) => `${plural(number, "record")} to ${topic}`).join(", ")}`);
    await look();
  }

  return { title: queue, node, update: paced(EVERY_MS, look) };
}

function makeLetter(letter, replay) {
  const id = newId("letter");
  const toggle = h("button", { type: "button", class: "link", "aria-expanded": "false", "aria-controls": id, "aria-label": `Offset ${letter.offset}: details` }, `${letter.partition}:${letter.offset}`);
  const again = h("button", { type: "button", "aria-label": `Replay offset ${letter.offset}`, onclick: (event) => busy(event.currentTarget, () => replay({ partition: letter.partition, offset: letter.offset })) }, "Replay…");
  const done = h("span", { class: "hint" }, "Replayed");
  const more = h("tr", { id, class: "more", hidden: true }, h("td", { colspan: 6 }));
  toggle.addEventListener("click", () => {
    if (!more.firstChild.hasChildNodes()) more.firstChild.append(whole(letter));
    more.hidden = !more.hidden;
    toggle.setAttribute("aria-expanded", String(!more.hidden));
  });
  const cell = (label, ...content) => h("td", { "data-label": label }, ...content);
  const row = h(
    "tr",
    {},
    h("th", { scope: "row", "data-label": "Offset" }, toggle),
    cell("Time", letter.timestamp === null ? "–" : time(letter.timestamp)),
    cell("From", letter.origin ?? "–"),
    cell("Error", h("span", { class: "preview" }, `${letter.error.split(".").pop()}: ${letter.message}`.slice(0, 300))),
    cell("Value", h("span", { class: "preview" }, (letter.value?.text ?? "null").slice(0, 300))),
    cell("Replay", again, done),
  );
  const body = h("tbody", {}, row, more);
  body.show = (now) => {
    again.hidden = now.replayed;
    done.hidden = !now.replayed;
  };
  return body;
}

function whole(letter) {
  const part = (title, text) => text && h("div", {}, h("h3", {}, title), h("pre", { tabindex: 0, "aria-label": title }, text));
  const bytes = (title, data) => part(title, data === null ? "null" : data.encoding === "hex" ? data.text : pretty(data.text));
  return h(
    "div",
    {},
    part("Failed", [letter.connector, letter.stage, letter.error].filter(Boolean).join(" · ")),
    part("Message", letter.message),
    bytes("Key", letter.key),
    bytes("Value", letter.value),
    ...letter.headers.map((header) => bytes(`Header ${header.name}`, header.value)),
    part("Trace", letter.trace),
  );
}
