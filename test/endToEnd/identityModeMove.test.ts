import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createClient, createServiceAccount, passwordCredential } from "../../sdk/index.ts";
import { agentCall, startFleet } from "../support/fleet.ts";
import { gatehouse } from "../support/gatehouse.ts";
import {
  recordedKey as keyOf,
  RECORDED_PASSWORD,
  replayServer,
  sharedRecording,
} from "../support/recordedServer.ts";

// The move of a namespace on a recorded 0.27 server from legacy to identity mode. To record, use an empty namespace in
// legacy mode.
const FILE = new URL("../fixtures/identityMode/move.jsonl", import.meta.url);
const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const { RECORD, GATEHOUSE_URL = "", GATEHOUSE_USERNAME = "", GATEHOUSE_TENANT = "" } = process.env;

const KEYS = [
  { name: "ana", username: "^(deploy|root)$", filter: { hostname: "^web-1$" } },
  { name: "ben's laptop", username: ".*", filter: { hostname: ".*" } },
  { name: "ci", username: "^ci", filter: { hostname: "^web-1$" } },
  { name: "robot", username: "^root$", filter: { hostname: "^db-1$" } },
];

/** Fills the namespace that is recorded. */
async function prepare(): Promise<void> {
  const credential = passwordCredential({ username: GATEHOUSE_USERNAME, password: RECORDED_PASSWORD });
  const client = createClient({ url: GATEHOUSE_URL, credential });
  const tenant = GATEHOUSE_TENANT;
  await client.editNamespace({
    params: { tenant },
    body: { settings: { connectionAnnouncement: "Welcome." } },
  });
  for (const [index, name] of ["web-1", "db-1"].entries()) {
    const { uid } = await agentCall(client, name, `02:00:00:00:00:0${index + 1}`, tenant);
    await client.acceptDevice({ params: { uid } });
  }
  for (const { name, ...key } of KEYS) {
    const data = Buffer.from(keyOf(name)).toString("base64");
    await client.createPublicKey({ body: { name, data, ...key } });
  }
  // The service account of an earlier attempt.
  const account = { name: "robot", data: keyOf("robot"), singleUse: false };
  await client.forTenant(tenant).request(createServiceAccount, { body: account });
  await client.close();
}

const server = sharedRecording(FILE, { prepare });
let folder: string;
let settings: Record<string, string>;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-move-"));
  symlinkSync(MODULES, join(folder, "node_modules"));
  mkdirSync(join(folder, "states"));
  settings = {
    ...server.env(),
    GATEHOUSE_RETRY_TIMEOUT: "0",
    PULUMI_BACKEND_URL: `file://${join(folder, "states")}`,
    PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
  };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = async (args: readonly string[], code = 0) => {
  const result = await gatehouse(args, settings);
  expect([result.code, result.code === code ? "" : result.stderr], result.stdout).toEqual([code, ""]);
  return result;
};
const out = (name: string) => join(folder, name);
const text = (...path: string[]) => readFileSync(join(folder, ...path), "utf8");
const written = (name: string, ...flags: string[]) =>
  run(["import", "--to-identity-mode", "--out", out(name), ...flags]);
/** Requests that change the namespace, without the ids of its objects. */
const writes = () =>
  server
    .writes()
    .map((request) => request.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "<id>").replace(/ \{.*/, ""));

it("yaml: the namespace depends on the new policies", async () => {
  await written("yaml", "--format", "yaml", "--stack", "yaml");
  const program = text("yaml", "Pulumi.yaml");
  expect(program).toContain("        sshAccessMode: identity\n");
  expect(program).toContain(`      dependsOn:
        - \${ana-policy}
        - \${ben-s-laptop-policy}
        - \${ci-policy}
        - \${robot-policy}
`);
  expect(program).toContain(`  ben-s-laptop-account:
    type: gatehouse:ServiceAccount
    name: ben's laptop
`);
  expect(program).toContain("        user: $" + "{ben-s-laptop-account.accountId}\n");
  expect(JSON.parse(text("yaml", "import.json")).resources).toHaveLength(7);
  expect(writes()).toEqual([]);
});

