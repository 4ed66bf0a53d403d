// Live state, fetched every two seconds while the page is visible; views listen to "change".

import { get } from "./api.js";
import { announce } from "./notes.js";

const EVERY_MS = 2000;
const KEPT = 300;

class Live extends EventTarget {
  constructor() {
    super();
    this.connectors = new Map(); // name -> {name, type, className, connector, tasks, health}
    this.samples = []; // {number, at, rates}
    this.totals = {};
    this.failures = {};
    this.loaded = false;
    this.problem = null;
    this.infos = new Map(); // name -> class name
    this.timer = null;
    this.asking = null;
  }

  start() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.refresh()));
    this.refresh();
  }

  rest() {
    clearTimeout(this.timer);
  }

  // Fetch now; a call while a request is in flight waits for the next one.
  refresh() {
    clearTimeout(this.timer);
    this.asking = (this.asking ?? Promise.resolve()).then(() => this.ask());
    return this.asking;
  }

  async ask() {
    clearTimeout(this.timer);
    const since = this.samples.at(-1)?.number ?? 0;
    try {
      const [status, throughput] = await Promise.all([get("connectors?expand=status"), get(`ui/api/throughput?since=${since}`)]);
      if (Object.keys(status).some((name) => !this.infos.has(name))) await this.learn();
      this.take(status, throughput);
      this.problem = null;
    } catch (error) {
      this.problem = error;
    }
    this.dispatchEvent(new Event("change"));
    if (!document.hidden) this.timer = setTimeout(() => this.refresh(), EVERY_MS);
  }

  async learn() {
    const found = await get("connectors?expand=info");
    this.infos = new Map(Object.entries(found).map(([name, { info }]) => [name, info.config["connector.class"] ?? ""]));
  }

  forget(name) {
    this.infos.delete(name);
  }

  take(status, throughput) {
    const before = this.connectors;
    this.connectors = new Map();
    for (const name of Object.keys(status).sort((a, b) => a.localeCompare(b))) {
      const found = status[name].status;
      const one = { ...found, className: this.infos.get(name) ?? "", health: healthOf(found) };
      this.connectors.set(name, one);
      const old = before.get(name)?.health;
      if (this.loaded && old !== one.health) announce(`${name}: ${LABELS[one.health]}`);
    }
    if (this.loaded) for (const name of before.keys()) if (!this.connectors.has(name)) announce(`${name} is gone`);
    this.samples = [...this.samples, ...throughput.samples].slice(-KEPT);
    this.totals = throughput.totals;
    this.failures = throughput.failures;
    this.loaded = true;
  }

  rate(name) {
    return own(this.samples.at(-1)?.rates, name);
  }

  total(name) {
    return own(this.totals, name);
  }

  failed(name) {
    return own(this.failures, name);
  }

  // [{at, value}]: failed records per second.
  errors(name) {
    return this.samples.map(({ at, errors }) => ({ at, value: own(errors, name) }));
  }

  // [{at, value}] of one connector, or of all.
  series(name) {
    const value = (rates) => (name === undefined ? Object.values(rates).reduce((sum, each) => sum + each, 0) : own(rates, name));
    return this.samples.map(({ at, rates }) => ({ at, value: value(rates) }));
  }
}

export const LABELS = {
  RUNNING: "Running",
  PAUSED: "Paused",
  STOPPED: "Stopped",
  FAILED: "Failed",
  TASK_FAILED: "Task failed",
  RESTARTING: "Restarting",
  UNASSIGNED: "Starting",
};

// The overall state of a connector: FAILED if a task failed, even if Connect reports RUNNING.
function healthOf({ connector, tasks }) {
  if (connector.state === "FAILED") return "FAILED";
  if (tasks.some((task) => task.state === "FAILED")) return "TASK_FAILED";
  return connector.state;
}

// Calls look() at most once per interval, and not while a call is pending: a hanging log is not asked repeatedly.
export function paced(milliseconds, look) {
  let next = 0;
  let waiting = false;
  return async () => {
    if (waiting || Date.now() < next) return;
    next = Date.now() + milliseconds;
    waiting = true;
    try {
      await look();
    } finally {
      waiting = false;
    }
  };
}

// A connector may be named "constructor".
const own = (numbers, name) => (numbers && Object.hasOwn(numbers, name) ? numbers[name] : 0);

export const live = new Live();
