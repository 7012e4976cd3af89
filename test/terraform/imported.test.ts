import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { cidr, hostname, login } from "../../provider/helpers/patterns.ts";
import { blockText, Code } from "../../provider/import/literal.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { agentCall, type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { requestsDuring } from "../support/requests.ts";
import { SEED } from "../support/seed.ts";
import { hasTerraform, LABEL, RootModule, startProvider } from "./support/terraform.ts";

/**
 * Texts that Terraform would interpret as expressions or escapes if the generated configuration did not escape them.
 */
const NASTY: readonly string[] = [
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is not a template
  "${x}",
  "$${x}",
  "%{if}",
  "%%{ for }",
  '"',
  "\\",
  "\\n",
  "two\nlines",
  "tab\there",
  "#",
  "//",
  "/*",
  "<<EOT",
  "${",
  "%{",
  "$",
  "~}",
  "🦊",
  "e\u0301",
  "\u202eleft",
  "\u{e0001}",
  "\u001b[31m",
  "__proto__",
  "\u2028",
  "\u200b",
  "\ufe0f",
  "\u3164",
  "\ufdd0",
  "\uffff",
  "\u{1fffe}",
  "7",
  "-",
  "_",
  "ana",
  "ana-2",
  "ana 2",
  " ",
  "constructor",
  "each.key",
  "x".repeat(200),
];

/** A text whose Unicode form Terraform normalizes. */
const NOT_NORMAL = "ke\u0301y";

/** The end of each API key's name. Names of API keys have no white space and at most 20 characters. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is not a template
const NASTY_NAME = '"\\${x}%{if}';

const isWrite = (request: string) => !/^(GET|POST \/api\/(login|auth))/.test(request);

/** The numbers of objects in a namespace. The namespace also contains a key that Terraform cannot import. */
interface Contents {
  /** Number of public keys. Their names contain the texts of NASTY. */
  readonly keys: number;
  /** Number of objects of each other kind. */
  readonly others: number;
}

/** Creates the objects in the first user's namespace. */
async function fill({ client, tenant, service }: Fleet, { keys, others }: Contents): Promise<void> {
  const connectionAnnouncement = NASTY.join("\n");
  const settings = {
    connectionAnnouncement,
    sessionMaxMinutes: 480,
    sessionIdleMinutes: 15,
    sessionRecordMode: "all",
    sessionRecordMegabytes: 64,
    sshForwarding: NASTY.map((text) => ({ login: login(text), target: "^\\[::1\\]:443$" })),
  } as const;
  await client.editNamespace({ params: { tenant }, body: { settings } });
  await client.createApiKey({ body: { name: NOT_NORMAL, expiresAt: 30, role: "observer" } });
  const usernames = [login("ana", "root"), login(NASTY[0] ?? ""), "^[$]{2}%{if}\\\\", ".*"];
  const sources = [cidr("10.0.0.0/8"), "^10\\.", cidr("192.0.2.7", "10.1.0.0/16"), cidr("10.0.0.0/8")];
  for (let index = 0; index < others; index += 1) {
    const name = `web-${index}`;
    const { uid } = await agentCall(client, name, `0a:00:00:00:00:${10 + index}`, tenant);
    await client.acceptDevice({ params: { uid } });
    await client.updateDeviceTags({ params: { uid }, body: { tags: ["edge", "prod"] } });
    const filter = index === 3 ? { tags: ["edge", "prod"] } : { hostname: hostname("web-1") };
    const rule = { action: index % 2 ? "allow" : "deny", priority: index % 3, active: index !== 2 } as const;
    const sourceIp = sources[index % sources.length] ?? "";
    await client.createFirewallRule({ body: { ...rule, sourceIp, username: usernames[1] ?? "", filter } });
    await service.createUser({ username: name, password: "correct-horse" });
    const body = { email: `${name}@example.com`, role: "operator" } as const;
    await client.inviteMember({ params: { tenant }, body });
    await client.createApiKey({
      body: { name: `${index}${NASTY_NAME}`, expiresAt: 30, role: "observer" },
    });
  }
  for (const [index, name] of NASTY.slice(-keys).entries()) {
    const data = Buffer.from(sshKeyLine("with a comment")).toString("base64");
    const filter = index % 2 ? { hostname: ".*" } : { tags: ["prod"] };
    await client.createPublicKey({ body: { name, data, username: usernames[index % 4] ?? "", filter } });
  }
}

