import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Fleet, startFleet } from "./fleet.ts";
import { startIssuer, type TestIssuer } from "./issuer.ts";

const MOVED_CLOCK = fileURLToPath(new URL("movedClock.ts", import.meta.url));

/** A service that can exchange tokens of an issuer on this machine, and whose clock a test can move. */
export interface TrustingFleet {
  readonly fleet: Fleet;
  readonly issuer: TestIssuer;
  /** Time of the service, in milliseconds since 1970. */
  now(): number;
  /** Moves the clock of the service forwards by a number of minutes. */
  advance(minutes: number): void;
  /**
   * Creates a trusted workload of the issuer in the fleet's namespace. Default: any job of the repository
   * `octo-org/octo-repo` as an observer, with the address of the service as the audience.
   */
  trust(more?: Partial<Workload>): Promise<string>;
  stop(): Promise<void>;
}

type Workload = Parameters<Fleet["client"]["createTrustedWorkload"]>[0]["body"];

/** Starts an issuer, and a service that accepts it. */
export async function startTrustingFleet(users: readonly string[] = []): Promise<TrustingFleet> {
  const issuer = await startIssuer();
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const clock = join(folder, "clock");
  let moved = 0;
  writeFileSync(clock, "0");
  const fleet = await startFleet(users, {
    env: {
      GATEHOUSE_WORKLOAD_ISSUER_NETWORKS: "127.0.0.0/8",
      NODE_EXTRA_CA_CERTS: issuer.caFile,
      NODE_OPTIONS: `--import=${MOVED_CLOCK}`,
      MOVED_CLOCK: clock,
    },
  });
  return {
    fleet,
    issuer,
    now: () => Date.now() + moved,
    advance(minutes) {
      moved += minutes * 60_000;
      writeFileSync(clock, String(moved));
    },
    async trust(more = {}) {
      const { url: audience } = fleet.service;
      const claims = { repository: "octo-org/octo-repo" };
      const { id } = await fleet.client.createTrustedWorkload({
        body: { name: "deploy", issuer: issuer.url, audience, role: "observer", claims, ...more },
      });
      return id;
    },
    async stop() {
      await fleet.stop();
      await issuer.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
