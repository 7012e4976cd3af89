import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { PluginClient } from "../../support/pluginClient.ts";

/** The path of the plugin's program in the package. */
export const PLUGIN = fileURLToPath(
  new URL("../../../provider/bin/pulumi-resource-gatehouse.js", import.meta.url),
);

/**
 * Starts a plugin in the same way as an engine. The first line that the plugin prints is its port.
 * @param env the complete environment of the plugin
 * @param program the path of an installed plugin. @default {@link PLUGIN}
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
  // After the port is printed, an exit of the plugin is no error.
  ended.catch(() => {});
  const line = once(createInterface({ input: child.stdout }), "line") as Promise<[string]>;
  const [port] = await Promise.race([line, ended]);
  return { child, client: new PluginClient(Number(port)) };
}
