import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { gatehouse } from "../support/gatehouse.ts";
import { listening } from "../support/listening.ts";
import { newKey, openFolder, publicHalf } from "../support/sshFleet.ts";
import { describeSsh } from "./SshTarget.ts";

const folder = openFolder();
const clock = join(folder.path, "clock");
/** Moves the clock of the service, in milliseconds. */
const moveClock = (distance: number) => writeFileSync(clock, String(distance));
moveClock(-3_600_000);

const env = {
  NODE_OPTIONS: `--import=${new URL("../support/movedClock.ts", import.meta.url).href}`,
  MOVED_CLOCK: clock,
};

/** Starts a proxy that replaces the fingerprint in the sessions of the service at `target` by that of another key. */
async function startReplacingProxy(target: string, text: string, key: { fingerprint: string } | undefined) {
  const server = createServer(async (incoming, outgoing) => {
    const { method = "GET", url = "/", headers } = incoming;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const sent = new Headers(
      ["authorization", "content-type"].flatMap((name) => {
        const value = headers[name];
        return typeof value === "string" ? [[name, value] as [string, string]] : [];
      }),
    );
    const body = Buffer.concat(chunks);
    const answer = await fetch(target + url, { method, headers: sent, ...(body.length > 0 && { body }) });
    const replaced = (await answer.text()).replaceAll(text, `"key_fingerprint":"${key?.fingerprint}"`);
    const passed = ["content-type", "x-total-count", "etag"].flatMap((name) => {
      const value = answer.headers.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    outgoing.writeHead(answer.status, Object.fromEntries(passed)).end(replaced);
  });
  return listening(server);
}

describeSsh("gatehouse verify, after logins with OpenSSH's client", { env }, (target) => {
  afterAll(() => folder.remove());

  const verify = async (url = target.fleet.service.url) => {
    const { user, tenant } = target.fleet;
    const { code, stdout } = await gatehouse(["verify", "--json"], {
      GATEHOUSE_URL: url,
      GATEHOUSE_USERNAME: user.username,
      GATEHOUSE_PASSWORD: user.password,
      GATEHOUSE_TENANT: tenant,
    });
    return { code, result: JSON.parse(stdout) };
  };
  const logIn = async (key = target.key) => {
    const { code } = await target.ssh({ key, command: "true" });
    return code;
  };

  it("exits with 0: the policy allows each login with a key at the start of its session", async () => {
    const { client } = target.fleet;
    const limited = newKey(target.folder, "limited");
    const body = { name: "limited", data: publicHalf(limited), filter: { hostname: "^edge-" } };
    await client.createPublicKey({ body: { ...body, username: "^root$" } });
    const other = publicHalf(newKey(target.folder, "other"));
    await client.createPublicKey({ body: { ...body, name: "other", data: other, username: "^deploy$" } });
    moveClock(0);
    for (const key of [target.key, limited]) expect(await logIn(key)).toBe(0);
    expect(await logIn(newKey(target.folder, "unknown"))).not.toBe(0);
    const { code, result } = await verify();
    expect([code, result.compared, result.differences, result.notEvaluated]).toEqual([
      0,
      { total: 2, byKey: 2, byUser: 0, byFirewall: 0, weakly: 0 },
      [],
      [],
    ]);
  });

  it("exits with 2 for a session with a key that the policy does not admit", async () => {
    const { client, service } = target.fleet;
    const limited = (await client.getPublicKeys({})).find(({ name }) => name === "limited");
    const other = (await client.getPublicKeys({})).find(({ name }) => name === "other");
    const proxy = await startReplacingProxy(
      service.url,
      `"key_fingerprint":"${limited?.fingerprint}"`,
      other,
    );
    onTestFinished(() => proxy.stop());
    const { code, result } = await verify(proxy.url);
    expect([code, result.differences]).toEqual([
      2,
      [
        expect.objectContaining({
          key: { fingerprint: other?.fingerprint, name: "other" },
          login: "root",
          device: { uid: target.agent.uid, name: "edge-1" },
          reason: "the key other does not allow the login name root",
        }),
      ],
    ]);
  });

  it("does not compare these logins after a change of the key through the API", async () => {
    const { client } = target.fleet;
    const change = { name: "key", username: "^nobody$", filter: { hostname: ".*" } };
    await client.updatePublicKey({ params: { fingerprint: target.fingerprint }, body: change });
    const { code, result } = await verify();
    expect([code, result.compared.total, result.lastChange.operation]).toEqual([0, 0, "updatePublicKey"]);
  });
});
