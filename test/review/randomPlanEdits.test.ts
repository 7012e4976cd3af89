// The plans are recorded in `recorded/randomPlanEdits.json`. With `terraform` on the PATH, this command records them
// again:
//
//   GATEHOUSE_RECORD=1 npx vitest run test/review/randomPlanEdits.test.ts
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../provider/engine/index.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { namespacesOf, onService } from "../../provider/plan/steps.ts";
import { readTerraformPlan } from "../../provider/plan/terraform/readTerraformPlan.ts";
import { isGain } from "../../provider/privileges/accessLines.ts";
import { gainsOf } from "../../provider/privileges/privileges.ts";
import { objections } from "../../provider/review/report/sections.ts";
import { Connection } from "../../provider/service/connection.ts";
import type { Role } from "../../sdk/contract/index.ts";
import { randomNumbers } from "../policy/largePolicy.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { SEED } from "../support/seed.ts";
import { RootModule, startProvider } from "../terraform/support/terraform.ts";
import { fixtureOf, type NamespaceFixture } from "./support/namespace.ts";
import { NOTHING_ALLOWED, namespaceReview, wholeReview } from "./support/namespaceReview.ts";

/**
 * The number of edits in the default stage; the tagged test takes 2,000 edits. A failure prints the seed of each edit:
 * `GATEHOUSE_SEED=<seed> TEST_PLAN_EDITS=1` repeats one edit.
 */
const EDITS = Number(process.env.TEST_PLAN_EDITS ?? "150");

const RECORDED = join(import.meta.dirname, "recorded", "randomPlanEdits.json");
const isRecording = Boolean(process.env.GATEHOUSE_RECORD);
const SERVICE = "https://access.example.org";
const OTHER_TENANT = "99999999-2222-4333-8444-555555555555";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A recorded plan, and the user who applies it. */
interface RecordedPlan {
  readonly plan: Json;
  readonly role: Role;
  readonly userId: string;
}

interface Recording {
  /** The live namespace before each plan. */
  readonly estate: NamespaceFixture;
  readonly plans: Readonly<Record<string, RecordedPlan>>;
}

const MAP = "$map";
const withoutMaps = (_: string, value: unknown) => (value instanceof Map ? { [MAP]: [...value] } : value);
const withMaps = (_: string, value: unknown) =>
  typeof value === "object" && value !== null && MAP in value
    ? new Map(value[MAP] as [unknown, unknown][])
    : value;

/** A connection whose settings select the recorded namespace. */
const connectionTo = (tenant: string) =>
  ({ homeIfAny: async () => ({ tenant, unsettled: undefined }) }) as unknown as Connection;

/**
 * Reviews a plan like the command `review`, and returns its blocking findings. Gained access and gained privileges count
 * as blocking too, as with a policy test that allows no gain.
 * @throws EngineError if the plan is rejected
 */
async function blockingOf({ estate }: Recording, recorded: RecordedPlan, text: string): Promise<string[]> {
  const read = readTerraformPlan(text, {
    name: "the plan",
    workspace: { project: "fleet", stack: "default" },
    isSettingAlone: () => false,
    isInPlan: () => false,
  });
  const { plan, notEvaluated } = onService(read.plan, SERVICE);
  const { tenants } = await namespacesOf(connectionTo(estate.tenant), [plan]);
  // The command reads each namespace of the plan. The recording contains one, so another namespace cannot be read.
  const unreadable = tenants
    .filter((tenant) => tenant !== estate.tenant)
    .map((tenant) => `the namespace ${tenant} could not be read`);
  const review = await namespaceReview(estate, plan, {
    home: estate.tenant,
    runningId: recorded.userId,
    actor: { kind: "user", role: recorded.role },
  });
  const all = [...read.notEvaluated, ...notEvaluated, ...unreadable];
  return [
    ...objections({ ...wholeReview(review), notEvaluated: all }, NOTHING_ALLOWED),
    ...(review.access ?? []).filter(isGain).map(({ logins }) => `gains ${logins.join(", ")}`),
    ...gainsOf(review),
  ];
}

/** Random choices. */
class Random {
  readonly #below: (bound: number) => number;

  constructor(seed: number) {
    this.#below = randomNumbers(seed);
  }

  below(bound: number): number {
    return this.#below(bound);
  }

  /** @throws Error for an empty list */
  of<T>(list: readonly T[]): T {
    const chosen = list[this.#below(list.length)];
    if (chosen === undefined) throw new Error("there is nothing to choose from");
    return chosen;
  }
}

/** A member of an object or an item of a list in a plan. */
interface Place {
  readonly parent: Json[] | { [name: string]: Json };
  readonly key: string;
  readonly path: string;
}

function placesIn(value: Json, path = ""): Place[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const place = { parent: value, key, path: path === "" ? key : `${path}.${key}` };
    return [place, ...placesIn(inner, place.path)];
  });
}

