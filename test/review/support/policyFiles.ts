import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { PolicyTestReport, PolicyTestResult } from "../../../provider/policyTests/results.ts";
import type { Member } from "../../../provider/resources/member/listing.ts";
import type { ApiKey } from "../../../provider/service/listings.ts";
import type { EvaluatedLogins, NamespacePolicy, SshIdentity } from "../../../sdk/policy/index.ts";
import { loginsToEvaluate } from "../../../sdk/policy/index.ts";
import { testFolder } from "../../support/folder.ts";
import { emptyNamespace, type NamespaceFixture } from "./namespace.ts";
import { accessRule } from "./policyObjects.ts";

const SCRIPT = fileURLToPath(new URL("./runPolicyTests.ts", import.meta.url));
/** The line with which every policy file of these tests begins. */
export const IMPORT = 'import { expect, policyTest } from "@gatehouse-access/provider/policy";';

const CREATED = "2026-01-01T00:00:00.000Z";
/** Returns a Unix time, in seconds: this number of days after the creation of the API keys. */
const daysLater = (days: number) => Date.parse(CREATED) / 1000 + days * 86_400;

const apiKey = (name: string, expiresIn: number) =>
  ({ name, role: "observer", expiresIn, createdAt: CREATED }) as ApiKey;

const member = (email: string, role: string) => ({ id: email, email, role, status: "accepted" }) as Member;

/** A policy with three devices and three keys. Production devices can be reached only from 10.0.0.0/8. */
export const smallPolicy: NamespacePolicy = {
  devices: [
    { uid: "uid-web", name: "web-01", tags: ["prod", "web"] },
    { uid: "uid-db", name: "db-01", tags: ["prod", "database"] },
    { uid: "uid-edge", name: "edge-01", tags: ["edge"] },
  ],
  keys: [
    { fingerprint: "aa:01", name: "Ana, production", username: "^(root|ana)$", filter: { tags: ["prod"] } },
    { fingerprint: "cc:02", name: "contractor-eva", username: "^support$", filter: { tags: ["edge"] } },
    { fingerprint: "dd:03", name: "deploy", username: "", filter: { hostname: "^web-" } },
  ],
  rules: [
    accessRule("1", { action: "allow", priority: 10, sourceIp: "^10\\.", filter: { tags: ["prod"] } }),
    accessRule("2", { filter: { tags: ["prod"] } }),
  ],
};

/** The input of policy tests as JSON, which a separate process reads. */
export interface PolicyTestInput {
  readonly fixture: Omit<NamespaceFixture, "formerOwners" | "identity"> & {
    /** The SSH keys of users are entries of a map. Omitted in legacy mode. */
    readonly identity?: Omit<NonNullable<NamespaceFixture["identity"]>, "userKeys"> & {
      readonly userKeys?: readonly (readonly [string, readonly SshIdentity[]])[];
    };
  };
  readonly evaluated: EvaluatedLogins;
}

/** Returns the input of policy tests: a policy, with an owner as member and one API key that expires. */
export function factsOf(
  policy: NamespacePolicy,
  more: Partial<PolicyTestInput["fixture"]> = {},
): PolicyTestInput {
  const { identity, ...legacy } = policy;
  const users = identity?.principals.filter(({ kind }) => kind === "user");
  const { formerOwners: _formerOwners, identity: _identity, ...fixture } = emptyNamespace("tenant");
  const isKnown = users?.every(({ keys }) => keys !== undefined);
  return {
    evaluated: loginsToEvaluate([policy]),
    fixture: {
      ...fixture,
      policy: legacy,
      enforcesExpiry: policy.members !== undefined,
      devices: policy.devices.map((one) => ({
        ...one,
        tags: [...one.tags],
        status: "accepted",
        identity: { mac: "" },
      })),
      members: users?.map(({ id, name, role }) => ({ ...member(name, role), id })) ??
        policy.members?.map(({ id, email, expiresAt }) => ({
          ...member(email, "observer"),
          id,
          ...(expiresAt !== undefined && { accessExpiresAt: expiresAt }),
        })) ?? [member("ana@example.org", "owner"), member("bob@example.org", "operator")],
      apiKeys: [apiKey("ci", daysLater(90))],
      ...(identity && {
        identity: {
          decides: true,
          policies: identity.policies,
          notEvaluated: [],
          serviceAccounts: identity.principals.filter(({ kind }) => kind !== "user"),
          ...(isKnown && { userKeys: (users ?? []).map(({ id, keys = [] }) => [id, keys] as const) }),
        },
      }),
      ...more,
    },
  };
}

