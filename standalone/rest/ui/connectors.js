// The first page: all connectors with state and throughput.

import { actions } from "./actions.js";
import { chart, sparkline } from "./chart.js";
import { h, keyed, setText } from "./dom.js";
import { plural, rate, simpleName } from "./format.js";
import { LABELS, live } from "./live.js";
import { badge, setBadge } from "./state.js";

const COUNTED = [
  ["Running", ["RUNNING"]],
  ["Paused", ["PAUSED"]],
  ["Stopped", ["STOPPED"]],
  ["Failed", ["FAILED", "TASK_FAILED"]],
];

export function connectorsView() {
  const numbers = COUNTED.map(([label, states]) => ({ states, value: h("dd", {}, "–"), label }));
  const cards = numbers.map(({ label, value }) => h("div", { class: `card ${label.toLowerCase()}` }, h("dt", {}, label), value));
  const total = h("dd", {}, "–");
  const whole = chart("Records per second, all connectors", 150);
  const filter = h("input", { type: "search", id: "filter", autocomplete: "off", spellcheck: "false", oninput: update });
  const shown = h("p", { class: "hint", role: "status" });
  const rows = h("tbody");
  const heads = ["Name", "Type", "State", "Tasks", "Records/s", "Actions"];
  const table = h(
    "div",
    { class: "scroll" },
    h("table", { class: "list" }, h("caption", { class: "visually-hidden" }, "Connectors"), h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))), rows),
  );
  const empty = h(
    "div",
    { class: "empty", hidden: true },
    h("h2", {}, "No connector yet"),
    h("p", {}, "A connector brings records from somewhere into a topic, or from topics to somewhere."),
    h("a", { class: "button primary", href: "#/new" }, "Create the first one"),
  );
  const list = h("div", { hidden: true }, h("div", { class: "filter" }, h("label", { for: "filter" }, "Filter by name, class or state"), filter), shown, table);
  const node = h(
    "section",
    {},
    h("div", { class: "head" }, h("h1", { tabindex: -1 }, "Connectors"), h("a", { class: "button primary", href: "#/new" }, "New connector")),
    h("dl", { class: "cards" }, ...cards, h("div", { class: "card" }, h("dt", {}, "Records/s"), total)),
    h("div", { class: "panel" }, whole.node),
    list,
    empty,
  );

  function update() {
    if (!live.loaded) return;
    const all = [...live.connectors.values()];
    for (const { states, value } of numbers) setText(value, String(all.filter((each) => states.includes(each.health)).length));
    setText(total, rate(live.series().at(-1)?.value ?? 0));
    whole.set(live.series());
    list.hidden = all.length === 0;
    empty.hidden = all.length > 0;
    const wanted = filter.value.trim().toLowerCase();
    const found = all.filter((each) => `${each.name} ${each.className} ${each.type} ${LABELS[each.health] ?? ""}`.toLowerCase().includes(wanted));
    setText(shown, wanted ? `${found.length} of ${plural(all.length, "connector")}` : "");
    keyed(rows, found, (each) => each.name, makeRow, (row, each) => row.show(each));
  }

  return { title: "Connectors", node, update };
}

function makeRow({ name }) {
  const state = badge("UNASSIGNED");
  const tasks = h("td", { "data-label": "Tasks" });
  const kind = h("td", { "data-label": "Type" });
  const speed = h("span", { class: "number" });
  const small = sparkline();
  const buttons = actions(name, { few: true });
  const row = h(
    "tr",
    {},
    h("th", { scope: "row", "data-label": "Name" }, h("a", { href: `#/connectors/${encodeURIComponent(name)}`, class: "name" }, name)),
    kind,
    h("td", { "data-label": "State" }, state),
    tasks,
    h("td", { "data-label": "Records/s" }, h("span", { class: "speed" }, speed, small.node)),
    h("td", { "data-label": "Actions" }, buttons.node),
  );
  row.show = (connector) => {
    setText(kind, [connector.type, simpleName(connector.className)].filter(Boolean).join(" · "));
    setBadge(state, connector.health);
    setText(tasks, tasksInWords(connector.tasks));
    setText(speed, rate(live.rate(name)));
    small.set(live.series(name));
    buttons.update(connector);
  };
  return row;
}

function tasksInWords(tasks) {
  if (!tasks.length) return "none";
  const counts = new Map();
  for (const { state } of tasks) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, number]) => `${number} ${(LABELS[state] ?? state).toLowerCase()}`).join(", ");
}
