// A connector's offsets, with lag for sinks; set or reset them while it is stopped.

import { stopFirst } from "./actions.js";
import { connectorPath, get, patch, remove } from "./api.js";
import * as exact from "./exact.js";
import { h, keyed, newId, setText } from "./dom.js";
import { count, plural } from "./format.js";
import { paced } from "./live.js";
import { ask, busy, say } from "./notes.js";

const EVERY_MS = 5000;
const EXACTLY = { keepsNumbers: true };

// `onLag(total)` is called with a sink's total lag after each update.
export function offsetsPart(name, onLag = () => {}) {
  const head = h("tr");
  const rows = h("tbody");
  const scroll = { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table of offsets" }; // makes a wide table scrollable by keyboard
  const table = h("div", scroll, h("table", {}, h("caption", { class: "visually-hidden" }, "Offsets"), h("thead", {}, head), rows));
  const none = h("p", { class: "hint" }, "None are stored yet.");
  const behind = h("p", { class: "hint" });
  const problem = h("p", { class: "error" });
  let type = null;
  const now = paced(EVERY_MS, look);

  const edit = h("button", { type: "button", onclick: (event) => busy(event.currentTarget, change) }, "Set offsets…");
  const reset = h("button", { type: "button", class: "danger", onclick: (event) => busy(event.currentTarget, forget) }, "Reset offsets…");
  const node = h(
    "section",
    { class: "panel", "aria-label": "Offsets" },
    h("div", { class: "head" }, h("h2", {}, "Offsets"), h("div", { class: "buttons" }, edit, reset)),
    behind,
    table,
    none,
    problem,
  );

  function update(connector) {
    if (type !== connector.type) {
      type = connector.type;
      const heads = type === "sink" ? ["Topic", "Partition", "Committed", "Log end", "Lag"] : ["Partition of the source", "Offset"];
      head.replaceChildren(...heads.map((each) => h("th", { scope: "col" }, each)));
    }
    now();
  }

  async function look() {
    try {
      const cells = type === "sink" ? await sinkRows() : await sourceRows();
      keyed(rows, cells, ([key]) => key, ([, ...texts]) => h("tr", {}, texts.map(() => h("td"))), (row, [, ...texts]) => texts.forEach((text, at) => setText(row.children[at], text)));
      none.hidden = cells.length > 0;
      table.hidden = !cells.length;
      setText(problem, "");
    } catch (error) {
      setText(problem, error.message);
    }
  }

  async function sinkRows() {
    connectorPath(name); // a name that cannot be addressed has no offsets
    const found = await get(`ui/api/lag?connector=${encodeURIComponent(name)}`);
    const total = found.reduce((sum, each) => sum + (each.lag ?? 0), 0);
    onLag(total);
    setText(behind, found.length ? `${plural(total, "record")} behind` : "");
    return found.map((each) => [`${each.topic}-${each.partition}`, each.topic, String(each.partition), count(each.committed), count(each.end), count(each.lag)]);
  }

  async function sourceRows() {
    const found = (await get(connectorPath(name, "/offsets"), EXACTLY)).offsets;
    return found.map(({ partition, offset }) => [exact.stringify(partition), exact.stringify(partition), exact.stringify(offset)]);
  }

  async function forget() {
    if (!(await stopFirst(name))) return;
    const sure = await ask({
      title: "Reset all offsets?",
      body: [h("p", {}, h("strong", { class: "name" }, name)), "It starts over when it is resumed: what it has read before comes again."],
      action: "Reset",
      danger: true,
    });
    if (!sure) return;
    say((await remove(connectorPath(name, "/offsets"))).message);
    await look();
  }

  async function change() {
    if (!(await stopFirst(name))) return;
    const { offsets } = await get(connectorPath(name, "/offsets"), EXACTLY);
    const said = await askForOffsets(name, type, offsets);
    if (said) say(said.message);
    await look();
  }

  return { node, update };
}

// A dialog with a field per offset; resolves to the worker's response, or null.
function askForOffsets(name, type, offsets) {
  return new Promise((resolve) => {
    const title = newId("title");
    const fields = offsets.map(({ partition, offset }) => field(type, partition, offset));
    const extra = type === "sink" ? sinkAdder() : sourceAdder();
    const problem = h("p", { class: "error", role: "alert" });
    const dialog = h("dialog", { class: "ask wide", "aria-labelledby": title });
    const finish = (answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };

    async function save() {
      setText(problem, "");
      try {
        const changed = [...fields, extra].map((each) => each.read()).filter(Boolean);
        if (!changed.length) throw new Error("Nothing is changed.");
        finish(await patch(connectorPath(name, "/offsets"), { offsets: changed }));
      } catch (error) {
        setText(problem, error.message);
      }
    }

    dialog.append(
      h("h2", { id: title }, "Set offsets"),
      h("p", { class: "hint" }, "An offset says where the connector continues when it is resumed. An empty field forgets that offset."),
      ...fields.map((each) => each.node),
      extra.node,
      problem,
      h("div", { class: "buttons end" }, h("button", { type: "button", onclick: () => finish(null) }, "Cancel"), h("button", { type: "button", class: "primary", onclick: (event) => busy(event.currentTarget, save) }, "Set")),
    );
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      finish(null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

function field(type, partition, offset) {
  const id = newId("offset");
  const before = type === "sink" ? String(offset.kafka_offset) : exact.stringify(offset);
  const input = h("input", { id, value: before, autocomplete: "off", spellcheck: "false", inputmode: type === "sink" ? "numeric" : null });
  const label = type === "sink" ? `${partition.kafka_topic}, partition ${partition.kafka_partition}` : exact.stringify(partition);
  return {
    node: h("div", { class: "field" }, h("label", { for: id }, label), input),
    read() {
      const text = input.value.trim();
      if (text === before) return null;
      return { partition, offset: text ? read(type, text, label) : null };
    },
  };
}

function sinkAdder() {
  const [topic, number, offset] = ["topic", "partition", "offset"].map((each) => h("input", { id: newId(each), autocomplete: "off", spellcheck: "false" }));
  const labelled = [["Topic", topic], ["Partition", number], ["Offset", offset]];
  return {
    node: h("fieldset", {}, h("legend", {}, "Another partition"), h("div", { class: "three" }, labelled.map(([text, input]) => h("div", { class: "field" }, h("label", { for: input.id }, text), input)))),
    read() {
      if (!topic.value.trim()) return null;
      const partition = { kafka_topic: topic.value.trim(), kafka_partition: read("sink", number.value.trim() || "0", "Partition").kafka_offset };
      return { partition, offset: read("sink", offset.value.trim(), "Offset") };
    },
  };
}

function sourceAdder() {
  const [partition, offset] = ["partition", "offset"].map((each) => h("input", { id: newId(each), autocomplete: "off", spellcheck: "false", placeholder: "{…}" }));
  const labelled = [["Partition, as JSON", partition], ["Offset, as JSON", offset]];
  return {
    node: h("fieldset", {}, h("legend", {}, "Another partition of the source"), h("div", { class: "three" }, labelled.map(([text, input]) => h("div", { class: "field" }, h("label", { for: input.id }, text), input)))),
    read() {
      if (!partition.value.trim()) return null;
      return { partition: read("source", partition.value, "Partition"), offset: read("source", offset.value, "Offset") };
    },
  };
}

function read(type, text, what) {
  if (type === "sink") {
    if (!/^\d+$/.test(text)) throw new Error(`${what}: “${text}” is not a whole number, 0 or more.`);
    return { kafka_offset: exact.whole(text) };
  }
  try {
    const found = exact.parse(text);
    if (found && typeof found === "object" && !Array.isArray(found)) return found;
  } catch {
    // reported below
  }
  throw new Error(`${what}: “${text}” is not a JSON object.`);
}
