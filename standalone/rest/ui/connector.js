// One connector: its tasks and their traces, throughput, offsets, topics and configuration.

import { actions } from "./actions.js";
import { connectorPath, get, post } from "./api.js";
import { chart } from "./chart.js";
import { copyButton } from "./copy.js";
import { h, keyed, setText } from "./dom.js";
import { count, plural, simpleName, time } from "./format.js";
import { historyPart } from "./history.js";
import { live, paced } from "./live.js";
import { busy } from "./notes.js";
import { offsetsPart } from "./offsets.js";
import { badge, setBadge } from "./state.js";

const SLOW_MS = 6000; // interval of less frequent requests: topics, configuration
const KEPT_LAGS = 300;

export function connectorView(name) {
  const heading = h("h1", { tabindex: -1, class: "name" }, name);
  const state = badge("UNASSIGNED");
  const kind = h("p", { class: "hint" });
  const buttons = actions(name);
  const trace = h("pre", { class: "trace", tabindex: 0, "aria-label": "Trace of the connector" });
  const failure = h("div", { class: "panel bad", hidden: true }, h("h2", {}, "The connector has failed"), trace);
  const speed = chart("Records per second");
  const total = h("p", { class: "hint" });
  const failing = chart("Errors per second", 140, "errors/s");
  const failed = h("p", { class: "hint" });
  const tasks = h("ul", { class: "tasks" });
  const noTasks = h("p", { class: "hint" }, "It has no tasks now.");
  const topics = h("ul", { class: "topics" });
  const engines = h("dl", { class: "config" });
  const counts = h("dl", { class: "config" });
  const counted = part("Counted by its tasks", counts);
  const chain = h("pre", { class: "trace", hidden: true, tabindex: 0, "aria-label": "What the chain is compiled to" });
  const config = h("dl", { class: "config" });
  const gone = h("div", { class: "empty", hidden: true }, h("h2", {}, "There is no such connector"), h("p", {}, h("a", { href: "#/" }, "To the connectors")));
  const behind = chart("Records behind", 140, "records behind");
  const lag = h("div");
  const lags = [];
  const offsets = offsetsPart(name, (value) => {
    lags.push({ at: Date.now(), value });
    lags.splice(0, lags.length - KEPT_LAGS);
    behind.set(lags);
  });
  const past = historyPart(name);
  let shownConfig = {};
  const copy = copyButton(name, () => shownConfig);
  const configs = new Map(); // task -> its configuration
  const parts = h(
    "div",
    {},
    buttons.node,
    failure,
    part("Throughput", speed.node, total),
    part("Errors", failing.node, failed),
    part("Tasks", tasks, noTasks),
    lag,
    offsets.node,
    part("Topics", topics),
    counted,
    part("Chain", engines, chain),
    past.node,
    h("section", { class: "panel", "aria-label": "Configuration" }, h("div", { class: "head" }, h("h2", {}, "Configuration"), h("div", { class: "buttons" }, copy)), config),
  );
  const node = h("section", {}, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Connectors")), h("div", { class: "head" }, heading, state), kind, parts, gone);
  const now = paced(SLOW_MS, more);

  function update() {
    const connector = live.connectors.get(name);
    parts.hidden = !connector;
    state.hidden = !connector;
    gone.hidden = Boolean(connector) || !live.loaded;
    if (!connector) return;
    setBadge(state, connector.health);
    const { version, worker_id: worker } = connector.connector;
    const shown = version && version !== "undefined" && `version ${version}`; // Connect writes "undefined" without a version
    setText(kind, [connector.type, simpleName(connector.className), shown, `worker ${worker}`, ...attempts(connector.connector)].filter(Boolean).join(" · "));
    buttons.update(connector);
    failure.hidden = !connector.connector.trace;
    setText(trace, connector.connector.trace ?? "");
    speed.set(live.series(name));
    setText(total, `${plural(live.total(name), "record")} since its tasks started`);
    failing.set(live.errors(name));
    setText(failed, `${plural(live.failed(name), "record")} failed since its tasks started`);
    noTasks.hidden = connector.tasks.length > 0;
    keyed(tasks, connector.tasks, (task) => task.id, (task) => makeTask(name, task), (row, task) => row.show(task, configs.get(task.id)));
    if (connector.type === "sink" && !lag.hasChildNodes()) lag.append(part("Lag", behind.node));
    offsets.update(connector);
    now().catch(() => {}); // the header shows that the worker does not respond
  }

  async function more() {
    const said = await get(connectorPath(name, "/config"));
    shownConfig = said;
    configs.clear();
    for (const task of await get(connectorPath(name, "/tasks"))) configs.set(task.id.task, task.config);
    await past.look();
    keyed(config, Object.entries(said).sort(), ([key]) => key, ([key]) => h("div", {}, h("dt", {}, key), h("dd")), (row, [, value]) => setText(row.lastChild, value ?? ""));
    const compiled = (await get(connectorPath(name, "/pipeline"))).tasks;
    keyed(engines, compiled.length ? compiled : [null], (task) => task && task.id, (task) => h("div", {}, h("dt", {}, task ? `Task ${count(task.id)}` : "No task is running"), h("dd")), (row, task) => setText(row.lastChild, task ? shares(task) : ""));
    const own = compiled.flatMap((task) => task.counted.map((each) => [compiled.length > 1 ? `Task ${count(task.id)}: ${each.what}` : each.what, each.count]));
    counted.hidden = !own.length;
    keyed(counts, own, ([what]) => what, ([what]) => h("div", {}, h("dt", {}, what), h("dd")), (row, [, some]) => setText(row.lastChild, count(some)));
    chain.hidden = !compiled.length;
    setText(chain, compiled.length ? [...compiled[0].chain, ...compiled[0].spark_plans.flatMap((plan) => ["", `Spark's plan, ${plan.title}`, plan.spark])].join("\n") : "");
    const used = (await get(connectorPath(name, "/topics")))[name].topics;
    keyed(topics, used.length ? used : [null], (topic) => topic, (topic) => h("li", {}, topic === null ? h("span", { class: "hint" }, "None yet") : h("a", { href: `#/topics/${encodeURIComponent(topic)}` }, topic)));
  }

  return { title: name, node, update };
}

// How many of a task's records each engine processed, and why some went by rows.
function shares({ records, redone, by_rows: reasons }) {
  const whole = Object.values(records).reduce((sum, each) => sum + each, 0);
  if (!whole) return "no records yet";
  const engines = Object.entries(records).filter(([, each]) => each).map(([engine, each]) => `${engine} ${count(each)} (${Math.round((100 * each) / whole)} %)`);
  const again = redone ? [`${count(redone)} done again by rows`] : [];
  return [...engines, ...again, ...reasons.map((each) => `by rows: ${each.reason}`)].join(" · ");
}

// Restarts by task.restart.*: past and pending.
function attempts({ restart_attempts: made, next_restart: next }) {
  return [Number(made) && `restarted by itself ${plural(Number(made), "time")}`, next && `next try ${time(Date.parse(next))}`].filter(Boolean);
}

function part(title, ...content) {
  return h("section", { class: "panel", "aria-label": title }, h("h2", {}, title), ...content);
}

function makeTask(name, { id }) {
  const state = badge("UNASSIGNED");
  const where = h("span", { class: "hint" });
  const trace = h("pre", { class: "trace", tabindex: 0, "aria-label": `Trace of task ${id}` });
  const first = h("p", { class: "first" });
  const details = h("details", { hidden: true }, h("summary", {}, `Trace of task ${id}`), trace);
  const restart = h(
    "button",
    {
      type: "button",
      "aria-label": `Restart task ${id}`,
      onclick: (event) =>
        busy(event.currentTarget, async () => {
          await post(connectorPath(name, `/tasks/${id}/restart`));
          await live.refresh();
        }),
    },
    "Restart",
  );
  const own = h("dl", { class: "keys" });
  const ownDetails = h("details", { hidden: true }, h("summary", {}, `Configuration of task ${id}`), own);
  const row = h("li", {}, h("div", { class: "task" }, h("strong", {}, `Task ${count(id)}`), state, where, restart), first, details, ownDetails);
  row.show = (task, config) => {
    ownDetails.hidden = !config;
    if (config) keyed(own, Object.entries(config).sort(), ([key]) => key, ([key]) => h("div", {}, h("dt", {}, key), h("dd")), (each, [, value]) => setText(each.lastChild, value ?? ""));
    setBadge(state, task.state);
    setText(where, [task.worker_id, ...attempts(task)].join(" · "));
    details.hidden = !task.trace;
    setText(trace, task.trace ?? "");
    first.hidden = !task.trace;
    setText(first, (task.trace ?? "").split("\n")[0]);
  };
  return row;
}
