import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { terraformName } from "../../provider/terraform/types.ts";
import { shared } from "../support/shared.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { Harness } from "./support/harness.ts";

const DEFAULTS = {
  sessionRecord: true,
  connectionAnnouncement: "",
  deviceProof: "optional",
  sessionMaxMinutes: 0,
  sessionIdleMinutes: 0,
  sessionRecordMode: "default",
  sessionRecordMegabytes: 0,
  sessionRecordFailure: "continue",
  sshForwarding: [],
};
const RULES = [
  { login: "^admin$", target: "^\\[2001:db8::1\\]:443$" },
  { login: "^deploy$", target: "^db-[0-9]+:5432$" },
];
const ALL = {
  sessionRecord: false,
  connectionAnnouncement: "Authorized use only.",
  deviceProof: "required",
  sessionMaxMinutes: 480,
  sessionIdleMinutes: 15,
  sessionRecordMode: "terminals",
  sessionRecordMegabytes: 64,
  sessionRecordFailure: "end",
  sshForwarding: RULES,
};
type Declared = Record<string, unknown>;
const added = Object.keys(DEFAULTS).slice(2) as (keyof typeof DEFAULTS)[];

const fleet = sharedFleet();
let harness: Harness;
beforeEach(() => {
  harness = new Harness(fleet.env);
});
afterEach(async () => {
  for (const { tenantId, name } of await fleet.client.getNamespaces({ query: { perPage: 100 } })) {
    if (name !== "trials") continue;
    await fleet.client.forTenant(tenantId).deleteNamespace({ params: { tenant: tenantId } });
  }
  await harness.close();
});

const program = (settings?: Declared) => ({ it: { type: "Namespace", args: { name: "trials", settings } } });
const tenant = () => String(harness.state.get("it")?.outputs.tenant);
const stateSettings = () => harness.state.get("it")?.outputs.settings as Declared;
const liveSettings = async () =>
  (await fleet.client.forTenant(tenant()).getNamespace({ params: { tenant: tenant() } }))
    .settings as Declared;
const changeOutOfBand = (settings: Declared) =>
  fleet.client.forTenant(tenant()).editNamespace({ params: { tenant: tenant() }, body: { settings } });

describe("settings of a Namespace", () => {
  it("are all set by a create, reset to their defaults, and set by an update", async () => {
    for (const [settings, step] of [
      [ALL, "create it"],
      [undefined, "update it"],
      [ALL, "update it"],
    ] as const) {
      expect(await harness.up(program(settings))).toEqual([step]);
      const expected = settings ?? DEFAULTS;
      expect(stateSettings()).toEqual(expected);
      expect({ ...DEFAULTS, ...(await liveSettings()) }).toEqual(expected);
      expect(await harness.refresh()).toEqual([]);
      expect(await harness.preview(program(settings))).toEqual([]);
    }
  });

  it("treat forwarding rules as a set, so that order and duplicates are no change", async () => {
    await harness.up(program({ sshForwarding: RULES }));
    const [first, second] = RULES;
    for (const sshForwarding of [RULES.toReversed(), [first, second, first]]) {
      expect(await harness.preview(program({ sshForwarding }))).toEqual([]);
      await changeOutOfBand({ sshForwarding });
      expect(await harness.refresh()).toEqual([]);
    }
    expect(await harness.preview(program({ sshForwarding: [first] }))).toEqual(["update it"]);
  });

  it.each(added)("%s: a change out of band is drift, and is reverted to the default", async (name) => {
    await harness.up(program());
    await changeOutOfBand({ [name]: ALL[name] });
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(stateSettings()).toEqual({ ...DEFAULTS, [name]: ALL[name] });
    expect(await harness.up(program())).toEqual(["update it"]);
    expect(await liveSettings()).not.toHaveProperty(name);
    expect(stateSettings()).toEqual(DEFAULTS);
  });

  it("that changed after the last refresh are not reverted by an update of another setting", async () => {
    await harness.up(program());
    await changeOutOfBand({ deviceProof: "required" });
    const refused = /settings is .*"deviceProof":"required".* on the service.*changed_out_of_band/s;
    await expect(harness.up(program({ sessionRecord: false }))).rejects.toThrow(refused);
    expect(await liveSettings()).toMatchObject({ sessionRecord: true, deviceProof: "required" });
    await harness.refresh();
    await harness.up(program({ sessionRecord: false }));
    expect(stateSettings()).toEqual({ ...DEFAULTS, sessionRecord: false });
    expect(await liveSettings()).toEqual({ sessionRecord: false, connectionAnnouncement: "" });
  });

  // Terraform upgrades old states with a separate request: see test/terraform/configurations.test.ts.
  it.skipIf(isTerraform)(
    "that are missing in the state of an older version are neither drift nor a change",
    async () => {
      // The settings have the order in which the plugin sorts them, since the test harness compares objects including
      // the order of their fields.
      const settings = { connectionAnnouncement: "", sessionRecord: false };
      await harness.up(program(settings));
      const entry = harness.state.get("it");
      if (!entry) throw new Error("the state has no namespace");
      harness.state.set("it", { ...entry, outputs: { ...entry.outputs, settings } });
      expect(await harness.preview(program(settings))).toEqual([]);
      expect(await harness.refresh()).toEqual([]);
      expect(await harness.preview(program({ ...settings, sessionMaxMinutes: 5 }))).toEqual(["update it"]);
      await changeOutOfBand({ sessionMaxMinutes: 5 });
      expect(await harness.refresh()).toEqual(["update it"]);
    },
  );
});

describe("new settings of a Namespace on a server of version 0.19", () => {
  const sparse = shared(() => startSparseService(fleet.service.url));
  beforeEach(() => {
    harness = new Harness({ ...fleet.env, GATEHOUSE_URL: sparse.url });
  });

  it("are not sent by programs that do not set them", async () => {
    await harness.up(program({ sessionRecord: false }));
    // The older server does not return this setting, so the provider cannot detect the change. Only a request that
    // contains the setting could reset it.
    await changeOutOfBand({ deviceProof: "required" });
    await harness.up(program({ connectionAnnouncement: "hello" }));
    expect(await liveSettings()).toMatchObject({ connectionAnnouncement: "hello", deviceProof: "required" });
    expect(await harness.preview(program({ connectionAnnouncement: "hello" }))).toEqual([]);
  });

  it.each(added)("%s: is refused at preview", async (name) => {
    await harness.up(program());
    await expect(harness.preview(program({ [name]: ALL[name] }))).rejects.toThrow(
      new RegExp(
        `settings\\.${isTerraform ? terraformName(name) : name}: This server \\(ShellHub 0\\.19\\.0, .*\\) does not have this setting`,
      ),
    );
    expect(await harness.preview(program())).toEqual([]);
  });
});
