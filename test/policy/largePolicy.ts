import { cidr, hostname, login } from "../../provider/helpers/patterns.ts";
import type {
  AccessDevice,
  AccessKey,
  AccessRule,
  EvaluatedLogins,
  NamespacePolicy,
} from "../../sdk/policy/index.ts";

/** The size of a generated policy: its numbers of objects, and of evaluated logins and addresses. */
export interface PolicySize {
  readonly devices: number;
  readonly keys: number;
  readonly rules: number;
  readonly logins: number;
  readonly addresses: number;
}

const ROLES = ["web", "db", "cache", "queue", "proxy", "build", "camera", "sensor", "kiosk", "router"];
const SITES = ["fra", "ams", "lon", "par", "mad", "rom", "vie", "prg", "waw", "osl", "sto", "hel"];
const STAGES = ["prod", "prod", "prod", "staging", "lab"];
const TEAMS = Array.from({ length: 20 }, (_, index) => `team-${index + 1}`);
const LOGINS = ["root", "deploy", "ops", "backup"];

/** Returns a function that returns random numbers below a bound. The sequence (mulberry32) is the same in every run. */
export function randomNumbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

/**
 * A policy like those of real fleets: with tags, systematic device names, patterns that the SDK's helpers created, and
 * patterns that users wrote.
 */
export class LargePolicy {
  readonly policy: NamespacePolicy;
  readonly evaluated: EvaluatedLogins;
  readonly #below = randomNumbers(1);

  constructor(size: PolicySize) {
    this.evaluated = {
      logins: Array.from({ length: size.logins }, (_, index) => LOGINS[index] ?? `user${index}`),
      addresses: Array.from({ length: size.addresses }, (_, index) => `10.${index}.3.9`),
    };
    const make = <T>(count: number, one: (index: number) => T): T[] =>
      Array.from({ length: count }, (_, index) => one(index));
    const created = make(size.devices, (index) => this.#device(index));
    // Parses JSON like a client, so that the strings have a client's memory layout and not that of concatenated
    // strings.
    const devices = JSON.parse(JSON.stringify(created)) as AccessDevice[];
    this.policy = {
      devices,
      keys: make(size.keys, (index) => this.key(index, devices)),
      rules: make(size.rules, (index) => this.rule(index, devices)),
    };
  }

  #one<T>(all: readonly T[]): T {
    return all[this.#below(all.length)] as T;
  }

  #several<T>(all: readonly T[], most: number): T[] {
    return Array.from({ length: 1 + this.#below(most) }, () => this.#one(all));
  }

  /** Picks one of the choices with a probability in proportion to its weight. */
  #weighed<T>(choices: readonly (readonly [weight: number, make: () => T])[]): T {
    let remaining = this.#below(choices.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, make] of choices) {
      if (remaining < weight) return make();
      remaining -= weight;
    }
    throw new Error("no choices");
  }

  #device(index: number): AccessDevice {
    const [role, site] = [this.#one(ROLES), this.#one(SITES)];
    return {
      uid: `uid-${index}`,
      name: `${role}-${site}-${String(index).padStart(6, "0")}`,
      tags: [role, site, this.#one(STAGES)].concat(this.#one(TEAMS)),
    };
  }

  #filter(devices: readonly AccessDevice[]): AccessKey["filter"] {
    const name = () => this.#one(devices).name;
    return this.#weighed<AccessKey["filter"]>([
      [40, () => ({ tags: this.#several(TEAMS, 2) })],
      [15, () => ({ tags: [this.#one([...ROLES, ...SITES, ...STAGES])] })],
      [20, () => ({ hostname: hostname(...this.#several(devices, 4).map((device) => device.name)) })],
      [10, () => ({ hostname: `^${this.#one(ROLES)}-${this.#one(SITES)}-` })],
      [6, () => ({ hostname: `^(${this.#one(ROLES)}|${this.#one(ROLES)})-${this.#one(SITES)}-` })],
      [2, () => ({ hostname: `^${this.#one(ROLES)}-[a-z]+-00${this.#below(10)}\\d+$` })],
      [2, () => ({ hostname: `-(${this.#one(SITES)}|${this.#one(SITES)})-[0-9]*${this.#below(10)}$` })],
      [2, () => ({ hostname: `${name().slice(-3)}$` })],
      [2, () => ({ hostname: ".*" })],
      [1, () => ({})],
    ]);
  }

  #username(): string {
    const { logins } = this.evaluated;
    return this.#weighed([
      [60, () => login(this.#one(logins))],
      [25, () => login(...this.#several(logins, 3))],
      [10, () => ".*"],
      [3, () => `^${this.#one(logins).slice(0, 2)}`],
      [2, () => "^[a-z]+[0-9]*$"],
    ]);
  }

  #sourceIp(): string {
    const network = () => `10.${this.#below(this.evaluated.addresses.length)}`;
    return this.#weighed([
      [40, () => ".*"],
      [25, () => cidr(`${network()}.0.0/16`)],
      [15, () => cidr(`${network()}.3.0/24`)],
      [10, () => cidr(`${network()}.3.9`)],
      [8, () => `^${network().replace(".", "\\.")}\\.`],
      [2, () => cidr("10.0.0.0/8")],
    ]);
  }

  /** Creates a further random key. */
  key(index: number, devices: readonly AccessDevice[] = this.policy.devices): AccessKey {
    return {
      fingerprint: `fingerprint-${index}`,
      name: `key-${index}`,
      username: this.#username(),
      filter: this.#filter(devices),
    };
  }

  /** Creates a further random rule. */
  rule(index: number, devices: readonly AccessDevice[] = this.policy.devices): AccessRule {
    return {
      id: `rule-${index}`,
      action: this.#one(["allow", "deny"]),
      active: this.#below(20) > 0,
      priority: this.#below(100),
      sourceIp: this.#sourceIp(),
      username: this.#below(2) === 0 ? ".*" : this.#username(),
      filter: this.#filter(devices),
    };
  }

  /** Returns the policy after a typical change: a few keys, rules and tags are changed, added or removed. */
  changed(): NamespacePolicy {
    const { devices, keys, rules } = this.policy;
    const changeEvery = <T>(all: readonly T[], change: (one: T, index: number) => T) => {
      const step = Math.ceil(all.length / 5);
      return all.map((one, index) => (index % step === 0 ? change(one, index) : one));
    };
    return {
      devices: changeEvery(devices, (device) => ({ ...device, tags: [...device.tags, this.#one(TEAMS)] })),
      keys: [...changeEvery(keys, (_, index) => this.key(index)).slice(2), this.key(keys.length)],
      rules: [...changeEvery(rules, (_, index) => this.rule(index)).slice(1), this.rule(rules.length)],
    };
  }
}
