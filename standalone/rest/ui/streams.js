// Streams: run SQL statements and manage queries.

import { get, post, put, remove } from "./api.js";
import { h, setAttribute, setText } from "./dom.js";
import { count } from "./format.js";
import { listView } from "./lists.js";
import { LABELS } from "./live.js";
import { ask, busy, say } from "./notes.js";

const SHOWN_ROWS = 500; // of an unbounded result
const WAIT_MS = 5000;

export function streamsView() {
  const sheet = statements(() => list.look());
  const buttons = new Map(); // query -> its row of buttons
  const list = listView({
    title: "Streams",
    hint: "Queries that run on. Statements are ksqlDB's words over Spark: CREATE STREAM, CREATE TABLE … AS SELECT, SELECT … EMIT CHANGES, SHOW, DESCRIBE, PRINT.",
    above: sheet.node,
    heads: ["Query", "State", "Writes", "Read", "Written", "Behind", "Remembered", "Restarts", "Actions"],
    none: "No query runs on yet: CREATE STREAM … AS SELECT makes one.",
    ask: async () => Promise.all((await get("queries")).map((name) => get(`queries/${encodeURIComponent(name)}`))),
    keyOf: (query) => query.name,
    first: (query) => h("details", { class: "more" }, h("summary", {}, query.name), h("pre", {}, query.config.statement)),
    cells(query) {
      const state = query.tasks[0]?.state ?? "UNASSIGNED";
      const figures = query.figures.query ?? {};
      if (!buttons.has(query.name)) buttons.set(query.name, actions(query.name, () => list.look()));
      const row = buttons.get(query.name);
      row.update(state);
      const why = query.tasks[0]?.trace?.trim().split("\n").at(-1);
      return [
        why ? `${LABELS[state] ?? state}: ${why}` : (LABELS[state] ?? state),
        query.config.into,
        count(figures["rows-read-total"]),
        count(figures["rows-written-total"]),
        count(figures.lag),
        count(figures["state-rows"]),
        count(figures["restarts-total"]),
        row.node,
      ];
    },
    everyMs: 2000,
  });
  return { ...list, leave: sheet.leave };
}

function actions(name, changed) {
  const path = `queries/${encodeURIComponent(name)}`;
  const button = (text, act, more = {}) =>
    h("button", { type: "button", "aria-label": `${text} ${name}`, ...more, onclick: (event) => busy(event.currentTarget, async () => (await act(), changed())) }, text);
  let paused = false;
  const turn = button("Pause", () => put(`${path}/${paused ? "resume" : "pause"}`));
  const again = button("Restart", () => post(`${path}/restart`));
  const end = button("Terminate", () => terminate(name), { class: "danger" });
  return {
    node: h("div", { class: "buttons", role: "group", "aria-label": `Actions of ${name}` }, turn, again, end),
    update(state) {
      paused = state === "PAUSED";
      const label = paused ? "Resume" : "Pause";
      setText(turn, label);
      setAttribute(turn, "aria-label", `${label} ${name}`);
    },
  };
}

async function terminate(name) {
  const sure = await ask({
    title: "Terminate this query?",
    body: [h("p", {}, h("strong", { class: "name" }, name)), "It ends, and what it remembers is deleted. What it has written stays."],
    action: "Terminate",
    danger: true,
  });
  if (!sure) return;
  await post("sql", { sql: `TERMINATE \`${name}\`;` });
  say(`“${name}” is terminated.`);
}

// The SQL editor: {node, leave}.
function statements(done) {
  const text = h("textarea", { id: "sql", class: "code", rows: 5, spellcheck: "false", autocapitalize: "none", onkeydown: onKey, placeholder: "SHOW STREAMS;" });
  const from = h("select", { id: "from" }, h("option", { value: "" }, "As is usual"), h("option", { value: "earliest" }, "Earliest"), h("option", { value: "latest" }, "Latest"));
  const problem = h("p", { class: "error", role: "alert" });
  const answers = h("div", { class: "answers" });
  const run = h("button", { type: "button", class: "primary", onclick: (event) => busy(event.currentTarget, execute) }, "Run");
  let open = []; // open cursors

  function onKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run.click();
  }

  async function execute() {
    leave();
    setText(problem, "");
    answers.replaceChildren();
    let found;
    try {
      const properties = from.value ? { "auto.offset.reset": from.value } : {};
      found = await post("sql", { sql: text.value.trim().endsWith(";") ? text.value : `${text.value};`, properties });
    } catch (error) {
      setText(problem, error.message);
      return;
    }
    for (const answer of found) {
      if (answer.kind === "message") answers.append(h("p", { role: "status" }, answer.message));
      else if (answer.kind === "table") answers.append(table(answer.columns, answer.rows).node);
      else follow(answer);
    }
    done();
  }

  function follow({ cursor, columns }) {
    const shown = table(columns, []);
    const status = h("p", { class: "hint", role: "status" }, "Waiting for rows…");
    const stop = h("button", { type: "button", onclick: () => end("Stopped.") }, "Stop");
    answers.append(h("div", { class: "head" }, status, stop), shown.node);
    const one = { going: true };
    open.push(one);
    let rows = 0;

    function end(why) {
      if (!one.going) return;
      one.going = false;
      stop.hidden = true;
      setText(status, `${why} ${count(rows)} rows came.`);
      remove(`sql/cursors/${cursor}`).catch(() => {}); // it may already be closed
    }
    one.end = () => end("Stopped.");

    (async () => {
      while (one.going) {
        let found;
        try {
          found = await get(`sql/cursors/${cursor}?wait.ms=${WAIT_MS}`);
        } catch (error) {
          if (one.going) setText(problem, error.message);
          end("It has ended.");
          return;
        }
        if (!one.going) return;
        shown.add(found.rows);
        rows += found.rows.length;
        if (rows) setText(status, `${count(rows)} rows`);
        if (found.done) end("All are here.");
      }
    })();
  }

  function leave() {
    for (const one of open) one.end();
    open = [];
  }

  const field = (input, label) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);
  const node = h(
    "div",
    { class: "panel" },
    field(text, "Statements of SQL (Ctrl-Enter runs them)"),
    h("div", { class: "controls" }, field(from, "Streams are read from"), run),
    problem,
    answers,
  );
  return { node, leave };
}

// {node, add(rows)}; drops the oldest rows beyond the limit.
function table(columns, rows) {
  const body = h("tbody");
  const head = h("tr", {}, columns.map((each) => h("th", { scope: "col" }, each)));
  const node = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Answer" }, h("table", { class: "list" }, h("thead", {}, head), body));
  function add(more) {
    for (const row of more) body.append(h("tr", {}, row.map((cell, at) => h("td", { "data-label": columns[at] }, cellText(cell)))));
    while (body.childElementCount > SHOWN_ROWS) body.firstElementChild.remove();
  }
  add(rows);
  return { node, add };
}

const cellText = (cell) => (cell === null ? "null" : typeof cell === "string" ? cell : JSON.stringify(cell));
