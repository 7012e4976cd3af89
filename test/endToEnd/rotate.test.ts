import { expect, it } from "vitest";
import type { Result } from "../../provider/engine/index.ts";
import { startFleet } from "../support/fleet.ts";
import { changesOf, describeEngines } from "../support/gatehouse.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { shared } from "../support/shared.ts";

const [DAY, HOUR] = [86_400_000, 3_600_000];
const CLOCK = new URL("../support/movedClock.ts", import.meta.url).href;

const apiKey = (args: Record<string, unknown> = {}) => ({
  type: "ApiKey",
  args: { role: "observer", validDays: 90, rotateBefore: 14, ...args },
});
const KEYS = { ci: apiKey(), other: apiKey({ name: "other-key" }) };

// The long test runs a dozen processes.
describeEngines("gatehouse rotate", { timeout: 180_000 }, (engine) => {
  const program = sharedProgram();
  /** The clock of the service and of the commands that run as processes. The test moves it with the file. */
  const clock = () => ({ NODE_OPTIONS: `--import=${CLOCK}`, MOVED_CLOCK: program.path("clock") });
  const fleet = shared(() => {
    program.write("clock", "0");
    return startFleet([], { env: clock() });
  });

  const keyNames = async () => (await fleet.client.listApiKeys()).map(({ name }) => name).sort();
  /** Returns a change without the fields. */
  const shortened = (change: string) => change.split(" ").slice(0, 2).join(" ");
  const messages = ({ diagnostics }: Result) => diagnostics.map(({ message }) => message).join("\n");

  it("replaces the named keys at once, and changes nothing else of the program", {
    tags: ["long"],
  }, async () => {
    const stack = program.stack({ env: fleet.env, name: "named", engine });
    await stack.apply(KEYS);
    const changed = policyEnv({ ...KEYS, added: publicKey("added") });
    const unconfirmed = await stack.run(["rotate", "ci"], changed);
    expect(unconfirmed).toMatchObject({ code: 1, stderr: expect.stringContaining("Add --yes") });
    const rotated = async (...names: string[]) =>
      changesOf(await stack.result(["rotate", ...names, "--yes"], changed)).map(shortened);
    expect(await rotated("ci")).toEqual(["replace ci"]);
    expect(await keyNames()).toHaveLength(3);
    expect(await rotated("other-key", "ci")).toEqual(["replace ci", "replace other"]);
    expect(await fleet.client.getPublicKeys()).toEqual([]);
    const unknown = await stack.run(["rotate", "nightly", "--yes"], changed);
    expect(unknown).toMatchObject({
      code: 1,
      stderr: "error: The stack named has no API key nightly. Keys: ci, other. [usage]\n",
    });
    await stack.result(["destroy", "--yes"], changed);
    expect(await keyNames()).toEqual([]);
  });

  it("without names, changes only the keys that are due, and gives the reasons", {
    tags: ["long"],
  }, async () => {
    // The clock of the commands is moved, so each command runs as a process.
    const stack = program.stack({ env: { ...fleet.env, ...clock() }, name: "due", engine, spawned: true });
    const declared = policyEnv({
      ...KEYS,
      lasting: apiKey({ validDays: -1, rotateBefore: 0, overlap: 1 }),
    });
    const result = (...args: string[]) => stack.result([...args, "--yes"], declared);
    await result("up", "--skip-preview");
    const idle = await stack.run(["rotate", "--yes"], declared);
    expect(idle).toMatchObject({ code: 0, stdout: expect.stringContaining("No API key is due.") });

    await fleet.client.deleteApiKey({ params: { key: "other-key" } });
    const revoked = await result("rotate");
    expect(changesOf(revoked).map(shortened)).toEqual(["create other"]);
    expect(messages(revoked)).toContain(
      'ApiKey "other-key": was revoked or deleted outside the program; the next run creates a new key',
    );

    await result("rotate", "lasting");
    const lasting = (await fleet.client.listApiKeys()).filter(({ name }) => name.startsWith("lasting"));
    expect(lasting).toHaveLength(2);
    const newest = lasting.reduce((left, right) => (left.createdAt > right.createdAt ? left : right));
    await fleet.client.deleteApiKey({ params: { key: newest.name } });
    expect(changesOf(await result("rotate")).map(shortened)).toEqual(["replace lasting"]);
    program.write("clock", String(2 * DAY + HOUR));
    const ended = await result("rotate");
    expect(changesOf(ended).map(shortened)).toEqual(["update lasting"]);
    expect(messages(ended)).toMatch(
      /ApiKey "lasting": the overlap of the replaced key "lasting-\w+" ended 1 day ago: the run revokes the replaced key/,
    );

    program.write("clock", String(80 * DAY + HOUR));
    const planned = messages(await stack.result(["preview"], declared));
    for (const name of ["ci", "other"]) {
      expect(planned).toContain(
        `ApiKey "${name}": expires in 9 days, rotateBefore 14: the run replaces the key`,
      );
    }
    const due = await result("rotate");
    expect(changesOf(due).map(shortened)).toEqual(["replace ci", "replace other"]);
    await stack.result(["destroy", "--yes"], declared);
    expect(await keyNames()).toEqual([]);
  });
});