const at = ({ parent, key }: Place): Json => (parent as Record<string, Json>)[key] ?? null;
const put = ({ parent, key }: Place, value: Json): void => {
  (parent as Record<string, Json>)[key] = value;
};

const ACTIONS = [
  ["no-op"],
  ["create"],
  ["read"],
  ["update"],
  ["delete"],
  ["delete", "create"],
  ["create", "delete"],
  ["forget"],
  ["create", "forget"],
  ["forget", "create"],
  [],
  ["nothing"],
  ["no-op", "no-op"],
];

/** The values that edits write to a member with this name. */
const VALUES: Readonly<Record<string, readonly Json[]>> = {
  actions: ACTIONS,
  mode: ["data", "Managed", "managed", "", null],
  provider_name: ["registry.terraform.io/elsewhere/gatehouse", "registry.terraform.io/hashicorp/aws", ""],
  type: ["gatehouse_tag", "gatehouse_public_key", "gatehouse_quantum_key", "aws_instance", "terraform_data"],
  address: ["gatehouse_public_key.other", "data.gatehouse_public_key.ana", "module.a.gatehouse_tag.a", "x"],
  tenant: [OTHER_TENANT, "garbage", null, ""],
  id: [`${OTHER_TENANT}/x`, "x", null],
  full_name: ["registry.terraform.io/elsewhere/gatehouse"],
  provider_config_key: ["gatehouse.other", "terraform", null],
};

const GARBAGE: readonly Json[] = [null, 7, "garbage", true, false, [], {}, ["garbage"], { garbage: true }];

type Edit = (random: Random, places: readonly Place[]) => string;

const remove: Edit = (random, places) => {
  const { parent, key, path } = random.of(places);
  if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else delete parent[key];
  return `delete ${path}`;
};

const replace: Edit = (random, places) => {
  const place = random.of(places);
  const value = random.of(VALUES[place.key] ?? GARBAGE);
  put(place, structuredClone(value));
  return `${place.path} = ${JSON.stringify(value)}`;
};

/** Writes the value that another member with the same name has. */
const borrow: Edit = (random, places) => {
  const place = random.of(places);
  const other = random.of(places.filter(({ key }) => key === place.key));
  put(place, structuredClone(at(other)));
  return `${place.path} = ${other.path}`;
};

const change: Edit = (random, places) => {
  const place = random.of(places.filter((one) => typeof at(one) === "string"));
  const text = String(at(place));
  const index = random.below(text.length + 1);
  const changed = random.of([
    text.slice(0, index) + text.slice(index + 1),
    `${text.slice(0, index)}x${text.slice(index)}`,
    text.toUpperCase(),
  ]);
  put(place, changed);
  return `${place.path} = ${JSON.stringify(changed)}`;
};

const rename: Edit = (random, places) => {
  const { parent, key, path } = random.of(places.filter((one) => !Array.isArray(one.parent)));
  if (Array.isArray(parent)) throw new Error("a list has no names");
  const name = random.of([`${key}_`, key.toUpperCase(), "deposed", "importing", "generated_config"]);
  const value = parent[key] ?? null;
  delete parent[key];
  parent[name] = value;
  return `rename ${path} to ${name}`;
};

/** Adds a member that some changes of real plans have. */
const add: Edit = (random, places) => {
  const { parent, path } = random.of(places.filter((one) => !Array.isArray(one.parent)));
  if (Array.isArray(parent)) throw new Error("a list has no names");
  const [name, value] = random.of<readonly [string, Json]>([
    ["deposed", "0a1b2c3d"],
    ["importing", { id: "x" }],
    ["generated_config", "resource"],
    ["previous_address", "gatehouse_tag.a"],
    ["action_reason", "replace_by_request"],
    ["after_unknown", { username: true, filter: true, role: true, settings: true }],
    ["username", true],
    ["filter", null],
  ]);
  parent[name] = value;
  return `add ${name} beside ${path}`;
};

const inLists = (places: readonly Place[]) => places.filter((one) => Array.isArray(one.parent));

const duplicate: Edit = (random, places) => {
  const { parent, key, path } = random.of(inLists(places));
  (parent as Json[]).push(structuredClone((parent as Json[])[Number(key)] ?? null));
  return `duplicate ${path}`;
};

