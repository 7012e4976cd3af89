// Plans of OpenTofu are recorded in `recorded`, so that their review is also tested without `tofu`. With `tofu` on the
// PATH, this command records them again:
//
//   GATEHOUSE_RECORD=1 npx vitest run test/terraform/opentofuPlans.test.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { installProvider, mirrorText } from "../../provider/terraform/installProvider.ts";
import { SOURCE, TERRAFORM_CLIS } from "../../provider/terraform/source.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import {
  changesIn,
  hasTofu,
  keyArguments,
  type PlanJson,
  RootModule,
  TOFU_LABEL,
} from "./support/terraform.ts";

const isRecording = Boolean(process.env.GATEHOUSE_RECORD);
const recordedFile = (name: string) => join(import.meta.dirname, "recorded", `opentofu-${name}.json`);
/**
 * The service address and namespace ids in recorded plans. A recording puts them in place of the real values, and a
 * replay replaces them with the values of its own service.
 */
const RECORDED = {
  url: "https://access.example.org",
  here: "00000000-0000-4000-8000-000000000000",
  second: "00000000-0000-4000-8000-000000000001",
};
type World = typeof RECORDED;

/** Replaces the service address and the namespace ids in a plan with those of another service. */
const movedTo = (plan: string, from: World, to: World): string =>
  (Object.keys(from) as (keyof World)[]).reduce((text, name) => text.replaceAll(from[name], to[name]), plan);

const LINES = {
  ana: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII7NNtWhDQvoKUTVJdc22v7iZuKKL44854uks3V01foJ",
  ben: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA1ns7a2zk8qNxpt5DQWSXaoRmSM2ehBI4OdGV+rQMUj",
  new: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICSGn61xImNcgCL5CDsJXmUAJWDdK4LBoVUsQsZdaV0t",
};

const key = (name: "ana" | "ben", username: string, more: object = {}) =>
  keyArguments({ name, data: LINES[name], username, filter: { hostname: "^edge-01$" }, ...more });
const keys = (all: object, more: object = {}) => ({ resource: { gatehouse_public_key: all }, ...more });

/** A key in each namespace. One provider block with for_each configures an instance for each namespace. */
const eachTenant = ({ here, second }: World, block: object) =>
  keys(
    { ana: key("ana", "^root$", { for_each: `\${local.tenants}`, provider: "gatehouse.each[each.key]" }) },
    {
      locals: { tenants: { here, second } },
      provider: { gatehouse: [{ alias: "each", for_each: `\${local.tenants}`, ...block }] },
    },
  );

/** The expected result of a review. */
interface Review {
  readonly code: number;
  readonly prints: readonly string[];
  readonly omits?: readonly string[];
}

const STAYS = "leaves its object unmanaged on the service; the access that the object gives remains";

/** A scenario: a plan, the resources that are applied before it, and the expected review. */
interface Scenario extends Review {
  /** The file name of the recorded plan. */
  readonly name: string;
  readonly title: string;
  /** The keys that are applied before the plan. */
  readonly before: Readonly<Record<string, ReturnType<typeof key>>>;
  readonly after: (world: World) => Readonly<Record<string, unknown>>;
  readonly flags?: readonly string[];
  /** The changes of the plan, as `address: actions`. */
  readonly changes: readonly string[];
}

const scenarios: readonly Scenario[] = [
  {
    name: "forget",
    title: "a resource that a removed block forgets stays on the service",
    before: { ana: key("ana", "^root$"), ben: key("ben", "^root$") },
    after: () =>
      keys(
        { ana: key("ana", "^root$") },
        { removed: [{ from: "gatehouse_public_key.ben", lifecycle: { destroy: false } }] },
      ),
    changes: ["gatehouse_public_key.ben: forget"],
    code: 0,
    prints: ["No access changes.", `PublicKey "gatehouse_public_key.ben" ${STAYS}`],
  },
  {
    name: "forget-replaced",
    title: "a replaced resource without destruction leaves its old object on the service",
    before: { ana: key("ana", "^root$") },
    after: () => keys({ ana: key("ana", "^root$", { data: LINES.new, lifecycle: { destroy: false } }) }),
    changes: ["gatehouse_public_key.ana: forget+create"],
    code: 0,
    prints: ["key ana gains login root on edge-01", `PublicKey "gatehouse_public_key.ana" ${STAYS}`],
    omits: ["loses login"],
  },
  {
    name: "exclude",
    title: "an excluded resource stays as it is",
    before: { ana: key("ana", "^root$"), ben: key("ben", "^root$") },
    after: () => keys({ ana: key("ana", "^ana$"), ben: key("ben", "^ben$") }),
    flags: ["-exclude=gatehouse_public_key.ben"],
    changes: ["gatehouse_public_key.ana: update"],
    code: 0,
    prints: ["key ana loses login root on edge-01", "key ana gains login ana on edge-01"],
    omits: ["ben"],
  },
  {
    name: "provider-for-each",
    title: "the instances of a provider block have the namespaces that the plan contains",
    before: {},
    after: (world) => eachTenant(world, { tenant: `\${each.value}` }),
    changes: ['gatehouse_public_key.ana["here"]: create', 'gatehouse_public_key.ana["second"]: create'],
    code: 0,
    prints: [
      "Access changes in the namespace admin",
      "key ana gains login root on edge-01",
      "Access changes in the namespace second",
    ],
    omits: ["is unknown in the plan"],
  },
  {
    name: "provider-for-each-url",
    title: "the instances of a provider block have services that the plan does not contain",
    before: {},
    after: (world) =>
      eachTenant(world, { tenant: `\${each.value}`, url: `\${trimsuffix("${world.url}/", "/")}` }),
    changes: ['gatehouse_public_key.ana["here"]: create', 'gatehouse_public_key.ana["second"]: create'],
    code: 2,
    prints: ["provider gatehouse.each: url is unknown in the plan"],
    omits: ["tenant is unknown in the plan"],
  },
];

