import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Client,
  createAccessPolicy,
  createClient,
  deleteAccessPolicy,
  deleteServiceAccount,
  listAccessPolicies,
  listServiceAccounts,
  passwordCredential,
  updateAccessPolicy,
} from "../../sdk/index.ts";
import { agentCall } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { spawnGatehouse } from "../support/gatehouse.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { RECORDED_PASSWORD as password, sharedRecording } from "../support/recordedServer.ts";
import { hasTerraform, LABEL, RootModule, startProvider } from "../terraform/support/terraform.ts";

// The examples of identity mode, with all commands, on a recorded 0.27 server. To record, use an empty namespace, and run
// all tests once, with Terraform on the PATH.
const FILE = new URL("../fixtures/identityMode/programs.jsonl", import.meta.url);
const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));
const CLOCK = new URL("../support/recordedTime.ts", import.meta.url).href;
const { RECORD, GATEHOUSE_URL = "", GATEHOUSE_USERNAME = "", GATEHOUSE_TENANT = "" } = process.env;

/** The access that both programs give. The owner and the invited operator have no SSH key yet. */
const GRANTED = [
  "- user owner@example.com loses every login on web-02 after the approval of an SSH key",
  "+ service account deploy gains login deploy on web-01, web-02",
  "+ user bea@example.org gains logins postgres and root on db-01 after the approval of an SSH key",
  "+ user bea@example.org gains login support from 198.51.100.0 on web-01 after the approval of an SSH key",
];

/** Fills the namespace that is recorded. */
async function prepare(): Promise<void> {
  const credential = passwordCredential({ username: GATEHOUSE_USERNAME, password });
  const recorded = createClient({ url: GATEHOUSE_URL, credential });
  for (const [index, name] of ["web-01", "web-02", "db-01"].entries()) {
    const { uid } = await agentCall(recorded, name, `02:00:00:00:00:0${index + 1}`, GATEHOUSE_TENANT);
    await recorded.acceptDevice({ params: { uid } });
  }
  for (const { name } of await recorded.listApiKeys()) await recorded.deleteApiKey({ params: { key: name } });
  await recorded.close();
}

const server = sharedRecording(FILE, { prepare, order: "any", movesClock: false });
let client: Client;
let settings: Record<string, string>;
let program: PolicyProgram;

beforeAll(() => {
  const { username, tenant, time } = server.facts;
  settings = {
    ...server.env(),
    GATEHOUSE_RETRY_TIMEOUT: "0",
    ...(!RECORD && { NODE_OPTIONS: `--import=${CLOCK}`, RECORDED_TIME: time }),
  };
  const credential = passwordCredential({ username, password });
  client = createClient({ url: server.url, credential }).forTenant(tenant);
  program = new PolicyProgram();
  cpSync(join(EXAMPLES, "identity-mode"), program.folder, { recursive: true });
});
afterAll(async () => {
  program.remove();
  await client.close();
});

/** Runs a command on the stack of the TypeScript example. @returns standard output and standard error */
async function run(args: readonly string[], code = 0): Promise<string> {
  const result = await program.stack({ env: settings, name: "dev", spawned: true }).run(args);
  expect(result.code, result.stdout + result.stderr).toBe(code);
  return result.stdout + result.stderr;
}

/** Runs a command without a program. @returns standard output */
async function command(args: readonly string[], code = 0): Promise<string> {
  const result = await spawnGatehouse(args, settings);
  expect(result.code, result.stdout + result.stderr).toBe(code);
  return result.stdout;
}

/** Requests that change the namespace, without the ids of its objects. */
const writes = () =>
  server
    .writes()
    .map((request) => request.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "<id>").replace(/ \{.*/, ""));

const policies = async () => (await client.request(listAccessPolicies, {})).body;
const idOf = async (wanted: string) => (await policies()).find(({ name }) => name === wanted)?.id ?? "";

/** Starts the Terraform provider, and returns a root module with the files of a folder. */
async function rootModule(files: string) {
  const provider = await startProvider(settings);
  const folder = testFolder();
  cpSync(files, folder, { recursive: true });
  const secret = { TF_VAR_monitoring_secret: "3f0f6c1e-6b1d-4a55-9c54-6a7a1d0a9f11" };
  return { root: new RootModule(folder, { ...provider.env, ...settings, ...secret }), stop: provider.stop };
}

