import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

// Slow: four runs of a program in TypeScript with 35 resources. The commands that it gives are tested one by one.

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the demo as `npm run demo` does after its set-up, with a folder of its own for temporary files. */
async function demo(folder: string, ...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, ["examples/demo.ts", "--engine", "embedded", ...args], {
    cwd: ROOT,
    env: { ...process.env, TMPDIR: folder },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
  }
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, output };
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-demo-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it("the demo finds what was changed by hand, repairs and destroys it, and leaves nothing behind", {
  timeout: 180_000,
  tags: ["long"],
}, async () => {
  const folder = temporaryFolder();
  const { code, output } = await demo(folder, "--destroy");
  expect(code, output).toBe(0);
  expect(output).toContain("35 to create");
  expect(output).toContain("35 unchanged");
  expect(output).toMatch(
    /~ {2}PublicKey contractor\n.*filter.*\n.*filter.*\n.*username: "\^support\$" => "\.\*"/,
  );
  expect(output).toContain("3 changed, 1 gone, 31 as in the state");
  expect(output).toContain("1 created, 3 updated, 31 unchanged");
  expect(output).toContain("35 deleted");
  // No colours where the output is no terminal.
  expect(output).not.toContain("\u001b[");
  expect(readdirSync(folder)).toEqual([]);
  expect(existsSync(join(ROOT, "examples/fleet-access/Pulumi.demo.yaml"))).toBe(false);
});

it("kept, the service goes on and takes the login that was printed", {
  timeout: 180_000,
  tags: ["long"],
}, async () => {
  const folder = temporaryFolder();
  const { code, output } = await demo(folder, "--keep");
  expect(code, output).toBe(0);
  const [, url, username, password] = /goes on at (\S+); log in as (\S+) \/ (\S+)/.exec(output) ?? [];
  const pid = Number(/kill (\d+);/.exec(output)?.[1]);
  try {
    const answer = await fetch(`${url}/api/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username, password }),
    });
    expect(answer.status).toBe(200);
  } finally {
    process.kill(pid);
  }
});
