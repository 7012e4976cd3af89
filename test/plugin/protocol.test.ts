import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { UNKNOWN } from "../../provider/engineMarks.ts";
import { functions } from "../../provider/providers/functions.ts";
import { type ProviderServer, serveProvider } from "../../provider/providers/plugin/grpcServer.ts";
import { PulumiProvider } from "../../provider/providers/plugin/pulumiProvider.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { failureOf, type Message, PluginClient } from "../support/pluginClient.ts";
import { startLossyProxy } from "../support/proxy.ts";

type Values = Record<string, unknown>;

const SIGNATURE = "4dabf18193072939515e22adb298388d";
const secret = (value: unknown) => ({ [SIGNATURE]: "1b47061264138c4ac30d75fd1eb44270", value });
const output = (fields: Values) => ({ [SIGNATURE]: "d0e6a833031e9bbcd3f4e8bde6ca49a4", ...fields });
const UNKNOWN_LIST = "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2";
const TENANT = "3dd0d1f8-8246-4519-b11a-a3dd33717f65";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.stop());

/** A plugin, and the messages that it sent to the engine. */
interface Started {
  readonly client: PluginClient;
  readonly messages: { readonly message: string; readonly urn: string | undefined }[];
}

const running: { server: ProviderServer; client: PluginClient }[] = [];
afterEach(() => {
  for (const { server, client } of running.splice(0)) {
    client.close();
    server.close();
  }
});

async function start(env: Record<string, string> = fleet.env): Promise<Started> {
  const messages: { message: string; urn: string | undefined }[] = [];
  const service = new PulumiProvider({ log: (message, urn) => messages.push({ message, urn }) }, env);
  const server = await serveProvider(service);
  const client = new PluginClient(server.port);
  running.push({ server, client });
  return { client, messages };
}

const DEFAULT = "urn:pulumi:dev::project::pulumi:providers:gatehouse::default_0_1_0";
const OWN = "urn:pulumi:dev::project::pulumi:providers:gatehouse::mine";
const urn = (type: string, name = "it") => `urn:pulumi:dev::project::gatehouse:index:${type}::${name}`;

async function configured(
  env: Record<string, string> = fleet.env,
  args: Values = {},
  instance = DEFAULT,
): Promise<Started> {
  const started = await start(env);
  const id = "8d8e0b9e-3a6f-4f9a-bb1d-111111111111";
  await started.client.call("configure", { urn: instance, id, args });
  return started;
}

/** Returns the reasons of the input check failures in a response. */
const reasonsIn = ({ failuresList = [] }: Message): string[] =>
  failuresList.map(({ reason }: { readonly reason: string }) => reason);

async function checkInstance({ client }: Started, instance: string, news: Values, olds: Values = {}) {
  const response = await client.call("checkConfig", { urn: instance, olds, news });
  return { inputs: response.inputs ?? {}, failures: reasonsIn(response) };
}

async function check({ client }: Started, type: string, news: Values, name?: string, olds: Values = {}) {
  const { inputs = {}, failuresList = [] } = await client.call("check", { urn: urn(type, name), olds, news });
  return { inputs, failures: failuresList };
}

async function create({ client }: Started, type: string, properties: Values, preview = false) {
  const response = await client.call("create", { urn: urn(type), properties, preview });
  return { id: String(response.id ?? ""), state: response.properties };
}

async function invoke({ client }: Started, tok: string, args: Values = {}) {
  const response = await client.call("invoke", { tok, args });
  return { result: response.return ?? {}, failures: reasonsIn(response) };
}

const rule = {
  action: "deny" as const,
  priority: 5,
  sourceIp: "^203",
  username: ".*",
  filter: { hostname: ".*" },
};

describe("a started plugin", () => {
  it("returns its capabilities, version and schema", async () => {
    const { client } = await start();
    expect(await client.call("handshake")).toMatchObject({
      acceptSecrets: true,
      acceptResources: true,
      acceptOutputs: true,
    });
    const info = await client.call("getPluginInfo");
    const { schema } = await client.call("getSchema");
    const file = fileURLToPath(new URL("../../provider/schemas/pulumi.json", import.meta.url));
    expect(schema === readFileSync(file, "utf8")).toBe(true);
    expect(JSON.parse(schema).version).toBe(info.version);
  });

  it("rejects the methods of other kinds of provider", async () => {
    const { client } = await start();
    await expect(client.call("construct")).rejects.toMatchObject({
      code: grpc.status.UNIMPLEMENTED,
    });
  });

  it("rejects calls before it is configured", async () => {
    await expect(check(await start(), "Tag", { name: "edge" })).rejects.toMatchObject({
      details: "The provider is not configured. [configuration]",
    });
  });
});

