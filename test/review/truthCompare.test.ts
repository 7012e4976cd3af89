import { describe, expect, it } from "vitest";
import type { ReviewedAccess } from "../../provider/privileges/accessLines.ts";
import { differences, laterDifferences, type Stated } from "./support/truth/compare.ts";
import { ADDRESSES, type Decisions, JOBS, LOGINS, loginOf } from "./support/truth/TruthService.ts";

// The truth test finds a fault only if these comparisons find it.

const [address = ""] = ADDRESSES;
const evaluated = { logins: LOGINS, addresses: ADDRESSES };
const nothing: Stated = { access: [], members: [], workloads: [], apiKeys: [], settings: [] };
const empty: Decisions = { allowed: new Set(), roles: new Map(), apiKeys: new Map(), settings: {} };

const line = (change: ReviewedAccess["change"], more: Partial<ReviewedAccess> = {}): ReviewedAccess => ({
  change,
  keys: [{ fingerprint: "aa", name: "a" }],
  logins: ["root"],
  addresses: [address],
  devices: ["u1"],
  where: "u1",
  until: null,
  untilBefore: null,
  anyLogin: false,
  anyAddress: false,
  ...more,
});
const open: Decisions = { ...empty, allowed: new Set([loginOf("aa", "root", address, "u1")]) };
const withRole = (subject: string, role: string): Decisions => ({
  ...empty,
  roles: new Map([[subject, role]]),
});
const found = (stated: Partial<Stated>, before: Decisions, after: Decisions) =>
  differences({ ...nothing, ...stated }, evaluated, before, after);

describe("the comparison of a report with the decisions of the service", () => {
  it("finds access that the report does not state, and stated access that the service refuses", () => {
    expect(found({ access: [line("gained")] }, empty, open)).toEqual([]);
    expect(found({}, empty, open)).toHaveLength(1);
    expect(found({ access: [line("gained")] }, empty, empty)).toHaveLength(1);
    expect(found({ access: [line("lost")] }, open, empty)).toEqual([]);
    expect(found({}, open, empty)).toHaveLength(1);
    expect(found({ access: [line("altered")] }, open, empty)).toHaveLength(2);
  });

  it("refuses logins and addresses for which the service is not asked", () => {
    const others = { logins: ["www"], addresses: ADDRESSES };
    expect(() => differences(nothing, others, empty, empty)).toThrow("www");
  });

  it("finds roles of members that the report does not state, or states otherwise", () => {
    const [observer, administrator] = ["observer", "administrator"].map((role) =>
      withRole("member ana@example.com", role),
    ) as [Decisions, Decisions];
    const change = { change: "role", email: "ana@example.com", from: "observer" } as const;
    expect(found({ members: [{ ...change, to: "administrator" }] }, observer, administrator)).toEqual([]);
    expect(found({}, observer, administrator)).toHaveLength(1);
    expect(found({ members: [{ ...change, to: "operator" }] }, observer, administrator)).toHaveLength(2);
  });

  it("finds roles of API keys that the report does not state", () => {
    const after = { ...withRole("api key t1", "administrator"), apiKeys: new Map([["t1", "ci"]]) };
    const change = { change: "added", name: "ci", to: "administrator", until: null } as const;
    expect(found({ apiKeys: [change] }, empty, after)).toEqual([]);
    expect(found({}, empty, after)).toHaveLength(1);
    expect(found({}, after, empty)).toHaveLength(1);
  });

  it("finds roles of workloads that the report does not state, or states higher than they are", () => {
    const [job = {}] = JOBS as readonly Record<string, string>[];
    const after = withRole(`job ${job.environment}`, "operator");
    const tokens = { issuer: "https://i.example", audience: "a", maxSessionMinutes: 60, singleUse: false };
    const change = { change: "added", name: "w", accepts: { ...tokens, claims: job } } as const;
    expect(found({ workloads: [{ ...change, to: "operator" }] }, empty, after)).toEqual([]);
    expect(found({}, empty, after)).toHaveLength(1);
    expect(found({ workloads: [{ ...change, to: "administrator" }] }, empty, after)).toHaveLength(2);
  });

  it("finds settings that the report does not state, and weakened settings without their effect", () => {
    const after = { ...empty, settings: { sessionRecord: false } };
    const change = { setting: "sessionRecord", from: true, to: false };
    expect(found({ settings: [{ ...change, effect: "weakens" }] }, empty, after)).toEqual([]);
    expect(found({}, empty, after)).toHaveLength(1);
    expect(found({ settings: [change] }, empty, after)).toHaveLength(1);
  });

  it("finds access that opens later without a statement, and ends that do not take effect", () => {
    const policy = { devices: [], keys: [], rules: [] };
    const past = new Date(Date.now() - 1000).toISOString();
    expect(laterDifferences([line("gained", { starts: past })], policy, empty, open)).toEqual([]);
    expect(laterDifferences([], policy, empty, open)).toHaveLength(1);
    expect(laterDifferences([line("gained", { until: past })], policy, open, open)).toHaveLength(1);
    expect(laterDifferences([line("gained")], policy, open, empty)).toHaveLength(1);
  });
});
