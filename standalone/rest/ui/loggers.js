// Log levels, changed at runtime.

import { get, put } from "./api.js";
import { h } from "./dom.js";
import { listView } from "./lists.js";
import { busy, say } from "./notes.js";

const LEVELS = ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

export function loggersView() {
  const name = h("input", { id: "logger", autocomplete: "off", spellcheck: "false", autocapitalize: "none", value: "standalone.runtime" });
  const level = choice("level", "DEBUG");
  const set = h("button", { type: "button", class: "primary", onclick: (event) => busy(event.currentTarget, () => change(name.value.trim(), level.value)) }, "Set");
  const field = (input, text) => h("div", { class: "field" }, h("label", { for: input.id }, text), input);
  const view = listView({
    title: "Log levels",
    hint: "A level holds for the logger and those below it, until it is changed; it outlives a restart.",
    above: h("div", { class: "controls" }, field(name, "Logger"), field(level, "Level"), set),
    heads: ["Logger", "Level", "Change to"],
    none: "No logger has its own level.",
    ask: async () => Object.entries(await get("admin/loggers")).map(([logger, each]) => ({ logger, level: each.level })),
    keyOf: (row) => row.logger,
    first: (row) => row.logger,
    cells: (row) => [row.level ?? "–", menu(row)],
  });

  function menu(row) {
    const select = choice(null, row.level);
    select.setAttribute("aria-label", `Level of ${row.logger}`);
    select.addEventListener("change", () => busy(select, () => change(row.logger, select.value)));
    return select;
  }

  async function change(logger, wanted) {
    if (!logger) throw new Error("Name a logger, such as root or standalone.runtime.");
    await put(`admin/loggers/${encodeURIComponent(logger)}`, { level: wanted });
    say(`${logger} logs ${wanted} and above.`);
    await view.look();
  }

  return view;
}

function choice(id, chosen) {
  return h("select", { id }, LEVELS.map((level) => h("option", { value: level, selected: level === chosen }, level)));
}