describe("the settings of an instance", () => {
  const env = { GATEHOUSE_URL: "https://one.example", GATEHOUSE_TOKEN: "t-env", GATEHOUSE_TENANT: TENANT };

  it("contain the service and the namespace in the environment, but never the credential in the environment", async () => {
    const started = await start(env);
    for (const instance of [DEFAULT, OWN]) {
      expect(await checkInstance(started, instance, { version: "0.1.0" })).toEqual({
        inputs: { version: "0.1.0", url: "https://one.example", tenant: TENANT },
        failures: [],
      });
    }
  });

  it("prefer the environment for the default instance, and the program for explicit instances", async () => {
    const started = await start(env);
    const given = { url: "https://two.example" };
    const defaults = await checkInstance(started, DEFAULT, given);
    expect(defaults.inputs).toMatchObject({ url: "https://one.example" });
    // The namespace in the environment is for another service, so the provider does not use it.
    expect((await checkInstance(started, OWN, given)).inputs).toEqual(given);
  });

  it("prefer the environment only for an engine's default instance", async () => {
    const given = { url: "https://two.example" };
    for (const name of ["default-lab", "defaultLab", "default_lab", "by-default"]) {
      const instance = `urn:pulumi:dev::project::pulumi:providers:gatehouse::${name}`;
      expect((await checkInstance(await start(env), instance, given)).inputs).toEqual(given);
    }
  });

  it("keep the service in the state for the default instance if no service is configured", async () => {
    const before = { url: "https://one.example", tenant: TENANT };
    const started = await start({});
    expect((await checkInstance(started, DEFAULT, {}, before)).inputs).toEqual(before);
    expect((await checkInstance(started, OWN, {}, before)).inputs).toEqual({});
    const moved = { GATEHOUSE_URL: "https://two.example" };
    expect((await checkInstance(await start(moved), DEFAULT, {}, before)).inputs).toEqual({
      url: "https://two.example",
    });
  });

  it("reject a service that differs from the state, for example after a change of the environment", async () => {
    const started = await configured(fleet.env, { url: "https://one.example" });
    await expect(invoke(started, "gatehouse:index:getTags")).rejects.toMatchObject({
      details: expect.stringMatching(
        /^url: The objects in this state are on the service https:\/\/one\.example, /,
      ),
    });
  });

  it("are secret in the state if they are credentials, even from a plaintext input", async () => {
    const { inputs } = await checkInstance(await start(env), DEFAULT, { apiKey: "a-key" });
    expect(inputs.apiKey).toEqual(secret("a-key"));
  });

  it("keep unknown values", async () => {
    const given = { url: UNKNOWN, tenant: UNKNOWN, password: UNKNOWN, username: "ana" };
    expect(await checkInstance(await start({}), OWN, given)).toEqual({
      inputs: { ...given, password: secret(UNKNOWN) },
      failures: [],
    });
    // If the address is unknown, the service may differ from the environment's service. So the provider does not use
    // the environment's namespace.
    const { inputs } = await checkInstance(await start(env), OWN, { url: UNKNOWN });
    expect(inputs).toEqual({ url: UNKNOWN });
  });

  it("do not apply the environment's namespace to a resource if the instance's namespace is unknown", async () => {
    const started = await configured({ ...env }, { tenant: UNKNOWN }, OWN);
    expect((await check(started, "FirewallRule", rule)).inputs).toMatchObject({ tenant: UNKNOWN });
    // Existing objects keep their namespace while the new namespace is unknown.
    const known = { ...rule, tenant: TENANT };
    expect((await check(started, "FirewallRule", rule, "it", known)).inputs).not.toHaveProperty("tenant");
  });

  it.each<[string, Values, RegExp]>([
    [
      "an unknown setting",
      { uri: "x" },
      /^uri is not a setting of the provider\. Valid settings: url, caFile, tenant, retryTimeout, oidc, .*apiKey/,
    ],
    ["an invalid address", { url: "nowhere" }, /^url has no scheme\. Set it to https:\/\/nowhere/],
    ["an address of a file", { url: "file:///etc" }, /^url is not the URL of a service/],
    [
      "an invalid namespace",
      { tenant: "prod" },
      /^tenant must be the id of a namespace, a lower-case uuid, not "prod"\. Run gatehouse namespace list/,
    ],
    ["two credentials", { token: "a", apiKey: "b" }, /GATEHOUSE_API_KEY/],
    ["an incomplete credential", { username: "ana" }, /GATEHOUSE_PASSWORD/],
    ["a number instead of a text", { url: 3 }, /^url must be a string/],
  ])("are rejected: %s", async (_title, given, reason) => {
    const { failures } = await checkInstance(await start({}), OWN, given);
    expect(failures).toEqual([expect.stringMatching(reason)]);
  });

  async function diff(before: Values, after: Values) {
    const { client } = await start({});
    const { diffsList = [], replacesList = [] } = await client.call("diffConfig", {
      urn: OWN,
      oldInputs: before,
      news: after,
    });
    return { diffs: diffsList, replaces: replacesList };
  }
  const here = { url: "https://one.example", tenant: TENANT, token: "a" };

  it("replace the instance only for another service", async () => {
    const elsewhere = { ...here, url: "https://two.example" };
    expect(await diff(here, elsewhere)).toEqual({ diffs: ["url"], replaces: ["url"] });
    expect(await diff(here, { ...here, url: UNKNOWN })).toEqual({ diffs: ["url"], replaces: ["url"] });
    expect((await diff(here, { ...here, url: "https://ONE.example/" })).replaces).toEqual([]);
    const rotated = { url: here.url, tenant: TENANT, apiKey: "b" };
    expect(await diff(here, rotated)).toEqual({ diffs: ["apiKey", "token"], replaces: [] });
    expect((await diff(here, { ...here, tenant: fleet.tenant })).replaces).toEqual([]);
    expect(await diff(here, { ...here, version: "2" })).toEqual({ diffs: [], replaces: [] });
  });

  it("never send the environment's credential to another service", async () => {
    const { GATEHOUSE_USERNAME, GATEHOUSE_PASSWORD } = fleet.env;
    const credential = {
      ...(GATEHOUSE_USERNAME && { GATEHOUSE_USERNAME }),
      ...(GATEHOUSE_PASSWORD && { GATEHOUSE_PASSWORD }),
    };
    const { GATEHOUSE_URL: url } = fleet.env;
    const elsewhere = { ...credential, GATEHOUSE_URL: "https://one.example" };
    // The environment has a credential but no service address, so the provider cannot know the credential's service.
    for (const env of [elsewhere, credential]) {
      const rejected = invoke(await configured(env, { url }, OWN), "gatehouse:index:getTags");
      await expect(rejected).rejects.toMatchObject({
        details: expect.stringMatching(
          /^credential: The credential in the environment cannot be used for http/,
        ),
      });
    }
    const own = { url, username: GATEHOUSE_USERNAME, password: secret(GATEHOUSE_PASSWORD) };
    const response = await invoke(await configured(elsewhere, own, OWN), "gatehouse:index:getTags");
    expect(response.result).toEqual({ tags: [] });
  });
});

