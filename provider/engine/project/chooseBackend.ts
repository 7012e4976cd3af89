import { readFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseJson } from "@gatehouse-access/sdk/json";
import { BackendError, UnsupportedError } from "../errors.ts";
import { isNoSuchFile } from "../state/durableFile.ts";
import { unsupportedUse } from "../unsupported.ts";
import { type Project, readProject } from "./project.ts";

/** Where the state is. */
export interface BackendChoice {
  readonly url: string;
  /** The setting or file that says so. */
  readonly source: string;
}

/** The folder of the Pulumi CLI: that of PULUMI_HOME, else `.pulumi` in the user's home folder. */
export const pulumiHome = (env: NodeJS.ProcessEnv): string =>
  env.PULUMI_HOME || join(homeOfUser(), ".pulumi");

/** The home folder that the user database has, whatever HOME says: that is where the Pulumi CLI looks. */
function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch {
    // The database does not have the user, as in containers that run under any number.
    return homedir();
  }
}

/**
 * Which backend is meant: that of PULUMI_BACKEND_URL, else of `backend.url` in Pulumi.yaml, else of the last
 * `pulumi login`.
 * @throws BackendError where none is named, or the file of that login cannot be read
 */
export async function chooseBackend(project: Project, env: NodeJS.ProcessEnv): Promise<BackendChoice> {
  if (env.PULUMI_BACKEND_URL) return { url: env.PULUMI_BACKEND_URL, source: "PULUMI_BACKEND_URL" };
  if (project.backendUrl) return { url: project.backendUrl, source: project.file };
  const current = await loggedInTo(join(pulumiHome(env), "credentials.json"));
  if (current) return { url: current, source: "pulumi login" };
  if (env.PULUMI_ACCESS_TOKEN) return { url: "https://api.pulumi.com", source: "PULUMI_ACCESS_TOKEN" };
  throw new BackendError(
    "No state backend is chosen. Set PULUMI_BACKEND_URL (for example file://~ or file:///var/lib/state), " +
      "or backend.url in Pulumi.yaml, or log in with `pulumi login`.",
  );
}

/**
 * The folder of a file:// backend; `~` is the home folder, a relative path begins at the project's folder.
 * @throws UnsupportedError for any other kind of backend
 */
export function backendFolder(choice: BackendChoice, project: Project): string {
  if (!choice.url.startsWith("file://")) {
    const kind = `${choice.url.split("://")[0]}:// (from ${choice.source})`;
    throw new UnsupportedError([unsupportedUse("backend", kind)]);
  }
  const path = decodeURIComponent(choice.url.slice("file://".length).split("?")[0] ?? "");
  if (path === "~") return homeOfUser();
  if (path.startsWith("~/")) return join(homeOfUser(), path.slice(2));
  return resolve(project.root, path === "" ? "." : path);
}

/**
 * The backend of the project in a folder, as a URL that means the same wherever a copy of the project is.
 * @throws ProjectError where there is no project; BackendError where no backend is named
 */
export async function backendUrlOf(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const project = await readProject(folder);
  const choice = await chooseBackend(project, env);
  if (!choice.url.startsWith("file://")) return choice.url;
  const [path = "", ...query] = choice.url.slice("file://".length).split("?");
  if (isAbsolute(path) || path === "~" || path.startsWith("~/")) return choice.url;
  return [pathToFileURL(backendFolder(choice, project)).href, ...query].join("?");
}

async function loggedInTo(file: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (isNoSuchFile(error)) return undefined;
    throw new BackendError(`${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    return (parseJson(text) as { current?: string }).current || undefined;
  } catch (error) {
    throw new BackendError(`${file} is not valid JSON: ${(error as Error).message}`);
  }
}
