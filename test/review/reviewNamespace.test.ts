import { describe, expect, test } from "vitest";
import type { Step } from "../../provider/engine/index.ts";
import type { NamespaceReviewOptions } from "../../provider/review/reviewNamespace.ts";
import { emptyNamespace } from "./support/namespace.ts";
import { namespaceReview } from "./support/namespaceReview.ts";
import { workload } from "./support/planned.ts";
import { planOf } from "./support/steps.ts";

const HOME = "00000000-0000-4000-8000-000000000001";
const OTHER = "00000000-0000-4000-8000-000000000002";

type Inputs = NonNullable<Step["after"]>["inputs"];

function created(
  kind: string,
  name: string,
  inputs: Inputs,
  types = "pulumi-nodejs:dynamic/gatehouse:",
): Step {
  const type = types + kind;
  const urn = `urn:pulumi:test::fleet::${type}::${name}`;
  return { op: "create", urn, type, name, fields: [], after: { inputs, outputs: inputs } };
}

const review = (tenant: string, steps: Step[], more: Partial<NamespaceReviewOptions> = {}) =>
  namespaceReview(emptyNamespace(tenant), planOf(...steps), { home: HOME, ...more });

describe.each([
  ["dynamic resources", "pulumi-nodejs:dynamic/gatehouse:"],
  ["the plugin", "gatehouse:index:"],
])("a plan for several namespaces, with %s", (_, types) => {
  const steps = [
    created("Member", "mia", { tenant: OTHER, email: "mia@example.org", role: "observer" }, types),
    created("Namespace", "n", { name: "trials" }, types),
  ];

  test("lists the missing permissions of each namespace", async () => {
    const actor = { kind: "user", role: "observer" } as const;
    expect((await review(HOME, steps, { actor })).missingPermissions).toEqual([]);
    expect((await review(OTHER, steps, { actor })).missingPermissions).toMatchObject([
      { operation: "inviteMember", resources: ["mia"] },
    ]);
  });

  test("reports the findings about a new namespace once", async () => {
    const actor = { kind: "apikey", role: undefined } as const;
    const [home, other] = [await review(HOME, steps, { actor }), await review(OTHER, steps, { actor })];
    expect(home.missingPermissions).toMatchObject([{ operation: "createNamespace", resources: ["n"] }]);
    expect(home.unknown).toEqual([]);
    expect(other.missingPermissions).toMatchObject([{ operation: "inviteMember" }]);
    expect(other.notEvaluated).toEqual([]);
    expect(other.unknown).toEqual([
      expect.stringContaining("whether mia@example.org has an account on the service"),
    ]);
  });
});

describe("API keys that the change creates", () => {
  test("are checked as new objects, unlike new invitations, which always expire soon", async () => {
    const forEver = created("ApiKey", "ci", { name: "ci", role: "administrator", validDays: -1 });
    const invited = created("Member", "mia", { email: "mia@example.org", role: "observer" });
    const { lint } = await review(HOME, [forEver, invited]);
    expect(lint).toMatchObject([{ rule: "api-key-without-expiry", isNew: true, object: { name: "ci" } }]);
  });

  test("have the role of their creator, and are omitted if that role is unknown", async () => {
    const key = created("ApiKey", "ci", { name: "ci", validDays: -1 });
    expect((await review(HOME, [key])).lint).toMatchObject([{ rule: "api-key-without-expiry" }]);
    const unknown = await review(HOME, [key], { actor: { kind: "user", role: undefined } });
    expect(unknown.lint).toEqual([]);
    expect(unknown.notEvaluated).toEqual([
      'API key "ci" will have the role of its creator, which is unknown; declare the role',
    ]);
  });

  test("expire as the program declares", async () => {
    const [soon, late] = [30, 60].map((validDays) =>
      created("ApiKey", `in${validDays}`, { name: `in${validDays}`, role: "operator", validDays }),
    ) as [Step, Step];
    const { lint } = await review(HOME, [soon, late], { expiresWithin: 45 });
    expect(lint).toMatchObject([{ rule: "expires-soon", object: { name: "in30" } }]);
  });
});

