// The page: maps the address after # to a view, and holds the frame around views.

import { get } from "./api.js";
import { connectorView } from "./connector.js";
import { connectorsView } from "./connectors.js";
import { h, setText } from "./dom.js";
import { editView, newView } from "./form.js";
import { groupsView } from "./groups.js";
import { queueView, queuesView } from "./letters.js";
import { live } from "./live.js";
import { loggersView } from "./loggers.js";
import { pluginsView } from "./plugins.js";
import { subjectView, subjectsView } from "./schemas.js";
import { streamsView } from "./streams.js";
import { topicView, topicsView } from "./topics.js";

const main = document.getElementById("main");
let view = null;

const ROUTES = [
  [/^\/?$/, () => connectorsView(), "connectors"],
  [/^\/new$/, () => newView(), "connectors"],
  [/^\/connectors\/([^/]+)$/, (name) => connectorView(name), "connectors"],
  [/^\/connectors\/([^/]+)\/edit$/, (name) => editView(name), "connectors"],
  [/^\/topics$/, () => topicsView(), "topics"],
  [/^\/topics\/([^/]+)$/, (name) => topicView(name), "topics"],
  [/^\/groups$/, () => groupsView(), "groups"],
  [/^\/dead-letters$/, () => queuesView(), "dead-letters"],
  [/^\/dead-letters\/([^/]+)$/, (queue) => queueView(queue), "dead-letters"],
  [/^\/streams$/, () => streamsView(), "streams"],
  [/^\/plugins$/, () => pluginsView(), "plugins"],
  [/^\/loggers$/, () => loggersView(), "loggers"],
  [/^\/schemas$/, () => subjectsView(), "schemas"],
  [/^\/schemas\/([^/]+)$/, (subject) => subjectView(subject), "schemas"],
];

function show() {
  const path = location.hash.slice(1);
  const [made, page] = route(path);
  view?.leave?.();
  view = made;
  main.replaceChildren(view.node);
  document.title = `${view.title} · connect-standalone`;
  for (const link of document.querySelectorAll("nav a[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view.update?.();
  window.scrollTo(0, 0);
}

function route(path) {
  for (const [pattern, make, page] of ROUTES) {
    const match = pattern.exec(path);
    if (!match) continue;
    try {
      return [make(...match.slice(1).map(decodeURIComponent)), page];
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
    }
  }
  return [{ title: "Not found", node: h("section", {}, h("h1", { tabindex: -1 }, "There is no such page"), h("a", { href: "#/" }, "To the connectors")) }, ""];
}

window.addEventListener("hashchange", () => {
  show();
  (main.querySelector("h1") ?? main).focus(); // so that screen readers start at the new page
});

live.addEventListener("change", () => {
  const state = document.getElementById("link-state");
  setText(state, live.problem ? "Offline: the worker does not answer" : "Live");
  state.classList.toggle("bad", Boolean(live.problem));
  view?.update?.();
});

// A link to #main would be taken for the address of a view.
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

show();
live.start();
get("").then(
  (about) => setText(document.getElementById("about"), `Connect ${about.version} API · ${about.commit} · cluster ${about.kafka_cluster_id}`),
  () => {},
);
