// Create or edit a connector: by a form built from the worker's validation, or as JSON.

import { connectorPath, get, isAddressable, post, put } from "./api.js";
import { h, keyed, newId, setText } from "./dom.js";
import { HIDDEN, field, looseField } from "./fields.js";
import { simpleName } from "./format.js";
import { live } from "./live.js";
import { busy, complain, say } from "./notes.js";

const PAUSE_MS = 350; // after the last key press, before validation
const OF_ALL = ["Common", "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support", "offsets.topic"];
const STATES = ["RUNNING", "PAUSED", "STOPPED"];

export function newView() {
  const choice = h("select", { id: "plugin" });
  const place = h("div");
  const start = h("select", { id: "initial" }, STATES.map((state) => h("option", { value: state }, state.toLowerCase())));
  const node = h(
    "section",
    {},
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Connectors")),
    h("h1", { tabindex: -1 }, "New connector"),
    h("div", { class: "panel" }, h("div", { class: "field" }, h("div", { class: "label" }, h("label", { for: "plugin" }, "Kind of connector")), choice)),
    place,
  );
  let form = null;

  get("connector-plugins").then((plugins) => {
    const group = (type, label) => h("optgroup", { label }, plugins.filter((each) => each.type === type).map((each) => h("option", { value: each.class }, `${simpleName(each.class)} ${each.version ?? ""}`)));
    choice.replaceChildren(h("option", { value: "" }, "choose one…"), group("source", "Sources: from somewhere into a topic"), group("sink", "Sinks: from topics to somewhere"));
  }, complain);

  choice.addEventListener("change", () => {
    form?.leave();
    form = null;
    place.replaceChildren();
    if (!choice.value) return;
    const beginning = h("div", { class: "field" }, h("div", { class: "label" }, h("label", { for: "initial" }, "Begin as")), start);
    form = configForm({
      config: { "connector.class": choice.value },
      action: "Create",
      beside: beginning,
      async save(config) {
        await post("connectors", { name: config.name, config, initial_state: start.value });
        return config.name;
      },
    });
    place.append(form.node);
  });

  return { title: "New connector", node, leave: () => form?.leave() };
}

export function editView(name) {
  const place = h("div");
  const node = h(
    "section",
    {},
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Connectors"), " › ", h("a", { class: "name", href: `#/connectors/${encodeURIComponent(name)}` }, name)),
    h("h1", { tabindex: -1 }, "Edit ", h("span", { class: "name" }, name)),
    place,
  );
  let form = null;
  const opened = async () => {
    form = configForm({
      config: { name, ...(await get(connectorPath(name, "/config"))) },
      fixed: ["name"],
      action: "Save",
      async save(config) {
        await put(connectorPath(name, "/config"), config);
        return name;
      },
    });
    place.append(form.node);
  };
  opened().catch(complain);
  return { title: `Edit ${name}`, node, leave: () => form?.leave() };
}

