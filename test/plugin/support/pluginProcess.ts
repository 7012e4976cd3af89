import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { PluginClient } from "../../support/pluginClient.ts";

/** The plugin, as an installed package has it. */
export const PLUGIN = fileURLToPath(
  new URL("../../../provider/bin/pulumi-resource-gatehouse.js", import.meta.url),
);

/**
 * Starts a plugin as engines do. The first line that it prints is its port.
 * @param env all of its environment
 * @param program an installed one. @default {@link PLUGIN}
 */
export async function startPlugin(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  program?: string,
): Promise<{ readonly child: ChildProcess; readonly client: PluginClient }> {
  const [command, first] = program === undefined ? [process.execPath, [PLUGIN]] : [program, []];
  const child = spawn(command, [...first, ...args], { env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the plugin ended with ${code}`);
  });
  // Later ends are no failure of the start.
  ended.catch(() => {});
  const line = once(createInterface({ input: child.stdout }), "line") as Promise<[string]>;
  const [port] = await Promise.race([line, ended]);
  return { child, client: new PluginClient(Number(port)) };
}
