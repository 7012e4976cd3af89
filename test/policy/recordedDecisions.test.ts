import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { LiveObject, Objects } from "../../provider/model/object.ts";
import { keysByUser } from "../../provider/namespace/readNamespace.ts";
import { policies as policySource } from "../../provider/resources/accessPolicy.ts";
import type { KindName } from "../../provider/resources/index.ts";
import { kindNamed } from "../../provider/resources/index.ts";
import { serviceAccounts as accountSource } from "../../provider/resources/serviceAccount.ts";
import type { Connection } from "../../provider/service/connection.ts";
import {
  fromWire,
  listAccessPolicies,
  listServiceAccounts,
  listSshIdentities,
  type Operation,
} from "../../sdk/index.ts";
import {
  type AccessDevice,
  evaluateAccess,
  explainIdentity,
  grantsOf,
  type IdentityExplanation,
  isLive,
  type NamespacePolicy,
  type Outcome,
  type Principal,
} from "../../sdk/policy/index.ts";
import { namespaceOf } from "../review/support/namespace.ts";
import { estate } from "../review/support/planned.ts";
import { TENANT } from "../review/support/steps.ts";

// Decisions of a server of version 0.27 about real SSH logins. The first logins test one rule each; the logins of the
// rounds are random, each round with random policies.

/** The objects that decide, as the server returned them right before a login. */
interface State {
  readonly state: number;
  readonly policies: unknown;
  readonly members: readonly { readonly id: string; readonly email: string; readonly role: string }[];
  readonly serviceAccounts: readonly { readonly id: string }[];
  /** The roles of service accounts; other service accounts have the role `service`. */
  readonly serviceRoles?: Readonly<Record<string, string>>;
  readonly identities: unknown;
  readonly devices: readonly AccessDevice[];
}

type Result = "allowed" | "denied" | "approval" | "reauthentication" | "access denied";

interface Login {
  readonly login: string;
  readonly state: number;
  readonly at: string;
  readonly fingerprint: string;
  readonly principal: string | null;
  readonly as: string;
  readonly device: string;
  readonly from: string;
  readonly result: Result;
}

/** A recorded login, and the answers of this project about it. */
interface Compared {
  readonly login: Login;
  readonly device: string;
  /** `not known` if a policy cannot be evaluated. */
  readonly explained: Result | "not known";
  /** The result of the evaluation of sets. Undefined without a live SSH key, since that evaluation has no keys. */
  readonly evaluated: Result | undefined;
  readonly explanation: IdentityExplanation | undefined;
}

/** The prefix of the logins with periods that do not fit into the server's columns, so that the server refuses them. */
const LONG_PERIOD = /^reauth period (?!2147483647)\d{10,}:/;

async function compareFile(file: string): Promise<Compared[]> {
  const lines = readFileSync(new URL(`../fixtures/${file}`, import.meta.url), "utf8")
    .trim()
    .split("\n");
  let state = {} as State;
  let policy: NamespacePolicy | undefined;
  const results: Compared[] = [];
  for (const line of lines) {
    const read = JSON.parse(line) as Login | Partial<State>;
    if ("login" in read) {
      expect(read.state).toBe(state.state);
      results.push(compare(policy, read));
      continue;
    }
    // A field that did not change is omitted.
    state = { ...state, ...read };
    policy = await policyOf(state);
  }
  return results;
}

/**
 * Converts the responses of the server to a policy, in the same way as a review. Undefined if a review would report that
 * the access is not known.
 */
async function policyOf(state: State): Promise<NamespacePolicy | undefined> {
  const { devices, members, serviceAccounts, serviceRoles = {} } = state;
  const all = ({ success }: Operation, items: unknown) => ({
    all: async () => fromWire(success.body as NonNullable<typeof success.body>, items) as never,
  });
  const accounts = serviceAccounts.map(({ id }) => ({
    id,
    role: serviceRoles[id] ?? "service",
    type: "service",
  }));
  const listings = new Map<unknown, object>([
    [policySource, all(listAccessPolicies, state.policies)],
    [accountSource, all(listServiceAccounts, serviceAccounts)],
  ]);
  const connection = {
    tenant: async () => ({
      listing: (source: unknown) => listings.get(source) ?? { all: async () => [] },
    }),
    namespaces: { find: async () => ({ members: [...members, ...accounts] }) },
  } as unknown as Connection;
  const objectsOf = async (kind: KindName): Promise<Objects> => {
    const { definition, reading, keyOf } = kindNamed(kind);
    const { objects = [] } = (await reading?.read(connection, TENANT)) ?? {};
    const live = objects.map((object): LiveObject => ({ ...object, definition }));
    return new Map(live.map((object) => [keyOf(object), object]));
  };
  const policies = await objectsOf("AccessPolicy");
  if ([...policies.values()].some((one) => kindNamed("AccessPolicy").decides?.obstacle?.(one)))
    return undefined;
  const users = members.map(({ id, email, role }) => ({ id, email, role, status: "accepted" }));
  const { userKeys: _none, ...identity } = NO_IDENTITY;
  const userKeys = keysByUser(await all(listSshIdentities, state.identities).all());
  const namespace = namespaceOf({
    ...estate,
    tenant: TENANT,
    members: users as never,
    identity: { ...identity, userKeys },
    policy: { devices: [], keys: [], rules: [] },
  });
  const objects = new Map([
    ...namespace.objects,
    ["AccessPolicy", policies] as const,
    ["ServiceAccount", await objectsOf("ServiceAccount")] as const,
  ]);
  return { devices, keys: [], rules: [], identity: namespace.with({ objects }).policy.identity };
}