function configForm({ config, fixed = [], action, beside = null, save }) {
  const values = new Map(Object.entries(config).map(([key, value]) => [key, value ?? ""]));
  const fields = new Map(); // key -> field
  const sections = new Map(); // group -> {node, first, more, details}
  const known = new Map(); // key -> its latest definition
  let insisting = false; // after the first attempt to save, all errors are shown
  let timer = null;
  let asking = null;
  let asJson = false;
  let verdict = null;

  const summary = h("div", { class: "panel bad", tabindex: -1, hidden: true, "aria-labelledby": newId("summary") });
  const groups = h("div");
  const loose = h("div");
  const newKey = h("input", { id: newId("key"), autocomplete: "off", spellcheck: "false", autocapitalize: "none" });
  const add = h("button", { type: "button", onclick: addLoose }, "Add");
  newKey.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    addLoose();
  });
  const others = h(
    "section",
    { class: "panel", "aria-label": "Other settings" },
    h("h2", {}, "Other settings"),
    h("p", { class: "help" }, "Keys beyond those above, such as producer.override.* or a converter's own, value.converter.*."),
    loose,
    h("div", { class: "field" }, h("div", { class: "label" }, h("label", { for: newKey.id }, "Key to add")), h("div", { class: "beside" }, newKey, add)),
  );
  const json = h("textarea", { id: newId("json"), rows: 20, spellcheck: "false", autocapitalize: "none", class: "code" });
  const jsonError = h("p", { class: "error", role: "alert" });
  const jsonPart = h("section", { class: "panel", hidden: true }, h("div", { class: "label" }, h("label", { for: json.id }, "Configuration as JSON")), h("p", { class: "help" }, `${HIDDEN} stands for a secret that was given before.`), json, jsonError);
  const toForm = h("button", { type: "button", "aria-pressed": "true", onclick: () => turn(false) }, "Form");
  const toJson = h("button", { type: "button", "aria-pressed": "false", onclick: () => turn(true) }, "JSON");
  const submit = h("button", { type: "submit", class: "primary" }, action);
  const status = h("p", { class: "hint", role: "status" });
  const changes = h("ul", { class: "diff" });
  const changesPart = h("section", { class: "panel", hidden: true, "aria-label": "What will change" }, h("h2", {}, "What will change"), changes);
  const node = h(
    "form",
    { novalidate: true, autocomplete: "off" },
    h("div", { class: "buttons joined", role: "group", "aria-label": "Way of editing" }, toForm, toJson),
    summary,
    groups,
    others,
    jsonPart,
    fixed.length ? changesPart : null,
    h("div", { class: "panel save" }, beside, h("div", { class: "buttons" }, submit, h("button", { type: "button", onclick: () => history.back() }, "Cancel"), status)),
  );
  node.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(submit, trySaving);
  });

  function leave() {
    clearTimeout(timer);
    asking?.abort();
  }

  // ---- the form's content

  function gather() {
    if (asJson) takeJson();
    else for (const one of fields.values()) note(one);
    return Object.fromEntries([...values].filter(([key, value]) => value !== "" || config[key] === ""));
  }

  function note(one) {
    values.set(one.key, one.value());
  }

  function changed(one) {
    note(one);
    clearTimeout(timer);
    timer = setTimeout(() => check().catch(complain), PAUSE_MS);
  }

  function takeJson() {
    const secrets = new Map([...values].filter(([key]) => isSecret(key)));
    let said;
    try {
      said = JSON.parse(json.value);
    } catch (error) {
      throw new Error(`This is not JSON: ${error.message}`);
    }
    if (!said || typeof said !== "object" || Array.isArray(said)) throw new Error("The configuration must be one JSON object of keys and texts.");
    if (said.config && typeof said.config === "object") said = { ...said.config, ...(said.name ? { name: said.name } : {}) }; // the format of POST requests
    values.clear();
    for (const [key, value] of Object.entries(said)) {
      if (value !== null && typeof value === "object") throw new Error(`The value of “${key}” must be a text.`);
      values.set(key, value === HIDDEN && secrets.has(key) ? secrets.get(key) : String(value ?? ""));
    }
    if (!values.get("connector.class")) throw new Error("The configuration has no connector.class.");
  }

  const isSecret = (key) => known.get(key)?.type === "PASSWORD" || Boolean(fields.get(key)?.secret);

  function turn(wanted) {
    if (wanted === asJson) return;
    setText(jsonError, "");
    try {
      const now = gather();
      if (wanted) json.value = JSON.stringify(Object.fromEntries(Object.entries(now).map(([key, value]) => [key, isSecret(key) && value ? HIDDEN : value])), null, 2);
    } catch (error) {
      setText(jsonError, error.message);
      json.focus();
      return;
    }
    asJson = wanted;
    toForm.setAttribute("aria-pressed", String(!wanted));
    toJson.setAttribute("aria-pressed", String(wanted));
    for (const part of [groups, others]) part.hidden = wanted;
    jsonPart.hidden = !wanted;
    if (!wanted) {
      for (const one of fields.values()) one.set(values.get(one.key) ?? "");
      check().catch(complain);
    }
  }

  function addLoose() {
    const key = newKey.value.trim();
    if (!key) return;
    newKey.value = "";
    if (!fields.has(key)) {
      values.set(key, "");
      showLoose([...looseKeys(), key]);
    }
    document.getElementById(fields.get(key).id)?.focus();
  }

  // ---- validation by the worker

  // While the user types, a new request replaces the previous one.
  async function check() {
    leave();
    asking = new AbortController();
    try {
      await validate(gather(), { signal: asking.signal });
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  async function validate(said, options) {
    const name = values.get("connector.class");
    if (!isAddressable(name)) throw new Error(`“${name}” is not a name of a connector's class.`);
    const found = await put(`connector-plugins/${encodeURIComponent(name)}/config/validate`, said, options);
    showChanges(said);
    verdict = { ...found, configs: found.configs.map(({ definition, value }) => ({ definition: definition ?? unknown(value.name), value })) };
    show();
    return verdict;
  }

  // Compare with the connector's current configuration; secrets are never shown.
  function showChanges(said) {
    const keys = [...new Set([...Object.keys(config), ...Object.keys(said)])].sort().filter((key) => (said[key] ?? null) !== (config[key] ?? null));
    const shown = (key, value) => (value === undefined || value === null ? "not set" : isSecret(key) ? HIDDEN : value);
    changesPart.hidden = !keys.length;
    keyed(changes, keys, (key) => key, (key) => h("li", {}, h("code", {}, key), ": ", h("span", { class: "gone" }), " → ", h("span", { class: "new" })), (row, key) => {
      setText(row.querySelector(".gone"), shown(key, config[key]));
      setText(row.querySelector(".new"), shown(key, said[key]));
    });
  }

  // Keys without a definition, as reported by the worker.
  function unknown(name) {
    return { name, type: "STRING", required: false, default_value: null, importance: "LOW", documentation: "", group: null, order_in_group: -1, width: "NONE", display_name: name, dependents: [] };
  }

  function show() {
    const shown = verdict.configs.filter(({ definition, value }) => value.visible || values.get(definition.name) || value.errors.length);
    known.clear();
    for (const { definition } of verdict.configs) known.set(definition.name, definition);
    const byGroup = new Map();
    for (const each of shown) {
      const group = groupOf(each.definition);
      if (!byGroup.has(group)) byGroup.set(group, []);
      byGroup.get(group).push(each);
    }
    const order = [...byGroup.keys()].sort((a, b) => place(a) - place(b));
    keyed(groups, order, (group) => group, makeSection);
    for (const group of order) fillSection(sections.get(group), byGroup.get(group));
    for (const [key, one] of fields) {
      if (!one.loose && !shown.some(({ definition }) => definition.name === key)) fields.delete(key);
    }
    showLoose(looseKeys());
  }

  const groupOf = (definition) => (definition.name === "name" || definition.name === "connector.class" ? "Connector" : definition.group ?? "Settings");

  // The connector's groups come first, then the framework's; those of a transform or predicate follow their lists.
  function place(group) {
    const family = group.split(":")[0];
    const rank = ["Connector", "Settings"].indexOf(group) + 1 || OF_ALL.indexOf(family) + 4;
    return rank * 1000 + verdict.groups.indexOf(group) + (group === family ? 0 : 500);
  }

  function makeSection(group) {
    const [first, inner] = [h("div"), h("div")];
    const details = h("details", {}, h("summary"), inner);
    const title = group === "Settings" ? `Settings of ${simpleName(values.get("connector.class"))}` : group;
    const section = { node: h("section", { class: "panel", "aria-label": title }, h("h2", {}, title), first, details), first, inner, details };
    sections.set(group, section);
    return section.node;
  }

  function fillSection(section, found) {
    for (const { definition, value } of found) {
      let one = fields.get(definition.name);
      if (one?.loose) {
        one.node.remove();
        loose.keyedNodes?.delete(definition.name);
        one = null;
      }
      if (!one) {
        one = field(definition, values.get(definition.name) ?? "", { changed: () => changed(one), readOnly: fixed.includes(definition.name) || definition.name === "connector.class" });
        one.first = isFirst(definition);
        fields.set(definition.name, one);
      }
      one.show(definition, value, insisting);
      if (one.wrong && !one.first) section.details.open = true;
    }
    const part = (first) => found.map(({ definition }) => fields.get(definition.name)).filter((one) => one.first === first);
    keyed(section.first, part(true), (one) => one.key, (one) => one.node);
    const more = part(false);
    keyed(section.inner, more, (one) => one.key, (one) => one.node);
    section.details.hidden = !more.length;
    section.node.classList.toggle("compact", !section.first.childElementCount);
    setText(section.details.firstChild, section.first.childElementCount ? `More settings (${more.length})` : `Settings (${more.length})`);
  }

  // Important keys are shown; the others are collapsed.
  const isFirst = ({ name, required, importance, group }) =>
    required || Boolean(values.get(name)) || (importance === "HIGH" && !name.endsWith(".plugin.version")) || (group === null && importance === "MEDIUM") || name === "transforms" || name === "predicates";

  const looseKeys = () => [...values.keys()].filter((key) => !known.has(key));

  function showLoose(keys) {
    keyed(loose, keys, (key) => key, (key) => {
      const one = looseField(key, values.get(key) ?? "", {
        changed: () => changed(one),
        removed: () => {
          values.delete(key);
          fields.delete(key);
          showLoose(looseKeys());
          newKey.focus();
        },
      });
      one.loose = true;
      fields.set(key, one);
      return one.node;
    });
    for (const [key, one] of fields) if (one.loose && !keys.includes(key)) fields.delete(key);
  }

  // ---- saving

  async function trySaving() {
    insisting = true;
    setText(jsonError, "");
    setText(status, "Checking…");
    try {
      const said = gather();
      leave();
      const wrong = (await validate(said)).configs.filter(({ value }) => value.errors.length);
      if (said.name !== undefined && !isAddressable(said.name)) {
        wrong.unshift({ definition: { name: "name" }, value: { errors: ["The REST API cannot address a name that holds “/” or “%”, or is “.” or “..”."] } });
      }
      tell(wrong);
      if (wrong.length) return;
      const name = await save(said);
      say(action === "Create" ? `“${name}” is created.` : `“${name}” has its new configuration.`);
      live.forget(name);
      await live.refresh();
      location.hash = `#/connectors/${encodeURIComponent(name)}`;
    } catch (error) {
      if (asJson) setText(jsonError, error.message);
      tell([{ definition: { name: "" }, value: { errors: [error.message] } }]);
    } finally {
      setText(status, "");
    }
  }

  // A list of all errors at the top, with links to the fields.
  function tell(wrong) {
    summary.hidden = !wrong.length;
    if (!wrong.length) return;
    const title = h("h2", { id: summary.getAttribute("aria-labelledby") }, action === "Create" ? "It cannot be created like this" : "It cannot be saved like this");
    const items = wrong.map(({ definition, value }) => {
      const one = fields.get(definition.name);
      const said = value.errors.join("; ");
      const text = !definition.name || said.startsWith(`${definition.name} `) ? said : `${definition.name}: ${said}`;
      return h("li", {}, one && !asJson ? h("button", { type: "button", class: "link", onclick: () => lead(one) }, text) : text);
    });
    summary.replaceChildren(title, h("ul", {}, items));
    summary.focus();
  }

  function lead(one) {
    const details = one.node.closest("details");
    if (details) details.open = true;
    one.focus();
  }

  check().catch(complain);
  return { node, leave };
}
