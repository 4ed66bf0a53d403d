// Common parts of list pages: heading, refreshed table, message for an empty list.

import { h, keyed, setText } from "./dom.js";
import { paced } from "./live.js";

// {title, node, update, look}; `cells(row, item)` fills a row that has a cell per column.
export function listView({ title, hint = null, heads, none, ask, keyOf, first, cells, everyMs = 5000, above = null }) {
  const rows = h("tbody");
  const table = h(
    "div",
    { class: "scroll", hidden: true, tabindex: 0, role: "group", "aria-label": `Table: ${title}` },
    h("table", { class: "list" }, h("caption", { class: "visually-hidden" }, title), h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))), rows),
  );
  const empty = h("p", { class: "empty", hidden: true }, none);
  const problem = h("p", { class: "error", role: "alert" });
  const node = h("section", {}, h("h1", { tabindex: -1 }, title), hint && h("p", { class: "hint" }, hint), above, problem, table, empty);

  async function look() {
    try {
      const items = await ask();
      const make = (item) => h("tr", {}, h("th", { scope: "row", "data-label": heads[0] }, first(item)), heads.slice(1).map((head) => h("td", { "data-label": head })));
      keyed(rows, items, keyOf, make, (row, item) => cells(item).forEach((cell, at) => put(row.children[at + 1], cell)));
      table.hidden = !items.length;
      empty.hidden = items.length > 0;
      setText(problem, "");
    } catch (error) {
      setText(problem, error.message);
    }
  }

  return { title, node, update: paced(everyMs, look), look };
}

function put(cell, content) {
  if (typeof content === "string") setText(cell, content);
  else if (!cell.hasChildNodes()) cell.append(content); // a control, which stays
}
