import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ProjectError, UnsupportedError } from "../errors.ts";
import { asMap, parseYamlMap } from "../parseYamlMap.ts";
import { unsupportedUse } from "../unsupported.ts";

/** What Pulumi.yaml says. */
export interface Project {
  readonly name: string;
  /** Folder of Pulumi.yaml. */
  readonly root: string;
  /** Pulumi.yaml itself. */
  readonly file: string;
  /** Folder in which the program runs. */
  readonly programFolder: string;
  /** The file of that folder that is run; "." for the one that package.json names as `main`. */
  readonly entryPoint: string;
  readonly runtime: string;
  readonly runtimeOptions: {
    readonly typescript: boolean;
    readonly nodeargs: string;
    readonly tsconfig?: string;
  };
  readonly backendUrl?: string;
  /** Folder of the Pulumi.<stack>.yaml files. */
  readonly configFolder: string;
  /** The section `config`: values and defaults for all stacks. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** Reads the project in a folder. @throws ProjectError where there is none, or it cannot be understood */
export async function readProject(folder: string): Promise<Project> {
  const root = resolve(folder);
  const file = ["Pulumi.yaml", "Pulumi.yml"].map((name) => join(root, name)).find((path) => existsSync(path));
  if (!file) throw new ProjectError(`There is no Pulumi.yaml in ${root}.`);
  const yaml = parseYamlMap(await readFile(file, "utf8"), file);
  if (typeof yaml.name !== "string") throw new ProjectError(`${file} has no name.`);
  const runtime = typeof yaml.runtime === "string" ? { name: yaml.runtime } : asMap(yaml.runtime);
  const options = asMap(asMap(runtime).options);
  const main = resolve(root, textOf(yaml.main) ?? ".");
  const mainIsFolder = !existsSync(main) || statSync(main).isDirectory();
  return {
    name: yaml.name,
    root,
    file,
    programFolder: mainIsFolder ? main : dirname(main),
    entryPoint: mainIsFolder ? "." : basename(main),
    runtime: String(runtime.name ?? ""),
    runtimeOptions: {
      typescript: options.typescript !== false,
      nodeargs: textOf(options.nodeargs) ?? "",
      tsconfig: textOf(options.tsconfig),
    },
    backendUrl: textOf(asMap(yaml.backend).url) || undefined,
    configFolder: resolve(root, textOf(yaml.stackConfigDir) ?? "."),
    config: asMap(yaml.config),
  };
}

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);

/** @throws UnsupportedError where the program is not one for Node.js */
export function requireNodeRuntime(project: Project): void {
  if (project.runtime !== "nodejs") {
    throw new UnsupportedError([unsupportedUse("runtime", `${project.file} (${project.runtime})`)]);
  }
}
