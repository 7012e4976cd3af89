import { Command } from "commander";
import type { RunningService } from "../process/serve.ts";
import { type Flags, readConfig } from "../settings/readConfig.ts";
import type { Setting } from "../settings/setting.ts";
import { settings } from "../settings/settings.ts";
import type { CommandIo } from "./CommandIo.ts";

/** How long a stopped service waits for what requests that were cut off may have left behind, in milliseconds. */
const LEFT_BEHIND = 1_000;

/**
 * `gatehouse-server serve`: runs until SIGINT or SIGTERM; a second one kills it. SIGHUP reloads TLS and position files.
 */
export function serveCommand(io: CommandIo): Command {
  const command = new Command("serve").description("Run the service in the foreground");
  for (const setting of Object.values(settings)) addOption(command, setting);
  return command.action(async (flags: Flags) => {
    const config = readConfig(io.env, flags);
    const listening = Promise.withResolvers<RunningService>();
    // At a terminal, where nothing is to be read again, SIGHUP is the terminal's end, and ends the service; from
    // elsewhere it never does, also while the service begins.
    const hasFiles = config.tls !== undefined || config.settings.geoipFile !== undefined;
    if (hasFiles || !io.stdin.isTTY) process.on("SIGHUP", async () => (await listening.promise).reload());
    // Loaded on demand: the other commands start in a third of the time without it.
    const { serve } = await import("../process/serve.ts");
    const service = await serve(config);
    let exitCode: number | undefined;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, async () => {
        if (exitCode !== undefined) process.exit(exitCode);
        exitCode = 1;
        service.log.info({ signal }, "stopping");
        await service.stop();
        service.log.info("stopped");
        exitCode = 0;
        // The log is written by another thread, and an exit would put the lines that wait before those being written.
        // So the process ends by itself, unless what a request left behind holds it.
        setTimeout(() => process.exit(), LEFT_BEHIND).unref();
      });
    }
    service.announce();
    listening.resolve(service);
  });
}

/** Adds a setting's flag, if it has one; commander names its value as the settings do (`--data-dir`: `dataDir`). */
export function addOption(command: Command, setting: Setting): void {
  if (setting.flag === undefined) return;
  const fallback = setting.fallback === undefined ? "" : `, default ${setting.fallback}`;
  command.option(`${setting.flag} <${setting.value}>`, `${setting.about} (${setting.variable}${fallback})`);
}
