import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DriftNotice } from "../../provider/drift/driftNotice.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { Stack } from "../support/gatehouse.ts";
import type { Policy } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { startWebhook, type TestWebhook } from "../support/webhook.ts";

const policy: Policy = {
  ana: {
    type: "PublicKey",
    args: { name: "ana", data: sshKeyLine("ana"), username: "^root$", filter: { hostname: ".*" } },
  },
};
const POLICY = { POLICY: JSON.stringify(policy) };

/** A name by which somebody would call a whole channel, and format its text. */
const BACKDOOR = "<!channel> @all `back*door`";

describe("a webhook is told of drift", { timeout: 120_000 }, () => {
  let fleet: Fleet;
  let program: PolicyProgram;
  let stack: Stack;
  let hook: TestWebhook;
  let kept: string;
  let fingerprint = "";

  beforeAll(async () => {
    fleet = await startFleet();
    hook = await startWebhook();
    await fleet.enrol("web-01");
    program = new PolicyProgram();
    const address = join(program.states, "webhook");
    writeFileSync(address, `${hook.url}\n`);
    stack = new Stack({
      ...{ program: program.folder, folder: program.states, engine: "embedded" },
      env: { ...fleet.env, ...POLICY, GATEHOUSE_NOTIFY_URL_FILE: address },
    });
    kept = join(program.folder, `access.notified.${stack.name}.json`);
    await stack.result(["up", "--skip-preview"]);
  }, 120_000);
  afterAll(async () => {
    program?.remove();
    await hook?.stop();
    await fleet?.stop();
  });

  /** The messages that a run sends, which must end with this code; the address is in none of its output. */
  const told = async (code: number, ...args: readonly string[]) => {
    const before = hook.messages.length;
    const form = args.includes("--notify") ? [] : ["--notify", "json"];
    const run = await stack.run(["drift", ...form, ...args]);
    expect(run.code, run.stdout + run.stderr).toBe(code);
    expect(run.stdout + run.stderr).not.toContain(hook.secret);
    return hook.messages.slice(before);
  };
  const change = (username: string) =>
    fleet.client.updatePublicKey({
      params: { fingerprint },
      body: { name: BACKDOOR, username, filter: { hostname: ".*" } },
    });

  it("when there is some, when it changes, and when there is none any more", async () => {
    expect(await told(0)).toEqual([]);

    const made = await fleet.client.createPublicKey({
      body: {
        name: BACKDOOR,
        data: Buffer.from(sshKeyLine("backdoor")).toString("base64"),
        username: ".*",
        filter: { hostname: ".*" },
      },
    });
    fingerprint = made.fingerprint;
    const [found, ...more] = (await told(2)) as DriftNotice[];
    expect(more).toEqual([]);
    expect(schemaFaults("drift-notice", found)).toEqual([]);
    expect(found).toMatchObject({
      ...{ event: "found", stack: stack.name, service: fleet.service.url, more: 0, repaired: [] },
      summary: "1 in no program; 2 resources as declared.",
      findings: [
        expect.stringMatching(/^PublicKey <!channel> .*in no program; gives every login .*by user admin/),
      ],
    });

    expect(await told(2)).toEqual([]);
    // What follows from the same key is another thing with every device that comes.
    await fleet.enrol("web-02");
    expect(await told(2)).toEqual([]);
    await change("^root$");
    expect(await told(2)).toMatchObject([
      { event: "changed", findings: [expect.stringMatching(/login root/)] },
    ]);
    expect(readFileSync(kept, "utf8")).not.toContain(hook.secret);

    expect(await told(0, "--unmanaged", "warn")).toMatchObject([{ event: "resolved", findings: [] }]);
    expect(await told(0, "--unmanaged", "warn")).toEqual([]);
  });

  it("again by the next run, where it did not take the message", async () => {
    hook.answer({ status: 404 });
    const [refused] = (await told(1)) as DriftNotice[];
    const [taken] = (await told(2)) as DriftNotice[];
    expect(taken).toMatchObject({ event: "found", id: refused?.id });
  });

  it("of a policy test that fails, and of what a repair undid, in Slack's form", async () => {
    program.write(
      "access.policy.ts",
      `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("nobody is root", ({ access }) => expect(access).not.toAllow({ login: "root" }));
`,
    );
    const slack = ["--notify", "slack"];
    const spawned = new Stack({
      ...{ program: program.folder, folder: program.states, engine: "embedded", name: stack.name },
      env: { ...fleet.env, ...POLICY, GATEHOUSE_NOTIFY_URL: hook.url },
      spawned: true,
    });
    const before = hook.messages.length;
    const run = await spawned.run(["drift", ...slack]);
    expect(run.code, run.stdout + run.stderr).toBe(2);
    const [{ text }] = hook.messages.slice(before) as [{ text: string }];
    expect(text).toContain(`*Drift, other than before: \`commonjs-program/${stack.name}\`*`);
    expect(text).toContain("• the policy test `nobody is root` fails");
    expect(text).toContain("• PublicKey `&lt;!channel&gt; @ all 'back*door'`");
    expect(text).not.toMatch(/[<>]|(?<![\w.])@\w/);

    const [repaired] = (await told(0, "--repair", "--no-tests", ...slack)) as { text: string }[];
    expect(repaired?.text).toMatch(/^\*No drift any more: .*\n.*\nUndone by this run:\n• PublicKey/);
    expect(await told(0, "--no-tests")).toEqual([]);
  });

  it("nothing, where its address is missing or the last message cannot be read: that is an error first", async () => {
    const nowhere = await stack.run(["drift", "--notify", "json"], { GATEHOUSE_NOTIFY_URL_FILE: "" });
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ""]);
    expect(nowhere.stderr).toContain("GATEHOUSE_NOTIFY_URL: the address that --notify sends to is missing");
    const broken = join(program.folder, "broken.json");
    writeFileSync(broken, "{}");
    expect(await told(1, "--no-tests", "--notified", broken)).toEqual([]);
    const elsewhere = join(program.folder, "elsewhere.json");
    expect(await told(0, "--no-tests", "--notified", elsewhere)).toEqual([]);
    expect(existsSync(elsewhere)).toBe(true);
  });
});
