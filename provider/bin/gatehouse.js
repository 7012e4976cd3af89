#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(`gatehouse needs Node.js 22.19 or newer. The current version is ${process.versions.node}.`);
  process.exit(1);
}
const { main } = await import("../dist/cli/main.js");
const code = await main(process.argv.slice(2), process);
for (const stream of [process.stdout, process.stderr]) {
  await new Promise((written) => stream.write("", written));
}
// Unfinished work of a policy test would keep the process running.
process.exit(code);
