/**
 * Slow: each test runs several commands. test/review/driftNotice.test.ts covers the notices.
 *
 * @module-tag long
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { DriftNotice } from "../../provider/drift/driftNotice.ts";
import { createKey, startFleet } from "../support/fleet.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { shared } from "../support/shared.ts";
import { startWebhook } from "../support/webhook.ts";

const POLICY = policyEnv({ ana: publicKey("ana") });

/** A key name with text that Slack would interpret as a mention of all users, and as formatting. */
const BACKDOOR = "<!channel> @all `back*door`";

/** An applied program, and a webhook that receives its drift notices. */
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
    fleet,
    hook,
    program,
    stack,
    /** The same stack as `stack`, but each command runs as a separate process. */
    spawned: stackWith({ name: stack.name, spawned: true }),
    /** Creates a key outside the program. */
    createBackdoor: () => createKey(fleet.client, BACKDOOR),
    /**
     * Returns the messages that the webhook receives from a run. Checks that the run exits with `code`, and that its
     * output does not contain the webhook's address.
     */
    async messagesOf(
      code: number,
      args: readonly string[] = ["--notify", "json"],
      by = stack,
    ): Promise<unknown[]> {
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

const JSON_FORM = ["--notify", "json"];
const SLACK_FORM = ["--notify", "slack"];

describe("a webhook", { timeout: 120_000 }, () => {
  const world = shared(startWorld);

  // test/review/driftNotice.test.ts covers every change of the findings.
  it("receives a notice of drift, and a notice of its resolution", async () => {
    const { messagesOf, fleet, stack, hook, program } = world;
    await world.createBackdoor();
    const [notice, ...more] = (await messagesOf(2)) as DriftNotice[];
    expect(more).toEqual([]);
    expect(schemaFaults("drift-notice", notice)).toEqual([]);
    expect(notice).toMatchObject({
      event: "found",
      stack: stack.name,
      service: fleet.service.url,
      more: 0,
      repaired: [],
      summary: "1 unmanaged; 2 resources as declared.",
      findings: [
        expect.stringMatching(/^PublicKey <!channel> .*is unmanaged; gives every login .*by user admin/),
      ],
    });

    // The device filter of the existing key also matches a new device. `drift` must not report this as a new finding.
    await fleet.enroll("web-02");
    expect(await messagesOf(2)).toEqual([]);
    const kept = join(program.folder, `access.notified.${stack.name}.json`);
    expect(readFileSync(kept, "utf8")).not.toContain(hook.secret);
    expect(await messagesOf(0, [...JSON_FORM, "--unmanaged", "warn"])).toMatchObject([
      { event: "resolved", findings: [] },
    ]);
  });

  it("receives a rejected notice again from the next run", async () => {
    const { messagesOf, hook } = world;
    hook.answer({ status: 404 });
    const [refused] = (await messagesOf(1)) as DriftNotice[];
    const [accepted] = (await messagesOf(2)) as DriftNotice[];
    expect(accepted).toMatchObject({ event: "found", fingerprint: refused?.fingerprint });
  });

  it("receives nothing from a run without the webhook's address, or if the file of the last notice is unreadable", async () => {
    const { stack, messagesOf, program } = world;
    const nowhere = await stack.run(["drift", ...JSON_FORM], { GATEHOUSE_NOTIFY_URL_FILE: "" });
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ""]);
    expect(nowhere.stderr).toContain("GATEHOUSE_NOTIFY_URL is not set, but --notify needs a webhook.");
    const broken = join(program.folder, "broken.json");
    writeFileSync(broken, "[");
    expect(await messagesOf(1, [...JSON_FORM, "--notify-state", broken])).toEqual([]);
  });
});

describe("a Slack webhook", { tags: ["long"], timeout: 120_000 }, () => {
  it("receives failing policy tests and repaired findings, and mentions no user", async () => {
    const world = await startWorld();
    onTestFinished(() => world.stop());
    const { messagesOf, program, stack, spawned } = world;
    await world.createBackdoor();
    expect(await messagesOf(2, SLACK_FORM)).toHaveLength(1);
    program.write(
      "access.policy.ts",
      `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("no root login", ({ access }) => expect(access).not.toAllow({ login: "root" }));
`,
    );
    const [{ text }] = (await messagesOf(2, SLACK_FORM, spawned)) as [{ text: string }];
    expect(text).toContain(`*Drift changed: \`commonjs-program/${stack.name}\`*`);
    expect(text).toContain("• the policy test `no root login` fails");
    expect(text).toContain("• PublicKey `&lt;!channel&gt; @\u200ball 'back*door'`");
    expect(text).not.toMatch(/[<>]|@\w/);

    const [repaired] = (await messagesOf(0, ["--repair", "--yes", "--no-tests", ...SLACK_FORM])) as {
      text: string;
    }[];
    expect(repaired?.text).toMatch(/^\*Drift resolved: .*\n.*\nReverted by this run:\n• PublicKey/);
    const elsewhere = join(program.folder, "elsewhere.json");
    expect(await messagesOf(0, ["--no-tests", ...JSON_FORM, "--notify-state", elsewhere])).toEqual([]);
    expect(existsSync(elsewhere)).toBe(true);
  });
});
