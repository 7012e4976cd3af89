#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(`gatehouse needs Node.js 22.19 or newer; this is ${process.versions.node}.`);
  process.exit(1);
}
await import("../dist/cli/main.js");
