import { describe, expect, test } from "vitest";
import { namespaceAfter } from "./support/namespace.ts";
import { apiKey, CREATOR, estate, plan, workload } from "./support/planned.ts";
import { creation, managing, planOf, step, TENANT, urnOf } from "./support/steps.ts";

const PAST = "2026-01-01T00:00:00.000Z";

describe("Member", () => {
  const state = managing("Member", "user-bob");
  const seats = (planned: ReturnType<typeof plan>) =>
    planned.members?.map(({ email, role, status }) => `${email.split("@")[0]} ${role} ${status}`);

  test("is planned for create, update, replace and delete", () => {
    const owner = "owner owner accepted";
    const ana = { email: "ana@example.com", role: "operator" };
    const promoted = { email: "bob@example.com", role: "administrator" };
    const created = creation("Member", "ana", ana);
    const updated = step("update", "Member", "bob", { ...state, after: promoted });
    const replaced = step("replace", "Member", "bob", { ...state, after: ana });
    const deleted = step("delete", "Member", "bob", state);
    const heir = creation("Member", "heir", promoted);
    expect(seats(plan(created))).toEqual([owner, "bob observer accepted", "ana operator pending"]);
    expect(seats(plan(updated))).toEqual([owner, "bob administrator accepted"]);
    expect(seats(plan(replaced))).toEqual([owner, "ana operator pending"]);
    expect(seats(plan(deleted))).toEqual([owner]);
    expect(seats(plan(deleted, heir))).toEqual([owner, "bob administrator accepted"]);
  });

  test("reports a member with an unknown address", () => {
    const planned = plan(creation("Member", "x", { email: "[secret]", role: "operator" }));
    expect(planned.members).toHaveLength(2);
    expect(planned.notEvaluated[0]).toMatch(/^Member "x": its email is secret or unknown/);
  });
});

describe("ApiKey", () => {
  const state = managing("ApiKey", "ci", { role: "observer", createdAt: "created ci", createdBy: CREATOR });
  const ends = (planned: ReturnType<typeof plan>) =>
    planned.apiKeys?.map(({ name, role, createdAt, createdBy }) => [
      name,
      role,
      createdAt === "created ci" && createdBy === CREATOR ? "ci" : undefined,
    ]);

  test("is planned for create, update, replace and delete", () => {
    expect(ends(plan(creation("ApiKey", "x", { validDays: 30 })))).toEqual([
      ["ci", "observer", "ci"],
      ["x (new)", "administrator", undefined],
    ]);
    const after = { name: "deploy", role: "operator", validDays: 30, overlap: 0 };
    const [updated, replaced] = [
      plan(step("update", "ApiKey", "ci", { ...state, after })),
      plan(step("replace", "ApiKey", "ci", { ...state, after })),
    ];
    expect(ends(updated)).toEqual([["deploy", "operator", "ci"]]);
    expect(ends(replaced)).toEqual([["deploy", "operator", undefined]]);
    expect(ends(plan(step("delete", "ApiKey", "ci", state)))).toEqual([]);
  });

  test("keeps a replaced key for the overlap, under another name", () => {
    const after = { name: "ci", role: "observer", validDays: 30, overlap: 7 };
    expect(ends(plan(step("replace", "ApiKey", "ci", { ...state, after })))).toEqual([
      ["ci (replaced)", "observer", "ci"],
      ["ci", "observer", undefined],
    ]);
  });

  test("deletes previously replaced keys together with the current key, or after their overlap", () => {
    const previous = [
      { tenant: TENANT, name: "ci", createdAt: "created ci", createdBy: CREATOR, until: PAST },
    ];
    const before = {
      outputs: { name: "ci2", role: "observer", createdAt: "created ci2", createdBy: CREATOR, previous },
    };
    const two = { ...estate, apiKeys: [apiKey("ci", "observer"), apiKey("ci2", "observer")] };
    for (const [op, left] of [
      ["update", ["ci2"]],
      ["delete", []],
    ] as const) {
      const after = op === "update" ? { after: { name: "ci2", validDays: 30 } } : {};
      const planned = namespaceAfter(
        two,
        planOf(step(op, "ApiKey", "ci", { before, id: `${TENANT}/ci`, ...after })),
      );
      expect(planned.apiKeys?.map(({ name }) => name)).toEqual(left);
    }
  });

  test("is managed under its current name", () => {
    const renamed = { ...estate, apiKeys: [{ ...apiKey("ci", "observer"), name: "by-hand" }] };
    const same = step("same", "ApiKey", "ci", { ...state, after: { validDays: 30 } });
    const planned = namespaceAfter(renamed, planOf(same));
    expect(planned.managed).toEqual([{ kind: "ApiKey", id: "by-hand", urn: urnOf("ApiKey", "ci") }]);
  });
});

describe("TrustedWorkload", () => {
  const { id, name: _name, ...settings } = workload;
  const state = managing("TrustedWorkload", id);
  const trusted = (planned: ReturnType<typeof plan>) =>
    planned.trustedWorkloads?.map((one) => `${one.id} ${one.name} ${one.role} ${one.claims.ref}`);

  test("is planned for create, update and delete", () => {
    const after = { ...settings, name: "review", role: "observer" };
    expect(trusted(plan(creation("TrustedWorkload", "x", after)))).toEqual([
      `${id} deploy operator refs/heads/main`,
      "x (new) review observer refs/heads/main",
    ]);
    const changed = { ...after, claims: { repository: "acme/fleet", ref: "refs/tags/v*" } };
    expect(trusted(plan(step("update", "TrustedWorkload", "x", { ...state, after: changed })))).toEqual([
      `${id} review observer refs/tags/v*`,
    ]);
    expect(trusted(plan(step("delete", "TrustedWorkload", "x", state)))).toEqual([]);
  });

  test("with the name of a live workload adopts the workload, and is managed then", () => {
    const after = { ...settings, name: "deploy", role: "administrator", adopt: true };
    const planned = plan(creation("TrustedWorkload", "x", after));
    expect(trusted(planned)).toEqual([`${id} deploy administrator refs/heads/main`]);
    expect(planned.managed).toMatchObject([{ kind: "TrustedWorkload", id }]);
  });

  test("with an unknown claim stays unchanged, and is reported", () => {
    const after = { ...settings, name: "deploy", claims: { repository: "[unknown]" } };
    const planned = plan(step("update", "TrustedWorkload", "x", { ...state, after }));
    expect(trusted(planned)).toEqual([`${id} deploy operator refs/heads/main`]);
    expect(planned.notEvaluated[0]).toMatch(/^TrustedWorkload "x": its claims is secret or unknown/);
  });
});
