// Topics and their newest records, as text or as hex if not UTF-8.

import { get, patch, post } from "./api.js";
import { h, keyed, newId, setText } from "./dom.js";
import { count, plural, pretty, size, time } from "./format.js";
import { live, paced } from "./live.js";
import { busy, complain, say } from "./notes.js";
import { produceForm } from "./produce.js";

const EVERY_MS = 5000;

export function topicsView() {
  const rows = h("tbody");
  const table = h(
    "div",
    { class: "scroll" },
    h("table", { class: "list" }, h("caption", { class: "visually-hidden" }, "Topics"), h("thead", {}, h("tr", {}, ["Topic", "Partitions", "Records"].map((each) => h("th", { scope: "col" }, each)))), rows),
  );
  const empty = h("p", { class: "empty", hidden: true }, "There are no topics yet: a source makes them, or a producer.");
  const problem = h("p", { class: "error", role: "alert" });
  const node = h("section", {}, h("h1", { tabindex: -1 }, "Topics"), newTopic(() => look()), problem, table, empty);

  async function look() {
    try {
      const topics = await get("ui/api/topics");
      keyed(rows, topics, (topic) => topic.name, makeRow, (row, topic) => {
        setText(row.children[1], count(topic.partitions));
        setText(row.children[2], count(topic.records));
      });
      table.hidden = !topics.length;
      empty.hidden = topics.length > 0;
      setText(problem, "");
    } catch (error) {
      setText(problem, error.message);
    }
  }

  return { title: "Topics", node, update: paced(EVERY_MS, look) };
}

// A form to create a topic.
function newTopic(done) {
  const [name, partitions, configs] = ["name", "partitions", "configs"].map((each) => h("input", { id: newId(each), autocomplete: "off", spellcheck: "false", autocapitalize: "none" }));
  configs.placeholder = "retention.ms=86400000, cleanup.policy=compact";
  const create = h("button", { type: "button", class: "primary", onclick: (event) => busy(event.currentTarget, make) }, "Create topic");
  const field = (input, text) => h("div", { class: "field" }, h("label", { for: input.id }, text), input);

  async function make() {
    const wanted = { name: name.value.trim(), configs: settings(configs.value) };
    if (partitions.value.trim()) wanted.partitions = Number(partitions.value);
    await post("ui/api/topics/new", wanted);
    say(`The topic “${wanted.name}” is created.`);
    for (const input of [name, partitions, configs]) input.value = "";
    await done();
  }

  return h("details", {}, h("summary", {}, "New topic"), h("div", { class: "three" }, field(name, "Name"), field(partitions, "Partitions (the broker's default)"), field(configs, "Settings, as key=value, …")), h("div", { class: "buttons" }, create));
}

// Parse "a=1, b=2" into an object; a comma not followed by a key belongs to the value.
function settings(text) {
  const parts = text.split(/,\s*(?=[a-z][\w.]*=)/).map((part) => part.trim()).filter(Boolean);
  const wrong = parts.find((part) => !part.includes("="));
  if (wrong) throw new Error(`“${wrong}” is not a key=value.`);
  return Object.fromEntries(parts.map((part) => [part.slice(0, part.indexOf("=")).trim(), part.slice(part.indexOf("=") + 1).trim()]));
}

