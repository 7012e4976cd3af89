import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const command = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

test.each([
  ["provider/bin/gatehouse.js", "--help"],
  ["provider/bin/gatehouse.js", "up", "--help"],
  ["server/bin/gatehouse-server.js", "serve", "--help"],
  ["agent/bin/gatehouse-agent.js", "--help"],
  ["provider/bin/pulumi-resource-gatehouse.js", "--help"],
])("%s %s %s exits without an error if its output is closed", async (path, ...args) => {
  const child = spawn(process.execPath, [command(path), ...args.filter(Boolean)]);
  // Closes the pipe immediately, before Node.js has started in the new process.
  child.stdout.destroy();
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([code, stderr]).toEqual([0, ""]);
});