const NO_IDENTITY = {
  decides: true,
  policies: [],
  serviceAccounts: [],
  userKeys: undefined,
  notEvaluated: [],
};

const wordOf = (outcome: Outcome): Result => {
  if (outcome === "unknown") throw new Error("the recording contains the SSH keys of all principals");
  return outcome === "allow" ? "allowed" : outcome === "deny" ? "denied" : outcome;
};

function compare(policy: NamespacePolicy | undefined, login: Login): Compared {
  if (!policy)
    return { login, device: "web1", explained: "not known", evaluated: undefined, explanation: undefined };
  const { devices, identity } = policy;
  if (!identity) throw new Error("the recorded namespace is in identity mode");
  const at = new Date(login.at);
  const { as, from: address, device: uid, fingerprint } = login;
  const question = { subject: fingerprint, login: as, address, uid, at };
  const explanation = explainIdentity({ devices, identity }, question);
  const { outcome, deniedBy, principal, device } = explanation;
  expect(principal?.id ?? null, login.login).toBe(login.principal);
  const key = principal?.keys?.find((one) => one.fingerprint === fingerprint);
  const isEvaluated = principal && key && isLive(key, at);
  return {
    login,
    device: device.name,
    explanation,
    explained: deniedBy === "policies" ? "access denied" : wordOf(outcome),
    evaluated: isEvaluated ? evaluate(policy, login, { ...principal, keys: [key] }, at) : undefined,
  };
}

function evaluate(
  policy: NamespacePolicy,
  { as, from, device }: Login,
  principal: Principal,
  at: Date,
): Result {
  const access = evaluateAccess(policy, { logins: [as], addresses: [from] }, undefined, at);
  const place = access.uids.indexOf(device);
  const { shares } = access.verdict(as, from, principal);
  const decision = shares.find(({ devices }) => devices.has(place))?.reason.outcome ?? "deny";
  const isAdmitted = access.admitted(principal, as)?.has(place);
  const outcome = isAdmitted ? access.outcomeOf(decision, principal) : "deny";
  const grants = [...grantsOf(access, [principal])].filter(({ devices }) => devices.includes(device));
  expect(grants.map((grant) => grant.outcome)).toEqual(outcome === "deny" ? [] : [outcome]);
  return wordOf(outcome);
}

const compared = (
  await Promise.all(
    ["recorded-0.27-decisions.jsonl", "recorded-0.27-decisions-service-role.jsonl"].map(compareFile),
  )
).flat();

it("explains each login as the server decided it, or reports that the access is not known", () => {
  const differing = compared.filter(({ login, explained }) => login.result !== explained);
  expect(differing.length).toBeGreaterThan(5);
  for (const { login, explained } of differing) {
    expect(explained, login.login).toBe("not known");
    expect(login.login).toMatch(LONG_PERIOD);
  }
});

it("evaluates sets of logins as the server decided, except that each re-authentication is outdated", () => {
  const evaluated = compared.filter((one) => one.evaluated !== undefined);
  let recent = 0;
  for (const { login, evaluated: result, explanation } of evaluated) {
    const isRecent = login.result === "allowed" && explanation?.reauthPeriod !== undefined;
    recent += Number(isRecent);
    const refused = login.result === "access denied" ? "denied" : login.result;
    expect(result, login.login).toBe(isRecent ? "reauthentication" : refused);
  }
  expect(recent).toBeGreaterThan(10);
  expect(evaluated.length).toBeGreaterThan(600);
});

it("answers each recorded login as the table lists", async () => {
  const isRandom = ({ login }: Compared) => login.login.startsWith("round ");
  const setsOf = ({ evaluated }: Compared) => evaluated ?? "–";
  const row = (cells: readonly unknown[]) => `| ${cells.join(" | ")} |`;
  const codeOf = (text: string) => `\`${text.replaceAll("|", "\\|")}\``;
  const cases = compared
    .filter((one) => !isRandom(one))
    .map((one) => {
      const { login, device, explained } = one;
      const name = codeOf(login.login);
      return row([name, codeOf(`${login.as}@${device}`), login.from, login.result, explained, setsOf(one)]);
    });
  const groups = Map.groupBy(compared.filter(isRandom), (one) =>
    row([one.login.result, one.explained, setsOf(one)]),
  );
  const results = Map.groupBy(compared, ({ login }) => login.result);
  const counts = [...results].sort().map(([result, logins]) => {
    const equal = logins.filter(({ login, explained }) => login.result === explained);
    return row([result, logins.length, equal.length]);
  });
  const table = [
    "# Decisions of a server of version 0.27 about SSH logins\n",
    "`recordedDecisions.test.ts` writes this file. The evaluation is the answer for one login, the set evaluation is the",
    "answer of reviews, in which each re-authentication is outdated. Only logins with a live SSH key have the latter.",
    "`not known`: the server fails for a reauth_period above 2147483647, so such policies are not evaluated.\n",
    "## Results\n",
    row(["Server", "Logins", "Equal evaluation"]),
    row(["---", "---", "---"]),
    ...counts,
    "\n## Random policies and logins\n",
    row(["Server", "Evaluation", "Set evaluation", "Logins"]),
    row(["---", "---", "---", "---"]),
    ...[...groups].map(([cells, logins]) => `${cells} ${logins.length} |`).sort(),
    "\n## Single rules\n",
    row(["Case", "Login", "Address", "Server", "Evaluation", "Set evaluation"]),
    row(["---", "---", "---", "---", "---", "---"]),
    ...cases,
    "",
  ].join("\n");
  await expect(table).toMatchFileSnapshot("recordedDecisions.table.md");
});
