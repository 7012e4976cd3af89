import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { coverageOf, ManagedObjects } from "../../provider/namespace/coverage.ts";
import { declarable, inventoryOf, watchedIn } from "../../provider/namespace/liveObjects.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { policies } from "../../provider/resources/accessPolicy.ts";
import { definitions, definitionsByName } from "../../provider/resources/index.ts";
import { sshIdentities as sshIdentitySource } from "../../provider/resources/sshIdentities.ts";
import { Connection } from "../../provider/service/connection.ts";
import { isUnreadable } from "../../provider/service/listings.ts";
import {
  apiKeyCredential,
  type Client,
  createAccessPolicy,
  createClient,
  createServiceAccount,
  defineOperation,
  deleteAccessPolicy,
  listAccessPolicies,
  listInstallKeys,
  listServiceAccounts,
  passwordCredential,
} from "../../sdk/index.ts";
import { recordedKey as keyOf, RECORDED_PASSWORD, sharedRecording } from "../support/recordedServer.ts";
import { Harness, type Program } from "./support/harness.ts";

// Access policies, service accounts and install keys on a recorded server in access mode identity. To record it again,
// also set GATEHOUSE_API_KEY (role administrator).
const FILE = new URL("../fixtures/identityMode-0.27.jsonl", import.meta.url);
const { GATEHOUSE_API_KEY: apiKey = "11111111-2222-4333-8444-555555555555" } = process.env;

const server = sharedRecording(FILE);
let harness: Harness;
let client: Client;
let printed: string[];

beforeEach(() => {
  printed = [];
  vi.spyOn(console, "log").mockImplementation((text: string) => printed.push(text));
  const { GATEHOUSE_RETRY_TIMEOUT: _, ...env } = server.env();
  harness = new Harness(env);
  const credential = passwordCredential({ username: server.facts.username, password: RECORDED_PASSWORD });
  client = createClient({ url: server.url, credential });
});
afterEach(async () => {
  await harness.close();
  await client.close();
  vi.restoreAllMocks();
});

const policy = (args: object = {}): Program => ({
  it: {
    type: "AccessPolicy",
    args: {
      name: "all",
      subject: { role: "operator" },
      filter: { hostname: ".*" },
      logins: ["root"],
      ...args,
    },
  },
});
const WEBHOOK = { mode: "webhook", webhookUrl: "https://hooks.example.com/", webhookSecret: "correct" };
const account = (args: object): Program => ({
  it: { type: "ServiceAccount", args: { name: "ci", ...args } },
});
const installKey = (name: string, args: object = {}): Program => ({
  it: { type: "InstallKey", args: { name, ...args } },
});
const state = () => harness.state.get("it");
const writes = () => server.writes();
const methods = () => writes().map((request) => request.split(" ")[0]);

/** A policy on the wire that matches every device. */
const WIRE = {
  name: "all",
  subject: { type: "role", value: "operator" },
  filter: { tags: [] },
  logins: ["root"],
  sourceIp: [],
  action: "allow",
  requireReauth: false,
  reauthPeriod: null,
};

it("a policy without tags is read as a policy for every device", async () => {
  const { body } = await client.request(createAccessPolicy, { body: WIRE });
  await harness.import("it", "AccessPolicy", `${server.facts.tenant}/${body.id}`);
  expect(state()?.outputs.filter).toEqual({ hostname: ".*" });
  expect(await harness.preview(policy())).toEqual([]);
  await harness.up({});
});

it("an equal policy is adopted only with adopt", async () => {
  await client.request(createAccessPolicy, { body: WIRE });
  expect(await harness.up(policy({ adopt: true }))).toEqual(["create it"]);
  expect(printed.join()).toContain("adopted the existing object");
  await harness.up({});
  expect(methods()).toEqual(["POST", "DELETE"]);
});

it("addresses and networks are compared in canonical form, as the service keeps host bits", async () => {
  const sourceIps = ["10.0.0.5", "192.168.1.77/16", "::ffff:10.0.0.9", "2001:DB8::1"];
  await harness.up(policy({ sourceIps }));
  const { body: policies } = await client.request(listAccessPolicies, {});
  const wire = { ...WIRE, filter: { hostname: ".*" }, sourceIp: sourceIps };
  const { body } = await client.request(createAccessPolicy, { body: wire });
  expect(body.sourceIp).toContain("192.168.1.77/16");
  expect(policies.find(({ name }) => name === "all")?.sourceIp.toSorted()).toEqual([
    "10.0.0.5/32",
    "10.0.0.9/32",
    "192.168.0.0/16",
    "2001:db8::1/128",
  ]);
  expect(await harness.preview(policy({ sourceIps }))).toEqual([]);
  await harness.import("it", "AccessPolicy", `${server.facts.tenant}/${body.id}`);
  expect(await harness.preview(policy({ sourceIps }))).toEqual([]);
  for (const { id, name } of [...policies, body]) {
    if (name === "all") await client.request(deleteAccessPolicy, { params: { id } });
  }
});