const swap: Edit = (random, places) => {
  const place = random.of(inLists(places));
  const other = random.of(inLists(places).filter(({ parent }) => parent === place.parent));
  const value = at(place);
  put(place, at(other));
  put(other, value);
  return `swap ${place.path} and ${other.path}`;
};

const EDITS_OF_PLANS: readonly Edit[] = [remove, replace, borrow, change, rename, add, duplicate, swap];

/** The members that decide about the evaluation of a change. Every second edit changes one of them. */
const DECISIVE = /^(resource_changes|actions|mode|type|address|provider_name|before|after|after_unknown)$/;

/**
 * Edits one place of a plan. Returns a description.
 * @param plan is changed
 */
function editPlan(random: Random, plan: Json): string {
  const all = placesIn(plan);
  const decisive = all.filter(({ key, path }) => DECISIVE.test(key) || path.startsWith("resource_changes."));
  return random.of(EDITS_OF_PLANS)(random, random.below(2) === 0 ? decisive : all);
}

const recording = (): Recording => JSON.parse(readFileSync(RECORDED, "utf8"), withMaps) as Recording;

/**
 * Edits recorded plans that a review blocks, and returns the edits after which neither the reader rejects the plan nor
 * the review blocks it, and the edits that cause another error.
 */
async function missedEdits(edits: number, firstSeed: number) {
  const recorded = recording();
  const names = Object.keys(recorded.plans).sort();
  const missed: string[] = [];
  const counts = { rejected: 0, blocked: 0 };
  for (let index = 0; index < edits; index += 1) {
    const random = new Random(firstSeed + index);
    const name = random.of(names);
    const one = recorded.plans[name];
    if (!one) throw new Error(`no plan ${name}`);
    const plan = structuredClone(one.plan);
    const edit = editPlan(random, plan);
    const report = (outcome: string) =>
      missed.push(`seed ${firstSeed + index}, plan ${name}, ${edit}: ${outcome}`);
    try {
      if ((await blockingOf(recorded, one, JSON.stringify(plan))).length > 0) counts.blocked += 1;
      else report("OK");
    } catch (error) {
      if (error instanceof EngineError && error.code === "plan_file") counts.rejected += 1;
      else report(String(error instanceof Error ? error.stack : error));
    }
  }
  return { missed, counts };
}

/*
 * Each recorded plan has one danger, for which its review blocks: gained access, a gained role, a weakened protection, a
 * lockout, a missing permission, or a value that is unknown before the apply. An edit changes one place of its JSON. A
 * plan contains each change several times (in its changes, in the planned values or the prior state, and in the
 * configuration), so one edit cannot turn the plan into another valid plan without the danger. These are the outcomes:
 *
 * - `plan_file`: the reader rejects the plan. Passes.
 * - The review still blocks, for the danger or for another finding. Passes. An edit of a part that no review reads, such
 *   as the time of the plan or a resource of another provider, has this outcome too.
 * - The review does not block. Fails, since the edit has hidden the danger.
 * - Another error. Fails, since users see a stack trace.
 */
describe.skipIf(isRecording)("a plan that a review blocks", () => {
  it("is blocked without an edit, for the danger of each plan", async () => {
    const recorded = recording();
    for (const [name, one] of Object.entries(recorded.plans)) {
      const blocking = await blockingOf(recorded, one, JSON.stringify(one.plan));
      expect(blocking, name).not.toEqual([]);
      for (const finding of blocking) expect(finding, name).toMatch(DANGERS[name] ?? "no danger");
    }
  });

  it(`does not pass after any of ${EDITS} random edits`, { timeout: 300_000 }, async () => {
    const { missed } = await missedEdits(EDITS, SEED);
    expect(missed.join("\n"), `GATEHOUSE_SEED=${SEED}`).toBe("");
  });

  // Takes 25 seconds.
  it("does not pass after any of 2000 random edits", { tags: ["long"], timeout: 600_000 }, async () => {
    const { missed, counts } = await missedEdits(2000, SEED);
    expect(missed.join("\n"), `GATEHOUSE_SEED=${SEED}`).toBe("");
    // Both outcomes are frequent. Otherwise the edits would change nothing, or no plan would reach the review.
    expect(counts.rejected).toBeGreaterThan(200);
    expect(counts.blocked).toBeGreaterThan(200);
  });
});

/** The finding for which the review of each plan blocks. */
const DANGERS: Readonly<Record<string, RegExp>> = {
  "new key": /^gains eve$/,
  "wider key": /^gains /,
  "deleted rule": /^gains root$/,
  "changed rule": /^gains root$/,
  "tagged device": /^gains /,
  "weaker setting": /sessionRecord changes from true to false/,
  "higher role": /^role administrator/,
  "deleted administrator": /lock|administrator/,
  "missing permission": /permission|role/,
  "unknown login": /username is secret or unknown/,
};

