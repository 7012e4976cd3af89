import { addHelpEnd, unknownText } from "@gatehouse-access/sdk/errors";
import { Command } from "commander";
import type { RunningService } from "../process/serve.ts";
import { type Flags, readConfig } from "../settings/readConfig.ts";
import type { Setting } from "../settings/setting.ts";
import { settings } from "../settings/settings.ts";
import { unknownSettings } from "../settings/unknownVariables.ts";
import { type CommandIo, print, warn } from "./CommandIo.ts";

/**
 * Maximum time, in milliseconds, that the process stays alive after the service has stopped, so that interrupted
 * requests can finish.
 */
const EXIT_DELAY = 1_000;

/**
 * Creates the command `gatehouse-server serve`, which runs until SIGINT or SIGTERM. A second signal kills the process.
 * SIGHUP reloads the TLS files and the position file. With `--check`, the command only checks the settings.
 */
export function serveCommand(io: CommandIo): Command {
  const command = new Command("serve").description("Run the service in the foreground.");
  addHelpEnd(command, {
    examples: [
      "gatehouse-server serve --data-dir /var/lib/gatehouse",
      "GATEHOUSE_DATABASE_URL_FILE=/run/secrets/db gatehouse-server serve",
      "gatehouse-server serve --check --data-dir /var/lib/gatehouse",
    ],
    page: "docs/reference/server-settings.md",
  });
  command.option(
    "--check",
    "Check all settings and the files that they refer to, print the result, and exit: 0 = settings OK, 1 = invalid " +
      "settings. Warns about unknown variables. Opens no port, leaves no file, and connects neither to the database " +
      "nor to a mail server",
  );
  for (const setting of Object.values(settings)) addOption(command, setting);
  return command.action(async ({ check, ...flags }: Flags & { readonly check?: boolean }) => {
    if (check) return checkSettings(io, flags);
    const config = readConfig(io.env, flags);
    const listening = Promise.withResolvers<RunningService>();
    // A terminal sends SIGHUP when it closes. If the service has no files to reload and runs at a terminal, SIGHUP ends
    // the service. In all other cases, SIGHUP never ends the service, not even during the start.
    const hasFiles = config.tls !== undefined || config.settings.geoipFile !== undefined;
    if (hasFiles || !io.stdin.isTTY) process.on("SIGHUP", async () => (await listening.promise).reload());
    // This module is loaded on demand, so that other commands start in a third of the time.
    const { serve } = await import("../process/serve.ts");
    const service = await serve(config);
    let signals = 0;
    let isEnding = false;
    let exitCode = 1;
    const end = async (code: number) => {
      if (isEnding) return;
      isEnding = true;
      await service.stop();
      service.log.info("stopped");
      exitCode = code;
      process.exitCode = code;
      // Another thread writes the log, and calling `process.exit` now would write the queued log lines in the wrong
      // order. So let the process exit by itself when no work is left. If the work of a request keeps the process
      // running, the timer exits it.
      setTimeout(() => process.exit(), EXIT_DELAY).unref();
    };
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, async () => {
        signals += 1;
        if (signals > 1) process.exit(exitCode);
        service.log.info({ signal }, "stopping");
        await end(0);
      });
    }
    service.superseded.then((error) => {
      service.log.fatal(error.message);
      return end(1);
    });
    service.announce();
    listening.resolve(service);
  });
}

/**
 * Checks the settings for `gatehouse-server serve --check`. Prints warnings and the result.
 * @throws OperatorError the settings or their files are invalid
 */
async function checkSettings(io: CommandIo, flags: Flags): Promise<void> {
  for (const unknown of unknownSettings(Object.keys(io.env))) warn(io, unknownText(unknown));
  const config = readConfig(io.env, flags);
  const { checkFiles } = await import("../process/checkFiles.ts");
  checkFiles(config);
  print(io, "settings OK");
}

/**
 * Adds the command-line flag of a setting. Does nothing if the setting has no flag. Commander stores the flag's value
 * under the setting's name: the value of `--data-dir` is stored as `dataDir`.
 */
export function addOption(command: Command, setting: Setting): void {
  if (setting.flag === undefined) return;
  const fallback = setting.fallback === undefined ? "" : `, default ${setting.fallback}`;
  command.option(`${setting.flag} <${setting.value}>`, `${setting.about} (${setting.variable}${fallback})`);
}