it("logins with special characters and networks of IPv4-mapped addresses stay as they are", async () => {
  const literal = { logins: ["CORP\\alice", "a+b", "host$"], sourceIps: ["::ffff:10.0.0.0/104"] };
  await harness.up(policy(literal));
  expect(await harness.refresh()).toEqual([]);
  expect(await harness.preview(policy(literal))).toEqual([]);
  await harness.import("it", "AccessPolicy", state()?.id ?? "");
  expect(await harness.preview(policy(literal))).toEqual([]);
  for (const pattern of ["^root$", ".*", "ro*", "(a|b)", "[a-z]", ".+"]) {
    await expect(harness.preview(policy({ logins: [pattern] }))).rejects.toThrow("must be a login name");
  }
  await harness.up({});
});

it("the inventory has the reason why no program can declare a webhook's install key", async () => {
  await harness.up(installKey("inventory", WEBHOOK));
  const connection = new Connection(client, { defaultTenant: server.facts.tenant });
  const { objects } = await inventoryOf(connection, server.facts.tenant, [definitionsByName.InstallKey]);
  expect(declarable(objects)).toMatchObject({
    declarable: [],
    undeclarable: [{ reason: expect.stringContaining("does not return webhookSecret; declare the key") }],
  });
  await harness.up({});
});

it("an update of a policy replaces all fields and never sends an id", async () => {
  await harness.up(policy({ sourceIps: ["10.0.0.0/8"], requireReauth: true, reauthPeriod: 60 }));
  await harness.up(policy());
  const [update, ...more] = writes().filter((request) => request.startsWith("PUT "));
  expect(more).toEqual([]);
  expect(JSON.parse(update?.slice(update.indexOf("{")) ?? "")).toEqual({
    name: "all",
    subject: { type: "role", value: "operator" },
    filter: { hostname: ".*" },
    logins: ["root"],
    source_ip: [],
    action: "allow",
    require_reauth: false,
    reauth_period: null,
  });
  await harness.up({});
});

it("a replacement of a service account deletes the account first, so that it keeps its key", async () => {
  const data = keyOf("kept");
  await harness.up(account({ data }));
  const before = state()?.id;
  expect(await harness.up(account({ data, name: "deploy" }))).toEqual(["replace it name"]);
  expect(methods()).toEqual(["POST", "DELETE", "POST"]);
  expect(state()?.id).not.toBe(before);
  await harness.up({});
});

it("an imported service account has no public key, and no difference to a program with the key", async () => {
  const body = { name: "ci", data: keyOf("imported"), singleUse: false };
  const { body: created } = await client.request(createServiceAccount, { body });
  await harness.import("it", "ServiceAccount", `${server.facts.tenant}/${created.id}`);
  expect(state()?.outputs).toMatchObject({ data: "", accountId: created.id });
  expect(await harness.preview(account({ data: keyOf("imported") }))).toEqual([]);
  expect(await harness.preview(account({ data: keyOf("another") }))).toEqual(["replace it data"]);
  await harness.up({});
});

const sshIdentities = { part: "Access policies", auth: ["jwt"], scope: "namespace" } as const;

it("a key of a user cannot be the key of a service account", async () => {
  const createIdentity = defineOperation({
    ...sshIdentities,
    id: "createSshIdentity",
    summary: "Create an SSH key",
    path: "/api/ssh-identities",
    method: "POST",
    body: z.object({ data: z.string() }),
    success: { body: z.object({ id: z.string() }) },
  });
  const deleteIdentity = defineOperation({
    ...sshIdentities,
    id: "deleteSshIdentity",
    summary: "Delete an SSH key",
    path: "/api/ssh-identities/{id}",
    method: "DELETE",
    params: { id: z.string() },
  });
  const data = keyOf("user");
  const { body } = await client.request(createIdentity, { body: { data } });
  await expect(harness.up(account({ data }))).rejects.toThrow(
    /data: The user \S+@\S+ of the namespace .* has already registered the key SHA256:\S+\. Use another key/,
  );
  await client.request(deleteIdentity, { params: { id: body.id } });
});

