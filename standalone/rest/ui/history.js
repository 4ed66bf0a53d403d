// The states of a connector and its tasks, newest first.

import { connectorPath, get } from "./api.js";
import { h, keyed, setText } from "./dom.js";
import { time } from "./format.js";
import { LABELS } from "./live.js";

const SHOWN = 20;

export function historyPart(name) {
  const rows = h("ol", { class: "history", reversed: true });
  const none = h("p", { class: "hint" }, "No state is noted yet.");
  const node = h("section", { class: "panel", "aria-label": "History" }, h("h2", {}, "History"), rows, none);

  async function look() {
    const found = (await get(connectorPath(name, "/history"))).slice(0, SHOWN);
    none.hidden = found.length > 0;
    keyed(rows, found, (each) => `${each.time} ${each.task} ${each.state}`, makeRow);
  }

  return { node, look };
}

function makeRow({ time: at, task, state, trace }) {
  const what = task === null || task === undefined ? "connector" : `task ${task}`;
  const row = h("li", {}, `${time(typeof at === "number" ? at : Date.parse(at))}: ${what} ${(LABELS[state] ?? state).toLowerCase()}`);
  if (trace) row.append(" ", h("span", { class: "error" }, trace.split("\n")[0].slice(0, 300)));
  return row;
}
