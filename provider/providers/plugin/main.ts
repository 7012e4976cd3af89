import { type EngineLink, linkToEngine, noEngine } from "./engineLink.ts";
import { serveProvider } from "./grpcServer.ts";
import { PulumiProvider } from "./pulumiProvider.ts";

const HELP = `pulumi-resource-gatehouse is the Gatehouse provider plugin. The Pulumi CLI starts it automatically, with the
address of the engine. Install it with "gatehouse pulumi install". If you start it manually, it prints the port that it
serves on and runs until it is stopped. An engine can attach to it with PULUMI_DEBUG_PROVIDERS=gatehouse:PORT.`;

/**
 * Runs the plugin until the process ends. The first line on standard output is the plugin's port.
 * @param args the engine's address, and the flags that engines pass to all plugins
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
    // The plugin continues to run after the engine ends. The user stops it.
    engine = linkToEngine(attached, () => {});
  });
  process.stdout.write(`${port}\n`);
}