it("an expired key is replaced with the same key", async () => {
  const data = keyOf("expired");
  await harness.up(account({ data, validDays: 1 }));
  vi.setSystemTime(Date.parse(server.facts.time) + 2 * 86_400_000);
  expect(await harness.preview(account({ data, validDays: 1 }))).toEqual(["replace it validDays"]);
  await harness.up({});
});

it("the name of a revoked install key stays taken", async () => {
  await harness.up(installKey("pallet"));
  await harness.up({});
  await expect(harness.up(installKey("pallet"))).rejects.toThrow(
    "name: The name pallet is taken by a revoked install key. Use another name",
  );
  await expect(harness.up(installKey("legacy"))).rejects.toThrow(
    "The name legacy is taken by a system key of the service",
  );
});

it("an install key has its secret after its creation, and after an import", async () => {
  await harness.up(installKey("crate"));
  const { id = "", outputs } = state() ?? {};
  expect(outputs?.key).toMatch(/^[0-9a-f-]{36}$/);
  await harness.import("it", "InstallKey", id);
  expect(state()?.outputs.key).toBe(outputs?.key);
  await harness.up({});
});

it("an API key cannot manage install keys or read SSH keys, and the inventory reports it", async () => {
  const ofKey = createClient({ url: server.url, credential: apiKeyCredential(apiKey) });
  const connection = new Connection(ofKey, { defaultTenant: server.facts.tenant });
  const definition = definitions.find(({ name }) => name === "InstallKey");
  const origin = { idempotencyKey: "", name: "it" } as never;
  await expect(definition?.create(connection, { name: "byKey" }, origin)).rejects.toThrow(
    "Use a user's credential, not an API key",
  );
  const { listing } = await connection.tenant(undefined);
  expect(
    isUnreadable(
      await listing(sshIdentitySource)
        .all()
        .catch((error: unknown) => error),
    ),
  ).toBe(true);
  expect((await listing(policies).all()).map(({ name }) => name)).toContain("Owner access");
  const inventory = watchedIn(
    await readNamespace(connection, server.facts.tenant, { evaluatesAccess: false }),
  );
  expect(inventory.unread).toContain("InstallKey");
  await ofKey.close();
});

it("the inventory has the objects of users, without the system's install keys and without service accounts as members", async () => {
  const body = { name: "ci", data: keyOf("inventory"), singleUse: false };
  const { body: created } = await client.request(createServiceAccount, { body });
  await client.updateMember({
    params: { tenant: server.facts.tenant, uid: created.id },
    body: { role: "operator" },
  });
  const connection = new Connection(client, { defaultTenant: server.facts.tenant });
  const inventory = watchedIn(
    await readNamespace(connection, server.facts.tenant, { evaluatesAccess: false }),
  );
  const named = inventory.objects.map(({ definition, name }) => `${definition.name} ${name}`);
  expect(named).toEqual(["AccessPolicy Owner access", "ServiceAccount ci", "ApiKey admin-key"]);
  const where = { service: server.url, tenant: server.facts.tenant };
  const coverage = coverageOf(inventory, where, new ManagedObjects([]), []);
  expect(coverage).toMatchObject({ percent: 0, total: 3, unknown: [] });
  const [ci] = inventory.objects.filter(({ definition }) => definition.name === "ServiceAccount");
  expect(ci?.reason).toBe("the service does not return the public key of a service account");
  await ci?.definition.delete(connection, ci.id, {}, () => false);
});

