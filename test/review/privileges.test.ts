import { describe, expect, test } from "vitest";
import type { InstallKeyFixture, NamespaceFixture } from "./support/namespace.ts";
import { reviewed, reviewedBy } from "./support/namespaceReview.ts";
import { apiKey, estate, lineC, member, ruleState, SETTINGS, workload } from "./support/planned.ts";
import { accessKey, accessRule } from "./support/policyObjects.ts";
import { creation, managing, step, TENANT } from "./support/steps.ts";

/** A namespace whose server ends access, with one key of `ana`, who is not a member. */
const orphaned = (more: Partial<NamespaceFixture> = {}): NamespaceFixture => ({
  ...estate,
  enforcesExpiry: true,
  policy: {
    ...estate.policy,
    rules: [],
    keys: [accessKey("ana-laptop", { fingerprint: "aa", owner: "user-ana" })],
    members: [{ id: "user-owner", email: "owner@example.com", isAccepted: true }],
  },
  ...more,
});

const anaReturns = creation("Member", "ana", { email: "Ana@example.com", role: "observer" });

describe("a user who becomes a member again", () => {
  test("regains the access of the owned keys, if the service returns the owner's address", async () => {
    const live = orphaned({ formerOwners: new Map([["ana@example.com", "user-ana"]]) });
    const { review, title } = await reviewed(live, anaReturns);
    expect(review.notEvaluated).toEqual([]);
    expect(review.access).toMatchObject([
      { change: "gained", keys: [{ name: "ana-laptop" }], anyLogin: true },
    ]);
    expect(title).toContain("1 key gains access");
  });

  test("regains the access of the owned keys, if the state contains the owner's id", async () => {
    const values = {
      inputs: {
        owner: "ana@example.com",
        data: lineC,
        name: "ana-laptop",
        filter: { hostname: ".*" },
        username: "",
      },
      outputs: { ownerId: "user-ana", fingerprint: "aa" },
    };
    const same = step("same", "PublicKey", "ana", {
      before: values,
      after: values.inputs,
      id: `${TENANT}/aa`,
    });
    const { review } = await reviewed(orphaned(), anaReturns, same);
    expect(review.access).toMatchObject([{ change: "gained", keys: [{ name: "ana-laptop" }] }]);
  });

  test("blocks the review if nothing shows whose keys the former members' keys are", async () => {
    const { review, title, blocking } = await reviewed(orphaned(), anaReturns);
    expect(review.notEvaluated).toEqual([
      expect.stringMatching(/^the keys ana-laptop belong to former members, and may admit logins again/),
    ]);
    expect(title).toMatch(/^## Blocked: /);
    expect(blocking).toHaveLength(1);
  });

  test("does not block the review if the keys of former members belong to other users", async () => {
    const live = orphaned({ formerOwners: new Map([["bea@example.com", "user-ana"]]) });
    const { review } = await reviewed(live, anaReturns);
    expect(review).toMatchObject({ access: [], notEvaluated: [] });
  });

  test("keeps the access of the owned keys if the membership is replaced", async () => {
    const members = [member("owner", "owner"), { ...member("ana", "operator"), id: "user-ana" }];
    const live = orphaned({ members });
    const after = { email: "ana@example.com", role: "operator" };
    const state = { ...managing("Member", "user-ana"), after };
    const { policy } = live;
    const withAna = {
      ...policy,
      members: [...(policy.members ?? []), { id: "user-ana", email: "ana@example.com", isAccepted: true }],
    };
    const { review } = await reviewed({ ...live, policy: withAna }, step("replace", "Member", "ana", state));
    expect(review).toMatchObject({ access: [], members: [] });
  });
});

/** Returns an API key that the owner created, and the sides of a step whose resource manages this key. */
const ownersKey = (name: string, role: string) => ({ ...apiKey(name, role), createdBy: "user-owner" });
const managingKey = (name: string, role: string) =>
  managing("ApiKey", name, { role, createdAt: `created ${name}`, createdBy: "user-owner" });

describe("a role above observer", () => {
  const role = "administrator";

  test("of a trusted workload is in the title, also if only the accepted tokens change", async () => {
    const { id, ...settings } = workload;
    const added = creation("TrustedWorkload", "ci", { ...settings, name: "ci", role });
    expect((await reviewed(estate, added)).title).toContain(
      "gained privileges: role administrator: workload ci",
    );
    const state = managing("TrustedWorkload", id);
    const claims = { ...settings.claims, ref: "refs/heads/other" };
    const changed = step("update", "TrustedWorkload", "d", { ...state, after: { ...settings, claims } });
    expect((await reviewed(estate, changed)).title).toContain(
      `gained privileges: role ${settings.role}: workload ${settings.name}`,
    );
  });

  test("of an API key is in the title, and an administrator's key without an end blocks", async () => {
    const key = (validDays: number) => creation("ApiKey", "deploy", { name: "deploy", role, validDays });
    const ending = await reviewed(estate, key(30));
    expect(ending.title).toMatch(
      /^## OK: .*\(1 API key change; gained privileges: role administrator: API key deploy\)/,
    );
    expect(ending.review.apiKeys).toMatchObject([{ change: "added", name: "deploy", to: role }]);
    const endless = await reviewed(estate, key(-1));
    expect(endless.title).toMatch(/^## Blocked: /);
    expect(endless.blocking).toEqual([expect.stringContaining("has the role administrator and no expiry")]);
  });

  test("of an API key that gets a higher role is in the title", async () => {
    const live = { ...estate, apiKeys: [ownersKey("ci", "observer")] };
    const after = { name: "ci", role: "operator", validDays: 30 };
    const raised = step("update", "ApiKey", "ci", { ...managingKey("ci", "observer"), after });
    const { title, review } = await reviewed(live, raised);
    expect(review.apiKeys).toEqual([{ change: "role", name: "ci", from: "observer", to: "operator" }]);
    expect(title).toContain("gained privileges: role operator: API key ci");
  });

  test("that a rotation keeps is no gain, unless the new key is valid for longer", async () => {
    const day = 86_400;
    const now = Math.floor(Date.now() / 1000);
    const createdAt = new Date((now - 29 * day) * 1000).toISOString();
    const identity = { createdAt, createdBy: "user-owner" };
    const state = managing("ApiKey", "ci", { role: "operator", ...identity });
    const key = { ...apiKey("ci", "operator"), ...identity, expiresIn: now + day };
    const live = { ...estate, apiKeys: [key] };
    const rotated = (validDays: number) => {
      const after = { name: "ci", role: "operator", validDays, overlap: 1 };
      return step("replace", "ApiKey", "ci", { ...state, after });
    };
    const { title, review } = await reviewed(live, rotated(30));
    expect(review.apiKeys).toMatchObject([
      { change: "replaced", name: "ci", from: "operator", to: "operator" },
    ]);
    expect(title).not.toContain("gained");
    for (const validDays of [60, -1])
      expect((await reviewed(live, rotated(validDays))).title).toContain("role operator: API key ci");
  });

  test("of a member is in the title if it is new, higher or prolonged", async () => {
    const promoted = { email: "bob@example.com", role };
    const state = { ...managing("Member", "user-bob"), after: promoted };
    const update = step("update", "Member", "bob", state);
    const gained = "gained privileges: role administrator: member bob&#64;example.com";
    expect((await reviewed(estate, update)).title).toContain(gained);
    const admin = { ...member("bob", role), accessExpiresAt: "2031-01-01T00:00:00.000Z" };
    const ending = { ...estate, enforcesExpiry: true, members: [member("owner", "owner"), admin] };
    expect((await reviewed(ending, update)).title).toContain(gained);
    const shorter = { ...promoted, expiresAt: "2030-06-01T00:00:00Z" };
    const shortened = step("update", "Member", "bob", { ...state, after: shorter });
    expect((await reviewed(ending, shortened)).title).not.toContain("gained");
    const observer = step("update", "Member", "bob", { ...state, after: { ...promoted, role: "observer" } });
    expect((await reviewed(ending, observer)).title).not.toContain("gained");
  });

  test("that an API key gets from an unknown creator blocks the review", async () => {
    const created = creation("ApiKey", "deploy", { name: "deploy", validDays: 30 });
    const observed = await reviewedBy("observer", estate, created);
    expect(observed.blocking).toEqual([
      expect.stringContaining('API key "deploy" will have the role of its creator, which is unknown'),
    ]);
    expect((await reviewed(estate, created)).title).toContain("role owner: API key deploy");
  });

  test("of a new API key with the name of a key that keeps working is a gain", async () => {
    const live = { ...estate, apiKeys: [ownersKey("ci", role)] };
    const renamed = step("update", "ApiKey", "old", {
      ...managingKey("ci", role),
      after: { name: "ci2", role, validDays: 30 },
    });
    const added = creation("ApiKey", "ci", { name: "ci", role, validDays: 30 });
    const { review, title } = await reviewed(live, renamed, added);
    expect(review.apiKeys).toMatchObject([{ change: "added", name: "ci", to: role }]);
    expect(title).toContain("role administrator: API key ci");
  });

  test("of an API key that has expired is no gain", async () => {
    const expired = { ...ownersKey("ci", "observer"), expiresIn: 1_600_000_000 };
    const after = { name: "ci", role, validDays: 30 };
    const raised = step("update", "ApiKey", "ci", { ...managingKey("ci", "observer"), after });
    const { review, title } = await reviewed({ ...estate, apiKeys: [expired] }, raised);
    expect(review.apiKeys).toEqual([]);
    expect(title).not.toContain("gained");
  });

  test("of a membership that has ended is no gain, until a change prolongs the membership", async () => {
    const ended = { ...member("bob", "operator"), accessExpiresAt: "2020-01-01T00:00:00.000Z" };
    const live = { ...estate, enforcesExpiry: true, members: [member("owner", "owner"), ended] };
    const raisedUntil = (expiresAt: string) => {
      const after = { email: "bob@example.com", role, expiresAt };
      return step("update", "Member", "bob", { ...managing("Member", "user-bob"), after });
    };
    expect((await reviewed(live, raisedUntil("2020-01-01T00:00:00Z"))).review.members).toEqual([]);
    const { review, title } = await reviewed(live, raisedUntil("2031-01-01T00:00:00Z"));
    expect(review.members).toMatchObject([{ change: "added", email: "bob@example.com", to: role }]);
    expect(title).toContain("role administrator: member bob&#64;example.com");
  });

  test("of an unmanaged member or API key blocks as unmanaged access", async () => {
    const live = {
      ...estate,
      members: [member("owner", "owner"), member("eve", role), member("obs", "observer")],
      apiKeys: [apiKey("backdoor", "operator"), apiKey("reader", "observer")],
    };
    const { review } = await reviewed(live);
    const widening = review.coverage.unmanaged.filter(({ kind }) => kind === "Member" || kind === "ApiKey");
    expect(widening.map(({ name, widens }) => [name, widens])).toEqual([
      ["eve@example.com", ["gives the role administrator"]],
      ["obs@example.com", []],
      ["backdoor", ["gives the role operator"]],
      ["reader", []],
    ]);
  });
});

describe("the settings of a namespace", () => {
  const live: NamespaceFixture = { ...estate, settings: SETTINGS };
  const declaring = (changes: Readonly<Record<string, unknown>>) => {
    const after = { name: "fleet", settings: { ...SETTINGS, ...changes } } as never;
    return step("update", "Namespace", "fleet", { before: { outputs: {} }, id: TENANT, after });
  };

  test.each([
    ["sessionRecord", false],
    ["deviceProof", "optional"],
    ["sessionMaxMinutes", 0],
    ["sessionMaxMinutes", 61],
    ["sessionIdleMinutes", 0],
    ["sessionRecordMode", "default"],
    ["sessionRecordMegabytes", 1],
    ["sessionRecordFailure", "continue"],
  ])("are shown before and after, and block if they weaken a protection: %s = %j", async (setting, to) => {
    const { review, title, blocking } = await reviewed(live, declaring({ [setting]: to }));
    const from = SETTINGS[setting as keyof typeof SETTINGS];
    expect(review.settings).toEqual([{ setting, from, to, effect: "weakens" }]);
    expect(title).toMatch(/^## Blocked: .*1 setting change/);
    expect(blocking).toEqual([
      `fleet: the setting ${setting} changes from ${JSON.stringify(from)} to ${JSON.stringify(to)}, which weakens a protection (allow with --allow-findings)`,
    ]);
  });

  test.each([
    ["connectionAnnouncement", "welcome"],
    ["sessionMaxMinutes", 30],
    ["sessionIdleMinutes", 5],
  ])("do not block if no protection is weaker: %s = %j", async (setting, to) => {
    const { review, title } = await reviewed(live, declaring({ [setting]: to }));
    expect(review.settings).toMatchObject([{ setting, to }]);
    expect(review.settings[0]).not.toHaveProperty("effect");
    expect(title).toMatch(/^## OK: access review of `fleet\/prod` \(1 setting change\)/);
  });

  test("gain access if they allow forwarding, and lose it without a finding", async () => {
    const rule = { login: ".*", target: ".*" };
    const opened = await reviewed(live, declaring({ sshForwarding: [rule] }));
    expect(opened.review.settings).toMatchObject([{ setting: "sshForwarding", to: [rule], effect: "opens" }]);
    expect(opened.title).toContain("1 setting change; gained privileges: setting sshForwarding");
    const open: NamespaceFixture = { ...estate, settings: { ...SETTINGS, sshForwarding: [rule] } };
    expect((await reviewed(open, declaring({}))).title).not.toContain("gained");
  });

  test("that are secret or unknown before the apply are not evaluated", async () => {
    const { review } = await reviewed(live, declaring({ sshForwarding: "[unknown]" }));
    expect(review.settings).toEqual([]);
    expect(review.notEvaluated).toEqual([
      expect.stringContaining('Namespace "fleet": its settings.sshForwarding is secret or unknown'),
    ]);
    expect(
      (await reviewed(live, declaring({ connectionAnnouncement: "[secret]" }))).review.notEvaluated,
    ).toEqual([]);
  });
});

describe("an install key", () => {
  const key = { name: "floor", mode: "automatic", tags: ["prod"] };

  test("that a plan adds is a gained privilege", async () => {
    const { review, title } = await reviewed(estate, creation("InstallKey", "floor", key));
    const privilege = "enrolls devices in the namespace (mode automatic, tags prod)";
    expect(review.privileges).toEqual([
      { change: "gained", kind: "InstallKey", resource: "floor", privilege },
    ]);
    expect(title).toContain("gained privileges: InstallKey floor enrolls devices in the namespace");
  });

  test("that a plan revokes or keeps is no gain", async () => {
    const live = { ...estate, installKeys: [{ id: "k1", ...key }] };
    const state = managing("InstallKey", "k1", {}, key);
    const deleted = await reviewed(live, step("delete", "InstallKey", "floor", state));
    expect(deleted.review.privileges).toMatchObject([{ change: "lost" }]);
    expect(deleted.title).not.toContain("gained");
    const webhook = { ...key, mode: "webhook", webhookUrl: "https://a.example.org" };
    const changed = step("update", "InstallKey", "floor", {
      ...managing("InstallKey", "k1", {}, webhook),
      after: { ...webhook, webhookUrl: "https://b.example.org" },
    });
    const moved = { ...estate, installKeys: [{ id: "k1", ...webhook }] };
    expect((await reviewed(moved, changed)).review.privileges).toMatchObject([{ change: "altered" }]);
    const kept = await reviewed(live, step("same", "InstallKey", "floor", { ...state, after: key }));
    expect(kept.review.privileges).toEqual([]);
  });

  test("of a mode that is unknown before the apply is not evaluated", async () => {
    const hidden = creation("InstallKey", "floor", { ...key, mode: "[unknown]" });
    const { review } = await reviewed(estate, hidden);
    expect(review.privileges).toEqual([]);
    expect(review.notEvaluated).toEqual([
      'InstallKey "floor": its mode is secret or unknown before the apply; access is evaluated without this resource',
    ]);
  });

  test("that no program declares gives a privilege", async () => {
    const { review } = await reviewed({ ...estate, installKeys: [{ id: "k1", ...key }] });
    expect(review.coverage.unmanaged).toContainEqual(
      expect.objectContaining({
        kind: "InstallKey",
        id: "k1",
        name: "floor",
        widens: ["enrolls devices in the namespace (mode automatic, tags prod)"],
      }),
    );
  });
});

describe("an install key with an end", () => {
  const key = { name: "floor", mode: "automatic" };
  const soon = new Date(Date.now() + 86_400_000).toISOString();
  const live = (more: Partial<InstallKeyFixture>) => ({
    ...estate,
    installKeys: [{ id: "k1", ...key, ...more }],
  });
  const change = (before: object, after: object) =>
    step("update", "InstallKey", "floor", {
      ...managing("InstallKey", "k1", {}, { ...key, ...before }),
      after: { ...key, ...after },
    });

  test("keeps its end if the program changes the name only, although the service returns another validity", async () => {
    const renewed = live({ validDays: 61, expiresAt: soon });
    const renamed = change({ validDays: 30 }, { validDays: 30, name: "floor 2" });
    expect((await reviewed(renewed, renamed)).review.privileges).toEqual([]);
  });

  test("is altered if the program changes the validity to the one that the service returns", async () => {
    const renewed = live({ validDays: 90, expiresAt: soon });
    const longer = change({ validDays: 30 }, { validDays: 90 });
    expect((await reviewed(renewed, longer)).review.privileges).toMatchObject([{ change: "altered" }]);
  });

  test("is not altered by another order of its tags", async () => {
    const { review } = await reviewed(
      live({ tags: ["web", "edge"] }),
      change({ tags: ["web", "edge"] }, { tags: ["web", "edge"], name: "floor 2" }),
    );
    expect(review.privileges).toEqual([]);
  });

  test.each([
    ["has expired", { expiresAt: "2020-01-01T00:00:00Z" }],
    ["enrolled its last device", { usageLimit: 1, usedTimes: 1 }],
  ])("gives no privilege after it %s, until a plan renews it", async (_, ended) => {
    const { review } = await reviewed(live(ended));
    expect(review.coverage.unmanaged).toContainEqual(expect.objectContaining({ id: "k1", widens: [] }));
    const renewal = change({ validDays: 30 }, { validDays: 30, usageLimit: 5 });
    expect((await reviewed(live(ended), renewal)).review.privileges).toMatchObject([{ change: "gained" }]);
  });
});

describe("objects of kinds that could not be read", () => {
  test("an API key that a plan creates or changes is in the review and its title", async () => {
    const live = { ...estate, apiKeys: undefined };
    const values = { name: "deploy", role: "operator", validDays: 30 };
    const created = await reviewed(live, creation("ApiKey", "deploy", values));
    expect(created.review.apiKeys).toMatchObject([{ change: "added", name: "deploy", to: "operator" }]);
    expect(created.title).toContain("role operator: API key deploy");
    const outputs = { role: "observer", createdAt: "2026-01-01T00:00:00Z", createdBy: "x", expiresAt: "" };
    const raised = step("update", "ApiKey", "deploy", {
      ...managing("ApiKey", "deploy", outputs, { ...values, role: "observer" }),
      after: { ...values, role: "administrator" },
    });
    const { review, title, blocking } = await reviewed(live, raised);
    expect(review.apiKeys).toMatchObject([{ change: "role", from: "observer", to: "administrator" }]);
    expect(title).toContain("role administrator: API key deploy");
    expect(blocking).toContainEqual(expect.stringContaining("API keys could not be read"));
  });

  test("an install key that a plan creates is in the review and its title", async () => {
    const live = { ...estate, unreadKinds: ["InstallKey"] as const };
    const floor = creation("InstallKey", "floor", { name: "floor", mode: "automatic" });
    const { review, title } = await reviewed(live, floor);
    expect(review.privileges).toMatchObject([{ change: "gained", resource: "floor" }]);
    expect(title).toContain("InstallKey floor enrolls devices in the namespace");
  });

  test("a member who gets a higher role is in the review and its title", async () => {
    const inputs = { email: "bob@example.com", role: "observer" };
    const outputs = { accountEmail: inputs.email, status: "accepted" };
    const raised = step("update", "Member", "bob", {
      ...managing("Member", "user-bob", outputs, inputs),
      after: { email: "bob@example.com", role: "administrator" },
    });
    const { title } = await reviewed({ ...estate, members: undefined }, raised);
    expect(title).toContain("role administrator: member bob&#64;example.com");
  });
});

test("the lint does not report the new invitation of a user who returns", async () => {
  const live = orphaned({ formerOwners: new Map([["ana@example.com", "user-ana"]]) });
  const { review } = await reviewed(live, anaReturns);
  expect(review.lint.filter(({ rule }) => rule === "expires-soon")).toEqual([]);
});

describe("a rule that denies until a time", () => {
  const key = accessKey("ana", { fingerprint: "aa" });
  const deny = { action: "deny", active: true, priority: 1, sourceIp: ".*", username: ".*" } as const;
  const rule = { ...deny, id: "1", filter: {} };
  const live: NamespaceFixture = {
    ...estate,
    enforcesExpiry: true,
    policy: { ...estate.policy, keys: [key], rules: [rule] },
  };
  const starts = "2031-01-01T00:00:00.000Z";
  const ending = (expiresAt: string) => {
    const after = { ...deny, filter: { hostname: ".*" }, expiresAt };
    return step("update", "FirewallRule", "r", { ...ruleState, after });
  };

  test("gives access that starts later", async () => {
    const { review, title } = await reviewed(live, ending(starts));
    expect(review.access).toMatchObject([{ change: "gained", keys: [{ name: "ana" }], starts, until: null }]);
    expect(title).toContain("1 key gains access");
  });

  test("gives no access later that the namespace without the change gives at the same time", async () => {
    const already: NamespaceFixture = {
      ...live,
      policy: { ...live.policy, rules: [{ ...rule, expiresAt: starts }] },
    };
    expect((await reviewed(already, ending(starts))).review.access).toEqual([]);
    const later = ending("2032-01-01T00:00:00.000Z");
    expect((await reviewed(already, later)).review.access?.map(({ change }) => change)).not.toContain(
      "gained",
    );
  });

  test("gives access again that another rule gave until an earlier time", async () => {
    const until = "2030-01-01T00:00:00.000Z";
    const allow = { ...deny, action: "allow", filter: { hostname: ".*" }, expiresAt: until, priority: 2 };
    const allowing = creation("FirewallRule", "allow", allow);
    const { review } = await reviewed(live, ending(starts), allowing);
    expect(review.access).toMatchObject([
      { change: "gained", keys: [{ name: "ana" }], until },
      { change: "gained", keys: [{ name: "ana" }], starts, until: null },
    ]);
  });

  test("shows that the end of access that starts later is prolonged", async () => {
    const ends = "2032-01-01T00:00:00.000Z";
    const { policy } = live;
    const denied: NamespaceFixture = {
      ...live,
      policy: { ...policy, keys: [{ ...key, expiresAt: ends }], rules: [{ ...rule, expiresAt: starts }] },
    };
    const after = { name: "ana", data: lineC, username: ".*", filter: { hostname: ".*" } };
    const prolonged = step("update", "PublicKey", "ana", { ...managing("PublicKey", "aa"), after });
    const { review, title } = await reviewed(denied, prolonged);
    expect(review.access).toMatchObject([{ change: "altered", starts, until: null, untilBefore: ends }]);
    expect(title).toContain("1 key gains access");
  });

  test("does not repeat access that the change gives at once", async () => {
    const both = creation("PublicKey", "k", {
      name: "new",
      data: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIQ2SBOT0OdwHNcrLwDP+IhVAgjmXGpVGHvDvp7vPBEx",
      filter: { tags: ["lab"] },
      username: "^root$",
    });
    const narrow: NamespaceFixture = {
      ...live,
      policy: { ...live.policy, rules: [{ ...rule, username: "^admin$", expiresAt: starts }] },
    };
    const { review } = await reviewed(narrow, both);
    expect(review.access).toHaveLength(1);
    expect(review.access?.[0]).not.toHaveProperty("starts");
  });
});

test("more ends of rules that deny than the limit are not evaluated", async () => {
  const rules = Array.from({ length: 25 }, (_, at) =>
    accessRule(`${at}`, { priority: at, expiresAt: `20${30 + at}-01-01T00:00:00.000Z` }),
  );
  const live: NamespaceFixture = { ...estate, enforcesExpiry: true, policy: { ...estate.policy, rules } };
  const { review } = await reviewed(live);
  expect(review.notEvaluated).toContain(
    "the access after 5 further ends of rules that deny was not evaluated: the limit is 20",
  );
});
