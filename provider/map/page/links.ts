/**
 * Distance in pixels by which a link extends beyond the edge of the picture if one of its lines is scrolled out of
 * view.
 */
const BEYOND = 28;
/** Vertical offset of links in pixels, so that gained and lost links between the same lines do not overlap. */
const APART: Readonly<Record<Change, number>> = { gained: -9, lost: 9, kept: 0 };
/**
 * Drawing order of changes. The change with the most saturated color comes last, so that it is above the other changes.
 */
const DRAWN = ["kept", "lost", "gained"] as const;

type Weight = "faint" | "plain";

const picture = byId("links") as HTMLElement & SVGSVGElement;
const curve = d3.linkHorizontal();

/**
 * Draws the links of all visible lines. All links of one kind share one path, so that drawing is fast for any number of
 * links.
 */
function drawLinks(state: Shown): void {
  const { width, height } = picture.getBoundingClientRect();
  const ends = {
    keys: visibleEnds("keys", state.rows.keys.length, height),
    devices: visibleEnds("devices", state.rows.devices.length, height),
  };
  const chosen = selectedPlaces(state);
  const paths = new Map<string, Set<string>>();
  const marks = new Map<string, Mark>();
  for (const [key, from] of ends.keys.entries()) {
    for (const [device, to] of ends.devices.entries()) {
      if (!from.visible && !to.visible) continue;
      const bits = bitsAt(state, "keys", key, device);
      if (bits === 0) continue;
      const weight = weightOf(state, chosen, key, device);
      for (const change of DRAWN) {
        if (!(bits & BIT[change])) continue;
        const [start, end] = [from.y + APART[change], to.y + APART[change]];
        const kind = `${change} ${weight}${bits & PLAIN_BIT[change] ? "" : " conditional"}`;
        const path = curve({ source: [0, start], target: [width, end] }) ?? "";
        paths.set(kind, (paths.get(kind) ?? new Set()).add(path));
        if (change === "kept" || weight === "faint") continue;
        if (from.visible) marks.set(`l${start}`, { change, x: 14, y: start });
        if (to.visible) marks.set(`r${end}`, { change, x: width - 14, y: end });
      }
    }
  }
  put(paths, [...marks.values()]);
}

interface End {
  readonly y: number;
  readonly visible: boolean;
}

function visibleEnds(side: Side, count: number, height: number): End[] {
  const { scrollTop } = lists[side];
  return Array.from({ length: count }, (_, place) => {
    const y = place * LINE + LINE / 2 - scrollTop;
    const visible = y >= 0 && y <= height;
    return { y: Math.min(Math.max(y, -BEYOND), height + BEYOND), visible };
  });
}

function weightOf({ selected }: Shown, chosen: ReadonlySet<number>, key: number, device: number): Weight {
  if (!selected) return "plain";
  return chosen.has(selected.side === "keys" ? key : device) ? "plain" : "faint";
}

interface Mark {
  readonly change: "gained" | "lost";
  readonly x: number;
  readonly y: number;
}

function put(paths: ReadonlyMap<string, ReadonlySet<string>>, marks: readonly Mark[]): void {
  const kinds = (["faint", "plain"] as const).flatMap((weight) =>
    DRAWN.flatMap((change) => [`${change} ${weight}`, `${change} ${weight} conditional`]),
  );
  d3.select(picture)
    .select("#paths")
    .selectAll("path")
    .data(kinds.filter((kind) => paths.has(kind)))
    .join("path")
    .attr("class", (kind) => `link ${kind}`)
    .attr("d", (kind) => [...(paths.get(kind) ?? [])].join(""));
  const drawn = d3
    .select(picture)
    .select("#marks")
    .selectAll<SVGGElement, Mark>("g")
    .data(marks)
    .join((enter) => {
      const mark = enter.append("g");
      mark.append("circle").attr("r", 7);
      mark.append("path");
      return mark;
    })
    .attr("class", ({ change }) => `mark ${change}`)
    .attr("transform", ({ x, y }) => `translate(${x},${y})`);
  drawn
    .select("path")
    .attr("d", ({ change }) => (change === "gained" ? "M-3.5,0H3.5M0,-3.5V3.5" : "M-3.5,0H3.5"));
}
