import type { Access } from "../access.ts";
import type { DeviceSet } from "../deviceSets.ts";
import type { AccessRule } from "../facts.ts";
import type { Situation, Situations } from "./situations.ts";

/** A rule by its place in the access's list, and the devices on which it decides in a situation. */
interface Decision {
  readonly place: number;
  readonly devices: DeviceSet;
}

/** Two rules of one priority that decide differently about a login. */
export interface Disagreement {
  /** Place of the rule that decides, because it was made later. */
  readonly winner: number;
  /** Place of the other rule. */
  readonly loser: number;
  readonly login: string;
  readonly address: string;
  readonly uid: string;
}

/** Which rules decide over a domain, and what would happen without each. Rules are named by their places. */
export class Decisions {
  /** The rules that match some login. */
  readonly matching = new Set<number>();
  /** The rules that decide about some login. */
  readonly deciding = new Set<number>();
  /** The rules without which the decision about some login would be another one. */
  readonly needed = new Set<number>();
  /** For a rule that never decides: the rules that decide where it matches. */
  readonly stronger = new Map<number, Set<number>>();
  /** For a rule that is not needed: the rules that would decide without it. */
  readonly weaker = new Map<number, Set<number>>();
  readonly #disagreements = new Map<string, Disagreement>();
  readonly #access: Access;
  readonly #devices: readonly DeviceSet[];

  constructor(access: Access, situations: Situations) {
    this.#access = access;
    this.#devices = access.rules.map(({ filter, action }) => access.devicesOf(filter, action === "deny"));
    for (const situation of situations) {
      for (const decision of this.#decide(situation)) {
        const rest = situation.rules.slice(situation.rules.indexOf(decision.place) + 1);
        this.#without(decision, rest);
        this.#compare(decision, rest, situation);
      }
    }
  }

  get disagreements(): readonly Disagreement[] {
    return [...this.#disagreements.values()];
  }

  #decide({ rules }: Situation): Decision[] {
    const left = this.#access.devicesOf({}, false).clone();
    const decisions: Decision[] = [];
    for (const place of rules) {
      const all = this.#devicesOf(place);
      if (all.isEmpty()) continue;
      this.matching.add(place);
      const devices = all.new_intersection(left);
      if (!devices.isEmpty()) {
        this.deciding.add(place);
        decisions.push({ place, devices });
        left.difference(devices);
      } else if (!this.deciding.has(place)) {
        for (const above of decisions)
          if (above.devices.intersects(all)) note(this.stronger, place, above.place);
      }
    }
    return decisions;
  }

  /** Finds out what would be decided without the rule of a decision. */
  #without({ place, devices }: Decision, rest: readonly number[]): void {
    if (this.needed.has(place)) return;
    const { action } = this.#ruleAt(place);
    const left = devices.clone();
    for (const other of rest) {
      if (left.isEmpty()) return;
      const all = this.#devicesOf(other);
      if (!left.intersects(all)) continue;
      note(this.weaker, place, other);
      if (this.#ruleAt(other).action !== action) {
        this.needed.add(place);
        return;
      }
      left.difference(all);
    }
    if (action === "deny" && !left.isEmpty()) this.needed.add(place);
  }

  /** Finds rules of the same priority that would decide differently, had they been made later. */
  #compare({ place, devices }: Decision, rest: readonly number[], { login, address }: Situation): void {
    const { action, priority } = this.#ruleAt(place);
    for (const other of rest) {
      const rule = this.#ruleAt(other);
      if (rule.priority !== priority) return;
      const name = `${place},${other}`;
      if (rule.action === action || this.#disagreements.has(name)) continue;
      const [uid] = this.#access.uidsOf(devices.new_intersection(this.#devicesOf(other)));
      if (uid === undefined) continue;
      this.#disagreements.set(name, { winner: place, loser: other, login, address, uid });
    }
  }

  #ruleAt = (place: number): AccessRule => at(this.#access.rules, place);
  #devicesOf = (place: number): DeviceSet => at(this.#devices, place);
}

function at<T>(list: readonly T[], place: number): T {
  const item = list[place];
  if (item === undefined) throw new RangeError(`no rule has the place ${place}`);
  return item;
}

function note(notes: Map<number, Set<number>>, place: number, other: number): void {
  const known = notes.get(place);
  if (known) known.add(other);
  else notes.set(place, new Set([other]));
}