describe("check", () => {
  it("reports invalid inputs with the name of the property", async () => {
    const { failures } = await check(await configured(), "FirewallRule", { ...rule, action: "maybe" });
    expect(failures).toEqual([{ reason: expect.stringMatching(/^action must be one of/) }]);
  });

  it("sets the namespace of the provider instance if the program sets none", async () => {
    const started = await configured(fleet.env, { tenant: TENANT }, OWN);
    expect((await check(started, "Tag", { name: "edge" })).inputs).toEqual({ name: "edge", tenant: TENANT });
  });

  it("keeps secret and unknown values of any type", async () => {
    const given = {
      ...rule,
      username: secret("^root$"),
      sourceIp: output({ value: "^198", secret: true, dependencies: ["urn"] }),
      priority: output({}),
      filter: { tags: UNKNOWN_LIST },
    };
    const { inputs, failures } = await check(await configured(), "FirewallRule", given);
    expect(failures).toEqual([]);
    expect(inputs).toMatchObject({
      username: secret("^root$"),
      sourceIp: secret("^198"),
      priority: UNKNOWN,
      filter: { tags: UNKNOWN },
    });
  });

  it("sets defaults of omitted members next to unknown members, and treats a list with an unknown item as unknown", async () => {
    const started = await configured();
    const settings = { connectionAnnouncement: UNKNOWN };
    const { inputs } = await check(started, "Namespace", { name: "trials", settings });
    expect(inputs.settings).toMatchObject({ sessionRecord: true, connectionAnnouncement: UNKNOWN });
    const tags = await check(started, "DeviceTags", { device: "web-01", tags: ["zed", UNKNOWN] });
    expect(tags.inputs.tags).toBe(UNKNOWN);
  });

  it("hides secrets in the errors of rejected inputs", async () => {
    const { failures } = await check(await configured(), "FirewallRule", {
      ...rule,
      sourceIp: secret("(hush"),
    });
    expect(failures).toHaveLength(1);
    expect(failures[0]?.reason).toContain("[secret]");
    expect(failures[0]?.reason).not.toContain("hush");
  });

  it("does not mask a word of its own messages that equals a secret", async () => {
    const { failures } = await check(await configured(), "FirewallRule", { ...rule, extra: secret("input") });
    expect(failures[0]?.reason).toMatch(/^extra is not an input/);
  });

  it("rejects a second resource for one object", async () => {
    const started = await configured();
    await check(started, "Namespace", { name: "trials" }, "one");
    const { failures } = await check(started, "Namespace", { name: "Trials" }, "two");
    expect(failures).toEqual([{ reason: expect.stringMatching(/^name: Namespace "two" and /) }]);
  });

  it("lists the existing resource types", async () => {
    await expect(check(await configured(), "Rule", {})).rejects.toMatchObject({
      details: expect.stringMatching(
        /^gatehouse:index:Rule is not a resource of this provider; valid resources: gatehouse:index:Namespace, /,
      ),
    });
  });
});

