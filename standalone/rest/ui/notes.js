// Notifications, announcements for screen readers, and confirmation dialogs.

import { h, newId } from "./dom.js";

const STAY_MS = 8000;

// For screen readers only.
export function announce(text) {
  const log = document.getElementById("announcer");
  log.append(h("p", {}, text));
  while (log.childElementCount > 5) log.firstElementChild.remove();
}

export function say(text) {
  show(text, "note");
}

export function complain(problem) {
  show(problem instanceof Error ? problem.message : String(problem), "note bad");
}

function show(text, kind) {
  const bad = kind.includes("bad");
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Dismiss this message", onclick: () => note.remove() }, "✕");
  const note = h("div", { class: kind, role: bad ? "alert" : "status" }, h("p", {}, text), close);
  document.getElementById("notes").append(note);
  if (!bad) setTimeout(() => note.remove(), STAY_MS);
}

// Run a button's action; meanwhile the button is busy and ignores clicks.
export async function busy(button, action) {
  if (button.getAttribute("aria-disabled") === "true") return undefined;
  button.setAttribute("aria-disabled", "true");
  button.classList.add("busy");
  try {
    return await action();
  } catch (error) {
    complain(error);
    return undefined;
  } finally {
    button.removeAttribute("aria-disabled");
    button.classList.remove("busy");
  }
}

// Ask for confirmation; resolves to whether the user confirmed. `body` are nodes or texts.
export function ask({ title, body, action, danger = false }) {
  return new Promise((resolve) => {
    const [heading, text] = [newId("title"), newId("text")];
    const dialog = h("dialog", { class: "ask", "aria-labelledby": heading, "aria-describedby": text });
    const finish = (answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    dialog.append(
      h("h2", { id: heading }, title),
      h("div", { id: text }, ...[body].flat().map((part) => (typeof part === "string" ? h("p", {}, part) : part))),
      h(
        "div",
        { class: "buttons end" },
        h("button", { type: "button", autofocus: true, onclick: () => finish(false) }, "Cancel"),
        h("button", { type: "button", class: danger ? "danger" : "primary", onclick: () => finish(true) }, action),
      ),
    );
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      finish(false);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
