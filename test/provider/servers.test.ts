import { mkdirSync, readdirSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import { agentCall, startFleet } from "../support/fleet.ts";
import { firewallRule } from "../support/policy.ts";
import {
  casesOf,
  recordedKey as keyOf,
  RECORDED_PASSWORD,
  type RecordedServer,
  recordServer,
  replayServer,
  settingsOf,
} from "../support/recordedServer.ts";
import { startSparseService } from "../support/sparseService.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { Harness, type Program } from "./support/harness.ts";
import { outOfBandChanges } from "./support/outOfBand.ts";

// The life of each resource type on this project's server, on a server of 0.19 as the specification describes it, and
// on recorded servers of other versions. To record a server, set RECORD to its version, and GATEHOUSE_URL,
// GATEHOUSE_USERNAME, GATEHOUSE_PASSWORD and GATEHOUSE_TENANT to a new namespace, which decides by access policies if
// the version has them. Record each front end separately, with a new namespace.
const FOLDER = new URL("../fixtures/servers/", import.meta.url);
const FRONT_END = process.env.TEST_FRONT_END ?? "dynamic";
// Slow, with TypeScript classes: lifecycle.test.ts has the life of each resource on one server. Runs of the other front
// ends are separate, and contain this test.
const SLOW = { tags: FRONT_END === "dynamic" ? ["long"] : [] };
const { RECORD, GATEHOUSE_URL = "", GATEHOUSE_USERNAME = "", GATEHOUSE_PASSWORD = "" } = process.env;
const { GATEHOUSE_TENANT = "" } = process.env;

type Args = Record<string, unknown>;

/** The life of a resource: its inputs, and the steps of its life. */
interface Life {
  readonly title?: string;
  readonly type: string;
  readonly base: Args;
  /** Inputs that an update changes. */
  readonly changed?: Args;
  /** Inputs that need a replacement. */
  readonly replaced?: Args;
  /** The input that a user changes outside the program, as in outOfBand.ts. */
  readonly drift?: string;
  /** True if a user can remove the object outside the program, and a refresh then deletes it from the state. */
  readonly removable?: boolean;
  /** Inputs that an import does not find out. */
  readonly unseen?: readonly string[];
  /** Other resources of the program, which exist during the whole life. */
  readonly beside?: Program;
  /** True if the object exists before, so that a create adopts it, and stays. */
  readonly isPermanent?: boolean;
  /** The oldest version with this resource. @default all versions have the resource */
  readonly since?: string;
  /** Inputs of the creation whose answer is lost, if the service does not allow the inputs a second time. */
  readonly again?: Args;
}

const tagsOn = (device: string, tags: readonly string[]): Program => ({
  tags: { type: "DeviceTags", args: { device, tags } },
});

const LIVES: readonly Life[] = [
  {
    type: "PublicKey",
    base: { name: "ana", data: keyOf("ana"), username: "^ana$", filter: { hostname: "^web" } },
    changed: { username: "^(ana|root)$", name: "ana (on call)" },
    replaced: { data: keyOf("ana2") },
    drift: "username",
    removable: true,
  },
  {
    title: "PublicKey by tag",
    type: "PublicKey",
    base: { name: "ben", data: keyOf("ben"), username: "^ben$", filter: { tags: ["prod"] } },
    changed: { filter: { tags: ["edge", "prod"] } },
    drift: "filter",
    removable: true,
    beside: tagsOn("web1", ["edge", "prod"]),
  },
  {
    type: "ApiKey",
    base: { name: "pipeline", role: "operator", validDays: 30 },
    changed: { role: "observer", name: "pipeline-2" },
    replaced: { validDays: 90 },
    drift: "role",
    removable: true,
    unseen: ["validDays"],
  },
  { type: "Tag", base: { name: "prod" }, changed: { name: "production" } },
  {
    title: "Tag in use",
    type: "Tag",
    base: { name: "canary" },
    beside: tagsOn("web1", ["canary"]),
  },
  {
    type: "DeviceTags",
    base: { device: "web1", tags: ["edge", "prod"] },
    changed: { tags: ["edge", "lab", "staging"] },
    drift: "tags",
    unseen: ["device"],
  },
  {
    type: "DeviceTagAttachment",
    base: { device: "web1", tag: "edge" },
    replaced: { tag: "lab" },
    removable: true,
    unseen: ["device"],
  },
  {
    type: "Device",
    base: { device: "02:00:00:00:00:02", name: "web-2", status: "accepted" },
    changed: { name: "web-two" },
    drift: "name",
    isPermanent: true,
    unseen: ["device"],
  },
  {
    type: "Member",
    base: { email: "ana@example.com", role: "observer" },
    changed: { role: "operator" },
  },
  {
    since: "0.27",
    type: "AccessPolicy",
    base: {
      name: "ops",
      subject: { role: "operator" },
      filter: { hostname: "^web" },
      logins: ["deploy", "ops"],
      sourceIps: ["10.0.0.0/8"],
      requireReauth: true,
      reauthPeriod: 3600,
    },
    changed: {
      subject: { allMembers: true },
      logins: ["*"],
      sourceIps: [],
      action: "deny",
      requireReauth: false,
      reauthPeriod: 0,
    },
    drift: "logins",
    removable: true,
  },
  {
    since: "0.27",
    title: "AccessPolicy by tag",
    type: "AccessPolicy",
    base: { name: "prod", subject: { role: "observer" }, filter: { tags: ["prod"] }, logins: ["ben"] },
    changed: { filter: { tags: ["edge", "prod"] } },
    drift: "filter",
    removable: true,
    beside: tagsOn("web1", ["edge", "prod"]),
  },
  {
    since: "0.27",
    type: "ServiceAccount",
    base: { name: "backup", data: keyOf("backup"), validDays: 30 },
    replaced: { name: "backups", singleUse: true },
    removable: true,
    unseen: ["data"],
  },
  {
    since: "0.27",
    type: "InstallKey",
    base: { name: "warehouse", mode: "allowlist", allowedMacs: ["02:00:00:00:00:09"], tags: ["lab"] },
    changed: {
      name: "warehouse-2",
      mode: "webhook",
      allowedMacs: [],
      webhookUrl: "https://hooks.example.com/enroll",
      webhookSecret: "first secret",
      validDays: 30,
    },
    drift: "disabled",
    unseen: ["webhookSecret"],
    again: { name: "warehouse-3" },
  },
];

const FOUR = { device: "web1", tags: ["one1", "two2", "three3", "four4"] };

/** The rule that a community instance does not have. */
const RULE: Args = firewallRule("deny", 1, { sourceIp: "^203\\." }).args;

/** Enrolls and accepts the devices that the programs use. */
async function prepare(client: Client, tenant: string): Promise<void> {
  for (const [index, name] of ["web1", "web2"].entries()) {
    const { uid } = await agentCall(client, name, `02:00:00:00:00:0${index + 1}`, tenant);
    await client.acceptDevice({ params: { uid } });
  }
}

async function factsOf(client: Client) {
  const { tenant = "" } = await client.identity();
  const { name } = await client.getNamespace({ params: { tenant } });
  return { tenant, namespace: name, time: new Date().toISOString() };
}

interface Started {
  readonly server: RecordedServer;
  readonly password: string;
  stop(): Promise<void>;
}

/** Starts this project's server. With `sparse`, clients see only what the specification of 0.19 describes. */
async function startOwn(sparse: boolean): Promise<Started> {
  const fleet = await startFleet(["ana"]);
  await prepare(fleet.client, fleet.tenant);
  const described = sparse ? await startSparseService(fleet.service.url) : undefined;
  const { GATEHOUSE_USERNAME: username = "", GATEHOUSE_PASSWORD: password = "" } = fleet.env;
  const facts = { ...(await factsOf(fleet.client)), version: "0.19.0", username };
  const server = await recordServer(described?.url ?? fleet.service.url, facts);
  return {
    server,
    password,
    async stop() {
      await server.stop();
      await described?.stop();
      await fleet.stop();
    },
  };
}

const fileOf = (version: string) => new URL(`${version}-${FRONT_END}.jsonl`, FOLDER);

async function startRecording(version: string): Promise<Started> {
  mkdirSync(FOLDER, { recursive: true });
  const credential = passwordCredential({ username: GATEHOUSE_USERNAME, password: GATEHOUSE_PASSWORD });
  const client = createClient({ url: GATEHOUSE_URL, credential });
  await prepare(client, GATEHOUSE_TENANT);
  const facts = { ...(await factsOf(client)), version, username: GATEHOUSE_USERNAME };
  await client.close();
  const server = await recordServer(GATEHOUSE_URL, facts, fileOf(version));
  return { server, password: RECORDED_PASSWORD, stop: server.stop };
}

async function startReplay(version: string): Promise<Started> {
  const server = await replayServer(fileOf(version));
  return { server, password: RECORDED_PASSWORD, stop: server.stop };
}

/** A server that the tests use: its name, whether it is a recorded server of a newer version, and its name in errors. */
interface Tested {
  readonly name: string;
  readonly isRecorded: boolean;
  inErrors(version: string): string;
  start(): Promise<Started>;
}

const recorded = readdirSync(FOLDER).flatMap((name) => {
  const [, version] = new RegExp(`^(.+)-${FRONT_END}\\.jsonl$`).exec(name) ?? [];
  return version === undefined ? [] : [version];
});
const recordedServer = (name: string, start: Tested["start"]): Tested => ({
  name,
  isRecorded: true,
  inErrors: (version) => `ShellHub ${version}, community`,
  start,
});
const OWN: Tested = {
  name: "this project's server",
  isRecorded: false,
  inErrors: (version) => `gatehouse-server, API of ShellHub ${version}`,
  start: () => startOwn(false),
};
const DESCRIBED: Tested = {
  name: "0.19 as described",
  isRecorded: false,
  inErrors: (version) => `ShellHub ${version}, enterprise or cloud`,
  start: () => startOwn(true),
};
const SERVERS: readonly Tested[] = RECORD
  ? [recordedServer(RECORD, () => startRecording(RECORD))]
  : [OWN, DESCRIBED, ...recorded.map((name) => recordedServer(name, () => startReplay(name)))];

/** The number of exchanges, by resource type, server and operation. */
const counts = new Map<string, Map<string, Record<string, number>>>();

describe.each(SERVERS)("$name", SLOW, ({ name, isRecorded, inErrors, start }) => {
  const fewTags = !isRecorded || /^0\.(19|20)/.test(name);
  let started: Started;
  let harness: Harness;
  let client: Client;

  beforeAll(async () => {
    started = await start();
  });
  casesOf(() => started.server);
  beforeEach(() => {
    const { server, password } = started;
    harness = new Harness({ ...settingsOf(server), GATEHOUSE_PASSWORD: password });
    const { username } = server.facts;
    client = createClient({ url: server.url, credential: passwordCredential({ username, password }) });
  });
  afterEach(async () => {
    await harness.close();
    await client.close();
  });
  afterAll(async () => {
    started.server.save();
    await started.stop();
  });

  /** Runs a step of a life, and counts its exchanges. */
  async function counted<T>(title: string, operation: string, step: () => Promise<T>): Promise<T> {
    const before = started.server.requests.length;
    const result = await step();
    const ofType = counts.get(title) ?? new Map<string, Record<string, number>>();
    counts.set(title, ofType);
    ofType.set(name, { ...ofType.get(name), [operation]: started.server.requests.length - before });
    return result;
  }

  const lives = LIVES.filter(({ since = "" }) => name.startsWith(since));

  it.each(lives.map((life) => ({ title: life.type, ...life })))("$title", async (life) => {
    const { title, type, base, changed, replaced, drift, removable, isPermanent, unseen = [] } = life;
    const beside = life.beside ?? {};
    const program = (args: Args): Program => ({ ...beside, it: { type, args } });
    const count = <T>(operation: string, step: () => Promise<T>) => counted(title, operation, step);
    const outputs = () => harness.state.get("it")?.outputs ?? {};
    const settled = async (args: Args) => {
      expect(await harness.preview(program(args))).toEqual([]);
      expect(await harness.refresh()).toEqual([]);
      expect(await harness.preview(program(args))).toEqual([]);
    };
    let args = base;
    await harness.up(beside);
    expect(await count("create", () => harness.up(program(args)))).toEqual(["create it"]);
    expect(await count("no-op", () => harness.up(program(args)))).toEqual([]);
    expect(await count("refresh", () => harness.refresh())).toEqual([]);
    await settled(args);
    if (changed) {
      args = { ...args, ...changed };
      expect(await count("update", () => harness.up(program(args)))).toEqual(["update it"]);
      await settled(args);
    }
    const { change = {}, remove } = outOfBandChanges[type] ?? {};
    if (drift) {
      await change[drift]?.(client, outputs());
      expect(await count("drift", () => harness.refresh())).toEqual(["update it"]);
      expect(await harness.up(program(args))).toEqual(["update it"]);
      await settled(args);
    }
    if (removable) {
      await remove?.(client, outputs());
      expect(await harness.refresh()).toEqual(["delete it"]);
      expect(await harness.up(program(args))).toEqual(["create it"]);
      await settled(args);
    }
    if (replaced) {
      args = { ...args, ...replaced };
      const [step] = await count("replace", () => harness.up(program(args)));
      expect(step).toMatch(isTerraform ? /^(replace|update) it/ : /^replace it/);
      await settled(args);
    }
    const { tenant } = started.server.facts;
    // The id of a renamed tag contains the old name.
    const id = type === "Tag" ? `${tenant}/${args.name}` : (harness.state.get("it")?.id ?? "");
    await count("import", () => harness.import("it", type, id));
    const visible = Object.fromEntries(Object.entries(args).filter(([name]) => !unseen.includes(name)));
    expect(outputs()).toMatchObject(visible);
    expect(await count("destroy", () => harness.up(beside))).toEqual(["delete it"]);
    if (!isPermanent) {
      started.server.loseNextAnswer();
      const again = { ...base, ...life.again };
      expect(await count("lost answer", () => harness.up(program(again)))).toEqual(["create it"]);
      await settled(again);
    }
    await harness.up({});
  });

  it("Namespace with settings", async () => {
    const settings = { sessionRecord: true, connectionAnnouncement: "Authorized use only." };
    const { namespace } = started.server.facts;
    const program = (changed: Args = {}): Program => ({
      it: {
        type: "Namespace",
        args: { name: namespace, adopt: "overwrite", settings: { ...settings, ...changed } },
      },
    });
    const count = <T>(operation: string, step: () => Promise<T>) => counted("Namespace", operation, step);
    const settled = async (changed?: Args) => {
      expect(await harness.preview(program(changed))).toEqual([]);
      expect(await harness.refresh()).toEqual([]);
    };
    expect(await count("create", () => harness.up(program()))).toEqual(["create it"]);
    expect(await count("no-op", () => harness.up(program()))).toEqual([]);
    expect(await count("refresh", () => harness.refresh())).toEqual([]);
    await settled();
    const changed = { connectionAnnouncement: "" };
    expect(await count("update", () => harness.up(program(changed)))).toEqual(["update it"]);
    await settled(changed);
    await outOfBandChanges.Namespace?.change.settings?.(client, harness.state.get("it")?.outputs ?? {});
    expect(await count("drift", () => harness.refresh())).toEqual(["update it"]);
    expect(await harness.up(program(changed))).toEqual(["update it"]);
    await count("import", () => harness.import("it", "Namespace", started.server.facts.tenant));
    expect(harness.state.get("it")?.outputs).toMatchObject({
      name: namespace,
      settings: { ...settings, ...changed },
    });
  });

  it.skipIf(fewTags)("DeviceTags and PublicKey with more than three tags", async () => {
    const program: Program = {
      tags: { type: "DeviceTags", args: FOUR },
      key: { type: "PublicKey", args: fourInFilter },
    };
    await harness.up(program);
    expect(await harness.preview(program)).toEqual([]);
    expect(await harness.refresh()).toEqual([]);
    await harness.up({});
  });

  const fourInFilter = { name: "four", data: keyOf("four"), username: ".*", filter: { tags: FOUR.tags } };
  const newer = (type: string, objects: string) => ({
    title: type,
    on: !name.startsWith("0.27"),
    type,
    text: `has no ${objects}. Use ShellHub 0.27 or later`,
    args: LIVES.find((life) => life.type === type)?.base ?? {},
  });
  /** The programs that the server cannot run, with the predicate of the error. */
  const refused = [
    {
      title: "a FirewallRule",
      on: isRecorded,
      type: "FirewallRule",
      args: RULE,
      text: "has no firewall rules",
    },
    {
      title: "a new Namespace",
      on: name.startsWith("0.27"),
      type: "Namespace",
      args: { name: "second" },
      text: "has a single namespace and cannot create another one",
    },
    {
      title: "a setting",
      on: isRecorded,
      type: "Namespace",
      args: { name: "second", adopt: true, settings: { deviceProof: "required" } },
      text: "does not have this setting",
    },
    {
      title: "four tags on a device",
      on: fewTags,
      type: "DeviceTags",
      args: FOUR,
      text: "allows at most 3 tags",
    },
    {
      title: "four tags in a filter",
      on: fewTags,
      type: "PublicKey",
      args: fourInFilter,
      text: "allows at most 3 tags",
    },
    newer("AccessPolicy", "access policies"),
    newer("ServiceAccount", "service accounts"),
    newer("InstallKey", "install keys"),
  ].filter(({ on }) => on);

  it.each(refused)("refuses $title at preview, and changes nothing", async ({ type, args, text }) => {
    const expected = `This server (${inErrors(started.server.facts.version)}) ${text}`;
    await expect(harness.preview({ it: { type, args } })).rejects.toThrow(expected);
    await expect(harness.up({ it: { type, args } })).rejects.toThrow(expected);
    const writes = started.server.requests.filter((request) => !/^GET /.test(request));
    expect(writes).toEqual([]);
    expect(harness.state.size).toBe(0);
  });
});

/** The table of all exchanges. Front ends differ: the table has the numbers of the TypeScript classes. */
it.runIf(RECORD === undefined && FRONT_END === "dynamic")("the number of exchanges", SLOW, async () => {
  const operations = "create no-op refresh update drift replace import destroy".split(" ");
  operations.push("lost answer");
  const rows = [...counts].flatMap(([title, byServer]) => {
    const same = new Map<string, string[]>();
    for (const [server, cells] of byServer) {
      const text = operations.map((operation) => cells[operation] ?? "-").join(" | ");
      same.set(text, [...(same.get(text) ?? []), server]);
    }
    return [...same].map(([text, servers]) => `| ${title} | ${servers.join(", ")} | ${text} |`);
  });
  const head = ["Resource", "Server", ...operations];
  const lines = [`| ${head.join(" | ")} |`, `| ${head.map(() => "---").join(" | ")} |`, ...rows];
  const table = `${lines.join("\n")}\n`;
  await expect(table).toMatchFileSnapshot("support/servers.table.md");
});