/** A line of stdin of the process that runs policy tests. */
export interface PolicyRun {
  readonly folder: string;
  readonly facts: readonly PolicyTestInput[];
}

/** A line of stdout of that process. */
export interface PolicyRunAnswer {
  /** One report for each element of `facts`. */
  readonly reports: readonly PolicyTestReport[];
  /** The warnings and uncaught errors of the process since its previous answer. */
  readonly problems: readonly string[];
}

/**
 * Writes policy files to a new folder, and runs them once for each element of `facts`. Returns a report for each
 * element.
 */
export async function runFiles(
  files: Readonly<Record<string, string>>,
  ...facts: readonly PolicyTestInput[]
): Promise<readonly PolicyTestReport[]> {
  const folder = testFolder();
  for (const [name, source] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), source);
  }
  return runInTurn({ folder, facts: facts.length === 0 ? [factsOf(smallPolicy)] : facts });
}

/**
 * A process that runs policy tests. Its start takes longer than most tests, so the tests of a Vitest worker share it.
 * It ends with the worker, which closes its stdin.
 */
class Runner {
  readonly #child = spawn(process.execPath, [SCRIPT]);
  readonly #ended = once(this.#child, "close").then(() => undefined);
  readonly #lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  #stderr = "";

  constructor() {
    this.#child.stderr.setEncoding("utf8").on("data", (text) => {
      this.#stderr += text;
    });
    // A process that ends closes its stdin. `run` reports its end.
    this.#child.stdin.on("error", () => {});
  }

  /** @throws Error if the process ends, or if it reports a problem, such as a warning about a module without a type */
  async run(input: PolicyRun): Promise<readonly PolicyTestReport[]> {
    this.#child.stdin.write(`${JSON.stringify(input)}\n`);
    const { value: line } = await this.#lines.next();
    if (line === undefined) {
      runner = undefined;
      await this.#ended;
      throw new Error(`The process that runs policy tests ended: ${this.#stderr}`);
    }
    const { reports, problems } = JSON.parse(line) as PolicyRunAnswer;
    if (problems.length > 0) throw new Error(`The policy tests caused problems: ${problems.join("\n")}`);
    return reports;
  }
}

/** Undefined before the first run, and after the process has ended. */
let runner: Runner | undefined;
/** Settles when all previous runs have ended. */
let idle: Promise<unknown> = Promise.resolve();

/** Runs policy tests after all previous runs, in the same process if it still exists. */
function runInTurn(input: PolicyRun): Promise<readonly PolicyTestReport[]> {
  const answer = idle.then(() => {
    runner ??= new Runner();
    return runner.run(input);
  });
  idle = answer.catch(() => {});
  return answer;
}

const HEAD = "({ access, policy, members, apiKeys, evaluated }) => {";

/** Runs tests with these bodies. Each test is in a separate file, and its body starts on line 3. */
export async function runBodies(
  bodies: readonly string[],
  facts?: PolicyTestInput,
): Promise<PolicyTestResult[]> {
  const files = bodies.map((body, index): [string, string] => [
    `${String(index).padStart(3, "0")}.policy.ts`,
    `${IMPORT}\npolicyTest("it", ${HEAD}\n${body}\n});\n`,
  ]);
  const [report] = await runFiles(Object.fromEntries(files), ...(facts ? [facts] : []));
  return report?.tests.slice() ?? [];
}

/** Runs one test with this body, which starts on line 3 of the file. */
export async function runBody(body: string, facts?: PolicyTestInput): Promise<PolicyTestResult> {
  const [result] = await runBodies([body], facts);
  if (!result) throw new Error("no test ran");
  return result;
}

/** Returns a test body with one assertion on each line, from line 3 of the file on. */
export const bodyOf = (lines: readonly string[]) => lines.map((line) => `expect(${line};`).join("\n");

/** Checks that each assertion passes, and that the negation of each assertion fails. */
export async function expectHolding(
  assertions: readonly string[],
  facts = factsOf(smallPolicy),
): Promise<void> {
  const opposite = assertions.map((text) => text.replace(").", ").not.").replace(".not.not", ""));
  const [as, negated] = await runBodies([bodyOf(assertions), bodyOf(opposite)], facts);
  expect(as?.failures.map(({ assertion, message }) => `${assertion} ${message}`)).toEqual([]);
  expect(negated?.failures.map(({ line }) => line)).toEqual(assertions.map((_, index) => index + 3));
  expect([as?.ok, negated?.ok]).toEqual([true, false]);
}
