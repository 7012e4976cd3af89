/**
 * Slow: the service restarts during a run.
 *
 * @module-tag long
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { main } from "../../provider/cli/main.ts";
import { environmentWithout } from "../support/command.ts";
import { makeDataDir } from "../support/dataFolder.ts";
import { startFleet } from "../support/fleet.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { testProgram } from "../support/policyProgram.ts";
import { forward } from "../support/proxy.ts";
import { startService } from "../support/service.ts";

const KEYS = "/api/sshkeys/public-keys";

/** Starts a proxy whose address stays the same when the service behind it restarts on another port. */
async function startFront(portOf: () => number, onRequest: (line: string) => void) {
  const server = createServer((near, answer) => {
    onRequest(`${near.method} ${near.url}`);
    forward(`http://127.0.0.1:${portOf()}`, near, answer);
  });
  // No other test listens on this address. So no test can take the proxy's port while the proxy is closed.
  const host = "127.0.0.2";
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(close);
  return {
    url: `http://${host}:${port}`,
    close,
    async open() {
      server.listen(port, host);
      await once(server, "listening");
    },
  };
}

it.runIf(process.platform === "linux")(
  "a run continues if the service restarts during it",
  { timeout: 300_000 },
  async () => {
    const program = testProgram();
    const dataDir = await makeDataDir();
    const fleet = await startFleet([], { dataDir });
    let { url } = fleet.service;
    const [begun, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const front = await startFront(
      () => Number(new URL(url).port),
      (line) => {
        if (line === `POST ${KEYS}`) begun.resolve();
      },
    );
    let output = "";
    const take = new PassThrough({ encoding: "utf8" }).on("data", (text: string) => {
      output += text;
      if (output.includes("Waiting for the service (no connection)")) refused.resolve();
    });
    const keys = ["a", "b", "c"].map((name) => [name, publicKey(name, ".*")]);
    const run = main(["up", program.folder, "--yes", "--stack", "restart", "--engine", "embedded"], {
      stdin: Readable.from([]),
      stdout: take,
      stderr: take,
      env: {
        ...environmentWithout("GATEHOUSE_", "PULUMI_"),
        ...fleet.env,
        ...policyEnv(Object.fromEntries(keys)),
        GATEHOUSE_URL: front.url,
        // Maximum time for retries, in seconds: enough for a restart of the service on a slow machine.
        GATEHOUSE_RETRY_TIMEOUT: "250",
        ...program.backend,
      },
    });
    await Promise.race([begun.promise, run]);
    await front.close();
    await fleet.stop();
    await Promise.race([refused.promise, run]);
    const again = await startService({ dataDir });
    onTestFinished(async () => void (await again.stop()));
    url = again.url;
    await front.open();
    expect([await run, output]).toEqual([0, expect.stringMatching(/3 created/)]);
    expect(output).toMatch(/^Waiting for the service \(no connection\), 2\d\d s left$/m);
  },
);
