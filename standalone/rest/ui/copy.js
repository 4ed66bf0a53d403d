// A connector's configuration as text: a curl command, a properties file, or JSON.

import { h, newId, setText } from "./dom.js";

export function copyButton(name, configOf) {
  return h("button", { type: "button", onclick: () => show(name, configOf()) }, "Copy as…");
}

const FORMS = { curl: ["curl", asCurl], properties: ["Properties", asProperties], json: ["JSON", asJson] };

function show(name, config) {
  const [title, area] = [newId("title"), newId("text")];
  const text = h("textarea", { id: area, class: "code", rows: 14, readonly: true, spellcheck: "false" });
  const form = h("select", { id: newId("form"), onchange: () => fill() }, Object.entries(FORMS).map(([key, [label]]) => h("option", { value: key }, label)));
  const status = h("p", { class: "hint", role: "status" });
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const dialog = h(
    "dialog",
    { class: "ask wide", "aria-labelledby": title },
    h("h2", { id: title }, "Copy the configuration"),
    h("div", { class: "field" }, h("label", { for: form.id }, "As"), form),
    h("div", { class: "field" }, h("label", { for: area }, "Text"), text),
    status,
    h("div", { class: "buttons end" }, h("button", { type: "button", onclick: close }, "Close"), h("button", { type: "button", class: "primary", onclick: copy }, "Copy")),
  );

  function fill() {
    text.value = FORMS[form.value][1](name, config);
    setText(status, "");
  }

  async function copy() {
    text.select();
    try {
      await navigator.clipboard.writeText(text.value);
      setText(status, "Copied.");
    } catch {
      setText(status, "The text is selected: copy it with Ctrl-C."); // pages without https may not write to the clipboard
    }
  }

  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  fill();
  document.body.append(dialog);
  dialog.showModal();
}

const entries = (config) => Object.entries(config).filter(([, value]) => value !== null).sort(([a], [b]) => a.localeCompare(b));

function asJson(name, config) {
  return JSON.stringify(Object.fromEntries(entries(config)), null, 2);
}

function asCurl(name, config) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const address = new URL(`../connectors/${encodeURIComponent(name)}/config`, document.baseURI);
  return `curl -X PUT -H 'Content-Type: application/json' ${quoted(address.href)} \\\n  -d ${quoted(asJson(name, config))}`;
}

function asProperties(name, config) {
  const all = entries({ name, ...config });
  return all.map(([key, value]) => `${escaped(key).replace(/[ :=]/g, "\\$&").replace(/^[#!]/, "\\$&")}=${escaped(value).replace(/^ /, "\\ ")}\n`).join("");
}

// Escape for java.util.Properties: \uXXXX beyond ASCII.
function escaped(text) {
  const named = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f" };
  return text.replace(/[\\\n\r\t\f]/g, (each) => named[each]).replace(/[^\x20-\x7e]/g, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
