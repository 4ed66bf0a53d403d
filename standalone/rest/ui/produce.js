// A form that produces one record: key and value as text, or as JSON of registered schemas.

import { get, post } from "./api.js";
import { h, newId, setText } from "./dom.js";
import { busy } from "./notes.js";

const NOTHING = "";
const TEXT = "text";

// {node}; `written()` is called after each record.
export function produceForm(topic, written) {
  const key = part("Key", NOTHING);
  const value = part("Value", TEXT);
  const problem = h("p", { class: "error", role: "alert" });
  const done = h("p", { class: "hint", role: "status" });
  const write = h("button", { type: "button", class: "primary", onclick: (event) => busy(event.currentTarget, send) }, "Write");
  const node = h("details", {}, h("summary", {}, "Write a record"), key.node, value.node, problem, h("div", { class: "buttons" }, write), done);
  node.addEventListener("toggle", () => node.open && offerSubjects());
  let offered = false;

  async function offerSubjects() {
    if (offered) return;
    offered = true;
    let subjects = [];
    try {
      subjects = await get("ui/api/schemas");
    } catch {
      offered = false; // without a registry only text is possible; a later check may find one
    }
    for (const each of [key, value]) each.offer(subjects, `${topic}-${each.name}`);
  }

  async function send() {
    setText(done, "");
    try {
      const { partition, offset } = await post(`ui/api/topics/${encodeURIComponent(topic)}/send`, { key: key.said(), value: value.said() });
      setText(problem, "");
      setText(done, `Written to partition ${partition}${offset === null ? "" : ` at offset ${offset}`}`);
      await written();
    } catch (error) {
      setText(problem, error.message);
    }
  }

  return { node };
}

function part(title, chosen) {
  const kind = h("select", { id: newId("kind"), onchange: () => choose() }, h("option", { value: NOTHING, selected: chosen === NOTHING }, "null"), h("option", { value: TEXT, selected: chosen === TEXT }, "text"));
  const version = h("select", { id: newId("version"), onchange: () => show() });
  const text = h("textarea", { id: newId("text"), rows: 4, spellcheck: "false", autocapitalize: "none", class: "code" });
  const schema = h("pre", { tabindex: 0, hidden: true, "aria-label": `Schema of the ${title.toLowerCase()}` });
  const field = (input, label) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);
  const versionField = field(version, `Version of the ${title.toLowerCase()}'s schema`);
  const textField = field(text, `${title} to write`);
  const node = h("div", {}, h("div", { class: "controls" }, field(kind, `${title} is`), versionField), textField, schema);
  let subject = null;
  let versions = [];

  async function choose() {
    subject = kind.selectedOptions[0].dataset.subject ?? null;
    versions = [];
    versionField.hidden = schema.hidden = subject === null;
    textField.hidden = kind.value === NOTHING;
    if (subject === null) return;
    const asked = subject;
    try {
      const found = await get(`ui/api/schemas/versions?${new URLSearchParams({ subject })}`);
      if (asked !== subject) return; // another subject was chosen meanwhile
      versions = found.versions;
    } catch (error) {
      setText(schema, error.message);
      return;
    }
    version.replaceChildren(...versions.map((each) => h("option", { value: each.version, selected: each === versions.at(-1) }, String(each.version))));
    show();
  }

  function show() {
    setText(schema, versions.find((each) => String(each.version) === version.value)?.schema ?? "");
  }

  choose();
  return {
    name: title.toLowerCase(),
    node,
    // The topic's own subject is preselected.
    offer(subjects, own) {
      for (const each of subjects) {
        const option = h("option", { value: `schema ${each.subject}` }, `of the schema ${each.subject} (${each.kind})`);
        option.dataset.subject = each.subject;
        option.selected = each.subject === own;
        kind.append(option);
      }
      choose();
    },
    said() {
      if (kind.value === NOTHING) return null;
      return subject === null ? { text: text.value } : { text: text.value, subject, version: Number(version.value) };
    },
  };
}
