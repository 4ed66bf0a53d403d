// Create elements without markup: text is never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

// h("button", {class: "x", onclick: f, "aria-label": "y"}, "text", node, …); null and false are skipped.
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

// Update the children of a node from a list of items; change only what differs, which keeps focus and open details.
// make(item) creates an element; update(element, item) is called for all. Children before the first one made stay unchanged.
export function keyed(parent, items, keyOf, make, update = () => {}) {
  const known = parent.keyedNodes ?? (parent.keyedNodes = new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, node] of known) {
    if (!wanted.has(key)) {
      node.remove();
      known.delete(key);
    }
  }
  const ours = new Set(known.values());
  let before = parent.firstChild;
  while (before && !ours.has(before)) before = before.nextSibling;
  for (const item of items) {
    const key = keyOf(item);
    let node = known.get(key);
    if (!node) {
      node = make(item);
      known.set(key, node);
    }
    if (node === before) before = node.nextSibling;
    else parent.insertBefore(node, before);
    update(node, item);
  }
}

let ids = 0;
export const newId = (prefix) => `${prefix}-${++ids}`;
