#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(`gatehouse-server needs Node.js 22.19 or newer. This is ${process.versions.node}.`);
  process.exit(1);
}
if (process.argv[2] === "serve") {
  const { boundMemory } = await import("../dist/process/boundMemory.js");
  boundMemory();
}
const { main } = await import("../dist/main.js");
process.exitCode = await main(process.argv.slice(2));
