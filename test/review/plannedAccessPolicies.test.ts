import { describe, expect, test } from "vitest";
import type { Shown } from "../../provider/engine/index.ts";
import { withAdoptedNamespaces } from "../../provider/plan/adoptedNamespaces.ts";
import { newNamespacesOf } from "../../provider/plan/planned/notes.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { parseSshPublicKey, sha256Fingerprint } from "../../sdk/contract/index.ts";
import type { AccessPolicy } from "../../sdk/policy/index.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { identityFixture, namespaceAfter } from "./support/namespace.ts";
import { estate, lineC } from "./support/planned.ts";
import { accessPolicy, serviceAccount, sshKey } from "./support/policyObjects.ts";
import { creation, planOf, step, TENANT, urnOf } from "./support/steps.ts";

const policy = accessPolicy("Owner access", {
  id: "p1",
  subject: { type: "user", value: "user-owner" },
  filter: { tags: [] },
  logins: ["*"],
});
const fingerprint = sha256Fingerprint(parseSshPublicKey(lineC));
const account = serviceAccount("deploy", { id: "s1", keys: [sshKey("", { fingerprint })] });
const identity = identityFixture({ policies: [policy], serviceAccounts: [account] });
const inputs = { name: "Owner access", filter: { hostname: ".*" }, logins: ["*"] };
const owner = { ...inputs, subject: { user: "user-owner" } };

type Steps = Parameters<typeof planOf>;
const planned = (...steps: Steps) =>
  namespaceAfter({ ...estate, identity }, planOf(...steps), { creatorRole: "administrator" });

/** Returns the creation of a policy whose subject is unknown. @param referenced the resources in the subject */
function withUnknownUser(...referenced: string[]) {
  const created = creation("AccessPolicy", "it", { ...inputs, subject: { user: "[unknown]" } });
  const { after } = created;
  if (!after) throw new Error("the step creates no policy");
  return { ...created, after: { ...after, references: { subject: referenced } } };
}

describe("AccessPolicy", () => {
  test("the adoption of an equal policy creates no policy, and manages the policy", () => {
    const { policy, managed } = planned(creation("AccessPolicy", "owner", { ...owner, adopt: true }));
    expect(policy.identity?.policies.map(({ id }) => id)).toEqual(["p1"]);
    expect(managed).toEqual([{ kind: "AccessPolicy", id: "p1", urn: urnOf("AccessPolicy", "owner") }]);
  });

  test.each<[string, Record<string, Shown>]>([
    ["without adopt", owner],
    ["of a different policy", { ...owner, logins: ["root"], adopt: true }],
  ])("a create %s adds a policy", (_, after) => {
    const { policy } = planned(creation("AccessPolicy", "owner", after));
    expect(policy.identity?.policies.map(({ id }) => id)).toEqual(["p1", "owner (new)"]);
  });

  const newAccount = creation("ServiceAccount", "ci", { name: "ci", data: sshKeyLine("ci"), validDays: 30 });
  const urn = urnOf("ServiceAccount", "ci");

  test("an unknown subject is the new account to which alone it refers", () => {
    const { policy, notEvaluated } = planned(newAccount, withUnknownUser(urn));
    expect(notEvaluated).toEqual([]);
    const created = policy.identity?.principals.find(({ name }) => name === "ci");
    expect(created?.id).toContain(urn);
    expect(policy.identity?.policies.at(-1)?.subject).toEqual({ type: "user", value: created?.id });
  });

  test.each<[string, string[]]>([
    ["without references", []],
    ["with a reference to another resource", [urnOf("Namespace", "dev")]],
    ["with a further reference", [urn, urnOf("Namespace", "dev")]],
  ])("an unknown subject %s is not evaluated", (_, referenced) => {
    const { policy, notEvaluated } = planned(newAccount, withUnknownUser(...referenced));
    expect(notEvaluated).toEqual([expect.stringContaining("its subject is secret or unknown")]);
    expect(policy.identity?.policies).toHaveLength(1);
  });

  test.each<[string, Shown]>([
    ["the whole subject", "[unknown]"],
    ["the role", { role: "[unknown]" }],
    ["allMembers", { allMembers: "[unknown]" }],
    ["a secret user", { user: "[secret]" }],
  ])("%s, if unknown or secret, is not evaluated", (_, subject) => {
    const created = creation("AccessPolicy", "it", { ...inputs, subject });
    const references = { subject: [urn] };
    const referring = { ...created, ...(created.after && { after: { ...created.after, references } }) };
    for (const one of [created, ...(subject === "[unknown]" ? [referring] : [])]) {
      const { policy, notEvaluated } = planned(newAccount, one);
      expect(notEvaluated).toEqual([expect.stringContaining("its subject is secret or unknown")]);
      expect(policy.identity?.policies).toHaveLength(1);
    }
  });
});

test("the replacement of a ServiceAccount with adopt creates another account", () => {
  const after = { name: "deploy", data: lineC, validDays: -1, adopt: true };
  const { policy } = planned(
    step("replace", "ServiceAccount", "deploy", {
      id: `${TENANT}/s1`,
      after,
      before: { inputs: after, outputs: { ...after, tenant: TENANT, accountId: "s1" } },
    }),
  );
  const accounts = policy.identity?.principals.filter(({ kind }) => kind === "service account") ?? [];
  expect(accounts.map(({ id, name }) => [id === "s1", name])).toEqual([[false, "deploy"]]);
});