describe("a plan compared with a base plan", () => {
  const steps = (validDays: number, role = "observer") => [
    created("Member", "mia", { email: "mia@example.org", role }),
    created("ApiKey", "ci", { name: "ci", role: "operator", validDays }),
  ];

  test("reports no change and no new finding for content that is in both plans", async () => {
    const base = planOf(...steps(30));
    const { members, lint } = await review(HOME, steps(30), { base, expiresWithin: 45 });
    expect(members).toEqual([]);
    expect(lint).toMatchObject([{ rule: "expires-soon", isNew: false }]);
  });

  test("reports changes and new findings for content that differs between the plans", async () => {
    const base = planOf(...steps(60));
    const { members, lint } = await review(HOME, steps(30, "operator"), { base, expiresWithin: 45 });
    expect(members).toEqual([{ change: "role", email: "mia@example.org", from: "observer", to: "operator" }]);
    expect(lint).toMatchObject([{ rule: "expires-soon", isNew: true }]);
  });

  test("reports values that are unknown only in the base plan as unknown in the base plan", async () => {
    const secret = created("Member", "mia", { email: "mia@example.org", role: "[secret]" });
    const { unknown } = await review(HOME, steps(30), { base: planOf(secret) });
    expect(unknown).toEqual([
      expect.stringContaining("whether mia@example.org has an account on the service"),
      expect.stringMatching(/^at the base revision: Member "mia": its role is secret/),
    ]);
    expect((await review(HOME, [secret], { base: planOf(secret) })).notEvaluated).toEqual([
      expect.stringMatching(/^Member "mia": /),
    ]);
  });
});

describe("trusted workloads", () => {
  const issuer = "https://token.actions.githubusercontent.com";
  const inputs = (role: string, claims: Record<string, string>) => ({
    name: "deploy",
    issuer,
    audience: "gatehouse",
    role,
    claims,
    singleUse: true,
  });
  const main = { repository: "acme/fleet", ref: "refs/heads/main" };

  test("that a plan adds or changes are part of the review", async () => {
    const added = created("TrustedWorkload", "deploy", inputs("operator", main));
    const { workloads } = await review(HOME, [added]);
    const accepts = { issuer, audience: "gatehouse", claims: main, maxSessionMinutes: 60, singleUse: true };
    expect(workloads).toEqual([{ change: "added", name: "deploy", to: "operator", accepts }]);
    const changed = created("TrustedWorkload", "deploy", inputs("administrator", main));
    const compared = await review(HOME, [changed], { base: planOf(added) });
    expect(compared.workloads).toEqual([
      { change: "altered", name: "deploy", from: "operator", to: "administrator", accepts },
    ]);
    const wider = created("TrustedWorkload", "deploy", inputs("operator", { repository: "acme/*" }));
    expect((await review(HOME, [wider], { base: planOf(added) })).workloads).toMatchObject([
      {
        change: "altered",
        from: "operator",
        to: "operator",
        accepts: { claims: { repository: "acme/*" } },
        acceptedBefore: accepts,
      },
    ]);
    expect((await review(HOME, [added], { base: planOf(added) })).workloads).toEqual([]);
  });

  test("are checked by lint, and the order of claims is no new finding", async () => {
    const open = created("TrustedWorkload", "deploy", inputs("observer", { repository: "*/fleet" }));
    expect((await review(HOME, [open])).lint).toMatchObject([
      { rule: "wide-workload", severity: "error", isNew: true, object: { name: "deploy" } },
    ]);
  });

  test("that no program declares widen access", async () => {
    const trustedWorkloads = [workload];
    const found = await namespaceReview(emptyNamespace(HOME, { trustedWorkloads }), planOf());
    expect(found.workloads).toEqual([]);
    expect(found.coverage).toMatchObject({
      managed: 0,
      total: 1,
      unmanaged: [{ kind: "TrustedWorkload", id: workload.id, name: "deploy" }],
    });
    expect(found.coverage.unmanaged[0]?.widens).toEqual([
      `gives the role operator to tokens of ${issuer} for gatehouse with ref "refs/heads/main" and repository "acme/fleet", up to 60 minutes, used once`,
    ]);
  });

  test("that cannot be read block the review", async () => {
    const unread = emptyNamespace(HOME, { trustedWorkloads: undefined });
    expect((await namespaceReview(unread, planOf())).notEvaluated).toEqual([
      "trusted workloads could not be read; unmanaged workloads cannot be detected",
    ]);
  });
});
