import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { MINUTE } from "../../sdk/times.ts";
import { PolicyProgram } from "./policyProgram.ts";
import { newKey, spawnSsh, ssh } from "./sshFleet.ts";

/** A service with an accepted device that is online, and the clock by which the service decides. */
interface ExpiryService {
  /** The SSH ports of all instances of the service. */
  readonly ports: readonly number[];
  /** The login name and host name with which clients log in to the device. */
  readonly to: string;
  /** A folder for private keys. */
  readonly folder: string;
  /** The settings with which `gatehouse` commands connect to the service. */
  readonly env: Readonly<Record<string, string>>;
  /** The maximum time, in milliseconds, between a move of the clock and the end of sessions. */
  readonly endsWithin: number;
  /** Moves the clock ahead, by the given number of milliseconds from the real time. */
  moveClock(ahead: number): Promise<void>;
}

/**
 * Declares a key with an end, reviews and applies it, logs in on each instance, lets the key expire while the sessions
 * are open, and runs the program again.
 */
export async function letKeyExpire(service: ExpiryService): Promise<void> {
  const key = newKey(service.folder, "temporary");
  const end = new Date(Math.ceil(Date.now() / MINUTE) * MINUTE + 60 * MINUTE);
  const declared = {
    temporary: {
      type: "PublicKey",
      args: {
        name: "temporary",
        data: readFileSync(`${key}.pub`, "utf8"),
        username: "^root$",
        filter: { hostname: ".*" },
        // An offset other than UTC is the same time, and no difference in later runs.
        expiresAt: new Date(end.getTime() + 120 * MINUTE).toISOString().replace(".000Z", "+02:00"),
      },
    },
  };
  const program = new PolicyProgram();
  const withPolicy = (policy: object) =>
    program.stack({ env: { ...service.env, POLICY: JSON.stringify(policy) }, name: "dev", spawned: true });
  const run = async (args: readonly string[], code = 0, policy: object = declared) => {
    const result = await withPolicy(policy).run(args);
    expect(result.code, result.stdout + result.stderr).toBe(code);
    return result.stdout + result.stderr;
  };
  const expectLogins = async (code: number) => {
    for (const port of service.ports)
      expect(await ssh({ to: service.to, port, key, command: "true" })).toMatchObject({ code });
  };
  const until = `until ${end.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  try {
    const reviewed = await run(["review", "--create"]);
    expect(reviewed).toContain("temporary gains login root");
    expect(reviewed).toContain(until);
    await run(["up", "--yes"]);

    const sessions = await Promise.all(
      service.ports.map(async (port) => {
        const child = spawnSsh({ to: service.to, port, key, command: "echo begun; exec cat" });
        let shown = "";
        child.stderr.on("data", (data) => {
          shown += String(data);
        });
        const ended = once(child, "exit");
        await Promise.race([
          once(child.stdout, "data"),
          ended.then(() => expect.unreachable(`the login failed: ${shown}`)),
        ]);
        return { ended, shown: () => shown };
      }),
    );
    await service.moveClock(end.getTime() - Date.now() - 5 * MINUTE);
    await expectLogins(0);

    await service.moveClock(end.getTime() - Date.now() + 5 * MINUTE);
    const moved = performance.now();
    await Promise.all(sessions.map(({ ended }) => ended));
    expect(performance.now() - moved).toBeLessThan(service.endsWithin);
    for (const { shown } of sessions) expect(shown()).toContain("access was revoked");
    await expectLogins(255);
    // A clock that jumps backwards does not revive the access.
    await service.moveClock(0);
    await expectLogins(255);
    await service.moveClock(end.getTime() - Date.now() + 5 * MINUTE);

    const next = await run(["up", "--yes"]);
    expect(next).toMatch(
      /PublicKey "temporary": expired \d+ minutes ago; delete this resource from the program/,
    );
    expect(next).not.toMatch(/\+ create|~ update/);
    expect(await run(["drift"])).toMatch(
      /temporary: expired \d+ minutes ago; delete this resource from the program/,
    );

    // Without the declaration, the service has no such key.
    await run(["up", "--yes"], 0, {});
    expect(await run(["drift"], 0, {})).not.toContain("temporary");
  } finally {
    program.remove();
  }
}
