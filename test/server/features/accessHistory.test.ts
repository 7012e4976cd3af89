import type { Role } from "@gatehouse-access/sdk/contract";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { SEED } from "../../support/seed.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { createModel, expectStanding, rolesIn, rolesOf } from "./accessHistory/compareWithModel.ts";
import { type Credential, type Model, rank } from "./accessHistory/model.ts";
import {
  type Plan,
  planChangePassword,
  planCreateKey,
  planDeleteKey,
  planInvite,
  planLeave,
  planLogin,
  planPromote,
  planRemove,
  planSwitch,
  planUpdateKey,
} from "./accessHistory/plans.ts";
import { type By, histories, type Step } from "./accessHistory/steps.ts";

const app = withSharedApp();
beforeAll(async () => {
  app.stopClock();
});

function pick<T>(from: readonly T[], index: number): T {
  const item = from[index % from.length];
  if (item === undefined) throw new Error("nothing to choose from");
  return item;
}

/** Returns the credential with which a step acts; undefined if the model has no credential of the requested kind. */
function credentialOf(model: Model, { credential, from }: By): Credential | undefined {
  const matching = model.credentials.filter((one) => {
    const standing = model.standing(one);
    const leads = one.kind === "token" && standing?.role && rank(standing.role) >= rank("administrator");
    return from === "any" || (from === "living" ? standing !== null : leads);
  });
  return matching.length === 0 ? undefined : pick(matching, credential);
}

function planOf(model: Model, step: Exclude<Step, { does: "pass" }>): Plan {
  if (step.does === "login") return planLogin(model, pick(model.users, step.user), step.right);
  const credential = credentialOf(model, step.by);
  // If the model has no such credential, the step becomes a login.
  if (credential === undefined) return planLogin(model, pick(model.users, step.by.credential), true);
  if (step.does === "changePassword") return planChangePassword(model, credential, step.right);
  if (step.does === "createKey") return planCreateKey(model, credential, step.role, step.days);
  if (step.does === "updateKey" || step.does === "deleteKey") {
    const name = model.keyNames.length === 0 ? "nokey" : pick(model.keyNames, step.key);
    return step.does === "updateKey"
      ? planUpdateKey(model, credential, name, step.role)
      : planDeleteKey(model, credential, name);
  }
  const place = pick(model.places, step.at.place);
  const target = { model, credential, place, user: pick(model.users, step.at.user) };
  switch (step.does) {
    case "invite":
      return planInvite(target, step.role);
    case "promote":
      return planPromote(target, step.role);
    case "remove":
      return planRemove(target);
    case "leave":
      return planLeave(target);
    case "switch":
      return planSwitch(target);
  }
}

/** Returns the audit entries of all namespaces with an id greater than the given id. */
async function entriesAfter(last: number) {
  const entries = await app.services.db.auditEntry.findMany({
    where: { id: { gt: last } },
    orderBy: { id: "asc" },
  });
  // Keeps only the fields that do not depend on the clock or the network, so that they can be compared with the model.
  return entries.map(({ tenantId, operation, actorKind, actorId, objectKind, objectId }) => ({
    tenantId,
    operation,
    actorKind,
    actorId,
    objectKind,
    objectId,
  }));
}

const lastEntry = async (): Promise<number> =>
  (await app.services.db.auditEntry.findFirst({ orderBy: { id: "desc" } }))?.id ?? 0;

/**
 * Checks that no request granted a role above the role of its sender, and that every namespace has exactly one owner.
 */
function expectNoEscalation(
  model: Model,
  actor: Credential | undefined,
  before: ReadonlyMap<string, Role>,
  after: ReadonlyMap<string, Role>,
  own: ReturnType<Model["standing"]>,
): void {
  for (const [what, role] of after) {
    if (before.get(what) === role) continue;
    expect(what.startsWith(`${actor?.tenant} `), what).toBe(true);
    expect(rank(role), what).toBeLessThanOrEqual(own?.role ? rank(own.role) : -1);
    if (what.includes(" member ")) expect(role, what).not.toBe("owner");
  }
  for (const { tenant } of model.places) {
    const owners = [...after].filter(
      ([what, role]) => what.startsWith(`${tenant} member `) && role === "owner",
    );
    expect(owners).toHaveLength(1);
  }
}

/**
 * Totals of all histories. The test fails if they are low, because the generator then produces too few useful steps.
 */
interface Counts {
  steps: number;
  successes: number;
  refusals: number;
}

async function take(model: Model, step: Step, last: number, counts: Counts): Promise<void> {
  counts.steps += 1;
  if (step.does === "pass") {
    app.pass(step.seconds);
    model.now += step.seconds;
    expect(await entriesAfter(last)).toEqual([]);
    return;
  }
  const plan = planOf(model, step);
  const before = rolesOf(model);
  const own = plan.actor ? model.standing(plan.actor) : null;
  const answer = await app.call(plan.id, plan.options);
  const after = await rolesIn(app, model);
  expectNoEscalation(model, plan.actor, before, after, own);
  const succeeded = plan.refusals.length === 0;
  expect(succeeded ? [200] : plan.refusals, `${plan.id}: ${answer.text}`).toContain(answer.status);
  if (succeeded) plan.apply(answer);
  counts[succeeded ? "successes" : "refusals"] += 1;
  expect(Object.fromEntries(after)).toEqual(Object.fromEntries(rolesOf(model)));
  expect(await entriesAfter(last)).toEqual(succeeded && plan.entry ? [plan.entry] : []);
}

/** @param runs number of histories, each with some hundred requests */
async function expectRules(runs: number): Promise<void> {
  const counts: Counts = { steps: 0, successes: 0, refusals: 0 };
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const model = await createModel(app);
      const dead = new Set<Credential>();
      for (const step of history) {
        await take(model, step, await lastEntry(), counts);
        const recorded = await lastEntry();
        // After each step, checks all credentials except those that can never become valid again, which are checked at
        // the end of the history. A removed member's token is not such an exception: a new invitation can make it valid
        // again.
        const checked = model.credentials.filter((one) => !dead.has(one));
        await Promise.all(checked.map((credential) => expectStanding(app, model, credential)));
        for (const one of checked) if (model.isDead(one)) dead.add(one);
        // Checking credentials writes no audit entry.
        expect(await lastEntry()).toBe(recorded);
      }
      await Promise.all([...dead].map((credential) => expectStanding(app, model, credential)));
    }),
    { numRuns: runs, seed: SEED },
  );

  expect(counts.successes).toBeGreaterThan(counts.steps / 6);
  expect(counts.refusals).toBeGreaterThan(counts.steps / 5);
}

const RULES =
  "permissions follow the rules through every history of members, keys and logins, and every change is audited";

test(RULES, () => expectRules(5));
test(`${RULES}: many histories`, { tags: ["long"], timeout: 300_000 }, () => expectRules(60));
