import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Client, createClient, passwordCredential, setSshAccessMode } from "../../sdk/index.ts";
import { RECORDED_PASSWORD as password, sharedRecording } from "../support/recordedServer.ts";
import { Harness, type Program } from "./support/harness.ts";

// The setting sshAccessMode on recorded 0.27 servers: a namespace in legacy mode, which may change its mode, and a
// namespace that was created in identity mode. To record, set RECORD to `legacy` or `identity`. Record each front end
// separately, in a new namespace.
const FRONT_END = process.env.TEST_FRONT_END ?? "dynamic";
const { RECORD } = process.env;

const namespace = (settings: object, name = "dev"): Program => ({
  it: { type: "Namespace", args: { name, adopt: "overwrite", settings } },
});

const mode = (sshAccessMode: string) => namespace({ sshAccessMode });

function server(name: "legacy" | "identity") {
  const file = new URL(`../fixtures/identityMode/${name}-${FRONT_END}.jsonl`, import.meta.url);
  const recorded = sharedRecording(file);
  let client: Client;
  let harness: Harness;
  beforeEach(() => {
    harness = new Harness(recorded.env());
    const { username } = recorded.facts;
    client = createClient({ url: recorded.url, credential: passwordCredential({ username, password }) });
  });
  afterEach(async () => {
    await harness.close();
    await client.close();
  });
  return {
    up: (program: Program) => harness.up(program),
    preview: (program: Program) => harness.preview(program),
    refresh: () => harness.refresh(),
    import: () => harness.import("it", "Namespace", recorded.facts.tenant),
    settings: () => harness.state.get("it")?.outputs.settings,
    writes: () => recorded.writes().map((request) => request.split("/api")[1]),
    changeOutOfBand: (other: string) => {
      const { tenant } = recorded.facts;
      return client
        .forTenant(tenant)
        .request(setSshAccessMode, { params: { tenant }, body: { ssh_access_mode: other } });
    },
    tenant: () => recorded.facts.tenant,
  };
}

describe.skipIf(RECORD === "identity")("a namespace in legacy mode", () => {
  const at = server("legacy");

  it("keeps the mode without the setting, and has no change after an import", async () => {
    await at.up(namespace({}));
    expect(at.settings()).not.toHaveProperty("sshAccessMode");
    expect(await at.preview(namespace({}))).toEqual([]);
    expect(await at.refresh()).toEqual([]);
    await at.changeOutOfBand("identity");
    expect(await at.refresh()).toEqual([]);
    expect(await at.preview(namespace({}))).toEqual([]);
    await at.changeOutOfBand("legacy");
    await at.import();
    expect(at.settings()).toMatchObject({ sshAccessMode: "legacy" });
    expect(await at.preview(namespace({}))).toEqual([]);
    expect(await at.preview(mode("legacy"))).toEqual([]);
    expect(await at.up(namespace({ connectionAnnouncement: "Welcome." }))).toEqual(["update it"]);
    expect(await at.preview(namespace({ connectionAnnouncement: "Welcome." }))).toEqual([]);
    expect(await at.refresh()).toEqual([]);
    expect(at.writes().filter((request) => request?.includes("ssh-access-mode"))).toHaveLength(2);
  });

  it("changes the mode with the last request, and only if the mode differs", async () => {
    await at.up(mode("legacy"));
    const others = { connectionAnnouncement: "Identity mode.", sshAccessMode: "identity" };
    expect(await at.preview(namespace(others))).toEqual(["update it"]);
    const before = at.writes().length;
    expect(await at.up(namespace(others))).toEqual(["update it"]);
    const tenant = at.tenant();
    expect(at.writes().slice(before)).toEqual([
      expect.stringContaining(`/namespaces/${tenant} `),
      `/namespaces/ssh-access-mode/${tenant} {"ssh_access_mode":"identity"}`,
    ]);
    expect(at.settings()).toMatchObject(others);
    expect(await at.preview(namespace(others))).toEqual([]);
    expect(await at.refresh()).toEqual([]);
    // A request for the same mode could create an access policy.
    await at.up(namespace({ connectionAnnouncement: "" }));
    const sent = at.writes().length;
    expect(await at.up(mode("identity"))).toEqual(["update it"]);
    expect(at.settings()).toMatchObject({ sshAccessMode: "identity" });
    expect(at.writes().slice(sent)).toEqual([]);
  });

  it("reports a change of the mode as drift, and changes it back", async () => {
    await at.up(mode("legacy"));
    await at.changeOutOfBand("identity");
    expect(await at.refresh()).toEqual(["update it"]);
    expect(at.settings()).toMatchObject({ sshAccessMode: "identity" });
    expect(await at.up(mode("legacy"))).toEqual(["update it"]);
    expect(at.writes().at(-1)).toContain('{"ssh_access_mode":"legacy"}');
    expect(await at.refresh()).toEqual([]);
    expect(await at.preview(mode("legacy"))).toEqual([]);
  });
});

describe.skipIf(RECORD === "legacy")("a namespace that was created in identity mode", () => {
  const at = server("identity");

  it("rejects the mode legacy at preview and before any write", async () => {
    const text =
      "This server (ShellHub 0.27.0-rc.6, community) does not change the namespace to legacy mode, because the namespace was created in identity mode";
    await expect(at.preview(mode("legacy"))).rejects.toThrow(text);
    await expect(at.up(mode("legacy"))).rejects.toThrow(text);
    expect(at.writes()).toEqual([]);
  });

  it("has no change with the mode identity", async () => {
    await at.up(mode("identity"));
    expect(at.settings()).toMatchObject({ sshAccessMode: "identity" });
    expect(await at.refresh()).toEqual([]);
    expect(at.writes().filter((request) => request?.includes("ssh-access-mode"))).toEqual([]);
  });
});
