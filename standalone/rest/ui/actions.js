// A connector's actions as a row of buttons. All buttons stay in place in every state, which keeps the focus.

import { connectorPath, post, put, remove } from "./api.js";
import { h, setAttribute, setText } from "./dom.js";
import { live } from "./live.js";
import { ask, busy, say } from "./notes.js";

const WAIT_MS = 30_000;

// {node, update(connector)}; `few` leaves out rarely used actions.
export function actions(name, { few = false } = {}) {
  let state = null;
  const named = (text) => (few ? { "aria-label": `${text} ${name}` } : {});
  const button = (text, act, more = {}) =>
    h("button", { type: "button", ...named(text), ...more, onclick: (event) => busy(event.currentTarget, act) }, text);

  const turn = button("Pause", async () => {
    if (state === "PAUSED" || state === "STOPPED") await put(connectorPath(name, "/resume"));
    else await put(connectorPath(name, "/pause"));
    await live.refresh();
  });
  const again = button("Restart", async () => {
    await post(connectorPath(name, "/restart?includeTasks=true"));
    await live.refresh();
  });
  const failed = button("Restart failed", async () => {
    await post(connectorPath(name, "/restart?includeTasks=true&onlyFailed=true"));
    await live.refresh();
  });
  failed.hidden = true;
  const stop = button("Stop", async () => {
    if (state === "STOPPED") return;
    await put(connectorPath(name, "/stop"));
    await live.refresh();
  });
  const edit = h("a", { class: "button", href: `#/connectors/${encodeURIComponent(name)}/edit` }, "Edit");
  const gone = button("Delete", () => deleteConnector(name), { class: "danger" });
  const node = h("div", { class: few ? "buttons" : "buttons actions", role: "group", "aria-label": `Actions of ${name}` }, turn, again, failed, ...(few ? [] : [stop, edit, gone]));

  return {
    node,
    update(connector) {
      state = connector.connector.state;
      failed.hidden = !["FAILED", "TASK_FAILED"].includes(connector.health);
      const label = state === "PAUSED" || state === "STOPPED" ? "Resume" : "Pause";
      setText(turn, label);
      if (few) setAttribute(turn, "aria-label", `${label} ${name}`);
      if (!stop.classList.contains("busy")) setAttribute(stop, "aria-disabled", state === "STOPPED" ? "true" : null);
      setAttribute(stop, "title", state === "STOPPED" ? "It is stopped" : null);
    },
  };
}

async function deleteConnector(name) {
  const sure = await ask({
    title: "Delete this connector?",
    body: [h("p", {}, h("strong", { class: "name" }, name)), "It is stopped and its configuration is forgotten. What it has written stays; so do its offsets."],
    action: "Delete",
    danger: true,
  });
  if (!sure) return;
  await remove(connectorPath(name));
  say(`“${name}” is deleted.`);
  live.forget(name);
  await live.refresh();
  location.hash = "#/";
}

// Offsets can only be changed while the connector is stopped: offers to stop it. Resolves to whether it is stopped.
export async function stopFirst(name) {
  const stopped = () => {
    const now = live.connectors.get(name);
    return now?.connector.state === "STOPPED" && now.tasks.length === 0;
  };
  if (stopped()) return true;
  const sure = await ask({
    title: "Stop the connector first?",
    body: [h("p", {}, h("strong", { class: "name" }, name)), "Its offsets can be changed only while it is stopped. Its configuration stays, and you can resume it afterwards."],
    action: "Stop it",
  });
  if (!sure) return false;
  await put(connectorPath(name, "/stop"));
  const deadline = Date.now() + WAIT_MS;
  while (Date.now() < deadline) {
    await live.refresh();
    if (stopped()) return true;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  throw new Error(`“${name}” has not stopped within ${WAIT_MS / 1000} s.`);
}
