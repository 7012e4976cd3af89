import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Shell, Started } from "../support/Shell.ts";
import { shellIn } from "./PageFleet.ts";
import { type OnEnd, type PageContext, typed, withoutComment } from "./PageTest.ts";

/** A shell on the host of the service. */
export interface Host extends PageContext {
  /** The services that run in the background. */
  readonly running: Started<string>[];
}

/** The path of the data folder in the pages. */
const DATA = /\/var\/lib\/gatehouse/g;

/** Starts a shell. Folders of the system are folders of the shell. */
export async function startHost(folder: string, onEnd: OnEnd): Promise<Host> {
  const shell = shellIn(folder);
  const running: Started<string>[] = [];
  for (const name of ["backup", "etc"]) mkdirSync(join(folder, name), { mode: 0o700 });
  shell.substitute(DATA, join(folder, "data"));
  shell.substitute(/ \/backup\//, ` ${join(folder, "backup")}/`);
  shell.substitute(/\/etc\/gatehouse\//, `${join(folder, "etc")}/`);
  const host = { shell, running };
  onEnd(() => stopServices(host));
  return host;
}

/** Starts the service of a line on free ports, and waits until it listens. */
export async function serve(shell: Shell, line: string): Promise<Started<string>> {
  const command = withoutComment(line).replace(/ --(ssh-)?port \d+/g, "");
  return shell.start(`${command} --port 0`, (output) => {
    if (!output.startsWith("{")) return undefined;
    const { msg, address } = JSON.parse(output) as Record<string, string>;
    return msg === "listening" ? address : undefined;
  });
}

/** A line that starts a service, which then runs in the background. */
export const runsService = (beginning: string) =>
  typed<Host>(beginning, {
    by: async ({ shell, running }, line) => void running.push(await serve(shell, line)),
  });

/** Ends the services, for example before a restore. */
export const stopServices = async ({ running }: Pick<Host, "running">) => {
  for (const service of running.splice(0)) await service.stop();
};