describe("diff", () => {
  async function diff(type: string, state: Values, news: Values, ignored: string[] = []) {
    const { client } = await configured();
    const { detaileddiffMap = {} } = await client.call("diff", {
      urn: urn(type),
      id: "id",
      olds: state,
      news,
      ignorechangesList: ignored,
    });
    const nameOf = (kind = 0) =>
      Object.entries(proto.PropertyDiff.Kind).find(([, number]) => number === kind)?.[0];
    return Object.fromEntries(
      Object.entries<Message>(detaileddiffMap).map(([place, { kind }]) => [place, nameOf(kind)]),
    );
  }

  it("reports each changed path, and the paths that require a replacement", async () => {
    const settings = { sessionRecord: true, connectionAnnouncement: "" };
    expect(
      await diff(
        "Namespace",
        { name: "a", settings, forceDestroy: false },
        { name: "b", settings: { ...settings, sessionRecord: false }, forceDestroy: false },
      ),
    ).toEqual({ name: "UPDATE", "settings.sessionRecord": "UPDATE" });
    const key = { validDays: 30, rotateBefore: 0, overlap: 0, expiresAt: "", previous: [] };
    expect(
      await diff(
        "ApiKey",
        { ...key, keepers: { "a.b": "1", c: "1" } },
        { ...key, validDays: 60, keepers: { "a.b": "2", d: "1" } },
      ),
    ).toEqual({
      validDays: "UPDATE_REPLACE",
      'keepers["a.b"]': "UPDATE_REPLACE",
      "keepers.c": "DELETE_REPLACE",
      "keepers.d": "ADD_REPLACE",
    });
    expect(await diff("FirewallRule", rule, { ...rule, filter: { tags: ["b", "a"] } })).toEqual({
      "filter.hostname": "DELETE",
      "filter.tags": "ADD",
    });
  });

  it("reports the name of the whole input if engines cannot parse the path", async () => {
    const key = { validDays: 30, rotateBefore: 0, overlap: 0, expiresAt: "", previous: [] };
    const keepers = { 'x["q"]\\': "1" };
    expect(await diff("ApiKey", { ...key, keepers: { a: "1" } }, { ...key, keepers })).toEqual({
      keepers: "UPDATE_REPLACE",
    });
  });

  it("omits paths of ignoreChanges, including out-of-band changes", async () => {
    const state = { ...rule, active: true, username: "^eve$", filter: { hostname: "^web" } };
    const news = { ...rule, active: true };
    expect(await diff("FirewallRule", state, news, ["username", "filter.hostname"])).toEqual({});
    expect(await diff("FirewallRule", state, news, ["username"])).toEqual({ "filter.hostname": "UPDATE" });
    expect(await diff("FirewallRule", state, news, ["filter"])).toEqual({ username: "UPDATE" });
  });

  it("is empty if only the markers of dynamic resources differ", async () => {
    const former = { ...rule, active: true, __provider: "code", __logicalId: "urn", __stateId: "id" };
    expect(await diff("FirewallRule", former, { ...rule, active: true })).toEqual({});
  });
});

