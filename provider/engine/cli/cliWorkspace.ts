import { basename, dirname } from "node:path";
import { LocalWorkspace, PulumiCommand } from "@pulumi/pulumi/automation/index.js";
import { findOnPath } from "../findOnPath.ts";
import { chooseBackend } from "../project/chooseBackend.ts";
import type { Project } from "../project/project.ts";
import { withOwnRuns } from "./pulumiRuns.ts";

/** A project as the Automation API works on it. */
export interface CliWorkspace {
  readonly workspace: LocalWorkspace;
  /** Where its states are, for people. */
  readonly note: string;
}

/** Opens a project with the CLI that is on the PATH. @throws BackendError where no backend is chosen */
export async function openWorkspace(project: Project, env: NodeJS.ProcessEnv): Promise<CliWorkspace> {
  const { url, source } = await chooseBackend(project, env);
  const given = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const envVars: Record<string, string> = { PULUMI_SKIP_UPDATE_CHECK: "true", ...Object.fromEntries(given) };
  if (!envVars.PULUMI_BACKEND_URL && source === "pulumi login") envVars.PULUMI_BACKEND_URL = url;
  const pulumiCommand = await commandOf(env);
  const workspace = await LocalWorkspace.create({ workDir: project.root, envVars, pulumiCommand });
  return { workspace, note: `State backend: ${url} (${source}).` };
}

/** The SDK takes the folder above `bin`; elsewhere it looks on the PATH of this very process. */
async function commandOf(env: NodeJS.ProcessEnv): Promise<PulumiCommand> {
  const path = findOnPath("pulumi", env);
  const skipVersionCheck = Boolean(env.PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK);
  const folder = path === undefined ? "" : dirname(path);
  const root = basename(folder) === "bin" ? { root: dirname(folder) } : {};
  return withOwnRuns(await PulumiCommand.get({ ...root, skipVersionCheck }));
}

/** The names of all stacks of a project. */
export async function stackNames(workspace: LocalWorkspace): Promise<string[]> {
  return (await workspace.listStacks()).map((stack) => stack.name);
}
