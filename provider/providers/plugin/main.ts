import { type EngineLink, linkToEngine, noEngine } from "./engineLink.ts";
import { serveProvider } from "./grpcServer.ts";
import { PulumiProvider } from "./pulumiProvider.ts";

const HELP = `pulumi-resource-gatehouse is the Gatehouse provider as a plugin. The Pulumi CLI starts it by itself, with
the address of the engine; "gatehouse pulumi install" places it where the CLI finds it. Started by hand it prints the
port that it serves on, for an engine that attaches to it (PULUMI_DEBUG_PROVIDERS=gatehouse:PORT), and serves until it
is stopped.`;

/**
 * Runs the plugin until the process is ended; what it prints first is its port.
 * @param args the engine's address, and flags that engines give to all plugins
 */
export async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) {
    console.log(HELP);
    return;
  }
  let engine: EngineLink = noEngine;
  const [address] = args.filter((arg) => !arg.startsWith("-"));
  if (address !== undefined) engine = linkToEngine(address, () => process.exit(1));
  const service = new PulumiProvider({ log: (message, urn) => engine.log(message, urn) });
  const { port } = await serveProvider(service, (attached) => {
    // Whoever started it by hand ends it.
    engine = linkToEngine(attached, () => {});
  });
  process.stdout.write(`${port}\n`);
}