// A topic's settings, changed ones first, and a form to change them.
function configsPart(name) {
  const list = h("dl", { class: "config" });
  const [key, value, partitions] = ["key", "value", "partitions"].map((each) => h("input", { id: newId(each), autocomplete: "off", spellcheck: "false", autocapitalize: "none" }));
  const field = (input, text) => h("div", { class: "field" }, h("label", { for: input.id }, text), input);
  const path = `ui/api/topics/${encodeURIComponent(name)}/configs`;
  const act = (body) => async () => show(await patch(path, body()));
  const set = h("button", { type: "button", onclick: (event) => busy(event.currentTarget, act(() => ({ configs: { [key.value.trim()]: value.value.trim() || null } }))) }, "Set");
  const more = h("button", { type: "button", onclick: (event) => busy(event.currentTarget, act(() => ({ partitions: Number(partitions.value) }))) }, "Add partitions");
  const node = h(
    "details",
    {},
    h("summary", {}, "Settings of the topic"),
    list,
    h("div", { class: "three" }, field(key, "Setting"), field(value, "Value; empty: the default")),
    h("div", { class: "buttons" }, set),
    h("div", { class: "three" }, field(partitions, "Partitions, more than now")),
    h("div", { class: "buttons" }, more),
  );
  node.addEventListener("toggle", () => node.open && get(path).then(show, complain));

  function show(configs) {
    const ordered = [...configs].sort((a, b) => b.own - a.own || a.name.localeCompare(b.name));
    keyed(list, ordered, (each) => each.name, (each) => h("div", {}, h("dt", {}, each.name), h("dd")), (row, each) => setText(row.lastChild, `${each.value ?? "hidden"}${each.own ? " (set on the topic)" : ""}`));
  }

  return node;
}

function makeRow({ name }) {
  const cell = (label) => h("td", { "data-label": label });
  return h("tr", {}, h("th", { scope: "row", "data-label": "Topic" }, h("a", { class: "name", href: `#/topics/${encodeURIComponent(name)}` }, name)), cell("Partitions"), cell("Records"));
}

export function topicView(name) {
  const partition = h("select", { id: "partition", onchange: () => look() }, h("option", { value: "" }, "All"));
  const limit = h("select", { id: "limit", onchange: () => look() }, [20, 50, 200, 500].map((each) => h("option", { value: each, selected: each === 50 }, String(each))));
  const filter = h("input", { id: "filter", type: "search", autocomplete: "off", spellcheck: "false", oninput: () => (searched && !filter.value.trim() ? search() : show()) });
  const from = h("input", { id: "from", autocomplete: "off", spellcheck: "false", placeholder: "offset, or 2026-01-31 12:00", onchange: () => look() });
  const follow = h("input", { id: "follow", type: "checkbox" });
  const refresh = h("button", { type: "button", onclick: (event) => busy(event.currentTarget, look) }, "Refresh");
  const whole = h("button", { type: "button", onclick: (event) => busy(event.currentTarget, search) }, "Search the topic");
  const shown = h("p", { class: "hint", role: "status" });
  const problem = h("p", { class: "error", role: "alert" });
  const heads = ["Offset", "Partition", "Time", "Key", "Value"];
  const rows = h(
    "table",
    { class: "list records" },
    h("caption", { class: "visually-hidden" }, "Records"),
    h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))),
  );
  const table = h("div", { class: "scroll" }, rows);
  const control = (input, text) => h("div", { class: "field" }, h("label", { for: input.id }, text), input);
  const node = h(
    "section",
    {},
    h("p", { class: "crumbs" }, h("a", { href: "#/topics" }, "Topics")),
    h("h1", { tabindex: -1, class: "name" }, name),
    h(
      "div",
      { class: "controls" },
      control(partition, "Partition"),
      control(limit, "At most"),
      control(filter, "Only with this text"),
      control(from, "From offset or time"),
      h("div", { class: "field check" }, follow, h("label", { for: "follow" }, "Keep looking")),
      whole,
      refresh,
    ),
    shown,
    problem,
    table,
    produceForm(name, look).node,
    configsPart(name),
  );
  let answer = null;
  let number = 0;
  let searched = ""; // the search text; "" while the newest records are shown
  const first = paced(EVERY_MS, look);
  const again = paced(0, look);

  async function look() {
    const mine = ++number;
    const wanted = new URLSearchParams({ limit: limit.value });
    if (partition.value !== "") wanted.set("partition", partition.value);
    if (searched) wanted.set("contains", searched);
    try {
      for (const [key, value] of seek(from.value.trim())) wanted.set(key, value);
      const found = await get(`ui/api/topics/${encodeURIComponent(name)}/records?${wanted}`);
      if (mine !== number) return; // a newer request was sent meanwhile
      answer = found;
      setText(problem, "");
      keyed(partition, [null, ...answer.partitions], (each) => each?.partition ?? null, (each) => (each === null ? partition.firstChild : h("option", { value: each.partition }, String(each.partition))));
      show();
    } catch (error) {
      setText(problem, error.message);
    }
  }

  // The worker searches all records from the chosen offset or time on.
  async function search() {
    searched = filter.value.trim();
    await look();
  }

  function show() {
    if (!answer) return;
    const wanted = filter.value.toLowerCase();
    const found = answer.records.filter((record) => !wanted || searchable(record).includes(wanted));
    const total = answer.partitions.reduce((sum, each) => sum + each.end - each.begin, 0);
    const of = answer.searched ? `${count(answer.searched.records)} searched of ${count(total)}` : count(total);
    const order = answer.searched || from.value.trim() ? "the oldest first" : "the newest first";
    const rest = answer.searched && !answer.searched.complete ? "; there is more: search from a later offset or time" : "";
    setText(shown, `${plural(found.length, "record")} of ${of} in ${plural(answer.partitions.length, "partition")}, ${order}${rest}`);
    keyed(rows, found, (record) => `${record.partition}:${record.offset}`, makeRecord);
    table.hidden = !found.length;
  }

  function update() {
    if (!answer) first();
    else if (follow.checked && !live.problem) again();
  }

  return { title: name, node, update };
}

