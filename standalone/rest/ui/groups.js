// Consumer groups: states and lag.

import { get } from "./api.js";
import { count } from "./format.js";
import { listView } from "./lists.js";

export function groupsView() {
  const heads = ["Group", "Topic", "Partition", "State", "Committed", "Log end", "Lag"];
  return listView({
    title: "Groups",
    hint: "A sink's group is called connect-NAME.",
    heads,
    none: "No group has committed an offset yet.",
    async ask() {
      const groups = await get("ui/api/groups");
      return groups.flatMap((group) => (group.partitions.length ? group.partitions : [{}]).map((place) => ({ ...place, name: group.name, state: group.state, problem: group.problem })));
    },
    keyOf: (row) => `${row.name} ${row.topic} ${row.partition}`,
    first: (row) => row.name,
    cells: (row) => [row.problem ?? row.topic ?? "–", row.partition === undefined ? "–" : String(row.partition), row.state, count(row.committed), count(row.end), count(row.lag)],
    everyMs: 5000,
  });
}
