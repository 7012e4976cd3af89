// The module that `bin/gatehouse-server.js` runs.
if (process.argv[2] === "serve") {
  // Load this module before the other modules, because the other modules start threads.
  const { boundMemory } = await import("./process/boundMemory.ts");
  boundMemory();
}
const { main } = await import("./main.ts");
process.exitCode = await main(process.argv.slice(2));

export {};