// Where to start: [[parameter, value]] for an offset, a time, or nothing.
function seek(text) {
  if (!text) return [];
  if (/^\d{1,18}$/.test(text)) return [["offset", text]];
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new Error(`“${text}” is neither an offset nor a time such as 2026-01-31 12:00.`);
  return [["timestamp", String(Math.max(0, at))]];
}

function searchable(record) {
  const headers = record.headers.map((header) => `${header.name} ${header.value?.text ?? ""}`);
  return [record.key?.text, record.value?.text, ...headers].join("\n").toLowerCase();
}

function makeRecord(record) {
  const details = newId("record");
  const toggle = h("button", { type: "button", class: "link", "aria-expanded": "false", "aria-controls": details, "aria-label": `Offset ${record.offset}: details` }, String(record.offset));
  const more = h("tr", { id: details, class: "more", hidden: true }, h("td", { colspan: 5 }));
  toggle.addEventListener("click", () => {
    if (!more.firstChild.hasChildNodes()) more.firstChild.append(whole(record));
    more.hidden = !more.hidden;
    toggle.setAttribute("aria-expanded", String(!more.hidden));
  });
  const row = h(
    "tr",
    {},
    h("th", { scope: "row", "data-label": "Offset" }, toggle),
    h("td", { "data-label": "Partition" }, String(record.partition)),
    h("td", { "data-label": "Time", class: "when" }, record.timestamp === null ? "–" : time(record.timestamp)),
    h("td", { "data-label": "Key" }, preview(record.key)),
    h("td", { "data-label": "Value" }, preview(record.value)),
  );
  return h("tbody", {}, row, more);
}

function preview(bytes) {
  if (bytes === null) return h("span", { class: "null" }, "null");
  const text = bytes.text.slice(0, 300);
  return h("span", { class: "preview" }, bytes.encoding === "hex" && h("span", { class: "tag" }, "hex"), bytes.schema && h("span", { class: "tag" }, `schema ${bytes.schema}`), text);
}

function whole(record) {
  const parts = [part("Key", record.key), part("Value", record.value)];
  const headers = record.headers.map((header) => part(`Header ${header.name}`, header.value));
  return h("div", {}, ...parts, ...(headers.length ? headers : [h("p", { class: "hint" }, "No headers")]));
}

function part(title, bytes) {
  if (bytes === null) return h("div", {}, h("h3", {}, title), h("p", { class: "null" }, "null"));
  const length = `${size(bytes.bytes)}${bytes.encoding === "hex" ? ", not UTF-8: shown as hex" : ""}${bytes.schema ? `, of the schema ${bytes.schema}` : ""}${bytes.cut ? ", only its beginning is shown" : ""}`;
  const text = bytes.encoding === "hex" || bytes.cut ? bytes.text : pretty(bytes.text);
  return h("div", {}, h("h3", {}, title, " ", h("small", {}, length)), h("pre", { tabindex: 0, "aria-label": title }, text));
}