describe("create", () => {
  it("returns known values in a preview, and creates no object", async () => {
    const started = await configured();
    const { id, state } = await create(started, "ApiKey", { validDays: 30, keepers: {} }, true);
    expect(id).toBe("");
    expect(state).toMatchObject({ validDays: 30, name: UNKNOWN, tenant: UNKNOWN, key: secret(UNKNOWN) });
    expect(await fleet.client.listApiKeys()).toEqual([]);
  });

  it("marks secret values in the response", async () => {
    const { state } = await create(await configured(), "ApiKey", { name: secret("ci-key"), validDays: 30 });
    expect(state).toMatchObject({ key: secret(expect.any(String)), name: secret("ci-key") });
    await fleet.client.deleteApiKey({ params: { key: "ci-key" } });
  });

  it("reports a created but incomplete object with all known values", async () => {
    const proxy = await startLossyProxy(fleet.service.url);
    const env = { ...fleet.env, GATEHOUSE_URL: proxy.url, GATEHOUSE_RETRY_TIMEOUT: "0" };
    const started = await configured(env);
    const isChange = (method: string, path: string) =>
      method === "PUT" && path.startsWith("/api/namespaces/");
    proxy.loseAnswers(isChange, isChange);
    const settings = { sessionRecord: false, connectionAnnouncement: "" };
    const error = await create(started, "Namespace", { name: "halfway", settings }).catch(
      (error: unknown) => error,
    );
    const { initFailed: failure } = failureOf(error).error;
    const [created] = await fleet.client
      .getNamespaces({ query: {} })
      .then((all) => all.filter(({ name }) => name === "halfway"));
    expect(failure).toEqual({
      id: created?.tenantId,
      properties: expect.objectContaining({ name: "halfway", tenant: created?.tenantId }),
      inputs: { name: "halfway", settings },
      reasonsList: [expect.any(String)],
    });
    const tenant = created?.tenantId ?? "";
    await fleet.client.forTenant(tenant).deleteNamespace({ params: { tenant } });
    await proxy.stop();
  });

  it("reports an adopted object to the engine, with the URN of its resource", async () => {
    const { id } = await fleet.client.createFirewallRule({ body: { ...rule, active: true } });
    const started = await configured();
    await create(started, "FirewallRule", { ...rule, active: true, adopt: true });
    expect(started.messages).toEqual([
      {
        message: `FirewallRule "it": adopted the existing object ${fleet.tenant}/${id}`,
        urn: urn("FirewallRule"),
      },
    ]);
    await fleet.client.deleteFirewallRule({ params: { id } });
  });

  it("hides secrets in the error about a conflicting object", async () => {
    const data = sshKeyLine();
    const key = { name: "ana", username: "^hush$", filter: { hostname: ".*" } };
    const { fingerprint } = await fleet.client.createPublicKey({
      body: { ...key, data: Buffer.from(data).toString("base64") },
    });
    const inputs = { ...key, data, username: secret("^other$") };
    const rejected = create(await configured(), "PublicKey", inputs);
    const { message } = (await rejected.catch((error: unknown) => error)) as Error;
    expect(message).toContain("username (secret)");
    expect(message).not.toMatch(/hush|other\$/);
    await fleet.client.deletePublicKey({ params: { fingerprint } });
  });

  it("fails at once if the service is unreachable, and reports the address of the service", async () => {
    const started = await configured({ ...fleet.env, GATEHOUSE_URL: "http://127.0.0.1:1" });
    await expect(create(started, "FirewallRule", rule)).rejects.toMatchObject({
      code: grpc.status.UNKNOWN,
      details: expect.stringContaining("127.0.0.1:1"),
    });
  });
});

describe("delete", () => {
  it("deletes an object after the diff of a refresh, which does not count as a declaration", async () => {
    const started = await configured();
    const created = await create(started, "FirewallRule", rule);
    const { client } = await configured();
    const object = { urn: urn("FirewallRule"), id: created.id };
    await client.call("diff", { ...object, olds: created.state, news: rule });
    await client.call("delete", { ...object, properties: created.state });
    expect(await fleet.client.getFirewallRules()).toEqual([]);
  });
});

