import {
  Access,
  type AccessDomain,
  type AccessRule,
  firewallDecides,
  grantsOf,
  keyAdmits,
} from "../../sdk/dist/policy/index.js";
import { randomNumbers } from "../../test/policy/largePolicy.ts";
import type { Subject } from "./operations.ts";

/** Keys and devices of the sample; by all login names from all addresses. */
const KEYS = 200;
const DEVICES = 100;

/** What deciding one by one costs. */
export interface TripleLoop {
  /** Decisions that were made. */
  readonly sample: number;
  /** Of those, what the key admits and the rules are asked about. */
  readonly admitted: number;
  readonly allowed: number;
  /** Milliseconds of a core for the sample. */
  readonly core: number;
  /** The same for all decisions, if all took as long. */
  readonly all: number;
}

/**
 * Decides a sample one by one, as one would write it down from the rules: the firewall is asked where the key admits.
 * @throws Error when the grants say something else
 */
export function tripleLoop(subject: Subject): TripleLoop {
  const { policy, domain } = subject;
  const below = randomNumbers(4);
  const some = <T>(all: readonly T[], most: number) => {
    return [...new Set(Array.from({ length: most }, () => all[below(all.length)] as T))];
  };
  const sample = { keys: some(policy.keys, KEYS), devices: some(policy.devices, DEVICES) };
  // Compiles patterns, and the loop itself: what is measured is the second time.
  decide(subject, sample);
  const before = process.cpuUsage();
  const { decided, admitted } = decide(subject, sample);
  const used = process.cpuUsage(before);
  const core = (used.user + used.system) / 1000;
  compare(decided, granted(subject, sample));
  const made = decisionsIn(sample, domain);
  return {
    sample: made,
    admitted,
    allowed: decided.size,
    core,
    all: (core * decisionsIn(policy, domain)) / made,
  };
}

type Sample = Pick<Subject["policy"], "keys" | "devices">;
/** The rules that allow, by what they allow; null where none matches. */
type Allowed = Map<string, AccessRule | null>;

const nameOf = (...parts: readonly string[]) => parts.join("\n");

/** Each key on each device, by each login name from each address. */
const decisionsIn = ({ keys, devices }: Sample, { logins, addresses }: AccessDomain): number =>
  keys.length * devices.length * logins.length * addresses.length;

function decide({ policy, domain }: Subject, { keys, devices }: Sample) {
  const decided: Allowed = new Map();
  let admitted = 0;
  for (const key of keys) {
    for (const device of devices) {
      for (const login of domain.logins) {
        for (const address of domain.addresses) {
          if (!keyAdmits(key, device, login)) continue;
          admitted += 1;
          const attempt = { deviceName: device.name, deviceTags: device.tags, login, sourceIp: address };
          const { allowed, rule } = firewallDecides(policy.rules, attempt);
          if (allowed) decided.set(nameOf(key.fingerprint, login, address, device.uid), rule);
        }
      }
    }
  }
  return { decided, admitted };
}

function granted({ policy, domain }: Subject, { keys, devices }: Sample): Allowed {
  const uids = new Set(devices.map(({ uid }) => uid));
  const found: Allowed = new Map();
  for (const { key, login, addresses, rule, devices } of grantsOf(new Access(policy, domain), keys)) {
    for (const uid of devices) {
      if (!uids.has(uid)) continue;
      for (const address of addresses) found.set(nameOf(key.fingerprint, login, address, uid), rule);
    }
  }
  return found;
}

function compare(decided: Allowed, granted: Allowed): void {
  const names = new Set([...decided.keys(), ...granted.keys()]);
  const wrong = [...names].filter((name) => decided.get(name) !== granted.get(name));
  if (wrong.length === 0) return;
  throw new Error(`The grants differ from the decisions in ${wrong.length}, the first: ${wrong[0]}`);
}
