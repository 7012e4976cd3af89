import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { boundedStart } from "../../../server/process/boundMemory.ts";
import { startService } from "../../support/service.ts";

const REQUESTS = 2_000;
const AT_A_TIME = 16;

/** Returns the resident memory of a process, in megabytes. */
function megabytesOf(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kibibytes) * 1024) / 1e6;
}

// Without the limits of V8's heap, the service uses 212 to 222 MB. With the limits, it uses 190 to 194 MB (Node.js 22.23).
// bench/RESULTS.md has measurements under a longer load.
test.skipIf(process.platform !== "linux")(
  "the service uses less than 205 MB after thousands of requests",
  // The test loads the service, and reads the memory of a process from the operating system.
  { timeout: 180_000, tags: ["long"] },
  async () => {
    const service = await startService();
    onTestFinished(async () => void (await service.stop()));
    const body = JSON.stringify(await service.setup());
    const headers = { "content-type": "application/json" };
    const login = await fetch(`${service.url}/api/login`, { method: "POST", headers, body });
    const { token } = (await login.json()) as { token: string };
    const authorization = `Bearer ${token}`;
    let sent = 0;
    const send = async () => {
      while (sent < REQUESTS) {
        sent += 1;
        const response = await fetch(`${service.url}/api/namespaces`, { headers: { authorization } });
        expect(response.status).toBe(200);
        await response.arrayBuffer();
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, send));
    expect(megabytesOf(service.pid)).toBeLessThan(205);
  },
);

test("the operator's settings of Node's memory have precedence", () => {
  const bounded = boundedStart([], { PATH: "/bin" });
  expect(bounded.flags).toContain("--max-semi-space-size=8");
  expect(bounded.environment).toStrictEqual({ PATH: "/bin", MALLOC_ARENA_MAX: "2" });

  const larger = {
    NODE_OPTIONS: "--max-old-space-size=8000 --max_semi_space_size=64",
    MALLOC_ARENA_MAX: "8",
  };
  const configured = boundedStart([], larger);
  expect(configured.flags).not.toContain("--max-semi-space-size=8");
  expect(configured.environment).toStrictEqual(larger);

  // V8 uses the last value of a repeated flag, so the operator's flag must come last.
  expect(boundedStart(["--heap-growing-percent=100"], {}).flags.at(-1)).toBe("--heap-growing-percent=100");
});