it("terraform: the new resources are in a file of their own", async () => {
  const { stdout } = await written("terraform", "--format", "terraform");
  expect(stdout).toContain("gatehouse review --terraform plan.json");
  expect(text("terraform", "identity_mode.tf")).toContain(`resource "gatehouse_access_policy" "ben_s_laptop" {
  name    = "ben's laptop"
  subject = { user = gatehouse_service_account.ben_s_laptop.account_id }
  filter  = { hostname = ".*" }
  logins  = ["*"]
}`);
  expect(text("terraform", "namespace.tf")).toContain(
    "depends_on = [gatehouse_access_policy.ana, gatehouse_access_policy.ben_s_laptop, gatehouse_access_policy.ci, gatehouse_access_policy.robot]",
  );
  expect(text("terraform", "imports.tf")).not.toContain("access_policy");
  expect(writes()).toEqual([]);
});

it("typescript: the program creates the policies, and then changes the mode", {
  tags: ["long"],
}, async () => {
  const { stdout, stderr } = await written("typescript", "--stack", "dev");
  expect(stdout).toContain("It creates 4 AccessPolicy, 3 ServiceAccount,\nand then changes the mode.");
  expect(stderr).toContain(
    "note: PublicKey ci: access policies list login names, so ^ci cannot be expressed; the key keeps access only as ci\n",
  );
  expect(stderr).toContain("note: logins with the password of a device account end in identity mode\n");
  expect(text("typescript", "namespace.ts")).toContain('sshAccessMode: "identity"');
  const policies = text("typescript", "identityMode.ts");
  expect(policies).toContain("subject: { user: accountBenSLaptop.accountId }");
  // The key belongs to the existing account.
  expect(policies).toMatch(/\/\/ Subject: robot\n {2}new AccessPolicy\("robot", \{\n {4}name: "robot",/);
  expect(writes()).toEqual([]);

  const stack = [out("typescript"), "--stack", "dev", "--engine", "embedded"];
  // The service does not return the key of an account, but the same key is a public key of the namespace.
  expect(text("typescript", "serviceAccounts.ts")).toContain(`data: "${keyOf("robot")}"`);
  // Each SSH key keeps its access for all evaluated logins.
  const review = await run(["review", ...stack]);
  expect(review.stdout).toContain("  No access changes.\n");
  expect(review.stdout).toContain("No blocking findings.\n");
  expect(review.stdout).not.toMatch(/\b(loses|gains)\b/);
  for (const note of [
    "the access mode changes from legacy to identity: logins with the password of a device account end",
    'key ci: username "^ci" and filter {"hostname":"^web-1$"} become logins ["ci"] and filter {"hostname":"^web-1$"} (access policy ci), but no evaluated',
  ])
    expect(review.stdout).toContain(note);
  expect(writes()).toEqual([]);
  await run(["up", ...stack, "--yes", "--parallel", "1"]);
  expect(writes().toSorted().slice(0, -1)).toEqual([
    ...Array(4).fill("POST /api/access-policies"),
    ...Array(3).fill("POST /api/service-accounts"),
  ]);
  expect(writes().at(-1)).toBe("PUT /api/namespaces/ssh-access-mode/<id>");
  const preview = await run(["preview", ...stack]);
  expect(preview.stdout).toMatch(/^14 unchanged/m);
});

it("rejects a namespace in identity mode", async () => {
  const { stderr } = await run(["import", "--to-identity-mode", "--out", out("second")], 1);
  expect(stderr).toContain("error: The namespace dev is already in identity mode. Omit --to-identity-mode.");
});

describe.skipIf(RECORD)("a namespace that differs from the recorded one", () => {
  /** Starts a server with other text in the recorded answers. @param texts the recorded text and the other text */
  async function serverWith(...texts: readonly (readonly [recorded: string, other: string])[]) {
    const file = join(folder, "other.jsonl");
    const escaped = (json: string) => JSON.stringify(json).slice(1, -1);
    let recording = readFileSync(FILE, "utf8");
    for (const [recorded, other] of texts) {
      expect(recording).toContain(escaped(recorded));
      recording = recording.replaceAll(escaped(recorded), escaped(other));
    }
    writeFileSync(file, recording);
    return replayServer(pathToFileURL(file));
  }

  /** Runs the import of the case `yaml` with other text in the recorded answers. */
  async function importOf(recorded: string, other: string) {
    const changed = await serverWith([recorded, other]);
    changed.begin("yaml: the namespace depends on the new policies");
    const options = ["import", "--to-identity-mode", "--format", "yaml", "--stack", "yaml"];
    const result = await gatehouse([...options, "--out", out("other")], {
      ...settings,
      GATEHOUSE_URL: changed.url,
    });
    await changed.stop();
    expect([result.code, changed.unknown, existsSync(out("other"))]).toEqual([1, [], false]);
    return result.stderr;
  }

  it("keeps the plain names of a pattern, and the copied patterns do not block", {
    tags: ["long"],
  }, async () => {
    const changed = await serverWith(
      ['"username":"^ci"', '"username":"^(dev1)$|deploy"'],
      ['"hostname":"^web-1$"', '"hostname":"web"'],
    );
    changed.begin("typescript: the program creates the policies, and then changes the mode");
    const env = { ...settings, GATEHOUSE_URL: changed.url };
    const options = ["import", "--to-identity-mode", "--stack", "patterns", "--out", out("patterns")];
    const imported = await gatehouse(options, env);
    expect([imported.code, imported.stderr]).toEqual([
      0,
      expect.stringContaining(
        "^(dev1)$|deploy cannot be expressed; the key keeps access only as dev1, deploy",
      ),
    ]);
    expect(text("patterns", "identityMode.ts")).toContain('logins: ["deploy", "dev1"]');
    const stack = [out("patterns"), "--stack", "patterns", "--engine", "embedded"];
    const review = await gatehouse(["review", ...stack, "--login", "deploy2"], env);
    expect([review.code, review.stdout]).toEqual([0, expect.stringContaining("No blocking findings.\n")]);
    expect(review.stdout).toContain("- key ci (now service account ci) loses login deploy2 on web-1\n");
    expect(review.stdout).not.toMatch(/New findings|gains|key ci: username/);
    await changed.stop();
    expect(changed.unknown).toEqual([]);
  });

  it("is rejected if its access mode is unknown", async () => {
    expect(await importOf('"ssh_access_mode":"legacy"', '"ssh_access_mode":"later"')).toContain(
      "error: The namespace dev has an access mode that this version of gatehouse does not know, so nothing was written. Update gatehouse.",
    );
  });

  it("is rejected if no program can declare it", async () => {
    expect(await importOf('"name":"dev"', '"name":"d e v"')).toMatch(
      /error: The program cannot declare the namespace, so it cannot change the mode, and nothing was written\. .*\n {2}Namespace d e v \(.*\) is omitted: /,
    );
  });
});

it("rejects a server without access modes, and options that omit keys", { tags: ["long"] }, async () => {
  vi.useRealTimers();
  const fleet = await startFleet();
  const options = ["import", "--to-identity-mode", "--out", out("own")];
  const own = await gatehouse(options, fleet.env);
  expect([own.code, own.stderr]).toEqual([
    1,
    expect.stringContaining("has no access modes. Use ShellHub 0.27"),
  ]);
  const only = await gatehouse([...options, "--only", "Member"], fleet.env);
  expect([only.code, only.stderr]).toEqual([1, expect.stringContaining("cannot be used with --only")]);
  await fleet.stop();
});
