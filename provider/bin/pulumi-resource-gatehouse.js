#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `pulumi-resource-gatehouse needs Node.js 22.19 or newer. The current version is ${process.versions.node}.`,
  );
  process.exit(1);
}
const { main } = await import("../dist/providers/plugin/main.js");
await main(process.argv.slice(2));