describe("if the response of a write is lost", () => {
  /** Returns programs, and changed ones. @param phase part of the names, because names of revoked keys stay taken */
  const objects = (
    phase: string,
  ): Record<string, { readonly program: Program; readonly changed?: Program }> => ({
    "a policy": { program: policy(), changed: policy({ logins: ["deploy"] }) },
    "a service account": { program: account({ name: `${phase}-account`, data: keyOf(phase) }) },
    "an install key": { program: installKey(`${phase}`), changed: installKey(`${phase}`, { usageLimit: 5 }) },
    "a renamed install key": {
      program: installKey(`${phase}-name`),
      changed: installKey(`${phase}-name-2`),
    },
    "a webhook's install key": {
      program: installKey(`${phase}-webhook`, WEBHOOK),
      changed: installKey(`${phase}-webhook`, { ...WEBHOOK, webhookSecret: "changed" }),
    },
    "a disabled install key": {
      program: installKey(`${phase}-disabled`, { disabled: true }),
      changed: installKey(`${phase}-disabled`, { disabled: false }),
    },
  });
  const cases = (phase: string) =>
    Object.entries(objects(phase)).map(([name, programs]) => ({ name, ...programs }));
  const names = async () => {
    const bodies = await Promise.all([
      client.request(listAccessPolicies, {}),
      client.request(listServiceAccounts, {}),
      client.request(listInstallKeys, { query: { perPage: 100 } }),
    ]);
    return bodies.flatMap(({ body }) =>
      body.map((object) => ("revoked" in object && object.revoked ? "" : object.name)),
    );
  };

  it.each(cases("lost"))("$name: the creation makes one object, with all inputs", async ({ program }) => {
    server.loseNextAnswer();
    expect(await harness.up(program)).toEqual(["create it"]);
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program)).toEqual([]);
    const { type, id = "", outputs = {} } = state() ?? {};
    if (type === "InstallKey") {
      expect(id.split("/")[1]).toBe(createHash("sha256").update(String(outputs.key)).digest("hex"));
    }
    expect((await names()).filter((name) => name === outputs.name)).toHaveLength(1);
    await harness.up({});
  });

  it.each(cases("new").filter(({ changed }) => changed))(
    "$name: the update succeeds",
    async ({ program, changed = {} }) => {
      await harness.up(program);
      server.loseNextAnswer();
      await harness.up(changed);
      expect(await harness.refresh()).toEqual([]);
      expect(await harness.preview(changed)).toEqual([]);
      await harness.up({});
    },
  );

  it.each(cases("gone"))("$name: the deletion succeeds", async ({ program }) => {
    await harness.up(program);
    const { outputs } = state() ?? {};
    server.loseNextAnswer();
    expect(await harness.up({})).toEqual(["delete it"]);
    expect(await names()).not.toContain(outputs?.name);
  });
});
it("a created install key that cannot be listed stays in the state, with its secret", async () => {
  const noRetry = new Harness({ ...server.env(), GATEHOUSE_RETRY_TIMEOUT: "0" });
  const program = installKey("unlisted", { disabled: true, validDays: 30 });
  const readable = server.loseReadsAfterWrite();
  await expect(noRetry.up(program)).rejects.toThrow();
  readable();
  const { id = "", outputs } = noRetry.state.get("it") ?? {};
  expect(id).toBe(
    `${server.facts.tenant}/${createHash("sha256").update(String(outputs?.key)).digest("hex")}`,
  );
  expect(await noRetry.up(program)).toEqual(["update it"]);
  expect(noRetry.state.get("it")).toMatchObject({ id, outputs: { key: outputs?.key, disabled: true } });
  await noRetry.refresh();
  expect(await noRetry.preview(program)).toEqual([]);
  await noRetry.up({});
  await noRetry.close();
});

it("an existing install key is adopted with the declared secrets, and revealed only then", async () => {
  await harness.up(installKey("adopted", WEBHOOK));
  const { outputs } = state() ?? {};
  harness.state.clear();
  const isReveal = (request: string) => request.endsWith("/reveal");
  await expect(harness.up(installKey("adopted", WEBHOOK))).rejects.toThrow(
    /already exists .* and equals the declaration\. Set adopt/,
  );
  expect(server.requests.filter(isReveal)).toEqual([]);
  const program = installKey("adopted", { ...WEBHOOK, adopt: true });
  expect(await harness.up(program)).toEqual(["create it"]);
  expect(server.requests.filter(isReveal)).toHaveLength(1);
  expect(state()?.outputs).toMatchObject({ key: outputs?.key, webhookSecret: "correct" });
  expect(writes().at(-1)).toContain('"webhook_secret":"correct"');
  expect(await harness.preview(program)).toEqual([]);
  await harness.up({});
});

it("a refresh reads the key that an imported state lacks", async () => {
  await harness.up(installKey("imported"));
  const entry = state();
  if (!entry) throw new Error("the state has no install key");
  harness.state.set("it", { ...entry, outputs: { ...entry.outputs, key: "" } });
  expect(await harness.refresh()).toEqual(["update it"]);
  expect(state()?.outputs.key).toBe(entry.outputs.key);
  await harness.up({});
});

it("an expired install key becomes valid again", async () => {
  const program = installKey("expired", { validDays: 1 });
  await harness.up(program);
  vi.setSystemTime(Date.parse(server.facts.time) + 2 * 86_400_000);
  expect(await harness.preview(program)).toEqual(["update it"]);
  expect(await harness.up(program)).toEqual(["update it"]);
  expect(writes().at(-1)).toContain('"expires_in":1');
  vi.setSystemTime(Date.parse(server.facts.time));
  expect(await harness.preview(program)).toEqual([]);
  await harness.up({});
});
