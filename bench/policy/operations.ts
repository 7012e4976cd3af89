import {
  Access,
  type AccessDomain,
  type AccessPolicy,
  accessChanges,
  domainOf,
  explain,
  grantsOf,
} from "../../sdk/dist/policy/index.js";
import { LargePolicy, type PolicySize, randomNumbers } from "../../test/policy/largePolicy.ts";

/** What is measured of one size. */
export interface Subject {
  readonly policy: AccessPolicy;
  readonly domain: AccessDomain;
  readonly changed: AccessPolicy;
}

/** One thing that is asked of a policy. */
export interface Operation {
  readonly title: string;
  /** Questions in one run; the time of one is what is shown. */
  readonly questions: number;
  /** @returns what came out, for the table */
  readonly run: (subject: Subject) => string;
}

const QUESTIONS = 100;

export function subjectOf(size: PolicySize): Subject {
  const large = new LargePolicy(size);
  return { policy: large.policy, domain: large.domain, changed: large.changed() };
}

/** Counts without keeping: what reads a generator to its end holds one of its items at a time. */
function count(items: Iterable<{ readonly devices: readonly string[] }>, what: string): string {
  let [all, uids] = [0, 0];
  for (const { devices } of items) {
    all += 1;
    uids += devices.length;
  }
  return `${all.toLocaleString("en")} ${what}, ${uids.toLocaleString("en")} uids`;
}

/** Questions about logins that are spread over the policy, the same ones in every run. */
function questionsOf({ policy, domain }: Subject) {
  const below = randomNumbers(3);
  const one = <T>(all: readonly T[]): T => all[below(all.length)] as T;
  return Array.from({ length: QUESTIONS }, () => ({
    key: one(policy.keys),
    device: one(policy.devices),
    login: one(domain.logins),
    address: one(domain.addresses),
  }));
}

/** By the names that the processes measuring them are given. */
export const OPERATIONS = {
  domain: {
    title: "`domainOf`",
    questions: 1,
    run: ({ policy }) => {
      const { logins, addresses } = domainOf([policy]);
      return `${logins.length} logins, ${addresses.length} addresses`;
    },
  },
  build: {
    title: "`new Access`",
    questions: 1,
    run: ({ policy, domain }) => {
      new Access(policy, domain);
      return "";
    },
  },
  grants: {
    title: "`new Access`, then all `grantsOf` it",
    questions: 1,
    run: ({ policy, domain }) => count(grantsOf(new Access(policy, domain)), "grants"),
  },
  found: {
    title: "the same over what `domainOf` finds",
    questions: 1,
    run: ({ policy }) => count(grantsOf(new Access(policy, domainOf([policy]))), "grants"),
  },
  changes: {
    title: "two `new Access`, then all `accessChanges`",
    questions: 1,
    run: ({ policy, domain, changed }) => {
      const uids = policy.devices.map(({ uid }) => uid);
      const [before, after] = [new Access(policy, domain, uids), new Access(changed, domain, uids)];
      return count(accessChanges(before, after), "changes");
    },
  },
  reach: {
    title: "`new Access`, then what one key reaches by one login name from one address",
    questions: QUESTIONS,
    run: (subject) => {
      const access = new Access(subject.policy, subject.domain);
      let uids = 0;
      for (const { key, login, address } of questionsOf(subject)) {
        const devices = access.admitted(key, login)?.new_intersection(access.verdict(login, address).open);
        uids += devices ? access.uidsOf(devices).length : 0;
      }
      return `${QUESTIONS} questions to one Access, ${uids.toLocaleString("en")} uids`;
    },
  },
  explain: {
    title: "`explain`",
    questions: QUESTIONS,
    run: (subject) => {
      let allowed = 0;
      for (const { key, device, login, address } of questionsOf(subject)) {
        const question = { fingerprint: key.fingerprint, login, address, uid: device.uid };
        if (explain(subject.policy, question).allowed) allowed += 1;
      }
      return `${QUESTIONS} questions, ${allowed} allowed`;
    },
  },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;
