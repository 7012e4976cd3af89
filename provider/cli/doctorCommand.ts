import type { Command } from "@commander-js/extra-typings";
import { withPeriod } from "@gatehouse-access/sdk/errors";
import { printable, tableLines } from "../words.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io } from "./commandOutput.ts";
import type { Check, CheckState, Diagnosis } from "./doctorReport.ts";
import { addConfigurationFlags, type ConfigurationFlags, FOLDER, JSON_RESULT } from "./flags.ts";
import { addHelp } from "./help.ts";
import { colors } from "./render.ts";

const NOTES = `
Each check has the state ok, warning, failed or "not checked". Exit codes: 0 = no
check failed; ${BLOCKED} = a check failed.
The command changes nothing. Its output contains no secret.`;

export function addDoctorCommand(program: Command, action: ActionOf): void {
  const command = addConfigurationFlags(program.command("doctor").argument("[folder]", FOLDER, "."))
    .option("--json", JSON_RESULT, false)
    .action(action(doctor));
  addHelp(command, {
    group: "Set up:",
    summary: "Check the requirements of a run.",
    description:
      "Checks the installed programs, the project, its stack, the address of the service, the credential, the clock and the server. Prints a remedy for each problem. Without --stack, the command checks the stack in PULUMI_STACK, or the only stack.",
    notes: NOTES,
    examples: ["gatehouse doctor policy", "gatehouse doctor policy --stack prod --json"],
    page: "docs/guides/troubleshooting.md",
  });
}

async function doctor(io: Io, folder: string, flags: ConfigurationFlags): Promise<CommandOutput<Diagnosis>> {
  const { diagnose } = await import("./doctorChecks.ts");
  const checks = await diagnose(io.env, folder, flags);
  const result: Diagnosis = { version: 1, ok: checks.every(({ state }) => state !== "failed"), checks };
  return { result, text: () => checksText(io, checks), exitCode: result.ok ? 0 : BLOCKED };
}

const COLORS = { ok: "green", warning: "yellow", failed: "red", "not checked": "dim" } as const;

function checksText({ stdout, env }: Io, checks: readonly Check[]): string {
  const c = colors(stdout, env);
  const rows = checks.flatMap(({ name, state, found, remedy, details = [] }) => [
    [state, name, printable(remedy === undefined ? found : `${withPeriod(found)} ${remedy}`)],
    ...details.map((detail) => ["", "", `- ${printable(detail)}`]),
  ]);
  const lines = [...tableLines(rows)].map((line) =>
    line.replace(/^(ok|warning|failed|not checked)/, (state) => c[COLORS[state as CheckState]](state)),
  );
  return lines.join("").trimEnd();
}