describe("a change to identity mode", () => {
  const legacyState = { ...identity, decides: false, policies: [] };
  const change = (settings: Shown) =>
    step("update", "Namespace", "fleet", {
      id: TENANT,
      after: { name: "fleet", settings },
      before: { inputs: { name: "fleet" }, outputs: { name: "fleet", tenant: TENANT } },
    });
  const toIdentity = change({ sshAccessMode: "identity" });
  const created = creation("AccessPolicy", "root", { ...owner, logins: ["root"] });
  const policiesAfter = (...steps: Steps) =>
    namespaceAfter({ ...estate, identity: legacyState }, planOf(...steps)).policy.identity?.policies.map(
      ({ name, logins }) => [name, logins],
    );

  test("creates the policy of the owner, unless it depends on another policy", () => {
    expect(policiesAfter(toIdentity)).toEqual([["Owner access", ["*"]]]);
    expect(policiesAfter(created, toIdentity)).toHaveLength(2);
    const { after } = toIdentity;
    const depending = { ...toIdentity, after: after && { ...after, dependsOn: [created.urn] } };
    expect(policiesAfter(created, depending as Steps[number])).toEqual([["Owner access", ["root"]]]);
  });

  test.each<[string, Shown]>([
    ["an unknown mode", { sshAccessMode: "[unknown]" }],
    ["unknown settings", "[unknown]"],
  ])("is not evaluated with %s", (_, settings) => {
    const { notEvaluated } = namespaceAfter({ ...estate, identity: legacyState }, planOf(change(settings)));
    expect(notEvaluated).toEqual([expect.stringContaining("its access mode is secret or unknown")]);
  });

  test("reports lists that could not be read, and members without which no access is known", () => {
    const unread = { ...legacyState, notEvaluated: ["the SSH keys of users could not be read"] };
    const { notEvaluated, accessUnknown } = namespaceAfter(
      { ...estate, identity: unread },
      planOf(toIdentity),
    );
    expect([notEvaluated, accessUnknown]).toEqual([unread.notEvaluated, undefined]);
    const blind = namespaceAfter({ ...estate, members: undefined, identity: unread }, planOf(toIdentity));
    expect(blind.accessUnknown).toContain("the members could not be read");
    expect(blind.notEvaluated).toContain(blind.accessUnknown);
  });

  test("leaves the access unknown if an object cannot be evaluated or could not be read", () => {
    const later = { ...policy, subject: { type: "group", value: "g1" } } as unknown as AccessPolicy;
    const strange = namespaceAfter(
      { ...estate, identity: { ...legacyState, policies: [later] } },
      planOf(toIdentity),
    );
    expect(strange.accessUnknown).toContain("the access policy Owner access has a subject");
    expect(strange.notEvaluated).toContain(strange.accessUnknown);
    const unread = { ...estate, identity: legacyState, unreadKinds: ["ServiceAccount"] as const };
    const blind = namespaceAfter(unread, planOf(toIdentity));
    expect(blind.accessUnknown).toContain("service accounts could not be read");
    expect(blind.notEvaluated).toContain(blind.accessUnknown);
  });
});

test("the adoption of a ServiceAccount manages the account with the same key", () => {
  const after = { name: "deploy", data: lineC, validDays: -1, adopt: true };
  const { policy, managed } = planned(creation("ServiceAccount", "deploy", after));
  expect(policy.identity?.principals.filter(({ kind }) => kind === "service account")).toEqual([account]);
  expect(managed).toMatchObject([{ kind: "ServiceAccount", id: "s1" }]);
});

describe("the adoption of a Namespace", () => {
  const adopting = (sshAccessMode: string) =>
    creation("Namespace", "fleet", { name: "fleet", settings: { sshAccessMode }, adopt: "overwrite" });
  /** A connection to a service with the namespace of these tests. */
  const connection = {
    client: {
      async *iterate() {
        yield { name: "fleet", tenantId: TENANT, members: [{}] };
      },
    },
  } as unknown as Connection;
  const legacy = { ...estate, identity: { ...identity, decides: false } };

  test("evaluates the change of the access mode", async () => {
    const plan = await withAdoptedNamespaces(connection, planOf(adopting("identity")));
    const { policy, notes, managed } = namespaceAfter(legacy, plan);
    expect(policy.identity?.policies.map(({ id }) => id)).toEqual(["p1"]);
    expect([notes, managed]).toMatchObject([[], [{ kind: "Namespace", id: TENANT }]]);
  });

  test("evaluates the resources in the namespace", async () => {
    const created = creation("AccessPolicy", "root", { ...owner, logins: ["root"], tenant: "[unknown]" });
    const references = { tenant: [urnOf("Namespace", "fleet")] };
    const inside = { ...created, ...(created.after && { after: { ...created.after, references } }) };
    const plan = await withAdoptedNamespaces(connection, planOf(adopting("identity"), inside));
    const { policy, notes } = namespaceAfter(legacy, plan);
    expect(policy.identity?.policies.map(({ logins }) => logins)).toEqual([["*"], ["root"]]);
    expect(notes).toEqual([]);
    expect(newNamespacesOf(plan)).toEqual({ namespaces: 0, resources: 0 });
    expect(newNamespacesOf(planOf(adopting("identity"), inside))).toEqual({ namespaces: 1, resources: 1 });
  });
});
