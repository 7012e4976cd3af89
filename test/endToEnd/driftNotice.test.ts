import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { DriftNotice } from "../../provider/drift/driftNotice.ts";
import { createKey, startFleet } from "../support/fleet.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { startWebhook } from "../support/webhook.ts";

const POLICY = policyEnv({ ana: publicKey("ana") });

/** A name by which somebody would call a whole channel, and format its text. */
const BACKDOOR = "<!channel> @all `back*door`";

/** A program that was applied at a service, and a webhook that is told of its drift. */
async function startWorld() {
  const fleet = await startFleet();
  const hook = await startWebhook();
  await fleet.enroll("web-01");
  const program = new PolicyProgram();
  const address = join(program.states, "webhook");
  writeFileSync(address, `${hook.url}\n`);
  const stackWith = (more: { readonly name?: string; readonly spawned?: boolean }) =>
    program.stack({ ...more, env: { ...fleet.env, ...POLICY, GATEHOUSE_NOTIFY_URL_FILE: address } });
  const stack = stackWith({});
  await stack.result(["up", "--yes", "--skip-preview"]);
  return {
    ...{ fleet, hook, program, stack },
    /** The same, of which each command is a process. */
    spawned: stackWith({ name: stack.name, spawned: true }),
    /** Creates a key outside the program. */
    makeBackdoor: () => createKey(fleet.client, BACKDOOR),
    /** The messages that a run sends, which must end with this code; the address is in none of its output. */
    async told(code: number, args: readonly string[] = ["--notify", "json"], by = stack): Promise<unknown[]> {
      const before = hook.messages.length;
      const run = await by.run(["drift", ...args]);
      expect(run.code, run.stdout + run.stderr).toBe(code);
      expect(run.stdout + run.stderr).not.toContain(hook.secret);
      return hook.messages.slice(before);
    },
    async stop() {
      program.remove();
      await hook.stop();
      await fleet.stop();
    },
  };
}
type World = Awaited<ReturnType<typeof startWorld>>;

const JSON_FORM = ["--notify", "json"];
const SLACK_FORM = ["--notify", "slack"];

describe("a webhook is told of drift", { timeout: 120_000 }, () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world?.stop());

  // test/review/driftNotice.test.ts has it of every change of what was found.
  it("when there is some, and when there is none any more", async () => {
    const { told, fleet, stack, hook, program } = world;
    await world.makeBackdoor();
    const [found, ...more] = (await told(2)) as DriftNotice[];
    expect(more).toEqual([]);
    expect(schemaFaults("drift-notice", found)).toEqual([]);
    expect(found).toMatchObject({
      ...{ event: "found", stack: stack.name, service: fleet.service.url, more: 0, repaired: [] },
      summary: "1 unmanaged; 2 resources as declared.",
      findings: [
        expect.stringMatching(/^PublicKey <!channel> .*is unmanaged; gives every login .*by user admin/),
      ],
    });

    // What follows from the same key is another thing with every device that comes.
    await fleet.enroll("web-02");
    expect(await told(2)).toEqual([]);
    const kept = join(program.folder, `access.notified.${stack.name}.json`);
    expect(readFileSync(kept, "utf8")).not.toContain(hook.secret);
    expect(await told(0, [...JSON_FORM, "--unmanaged", "warn"])).toMatchObject([
      { event: "resolved", findings: [] },
    ]);
  });

  it("again by the next run, where it did not take the message", async () => {
    const { told, hook } = world;
    hook.answer({ status: 404 });
    const [refused] = (await told(1)) as DriftNotice[];
    const [taken] = (await told(2)) as DriftNotice[];
    expect(taken).toMatchObject({ event: "found", fingerprint: refused?.fingerprint });
  });

  it("by no run that lacks its address, or cannot read what was told last", async () => {
    const { stack, told, program } = world;
    const nowhere = await stack.run(["drift", ...JSON_FORM], { GATEHOUSE_NOTIFY_URL_FILE: "" });
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ""]);
    expect(nowhere.stderr).toContain("GATEHOUSE_NOTIFY_URL: the webhook address for --notify is missing");
    const broken = join(program.folder, "broken.json");
    writeFileSync(broken, "[");
    expect(await told(1, [...JSON_FORM, "--notified", broken])).toEqual([]);
  });
});

describe("a webhook of Slack's form", { tags: ["long"], timeout: 120_000 }, () => {
  it("is told of a policy test that fails, and of what a repair undid, and calls nobody", async () => {
    const world = await startWorld();
    onTestFinished(() => world.stop());
    const { told, program, stack, spawned } = world;
    await world.makeBackdoor();
    expect(await told(2, SLACK_FORM)).toHaveLength(1);
    program.write(
      "access.policy.ts",
      `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("nobody is root", ({ access }) => expect(access).not.toAllow({ login: "root" }));
`,
    );
    const [{ text }] = (await told(2, SLACK_FORM, spawned)) as [{ text: string }];
    expect(text).toContain(`*Drift changed: \`commonjs-program/${stack.name}\`*`);
    expect(text).toContain("• the policy test `nobody is root` fails");
    expect(text).toContain("• PublicKey `&lt;!channel&gt; @\u200ball 'back*door'`");
    expect(text).not.toMatch(/[<>]|@\w/);

    const [repaired] = (await told(0, ["--repair", "--yes", "--no-tests", ...SLACK_FORM])) as {
      text: string;
    }[];
    expect(repaired?.text).toMatch(/^\*Drift resolved: .*\n.*\nReverted by this run:\n• PublicKey/);
    const elsewhere = join(program.folder, "elsewhere.json");
    expect(await told(0, ["--no-tests", ...JSON_FORM, "--notified", elsewhere])).toEqual([]);
    expect(existsSync(elsewhere)).toBe(true);
  });
});
