import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ProjectError, UnsupportedError } from "../errors.ts";
import { parseYamlMap } from "../parseYamlMap.ts";
import { unsupportedUse } from "../unsupported.ts";

/** What Pulumi.yaml says. */
export type Project = {
  name: string;
  /** Folder of Pulumi.yaml. */
  root: string;
  file: string;
  /** Folder the program runs in, and what of it is run ("." for package.json's main). */
  programFolder: string;
  entryPoint: string;
  runtime: string;
  runtimeOptions: { typescript: boolean; nodeargs: string; tsconfig?: string };
  backendUrl?: string;
  /** Folder of the Pulumi.<stack>.yaml files. */
  configFolder: string;
  /** The `config` section: values and defaults for all stacks. */
  config: Record<string, unknown>;
};

/** Reads the project in `folder`. Throws ProjectError where there is none or it cannot be understood. */
export async function readProject(folder: string): Promise<Project> {
  const root = resolve(folder);
  const file = ["Pulumi.yaml", "Pulumi.yml"].map((name) => join(root, name)).find((path) => existsSync(path));
  if (!file) throw new ProjectError(`There is no Pulumi.yaml in ${root}.`);
  const yaml = parseYamlMap(await readFile(file, "utf8"), file);
  if (typeof yaml.name !== "string") throw new ProjectError(`${file} has no name.`);
  const runtime = typeof yaml.runtime === "string" ? { name: yaml.runtime } : map(yaml.runtime);
  const options = map((runtime as Record<string, unknown>).options);
  const main = typeof yaml.main === "string" ? resolve(root, yaml.main) : root;
  const mainIsFolder = !existsSync(main) || statSync(main).isDirectory();
  const backend = map(yaml.backend);
  const project: Project = {
    name: yaml.name,
    root,
    file,
    programFolder: mainIsFolder ? main : dirname(main),
    entryPoint: mainIsFolder ? "." : basename(main),
    runtime: String((runtime as Record<string, unknown>).name ?? ""),
    runtimeOptions: {
      typescript: options.typescript !== false,
      nodeargs: typeof options.nodeargs === "string" ? options.nodeargs : "",
    },
    configFolder: typeof yaml.stackConfigDir === "string" ? resolve(root, yaml.stackConfigDir) : root,
    config: map(yaml.config),
  };
  if (typeof options.tsconfig === "string") project.runtimeOptions.tsconfig = options.tsconfig;
  if (typeof backend.url === "string" && backend.url !== "") project.backendUrl = backend.url;
  return project;
}

/** Throws UnsupportedError where the program is not one for Node.js. */
export function requireNodeRuntime(project: Project): void {
  if (project.runtime !== "nodejs") {
    throw new UnsupportedError([unsupportedUse("runtime", `${project.file} (${project.runtime})`)]);
  }
}

function map(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