describe.runIf(isRecording)("the recording", () => {
  it("contains plans of Terraform", { timeout: 300_000 }, async () => {
    const fleet = await startFleet();
    const provider = await startProvider(fleet.env);
    try {
      const { client, tenant, service, env } = fleet;
      for (const name of ["edge-01", "edge-02"]) await fleet.enroll(name);
      const users: Record<string, string> = {};
      for (const username of ["carol", "dave"])
        users[username] = (
          await service.createUser({ username, email: `${username}@example.com`, password: "correct-horse" })
        ).id;
      const { name } = await client.getNamespace({ params: { tenant } });
      const root = new RootModule(testFolder(), { ...provider.env, ...env });
      const lines = Object.fromEntries(
        ["ana", "ops", "web", "eve"].map((login) => [login, sshKeyLine(login)]),
      );
      const key = (login: string, more: object = {}) => ({
        name: login,
        data: lines[login],
        username: `^${login}$`,
        filter: { hostname: "^edge-01$" },
        ...more,
      });
      const keys = { ana: key("ana"), ops: key("ops", { username: "^(ops|root)$" }) };
      const rule = {
        action: "deny",
        priority: 1,
        source_ip: ".*",
        username: "^root$",
        filter: { hostname: ".*" },
      };
      const configuration = {
        gatehouse_namespace: { home: { name, adopt: "overwrite", settings: { session_record: true } } },
        gatehouse_public_key: {
          ...keys,
          web: key("web", { filter: { tags: ["web"] }, depends_on: ["gatehouse_device_tags.two"] }),
        },
        gatehouse_firewall_rule: { no_root: rule },
        gatehouse_device_tags: {
          one: { device: "edge-01", tags: ["lab"] },
          two: { device: "edge-02", tags: ["web"] },
        },
        gatehouse_member: {
          carol: { email: "carol@example.com", role: "administrator" },
          dave: { email: "dave@example.com", role: "observer" },
        },
        terraform_data: { login: { input: "^ana$" } },
      };
      type Configuration = typeof configuration;
      root.write({ resource: configuration });
      await root.apply();
      const estate = fixtureOf(
        await readNamespace(new Connection(client, { defaultTenant: tenant }), tenant),
      );
      const owner = (await client.identity()).userId ?? "";
      const plans: Record<string, RecordedPlan> = {};
      const record = async (title: string, changed: object, more: Partial<RecordedPlan> = {}) => {
        root.write({ resource: { ...configuration, ...changed } });
        const plan = (await root.plan()) as unknown as Json;
        plans[title] = { plan, role: "owner", userId: owner, ...more };
      };
      const { gatehouse_public_key: all, gatehouse_member: members }: Configuration = configuration;
      await record("new key", { gatehouse_public_key: { ...all, eve: key("eve") } });
      await record("wider key", {
        gatehouse_public_key: { ...all, ana: key("ana", { username: "^(ana|eve)$" }) },
      });
      await record("deleted rule", { gatehouse_firewall_rule: undefined });
      await record("changed rule", { gatehouse_firewall_rule: { no_root: { ...rule, active: false } } });
      await record("tagged device", {
        gatehouse_device_tags: {
          ...configuration.gatehouse_device_tags,
          one: { device: "edge-01", tags: ["lab", "web"] },
        },
      });
      await record("weaker setting", {
        gatehouse_namespace: { home: { name, adopt: "overwrite", settings: { session_record: false } } },
      });
      await record("higher role", {
        gatehouse_member: { ...members, dave: { email: "dave@example.com", role: "administrator" } },
      });
      const carol = { role: "administrator" as const, userId: users.carol ?? "" };
      await record("deleted administrator", { gatehouse_member: { dave: members.dave } }, carol);
      await record(
        "missing permission",
        { gatehouse_public_key: { ...all, ana: key("ana", { name: "renamed" }) } },
        { role: "observer", userId: users.dave ?? "" },
      );
      await record("unknown login", {
        terraform_data: { login: { input: "^eve$" } },
        gatehouse_public_key: { ...all, ana: key("ana", { username: `\${terraform_data.login.output}` }) },
      });
      mkdirSync(dirname(RECORDED), { recursive: true });
      writeFileSync(RECORDED, `${JSON.stringify({ estate, plans }, withoutMaps)}\n`);
    } finally {
      await provider.stop();
      await fleet.stop();
    }
  });
});