describe("a plan of OpenTofu", () => {
  const fleet = sharedFleet();
  let world: World;
  beforeAll(async () => {
    const { tenantId: second } = await fleet.client.createNamespace({ body: { name: "second" } });
    world = { url: fleet.service.url, here: fleet.tenant, second };
    await fleet.enroll("edge-01");
  });
  afterEach(() => fleet.clear());

  async function expectReview(plan: string, { code, prints, omits = [] }: Review) {
    const folder = testFolder();
    const file = join(folder, "plan.json");
    writeFileSync(file, plan);
    const run = await gatehouse(["review", folder, "--terraform", file], fleet.env);
    for (const text of prints) expect(run.stdout).toContain(text);
    for (const text of omits) expect(run.stdout).not.toContain(text);
    expect(run.code).toBe(code);
  }

  it.skipIf(isRecording).each(scenarios)("as recorded: $title", async (scenario) => {
    for (const { data, ...rest } of Object.values(scenario.before))
      await fleet.client.createPublicKey({ body: { ...rest, data: Buffer.from(data).toString("base64") } });
    const plan = readFileSync(recordedFile(scenario.name), "utf8");
    expect(changesIn(JSON.parse(plan) as PlanJson)).toEqual(scenario.changes);
    await expectReview(movedTo(plan, RECORDED, world), scenario);
  });

  describe.runIf(hasTofu)(`created by ${TOFU_LABEL}`, { tags: ["long"], timeout: 180_000 }, () => {
    let root: RootModule;
    // OpenTofu must start the provider itself: it starts a process for each instance of a provider block.
    beforeEach(async () => {
      const mirror = testFolder();
      const settings = join(mirror, "tofurc");
      await installProvider({}, [TERRAFORM_CLIS.opentofu], mirror);
      writeFileSync(settings, mirrorText(mirror));
      root = new RootModule(testFolder(), { ...fleet.env, TF_CLI_CONFIG_FILE: settings }, "tofu");
    });

    it.each(scenarios)("$title", async (scenario) => {
      if (Object.keys(scenario.before).length > 0) {
        root.write(keys(scenario.before));
        await root.must("init");
        await root.apply();
      }
      root.write(scenario.after(world));
      await root.must("init");
      const plan = await root.plan(...(scenario.flags ?? []));
      expect(changesIn(plan)).toEqual(scenario.changes);
      const text = `${JSON.stringify(plan, null, 1)}\n`;
      if (isRecording) writeFileSync(recordedFile(scenario.name), movedTo(text, world, RECORDED));
      await expectReview(text, scenario);
    });

    it("can be reviewed if the state and the plan are encrypted", async () => {
      const encryption = {
        key_provider: { pbkdf2: { here: { passphrase: "correct-horse-battery", iterations: 200_000 } } },
        method: { aes_gcm: { here: { keys: "key_provider.pbkdf2.here" } } },
        state: { method: "method.aes_gcm.here", enforced: true },
        plan: { method: "method.aes_gcm.here", enforced: true },
      };
      const terraform = { required_providers: { gatehouse: { source: SOURCE } }, encryption };
      root.write(keys({ ana: key("ana", "^root$") }, { terraform }));
      await root.must("init");
      await root.apply();
      const { folder } = root;
      expect(readFileSync(join(folder, "terraform.tfstate"), "utf8")).not.toContain("gatehouse_public_key");
      root.write(keys({ ana: key("ana", "^ana$") }, { terraform }));
      await expectReview(JSON.stringify(await root.plan()), {
        code: 0,
        prints: ["key ana loses login root on edge-01", "key ana gains login ana on edge-01"],
      });
      const encrypted = await gatehouse(["review", folder, "--terraform", join(folder, "plan")], fleet.env);
      expect([encrypted.code, encrypted.stderr]).toEqual([
        1,
        expect.stringContaining("is an encrypted file of OpenTofu"),
      ]);
    });
  });
});
