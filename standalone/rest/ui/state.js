// A state as a symbol and a word, never only as a colour.

import { h, setText, svg } from "./dom.js";
import { LABELS } from "./live.js";

const SHAPES = {
  RUNNING: "M3 2l8 5-8 5z",
  PAUSED: "M3 2h3v10H3zM8 2h3v10H8z",
  STOPPED: "M2 2h10v10H2z",
  FAILED: "M7 1l6.5 12H.5zM6.3 5v4h1.4V5zm0 5v1.4h1.4V10z",
  RESTARTING: "M7 2a5 5 0 1 0 5 5h-2a3 3 0 1 1-3-3v2l4-3-4-3z",
  UNASSIGNED: "M7 1a6 6 0 1 0 0 12A6 6 0 0 0 7 1zm0 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
};

export function badge(state) {
  const shape = svg("path", { "fill-rule": "evenodd" });
  const node = h("span", {}, svg("svg", { viewBox: "0 0 14 14", width: 11, height: 11, "aria-hidden": "true" }, shape), h("span"));
  setBadge(node, state);
  return node;
}

export function setBadge(node, state) {
  const shape = state === "TASK_FAILED" ? "FAILED" : state in SHAPES ? state : "UNASSIGNED";
  if (node.className !== `badge ${shape.toLowerCase()}`) {
    node.className = `badge ${shape.toLowerCase()}`;
    node.querySelector("path").setAttribute("d", SHAPES[shape]);
  }
  setText(node.lastChild, LABELS[state] ?? state);
}