describe("update", () => {
  it("keeps out-of-band changes of ignored inputs", async () => {
    const started = await configured();
    const created = await create(started, "FirewallRule", { ...rule, active: true });
    const { filter, ...others } = rule;
    await fleet.client.updateFirewallRule({
      params: { id: created.id.split("/")[1] ?? "" },
      body: { ...others, filter, active: true, username: "^eve$" },
    });
    await started.client.call("update", {
      urn: urn("FirewallRule"),
      id: created.id,
      // A refresh has read the change.
      olds: { ...created.state, username: "^eve$" },
      news: { ...rule, active: true, priority: 8 },
      ignorechangesList: ["username"],
    });
    const [changed] = await fleet.client.getFirewallRules();
    expect(changed).toMatchObject({ priority: 8, username: "^eve$" });
    await fleet.client.deleteFirewallRule({ params: { id: changed?.id ?? "" } });
  });
});

describe("read", () => {
  async function read({ client }: Started, type: string, id: string, state?: Values) {
    const response = await client.call("read", { urn: urn(type), id, properties: state });
    return { id: response.id ?? "", state: response.properties ?? {}, inputs: response.inputs };
  }

  it("returns the inputs that declare the object for an import, and no inputs for a refresh", async () => {
    const { id } = await fleet.client.createFirewallRule({ body: { ...rule, active: true } });
    const started = await configured();
    const full = `${fleet.tenant}/${id}`;
    const imported = await read(started, "FirewallRule", full);
    const declared = { ...rule, active: true, tenant: fleet.tenant };
    expect(imported).toMatchObject({ id: full, inputs: declared, state: { ...declared, ruleId: id } });
    const refreshed = await read(started, "FirewallRule", full, imported.state);
    expect(refreshed).toEqual({ ...imported, inputs: undefined });
    await fleet.client.deleteFirewallRule({ params: { id } });
    expect(await read(await configured(), "FirewallRule", full, imported.state)).toEqual({
      id: "",
      state: {},
      inputs: undefined,
    });
  });

  it("keeps a secret of the state secret", async () => {
    const data = sshKeyLine();
    const key = { name: "ana", username: "^root$", filter: { hostname: ".*" }, data };
    const started = await configured();
    const created = await create(started, "PublicKey", { ...key, username: secret(key.username) });
    const live = await read(started, "PublicKey", created.id, created.state);
    expect(live.state.username).toEqual(secret("^root$"));
    await fleet.client.deletePublicKey({ params: { fingerprint: String(created.state.fingerprint) } });
  });

  it("rejects an id of the wrong format", async () => {
    await expect(read(await configured(), "FirewallRule", "7")).rejects.toMatchObject({
      details: expect.stringContaining("tenant/"),
    });
  });
});

describe("functions", () => {
  it.each(functions.map(({ name }) => name))("%s returns a result", async (name) => {
    const { result, failures } = await invoke(await configured(), `gatehouse:index:${name}`);
    expect(failures).toEqual([]);
    expect(Object.keys(result).length).toBeGreaterThan(0);
  });

  it("report invalid arguments", async () => {
    const started = await configured();
    expect(
      (await invoke(started, "gatehouse:index:getDevices", { status: "gone", names: [] })).failures,
    ).toEqual([expect.stringMatching(/^getDevices\.status must be one of/), expect.stringMatching(/names/)]);
    const addressed = await invoke(started, "gatehouse:index:getAccess", { addresses: ["127.1"] });
    expect(addressed.failures).toEqual(["getAccess.addresses.0 must be an IPv4 or IPv6 address."]);
    await expect(invoke(started, "gatehouse:index:getAccess", { devices: ["none"] })).rejects.toMatchObject({
      details: expect.stringMatching(/^getAccess\.devices: The selector none matches none of/),
    });
    await expect(invoke(started, "gatehouse:index:getAll")).rejects.toMatchObject({
      details: expect.stringContaining("valid functions: gatehouse:index:getDevices, "),
    });
  });
});

describe("after cancel", () => {
  it("no call starts, and running calls finish", async () => {
    const started = await configured();
    const running = create(started, "FirewallRule", rule);
    await started.client.call("cancel");
    const created = await running;
    await expect(create(started, "FirewallRule", { ...rule, priority: 6 })).rejects.toMatchObject({
      code: grpc.status.CANCELLED,
    });
    const rules = await fleet.client.getFirewallRules();
    expect(rules.map(({ id }) => `${fleet.tenant}/${id}`)).toEqual([created.id]);
    await fleet.client.deleteFirewallRule({ params: { id: String(created.state.ruleId) } });
  });
});
