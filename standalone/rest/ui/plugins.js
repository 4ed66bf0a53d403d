// The catalogue: all plugins of the worker with their keys.

import { get } from "./api.js";
import { h, keyed, setText } from "./dom.js";
import { simpleName } from "./format.js";
import { complain } from "./notes.js";

const KINDS = { source: "Sources", sink: "Sinks", transformation: "Transforms", predicate: "Predicates", converter: "Converters", header_converter: "Header converters" };

export function pluginsView() {
  const filter = h("input", { type: "search", id: "filter", autocomplete: "off", spellcheck: "false", oninput: () => show() });
  const shown = h("p", { class: "hint", role: "status" });
  const groups = h("div");
  const node = h("section", {}, h("h1", { tabindex: -1 }, "Plugins"), h("div", { class: "filter" }, h("label", { for: "filter" }, "Filter by name"), filter), shown, groups);
  let plugins = [];

  function show() {
    const wanted = filter.value.trim().toLowerCase();
    const found = plugins.filter((each) => each.class.toLowerCase().includes(wanted));
    setText(shown, `${found.length} of ${plugins.length} plugins`);
    const kinds = [...new Set(found.map((each) => each.type))];
    keyed(groups, kinds, (kind) => kind, (kind) => h("section", { class: "panel", "aria-label": KINDS[kind] ?? kind }, h("h2", {}, KINDS[kind] ?? kind), h("div")), (part, kind) =>
      keyed(part.lastChild, found.filter((each) => each.type === kind), (each) => each.class, makePlugin),
    );
  }

  get("connector-plugins?connectorsOnly=false").then((found) => {
    plugins = found;
    show();
  }, complain);

  return { title: "Plugins", node };
}

function makePlugin(plugin) {
  const body = h("div");
  const details = h("details", {}, h("summary", {}, `${simpleName(plugin.class)} ${plugin.version ?? ""}`), h("p", { class: "hint name" }, plugin.class), body);
  let asked = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || asked) return;
    asked = true;
    try {
      const keys = await get(`connector-plugins/${encodeURIComponent(plugin.class)}/config`);
      body.append(keys.length ? table(keys) : h("p", { class: "hint" }, "It has no keys."));
    } catch (error) {
      asked = false;
      complain(error);
    }
  });
  return details;
}

function table(keys) {
  const heads = ["Key", "Type", "Default", "Meaning"];
  const row = (key) => [h("th", { scope: "row" }, key.name), h("td", {}, key.type.toLowerCase()), h("td", {}, key.required ? "required" : (key.default_value ?? "–")), h("td", {}, key.documentation)];
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Keys" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, keys.map((key) => h("tr", {}, row(key))))));
}
