// A configuration key as a field: label, input, documentation, default, errors.

import { h, newId, setAttribute, setText } from "./dom.js";

export const HIDDEN = "[hidden]"; // shown by the worker in place of a secret, and accepted back
const OTHER = "other value…";
const SECRET_NAME = /password|secret|jaas\.config|user\.info|token|keystore\.key$/i;

export const looksSecret = (key) => SECRET_NAME.test(key);

// {node, key, value(), set(text), show(definition, verdict, withErrors), focus()}; `changed` is called after each edit.
export function field(definition, text, { changed, readOnly = false }) {
  const id = newId("field");
  const ids = { help: `${id}-help`, error: `${id}-error` };
  const input = inputFor(definition, id, { changed: edited, readOnly });
  const help = h("p", { class: "help", id: ids.help });
  const error = h("p", { class: "error", id: ids.error });
  const mark = h("span", { class: "required", hidden: !definition.required }, "required");
  const title = h("label", { for: id }, definition.display_name || definition.name);
  const key = definition.display_name && definition.display_name !== definition.name ? h("code", {}, definition.name) : null;
  const node = h("div", { class: "field" }, h("div", { class: "label" }, title, key, mark), input.node, error, help);
  let touched = false;
  input.set(text);

  function edited() {
    touched = true;
    changed();
  }

  return {
    node,
    key: definition.name,
    secret: definition.type === "PASSWORD",
    id,
    value: input.value,
    set: input.set,
    get touched() {
      return touched;
    },
    get wrong() {
      return error.textContent !== "";
    },
    show(found, verdict, withErrors) {
      const standing = found.default_value === null || found.default_value === "" || found.type === "PASSWORD" ? "" : ` Default: ${found.default_value}.`;
      setText(help, `${found.documentation ?? ""}${standing}`);
      const errors = withErrors || touched ? verdict.errors : [];
      setText(error, errors.join("; "));
      for (const control of input.controls()) {
        setAttribute(control, "aria-invalid", errors.length ? "true" : null);
        setAttribute(control, "aria-describedby", errors.length ? `${ids.error} ${ids.help}` : ids.help);
        setAttribute(control, "aria-required", found.required ? "true" : null);
      }
      input.offer?.(verdict.recommended_values, found);
    },
    focus: () => input.controls()[0].focus(),
  };
}

function inputFor(definition, id, options) {
  if (options.readOnly) return readOnlyInput(id);
  if (definition.type === "PASSWORD") return secretInput(id, options);
  if (definition.type === "BOOLEAN") return choice(id, definition, ["true", "false"], options);
  return openChoice(id, definition, options);
}

// A line's input drops newlines: the original text stays until it is edited.
function kept(input) {
  let given = "";
  let shown = "";
  return {
    value: () => (input.value === shown ? given : input.value),
    set(text) {
      given = input.value = text;
      shown = input.value;
    },
  };
}

const plain = { autocomplete: "off", spellcheck: "false", autocapitalize: "none" };

function readOnlyInput(id) {
  const input = h("input", { id, readonly: true, ...plain });
  return { node: input, ...kept(input), controls: () => [input] };
}

// The stored secret is neither shown nor sent; an empty field keeps it.
function secretInput(id, { changed }) {
  const input = h("input", { id, type: "password", autocomplete: "new-password", spellcheck: "false", oninput: changed });
  let stored = false;
  return {
    node: input,
    value: () => input.value || (stored ? HIDDEN : ""),
    set(text) {
      stored = text === HIDDEN;
      input.value = stored ? "" : text;
      setAttribute(input, "placeholder", stored ? "stored; leave empty to keep it" : null);
    },
    controls: () => [input],
  };
}

function choice(id, definition, values, { changed }) {
  const standing = definition.default_value;
  const select = h("select", { id, onchange: changed }, h("option", { value: "" }, standing === null ? "not set" : `default (${standing})`), values.map((each) => h("option", { value: each }, each)));
  return {
    node: select,
    value: () => select.value,
    set(text) {
      if (text && !values.includes(text)) select.append(h("option", { value: text }, text));
      select.value = text;
    },
    controls: () => [select],
  };
}

// A text; if the worker recommends values, a list of them plus free text.
function openChoice(id, definition, { changed }) {
  const numeric = ["INT", "LONG", "SHORT"].includes(definition.type);
  const input = h("input", { id, ...plain, inputmode: numeric ? "numeric" : null, placeholder: definition.default_value || null, oninput: changed });
  const list = h("datalist", { id: `${id}-list` });
  const select = h("select", { hidden: true, onchange: choose });
  const node = h("div", { class: "choice" }, select, input, list);
  const single = definition.type !== "LIST";
  const text = kept(input);
  let offered = "";

  function choose() {
    if (select.value === OTHER) {
      turn(false);
      input.value = "";
      input.focus();
    } else input.value = select.value;
    changed();
  }

  // The label belongs to whichever input is shown.
  function turn(toSelect) {
    select.hidden = !toSelect;
    input.hidden = toSelect;
    setAttribute(toSelect ? select : input, "id", id);
    (toSelect ? input : select).removeAttribute("id");
  }

  return {
    node,
    value: text.value,
    set(given) {
      text.set(given);
      if (!select.hidden) reflect();
    },
    controls: () => (select.hidden ? [input] : [select]),
    offer(values, found) {
      const signature = JSON.stringify([values, found.default_value]);
      if (signature === offered) return;
      offered = signature;
      list.replaceChildren(...values.map((each) => h("option", { value: each })));
      setAttribute(input, "list", values.length ? list.id : null);
      const empty = found.default_value ? `default (${found.default_value})` : "not set";
      select.replaceChildren(h("option", { value: "" }, empty), ...values.map((each) => h("option", { value: each }, each)), h("option", { value: OTHER }, OTHER));
      if (document.activeElement !== input) turn(single && values.length > 0 && (!input.value || values.includes(input.value)));
      if (!select.hidden) reflect();
    },
  };

  function reflect() {
    if ([...select.options].some((option) => option.value === input.value)) select.value = input.value;
    else turn(false);
  }
}

// A key without a definition: its name is part of the label.
export function looseField(key, text, { changed, removed }) {
  const id = newId("loose");
  const input = h("input", { id, type: looksSecret(key) ? "password" : "text", ...plain, oninput: changed });
  const own = kept(input);
  own.set(text);
  const button = h("button", { type: "button", "aria-label": `Remove ${key}`, onclick: removed }, "Remove");
  const node = h("div", { class: "field" }, h("div", { class: "label" }, h("label", { for: id }, key)), h("div", { class: "beside" }, input, button));
  return { node, key, id, secret: looksSecret(key), ...own };
}
