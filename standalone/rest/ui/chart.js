// A line chart over time: records per second, lag.

import { h, setText, svg } from "./dom.js";
import { rate, time } from "./format.js";

const WINDOWS = [1, 2, 5, 10].map((minutes) => minutes * 60_000); // the shortest that covers all points
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 8, 10, 22];

// A large chart with axes: {node, set(points)}.
export function chart(label, height = 180, unit = "records/s") {
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "line" });
  const grid = svg("g", { class: "grid" });
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
  const dot = svg("circle", { class: "dot", r: 3.5, visibility: "hidden" });
  const picture = svg("svg", { class: "chart", height, role: "img", "aria-label": label }, grid, area, line, cursor, dot);
  const caption = h("figcaption");
  const node = h("figure", { class: "chart-box" }, picture, caption);
  let points = [];
  let width = 600;
  let place = { x: () => 0, y: () => 0 };

  function draw() {
    const now = points.at(-1)?.at ?? Date.now();
    const wanted = now - (points[0]?.at ?? now);
    const span = WINDOWS.find((each) => each >= wanted) ?? WINDOWS.at(-1);
    const top = niceTop(Math.max(0, ...points.map((point) => point.value)));
    place = {
      x: (at) => LEFT + (1 - (now - at) / span) * (width - LEFT - RIGHT),
      y: (value) => TOP + (1 - value / top) * (height - TOP - BOTTOM),
    };
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const lines = [0, 0.5, 1].map((part) => {
      const y = place.y(part * top);
      return [
        svg("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
        svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, rate(part * top)),
      ];
    });
    const marks = [1, 0.5, 0].map((part) => {
      const anchor = part === 1 ? "start" : part ? "middle" : "end";
      return svg("text", { x: place.x(now - part * span), y: height - 5, "text-anchor": anchor }, part ? `${ago(part * span)} ago` : "now");
    });
    grid.replaceChildren(...lines.flat(), ...marks);
    const seen = points.filter((point) => now - point.at <= span);
    const path = pathOf(seen, place);
    line.setAttribute("d", path);
    area.setAttribute("d", seen.length > 1 ? `${path}L${place.x(seen.at(-1).at)} ${place.y(0)}L${place.x(seen[0].at)} ${place.y(0)}Z` : "");
    const peak = Math.max(0, ...seen.map((point) => point.value));
    const said = `now ${rate(seen.at(-1)?.value ?? 0)}, peak ${rate(peak)} within ${ago(span)}`;
    picture.setAttribute("aria-label", `${label}: ${said}`);
    if (cursor.getAttribute("visibility") === "hidden") setText(caption, `${label}: ${said}`);
  }

  function point(event) {
    const x = event.clientX - picture.getBoundingClientRect().left;
    const nearest = points.reduce((best, each) => (!best || Math.abs(place.x(each.at) - x) < Math.abs(place.x(best.at) - x) ? each : best), null);
    if (!nearest) return;
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, place.x(nearest.at));
    dot.setAttribute("cx", place.x(nearest.at));
    dot.setAttribute("cy", place.y(nearest.value));
    for (const each of [cursor, dot]) each.setAttribute("visibility", "visible");
    setText(caption, `${time(nearest.at)}: ${rate(nearest.value)} ${unit}`);
  }

  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerleave", () => {
    for (const each of [cursor, dot]) each.setAttribute("visibility", "hidden");
    draw();
  });
  new ResizeObserver(([entry]) => {
    width = Math.max(240, Math.round(entry.contentRect.width));
    draw();
  }).observe(node);
  return {
    node,
    set(found) {
      points = found;
      draw();
    },
  };
}

// A small chart without axes, next to the number as text.
export function sparkline(width = 96, height = 24) {
  const line = svg("path", { class: "line" });
  const node = svg("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, line);
  return {
    node,
    set(points) {
      const seen = points.slice(-60);
      const top = Math.max(1, ...seen.map((point) => point.value));
      const x = (_, index) => (index / 59) * (width - 2) + 1 + ((60 - seen.length) / 59) * (width - 2);
      const path = seen.map((point, index) => `${index ? "L" : "M"}${x(point, index).toFixed(1)} ${(height - 2 - (point.value / top) * (height - 4)).toFixed(1)}`);
      line.setAttribute("d", path.join(""));
    },
  };
}

function pathOf(points, { x, y }) {
  return points.map((point, index) => `${index ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`).join("");
}

const ago = (milliseconds) => (milliseconds % 60_000 ? `${milliseconds / 1000} s` : `${milliseconds / 60_000} min`);

// The next of 1, 2, 5, 10, 20, … above a value.
function niceTop(value) {
  if (value <= 10) return 10;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value);
}
