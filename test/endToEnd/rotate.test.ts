import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Result } from "../../provider/engine/index.ts";
import { changesOf, engines } from "../support/gatehouse.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const [DAY, HOUR] = [86_400_000, 3_600_000];
const CLOCK = new URL("../support/movedClock.ts", import.meta.url).href;

const apiKey = (args: Record<string, unknown> = {}) => ({
  type: "ApiKey",
  args: { role: "observer", validDays: 90, rotateBefore: 14, ...args },
});
const KEYS = { ci: apiKey(), other: apiKey({ name: "other-key" }) };

describe.each(engines)("gatehouse rotate with $label", { timeout: 180_000 }, ({ engine, available }) => {
  const program = new PolicyProgram();
  program.write("clock", "0");
  const clock = { NODE_OPTIONS: `--import=${CLOCK}`, MOVED_CLOCK: join(program.folder, "clock") };
  const fleet = sharedFleet([], { env: clock });
  afterAll(() => program.remove());

  const keyNames = async () => (await fleet.client.listApiKeys()).map(({ name }) => name).sort();
  const messages = ({ diagnostics }: Result) => diagnostics.map(({ message }) => message).join("\n");

  it.skipIf(!available)(
    "replaces the named keys at once, and changes nothing else of the program",
    async () => {
      const stack = program.stack({ env: fleet.env, name: "named", engine });
      await stack.result(["up", "--yes", "--skip-preview"], policyEnv(KEYS));
      const changed = policyEnv({ ...KEYS, added: publicKey("added") });
      const unconfirmed = await stack.run(["rotate", "ci"], changed);
      expect(unconfirmed).toMatchObject({ code: 1, stderr: expect.stringContaining("Add --yes") });
      expect(changesOf(await stack.result(["rotate", "ci", "--yes"], changed))).toEqual([
        expect.stringMatching(/^replace ci/),
      ]);
      expect(await keyNames()).toHaveLength(3);
      expect(changesOf(await stack.result(["rotate", "other-key", "ci", "--yes"], changed))).toEqual([
        expect.stringMatching(/^replace ci/),
        expect.stringMatching(/^replace other/),
      ]);
      expect(await fleet.client.getPublicKeys()).toEqual([]);
      const unknown = await stack.run(["rotate", "nightly", "--yes"], changed);
      expect(unknown).toMatchObject({
        code: 1,
        stderr: "error: The stack named has no API key nightly. Keys: ci, other. [usage]\n",
      });
      await stack.result(["destroy", "--yes"], changed);
      expect(await keyNames()).toEqual([]);
    },
  );

  it.skipIf(!available)(
    "without names, changes only the keys that are due, and gives the reasons",
    async () => {
      // The clock of the commands is moved, so each command runs as a process.
      const stack = program.stack({ env: { ...fleet.env, ...clock }, name: "due", engine, spawned: true });
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
      expect(changesOf(revoked)).toEqual([expect.stringMatching(/^create other/)]);
      expect(messages(revoked)).toContain(
        'ApiKey "other-key": was revoked or deleted outside the program; the next run creates a new key',
      );

      await result("rotate", "lasting");
      const lasting = (await fleet.client.listApiKeys()).filter(({ name }) => name.startsWith("lasting"));
      expect(lasting).toHaveLength(2);
      const newest = lasting.reduce((left, right) => (left.createdAt > right.createdAt ? left : right));
      await fleet.client.deleteApiKey({ params: { key: newest.name } });
      expect(changesOf(await result("rotate"))).toEqual([expect.stringMatching(/^replace lasting/)]);
      program.write("clock", String(2 * DAY + HOUR));
      const ended = await result("rotate");
      expect(changesOf(ended)).toEqual([expect.stringMatching(/^update lasting/)]);
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
      expect(changesOf(due)).toEqual([
        expect.stringMatching(/^replace ci/),
        expect.stringMatching(/^replace other/),
      ]);
      await stack.result(["destroy", "--yes"], declared);
      expect(await keyNames()).toEqual([]);
    },
  );
});
