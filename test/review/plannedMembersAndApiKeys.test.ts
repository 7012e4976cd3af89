import { describe, expect, test } from "vitest";
import { type NamespaceFixture, namespaceAfter } from "./support/namespace.ts";
import { apiKey, CREATOR, estate, plan, planOf, step, TENANT, urnOf, workload } from "./support/planned.ts";

const PAST = "2026-01-01T00:00:00.000Z";

describe("Member", () => {
  const state = { before: { outputs: { userId: "user-bob" } }, id: `${TENANT}/user-bob` };
  const seats = (planned: ReturnType<typeof plan>) =>
    planned.members?.map(({ email, role, status }) => `${email.split("@")[0]} ${role} ${status}`);

  test("is planned for create, update, replace and delete", () => {
    const owner = "owner owner accepted";
    const ana = { email: "ana@example.com", role: "operator" };
    expect(seats(plan(step("create", "Member", "ana", { after: ana })))).toEqual([
      owner,
      "bob observer accepted",
      "ana operator pending",
    ]);
    const promoted = { email: "bob@example.com", role: "administrator" };
    expect(seats(plan(step("update", "Member", "bob", { ...state, after: promoted })))).toEqual([
      owner,
      "bob administrator accepted",
    ]);
    expect(seats(plan(step("replace", "Member", "bob", { ...state, after: ana })))).toEqual([
      owner,
      "ana operator pending",
    ]);
    expect(seats(plan(step("delete", "Member", "bob", state)))).toEqual([owner]);
    expect(
      seats(
        plan(step("delete", "Member", "bob", state), step("create", "Member", "heir", { after: promoted })),
      ),
    ).toEqual([owner, "bob administrator accepted"]);
  });

  test("reports a member with an unknown address", () => {
    const planned = plan(step("create", "Member", "x", { after: { email: "[secret]", role: "operator" } }));
    expect(planned.members).toHaveLength(2);
    expect(planned.notEvaluated[0]).toMatch(/^Member "x": its email is secret or unknown/);
  });
});

describe("ApiKey", () => {
  const state = {
    before: { outputs: { name: "ci", role: "observer", createdAt: "created ci", createdBy: CREATOR } },
    id: `${TENANT}/ci`,
  };
  const ends = (planned: ReturnType<typeof plan>) =>
    planned.apiKeys?.map(({ name, role, createdAt, createdBy }) => [
      name,
      role,
      createdAt === "created ci" && createdBy === CREATOR ? "ci" : undefined,
    ]);

  test("is planned for create, update, replace and delete", () => {
    expect(ends(plan(step("create", "ApiKey", "x", { after: { validDays: 30 } })))).toEqual([
      ["ci", "observer", "ci"],
      ["x (new)", "administrator", undefined],
    ]);
    const after = { name: "deploy", role: "operator", validDays: 30, overlap: 0 };
    expect(ends(plan(step("update", "ApiKey", "ci", { ...state, after })))).toEqual([
      ["deploy", "operator", "ci"],
    ]);
    expect(ends(plan(step("replace", "ApiKey", "ci", { ...state, after })))).toEqual([
      ["deploy", "operator", undefined],
    ]);
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
    const renamed = {
      ...estate,
      apiKeys: [{ ...apiKey("ci", "observer"), name: "by-hand" }],
    } as NamespaceFixture;
    const planned = namespaceAfter(
      renamed,
      planOf(step("same", "ApiKey", "ci", { ...state, after: { validDays: 30 } })),
    );
    expect(planned.managed).toEqual([{ kind: "ApiKey", id: "by-hand", urn: urnOf("ApiKey", "ci") }]);
  });
});

describe("TrustedWorkload", () => {
  const { id, name: _name, ...settings } = workload;
  const state = { before: { outputs: { workloadId: id } }, id: `${TENANT}/${id}` };
  const trusted = (planned: ReturnType<typeof plan>) =>
    planned.trustedWorkloads?.map((one) => `${one.id} ${one.name} ${one.role} ${one.claims.ref}`);

  test("is planned for create, update and delete", () => {
    const after = { ...settings, name: "review", role: "observer" };
    expect(trusted(plan(step("create", "TrustedWorkload", "x", { after })))).toEqual([
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
    const planned = plan(step("create", "TrustedWorkload", "x", { after }));
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
