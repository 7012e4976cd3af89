import { Command } from "commander";
import type { RunningService } from "../process/serve.ts";
import { type Flags, readConfig } from "../settings/readConfig.ts";
import type { Setting } from "../settings/setting.ts";
import { settings } from "../settings/settings.ts";
import { addHelpEnd } from "./addHelpEnd.ts";
import type { CommandIo } from "./CommandIo.ts";

/** Maximum time, in milliseconds, that a stopped service waits for the remaining work of interrupted requests. */
const EXIT_DELAY = 1_000;

/**
 * `gatehouse-server serve`: runs until SIGINT or SIGTERM. A second signal kills it. SIGHUP reloads TLS and position files.
 */
export function serveCommand(io: CommandIo): Command {
  const command = new Command("serve").description("Run the service in the foreground.");
  addHelpEnd(command, {
    examples: [
      "gatehouse-server serve --data-dir /var/lib/gatehouse",
      "GATEHOUSE_DATABASE_URL_FILE=/run/secrets/db gatehouse-server serve",
    ],
    page: "docs/server-settings.md",
  });
  for (const setting of Object.values(settings)) addOption(command, setting);
  return command.action(async (flags: Flags) => {
    const config = readConfig(io.env, flags);
    const listening = Promise.withResolvers<RunningService>();
    // At a terminal, SIGHUP means that the terminal closed. It ends a service without files to reload. In all other
    // cases it never ends the service, also during the start.
    const hasFiles = config.tls !== undefined || config.settings.geoipFile !== undefined;
    if (hasFiles || !io.stdin.isTTY) process.on("SIGHUP", async () => (await listening.promise).reload());
    // Loading on demand makes the other commands start in a third of the time.
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
        // Another thread writes the log. A call of exit now would write its waiting lines in the wrong order, so the
        // process ends without one, unless the remaining work of a request keeps it running.
        setTimeout(() => process.exit(), EXIT_DELAY).unref();
      });
    }
    service.announce();
    listening.resolve(service);
  });
}

/** Adds the flag of a setting, if it has one. Commander names its value like the setting (`--data-dir`: `dataDir`). */
export function addOption(command: Command, setting: Setting): void {
  if (setting.flag === undefined) return;
  const fallback = setting.fallback === undefined ? "" : `, default ${setting.fallback}`;
  command.option(`${setting.flag} <${setting.value}>`, `${setting.about} (${setting.variable}${fallback})`);
}
