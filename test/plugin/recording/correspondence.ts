import { UNKNOWNS } from "../../../provider/engineMarks.ts";
import { mapTexts, markOf, patternOf } from "./marks.ts";
import type { Json } from "./messages.ts";
import type { Named } from "./scenario.ts";

/** A kind of values that differ from run to run: where they are in a text. */
interface Kind {
  readonly pattern: string;
  /** Whether two recorded ones may be the same in another run, as times may that are close to each other. */
  readonly merges?: boolean;
}

const KINDS: Readonly<Record<string, Kind>> = {
  mark: { pattern: "«[^»]+»" },
  id: { pattern: "\\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\\b" },
  user: { pattern: "\\b[0-9a-f]{24}\\b" },
  digest: { pattern: "\\b[0-9a-f]{64}\\b" },
  time: { pattern: "\\b2\\d{3}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z", merges: true },
};

const VARYING = new RegExp(
  Object.entries(KINDS)
    .map(([name, { pattern }]) => `(?<${name}>${pattern})`)
    .join("|"),
  "g",
);

/** A place at which a live message is not as the recorded one. */
export interface Difference {
  readonly path: string;
  readonly recorded: Json | undefined;
  readonly live: Json | undefined;
}

/**
 * Which value of a run stands for which one of the recorded run. It is learned from answers, each beside the recorded
 * one; from then on the one always stands for the other.
 */
export class Correspondence {
  /** By the recorded one. */
  readonly #live = new Map<string, string>();
  readonly #recorded = new Map<string, string>();

  constructor() {
    // Part of the protocol.
    for (const constant of UNKNOWNS) this.#learn(constant, constant, false);
  }

  /** Takes note of what is known by a name. */
  tell(named: Named): void {
    for (const [name, value] of Object.entries(named)) this.#live.set(markOf(name), value);
  }

  /** What a recorded message is in this run. What no answer had before, the engine made up: it stays as it is. */
  toLive<T>(recorded: T): T {
    return mapTexts(recorded, (text) =>
      text.replace(VARYING, (value) => {
        const live = this.#live.get(value);
        if (live !== undefined) return live;
        if (new RegExp(`^${KINDS.mark?.pattern}$`).test(value))
          throw new Error(`${value} is known to nobody`);
        this.#learn(value, value, false);
        return value;
      }),
    );
  }

  /** Compares a live message with the recorded one, and learns from it. */
  compare(recorded: Json | undefined, live: Json | undefined, path = ""): Difference[] {
    if (isParent(recorded) && isParent(live) && Array.isArray(recorded) === Array.isArray(live)) {
      const [was, is] = [recorded, live] as Readonly<Record<string, Json>>[];
      const names = [...new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})])];
      return names.flatMap((name) =>
        this.compare(was?.[name], is?.[name], path === "" ? name : `${path}.${name}`),
      );
    }
    const isSame =
      typeof recorded === "string" && typeof live === "string"
        ? this.#isSameText(recorded, live)
        : recorded === live;
    return isSame ? [] : [{ path, recorded, live }];
  }

  #isSameText(recorded: string, live: string): boolean {
    if (recorded.replace(VARYING, (value) => this.#live.get(value) ?? value) === live) return true;
    const values: { readonly recorded: string; readonly merges: boolean }[] = [];
    let pattern = "";
    let end = 0;
    for (const match of recorded.matchAll(VARYING)) {
      const [value] = match;
      const kind = Object.entries(KINDS).find(([name]) => match.groups?.[name] !== undefined)?.[1];
      const known = this.#live.get(value);
      pattern += patternOf(recorded.slice(end, match.index));
      // A secret may be any text.
      pattern += known === undefined ? `(${value.startsWith("«") ? ".+" : kind?.pattern})` : patternOf(known);
      if (known === undefined) values.push({ recorded: value, merges: kind?.merges ?? false });
      end = match.index + value.length;
    }
    const found = new RegExp(`^${pattern}${patternOf(recorded.slice(end))}$`, "s").exec(live);
    return (
      found !== null &&
      values.every((value, at) => this.#learn(value.recorded, found[at + 1] ?? "", value.merges))
    );
  }

  /** False where one of the two stands for something else already. */
  #learn(recorded: string, live: string, merges: boolean): boolean {
    const known = this.#live.get(recorded);
    if (known !== undefined) return known === live;
    if (!merges && this.#recorded.has(live)) return false;
    this.#live.set(recorded, live);
    this.#recorded.set(live, recorded);
    return true;
  }
}

const isParent = (value: Json | undefined): boolean => typeof value === "object" && value !== null;