// Each command runs as a process, because policy tests need processes.
describe("the examples of identity mode", { timeout: 180_000, tags: ["long"] }, () => {
  it.runIf(hasTerraform)(`${LABEL}: the review of the first apply shows all access`, async () => {
    const { root, stop } = await rootModule(join(EXAMPLES, "terraform", "identity-mode"));
    const stdout = await command(["review", "--terraform", await root.planFile()]);
    await stop();
    for (const line of GRANTED) expect(stdout).toContain(line);
    expect(stdout).not.toMatch(/not evaluated|not checked|creates a namespace|AccessPolicy Owner access/);
    expect(writes()).toEqual([]);
  });

  it("preview and review show all access, and change nothing", async () => {
    expect(await run(["preview", "--create"])).toContain("15 to create");
    const review = await run(["review"]);
    for (const line of GRANTED) expect(review).toContain(line);
    expect(review).toContain("No blocking findings");
    expect(review).not.toMatch(/not evaluated|not checked|creates a namespace|AccessPolicy Owner access/);
    expect(writes()).toEqual([]);
  });

  it("up creates the objects, and the next plan is empty", async () => {
    expect(await run(["up", "--yes", "--skip-preview", "--parallel", "1"])).toContain(
      "13 created, 2 adopted",
    );
    expect(await policies()).toHaveLength(5);
    expect(await run(["preview"])).toContain("15 unchanged");
    expect(await run(["refresh", "--yes"])).toContain("15 unchanged");
    expect(await run(["drift"])).toContain("No drift: 16 resources as declared");
    expect(await run(["coverage", "--fail-on-unmanaged"])).toMatch(/AccessPolicy +5 of +5 +100 %/);
    expect(await run(["test"])).toContain("6 passed");
  });

  it("access and the map show users, service accounts and conditions", async () => {
    const table = await command(["access"]);
    expect(table).toMatch(/bea@example.org +postgres, root +any +db-01 +Bea on databases after the approval/);
    expect(table).toMatch(/service account deploy .* deploy +any +web-01, web-02 +Deployment/);
    expect(await command(["access", "--csv"])).toMatch(/,deploy,service account,deploy,.*,Deployment,allow/);
    const { grants } = JSON.parse(await command(["access", "--json", "--user", "deploy"]));
    expect(grants).toMatchObject([{ logins: ["deploy"], outcome: "allow", devices: { length: 2 } }]);
    const explain = ["--device", "web-01", "--explain"];
    const bea = ["access", "--user", "bea@example.org", "--login", "root", ...explain];
    expect(await command(bea, 2)).toContain("DENIED");
    const {
      body: [account],
    } = await client.request(listServiceAccounts, {});
    const fingerprint = account?.identities?.[0]?.fingerprint ?? "";
    const key = ["access", "--key", fingerprint, "--login", "deploy", ...explain];
    expect(await command(key)).toContain("the access policy Deployment allows the login");
    const html = join(program.folder, "map.html");
    await run(["review", "--html", html]);
    expect(readFileSync(html, "utf8")).toContain("Operators on web servers, from the office");
  });

  it("import writes programs with empty plans", async () => {
    const out = join(program.folder, "imported");
    const state = { PULUMI_BACKEND_URL: `file://${program.states}`, PULUMI_CONFIG_PASSPHRASE: "imported" };
    const imported = await spawnGatehouse(["import", "--out", out, "--stack", "imported"], {
      ...settings,
      ...state,
    });
    expect(imported.code, imported.stderr).toBe(0);
    expect(imported.stdout).toContain("5 AccessPolicy");
    expect(imported.stdout).toContain("Its preview is empty");
    expect(writes()).toEqual([]);
  });

  it.runIf(hasTerraform)(`${LABEL}: an imported namespace has no changes`, async () => {
    const out = join(program.folder, "terraform");
    await command(["import", "--format", "terraform", "--out", out]);
    const { root, stop } = await rootModule(out);
    await root.apply();
    expect(await root.changes()).toEqual([]);
    await stop();
    expect(writes()).toEqual([]);
  });

  it("drift shows the effect of each change out of band, and up reverts the changes", async () => {
    const policy = { sourceIp: [], action: "allow", requireReauth: false, reauthPeriod: null };
    const everyone = { type: "all-members", value: "" };
    const id = await idOf("Frozen devices");
    await client.request(updateAccessPolicy, {
      params: { id },
      body: {
        ...policy,
        name: "Frozen devices",
        action: "deny",
        subject: everyone,
        filter: { hostname: "^web-03$" },
        logins: ["*"],
      },
    });
    const backdoor = { name: "backdoor", subject: { type: "role", value: "operator" }, logins: ["admin"] };
    await client.request(createAccessPolicy, {
      body: { ...policy, ...backdoor, filter: { hostname: ".*" } },
    });
    const [account] = (await client.request(listServiceAccounts, {})).body;
    await client.request(deleteServiceAccount, { params: { id: account?.id ?? "" } });
    // The policy of the databases has no tag left, so it matches every device.
    await client.deleteTag({ params: { tag: "database" } });

    const drift = await run(["drift"], 2);
    for (const text of [
      'AccessPolicy frozen: filter.hostname is "^web-03$" (declared "^web-02$"); user bea@example.org gains',
      'AccessPolicy bea-databases: filter.hostname is ".*" (declared not set)',
      "ServiceAccount deploy: no longer exists; service account deploy loses login deploy on web-01, web-02",
      "is unmanaged; user bea@example.org gains login admin on db-01, web-01, web-02",
      "+ user bea@example.org gains logins postgres and root on web-01, web-02",
    ])
      expect(drift).toContain(text);
    expect(await run(["review"], 2)).toContain("AccessPolicy backdoor");

    await client.request(deleteAccessPolicy, { params: { id: await idOf("backdoor") } });
    await run(["up", "--yes", "--skip-preview", "--refresh", "--parallel", "1"]);
    expect(await run(["drift"])).toContain("No drift: 16 resources as declared");
  });

  it("destroy keeps the namespace and the access of its owner", async () => {
    await run(["destroy", "--yes", "--parallel", "1"]);
    expect(await policies()).toMatchObject([{ name: "Owner access" }]);
  });
});
