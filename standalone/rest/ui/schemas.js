// Subjects of the schema registry, their versions, and differences between versions.

import { get } from "./api.js";
import { h, keyed, setText } from "./dom.js";
import { plural } from "./format.js";
import { paced } from "./live.js";

const EVERY_MS = 5000;
const WORDS = { "+": "new: ", "-": "gone: " };

export function subjectsView() {
  const heads = ["Subject", "Kind", "Latest version", "Id"];
  const rows = h("tbody");
  const table = h(
    "div",
    { class: "scroll" },
    h("table", { class: "list" }, h("caption", { class: "visually-hidden" }, "Subjects"), h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))), rows),
  );
  const empty = h("p", { class: "empty", hidden: true }, "There are no schemas yet: a converter registers them, or a producer.");
  const problem = h("p", { class: "error", role: "alert" });
  const node = h("section", {}, h("h1", { tabindex: -1 }, "Schemas"), problem, table, empty);

  async function look() {
    try {
      const subjects = await get("ui/api/schemas");
      keyed(rows, subjects, (each) => each.subject, makeSubject, (row, each) => {
        setText(row.children[1], each.kind);
        setText(row.children[2], String(each.latest));
        setText(row.children[3], String(each.id));
      });
      table.hidden = !subjects.length;
      empty.hidden = subjects.length > 0;
      setText(problem, "");
    } catch (error) {
      table.hidden = true;
      setText(problem, error.message);
    }
  }

  return { title: "Schemas", node, update: paced(EVERY_MS, look) };
}

function makeSubject({ subject }) {
  const cell = (label) => h("td", { "data-label": label });
  const link = h("a", { class: "name", href: `#/schemas/${encodeURIComponent(subject)}` }, subject);
  return h("tr", {}, h("th", { scope: "row", "data-label": "Subject" }, link), cell("Kind"), cell("Latest version"), cell("Id"));
}

export function subjectView(subject) {
  const older = h("select", { id: "older", onchange: () => compare() });
  const newer = h("select", { id: "newer", onchange: () => compare() });
  const about = h("p", { class: "hint", role: "status" });
  const problem = h("p", { class: "error", role: "alert" });
  const lines = h("pre", { class: "diff", tabindex: 0, "aria-label": "What differs" });
  const versions = h("div");
  const control = (input, text) => h("div", { class: "field" }, h("label", { for: input.id }, text), input);
  const differs = h("section", { hidden: true }, h("h2", {}, "What differs"), h("div", { class: "controls" }, control(older, "Older version"), control(newer, "Newer version")), lines);
  const node = h(
    "section",
    {},
    h("p", { class: "crumbs" }, h("a", { href: "#/schemas" }, "Schemas")),
    h("h1", { tabindex: -1, class: "name" }, subject),
    about,
    problem,
    differs,
    h("h2", {}, "Versions"),
    versions,
  );
  const query = (more) => new URLSearchParams({ subject, ...more });
  let known = "";
  let number = 0;

  async function look() {
    try {
      const found = await get(`ui/api/schemas/versions?${query({})}`);
      setText(problem, "");
      setText(about, `${plural(found.versions.length, "version")}; a new one has to be compatible: ${found.compatibility}`);
      const numbers = found.versions.map((each) => each.version);
      keyed(versions, [...found.versions].reverse(), (each) => each.version, makeVersion);
      if (numbers.join() === known) return;
      known = numbers.join();
      for (const [select, chosen] of [[older, numbers.at(-2)], [newer, numbers.at(-1)]]) {
        select.replaceChildren(...numbers.map((each) => h("option", { value: each, selected: each === chosen }, String(each))));
      }
      differs.hidden = numbers.length < 2;
      if (!differs.hidden) await compare();
    } catch (error) {
      setText(problem, error.message);
    }
  }

  async function compare() {
    const mine = ++number;
    try {
      const found = await get(`ui/api/schemas/diff?${query({ older: older.value, newer: newer.value })}`);
      if (mine !== number) return; // a newer request was sent meanwhile
      const shown = found.lines.filter((line) => line.mark !== "@").map(makeLine);
      lines.replaceChildren(...(shown.length ? shown : ["No difference"]));
    } catch (error) {
      setText(problem, error.message);
    }
  }

  return { title: subject, node, update: paced(EVERY_MS, look) };
}

function makeLine({ mark, text }) {
  const kind = { "+": "new", "-": "gone" }[mark] ?? "same";
  const word = WORDS[mark] && h("span", { class: "visually-hidden" }, WORDS[mark]);
  return h("span", { class: `line ${kind}` }, word, `${mark}${text}\n`);
}

function makeVersion(version) {
  const title = `Version ${version.version}, id ${version.id}, ${version.kind}`;
  const references = version.references.map((each) => h("p", { class: "hint" }, `Refers to ${each.name}: ${each.subject}, version ${each.version}`));
  return h("div", {}, h("h3", {}, title), ...references, h("pre", { tabindex: 0, "aria-label": title }, version.schema));
}