describe(`existing objects, imported by ${LABEL}`, { timeout: 60_000 }, () => {
  /** Imports, plans and applies the objects of a namespace. Returns the names of the data files. */
  async function imported(contents: Contents): Promise<string[]> {
    const fleet = await startFleet();
    onTestFinished(() => fleet.stop());
    const provider = await startProvider(fleet.env);
    onTestFinished(() => provider.stop());
    await fill(fleet, contents);
    const out = join(testFolder(), "policy");
    const result = await gatehouse(["import", "--format", "terraform", "--out", out], fleet.env);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("terraform apply") });
    expect(result.stderr).toContain(`ApiKey ${NOT_NORMAL} is omitted`);
    const root = new RootModule(out, { ...provider.env, ...fleet.env });
    expect(await root.run("fmt", "-check", "-diff")).toEqual({ code: 0, output: "" });
    let planned: string[] = [];
    const requests = await requestsDuring(fleet.service, async () => {
      planned = await root.changes();
      await root.apply();
    });
    expect(planned.filter((change) => !change.endsWith(": no-op+import"))).toEqual([]);
    expect(planned).toHaveLength(contents.keys + 4 * contents.others + 1);
    expect(requests.filter(isWrite)).toEqual([]);
    expect(await root.changes()).toEqual([]);
    return existsSync(join(out, "data")) ? readdirSync(join(out, "data")) : [];
  }

  it.runIf(hasTerraform)(
    "result in a plan with only imports, and then in an empty plan",
    { tags: ["long"] },
    async () => {
      expect(await imported({ keys: NASTY.length, others: 4 })).toEqual(["keys.json"]);
    },
  );

  it.runIf(hasTerraform)(
    "result in the same plans if the configuration contains a table for every kind",
    { tags: ["long"] },
    async () => {
      expect(await imported({ keys: 13, others: 13 })).toHaveLength(5);
    },
  );

  it.runIf(hasTerraform)(
    "result in the same plans if the configuration contains no table",
    { tags: ["long"] },
    async () => {
      expect(await imported({ keys: 12, others: 1 })).toEqual([]);
    },
  );
});

describe("gatehouse import --format terraform", () => {
  it.each([
    ["--state file", "the import blocks create the state"],
    ["--plugin", "the root module uses the Terraform provider"],
    ["--adopt", "import blocks adopt the objects"],
    ["--stack prod", "only Pulumi has stacks"],
  ])("rejects %s", async (flags, why) => {
    const args = ["import", "--format", "terraform", "--out", testFolder(), ...flags.split(" ")];
    const { code, stderr } = await gatehouse(args);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`cannot be used with --format terraform: ${why}`),
    ]);
  });
});

describe(`texts in a configuration of ${LABEL}`, () => {
  it.runIf(hasTerraform)(
    "keep their values after Terraform has evaluated them",
    { tags: ["long"] },
    async () => {
      const parts = fc.oneof(fc.constantFrom(...NASTY), fc.string({ unit: "binary", maxLength: 5 }));
      const texts = fc.array(parts, { maxLength: 6 }).map((some) => some.join("").toWellFormed());
      const values = [...NASTY, ...fc.sample(texts, { seed: SEED, numRuns: 300 })];
      const root = new RootModule(testFolder(), {});
      const locals = {
        head: "locals",
        groups: [Object.fromEntries(values.map((value, index) => [`t${index}`, value]))],
      };
      const names = new Code(`[${values.map((_, index) => `local.t${index}`).join(", ")}]`);
      const objects = values.map((value, index) => ({ [value]: index }));
      const outputs = [
        { head: 'output "texts"', groups: [{ value: names }] },
        { head: 'output "keys"', groups: [{ value: objects }] },
      ];
      writeFileSync(join(root.folder, "main.tf"), `${[locals, ...outputs].map(blockText).join("\n\n")}\n`);
      expect(await root.run("fmt", "-check")).toEqual({ code: 0, output: "" });
      await root.apply();
      const printed = JSON.parse(await text(root.start("output", "-json").child.stdout));
      // Terraform normalizes all text to this form.
      const normal = values.map((value) => value.normalize());
      expect(printed.texts.value).toEqual(normal);
      expect(printed.keys.value).toEqual(normal.map((value, index) => ({ [value]: index })));
    },
  );
});
