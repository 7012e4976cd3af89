import { mkdirSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { Stack, pulumiOnPath } from "../support/gatehouse.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { requestsDuring } from "../support/requests.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 });
const PLUGIN = fileURLToPath(new URL("../../provider/bin/pulumi-resource-gatehouse.js", import.meta.url));
const PROGRAM = `
const pulumi = require("@pulumi/pulumi");
class Provider extends pulumi.ProviderResource { constructor(n, a) { super("gatehouse", n, a); } }
class PublicKey extends pulumi.CustomResource { constructor(n, a, o) { super("gatehouse:index:PublicKey", n, a, o); } }
const { URL: url, PASSWORD: password } = process.env;
for (const n of (process.env.NAMES || "a,b").split(",")) {
  const provider = new Provider("p" + n, { url, username: "rotator", password: pulumi.secret(password), tenant: process.env.TENANT });
  new PublicKey(n, { name: n, data: JSON.parse(process.env.KEYS)[n], username: "^root$", filter: { hostname: ".*" } }, { provider });
}
`;
const KEYS = JSON.stringify({ a: sshKeyLine("a"), b: sshKeyLine("b") });

describe.skipIf(!pulumiOnPath)("rotated", () => {
  let fleet: Fleet;
  let program: PolicyProgram;
  beforeAll(async () => {
    fleet = await startFleet(["rotator"]);
    program = new PolicyProgram();
    program.write("index.js", PROGRAM);
  });
  afterAll(async () => { program?.remove(); await fleet?.stop(); });
  it("x", async () => {
    const root = program.states;
    mkdirSync(join(root, "bin")); 
    symlinkSync(PLUGIN, join(root, "bin", "pulumi-resource-gatehouse"));
    const client = (password: string) => createClient({ url: fleet.service.url, credential: passwordCredential({ username: "rotator", password }) });
    const c = client("correct-horse");
    const { tenantId: TENANT } = await c.createNamespace({ body: { name: "rotator" } });
    const stack = new Stack({ program: program.folder, folder: root, engine: "cli", env: { GATEHOUSE_URL: fleet.service.url, GATEHOUSE_USERNAME: "rotator", GATEHOUSE_TENANT: TENANT, KEYS, TENANT, PULUMI_HOME: join(root, "home"), URL: fleet.service.url, PATH: [join(root, "bin"), process.env.PATH].join(delimiter) } });
    let r = await stack.run(["up", "--yes", "--skip-preview"], { PASSWORD: "correct-horse", GATEHOUSE_PASSWORD: "correct-horse" });
    console.log(r.code, r.stdout.slice(-1500), r.stderr.slice(-1500));
    const { id = "" } = (await c.getUserInfo?.().catch(() => ({} as any))) ?? {};
    const me = await c.identity();
    await c.updateUserPassword({ params: { id: me.userId! }, body: { currentPassword: "correct-horse", newPassword: "battery-staple" } } as never);
    const results = [];
    for (const args of [["review"], ["drift"], ["refresh", "--yes"], ["destroy", "--yes"]]) {
      let out: any;
      const seen = await requestsDuring(fleet.service, async () => { out = await stack.run(args, { PASSWORD: "battery-staple", GATEHOUSE_PASSWORD: "battery-staple" }); });
      results.push([args[0], out.code, seen.filter((l) => l.includes("login")).length, (out.stdout + out.stderr).slice(-900)]);
    }
    for (const x of results) console.log(...x);
    await c.close();
  });
});
