import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { describeSsh, type SshTarget } from "./SshTarget.ts";

const withoutLimits = spawnSync("prlimit", ["--version"]).error !== undefined;

/** Sets the maximum size of the files that a service writes. On reaching it, writes fail like those to a full disk. */
const limitFiles = ({ fleet: { service } }: SshTarget, size: string) =>
  execFileSync("prlimit", ["--pid", String(service.pid), `--fsize=${size}:`]);

const options = {
  env: { GATEHOUSE_SSH_RECORD_PATIENCE: "1" },
  begin: ({ fleet: { client, tenant } }: SshTarget) =>
    client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } }),
};

describe.skipIf(withoutLimits)("a full disk", () => {
  describeSsh("under a recorded session", options, (target) => {
    it("hides no output: the exit status arrives, and all output is recorded or in a gap", {
      tags: ["long"],
      timeout: 120_000,
    }, async () => {
      const bytes = 12_000_000;
      const child = target.spawnSsh({
        command: `echo begun; read go; head -c ${bytes} /dev/zero | tr '\\0' x; exit 7`,
      });
      await once(child.stdout, "data");
      const { uid } = await target.session(({ active, authenticated }) => active && authenticated);
      const received = text(child.stdout);
      const left = once(child, "close");
      limitFiles(target, "1");
      child.stdin.write("go\n");
      const [code] = await left;
      expect([code, (await received).length]).toEqual([7, bytes]);
      limitFiles(target, "unlimited");
      const ended = await target.session(({ active }) => !active);
      const { events } = ended;
      expect(ended.uid).toBe(uid);
      expect(events.items.at(-1)).toMatchObject({ type: "exit-status", data: { status: 7 } });
      const gaps = events.items.filter(({ type }) => type === "recording-gap");
      const lost = gaps.reduce((sum, { data }) => sum + Number(data.bytes), 0);
      expect(lost).toBeGreaterThan(0);
      const chunks = await target.fleet.client.getSessionRecord({ params: { uid, seat: "0" } });
      const recorded = chunks.map(({ message }) => message).join("");
      expect(recorded.match(/x/g)).toHaveLength(bytes - lost);
    });
  });
});
