import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isMap as isYamlMap, parseDocument } from "yaml";
import { ProjectError, UnsupportedError } from "../errors.ts";
import { parseYamlMap } from "../parseYamlMap.ts";
import type { Crypter } from "../state/crypter.ts";
import { writeDurably } from "../state/durableFile.ts";
import { unsupportedUse } from "../unsupported.ts";
import { secret, type Value } from "../value.ts";
import type { Project } from "./project.ts";

/** Pulumi.<stack>.yaml as written. */
export type StackFile = {
  path: string;
  exists: boolean;
  encryptionSalt?: string;
  config: Record<string, unknown>;
};

/** The configuration a program gets: plain text by `namespace:key`, and which keys are secret. */
export type StackConfig = {
  values: Map<string, { text: string; secret: boolean }>;
  /** As in the file, with secrets encrypted: for the history. */
  raw: Record<string, unknown>;
};

/** Where the stack's file is, or would be; of `organization/project/stack` the last part counts. */
export const stackFilePath = ({ configFolder }: Pick<Project, "configFolder">, stack: string): string =>
  join(configFolder, `Pulumi.${stack.split("/").at(-1)}.yaml`);

/** What secrets of a configuration are read with. */
export type Decrypter = Pick<Crypter, "decrypt">;

/** Reads the stack's file; a missing one is an empty one. Throws ProjectError and UnsupportedError. */
export async function readStackFile(project: Project, stack: string): Promise<StackFile> {
  const path = stackFilePath(project, stack);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { path, exists: false, config: {} };
    throw new ProjectError(`${path} cannot be read: ${(error as Error).message}`);
  }
  const yaml = parseYamlMap(text, path);
  if (yaml.environment !== undefined) throw new UnsupportedError([unsupportedUse("environment", path)]);
  const provider = yaml.secretsprovider;
  if (typeof provider === "string" && !["", "default", "passphrase"].includes(provider)) {
    throw new UnsupportedError([unsupportedUse("secrets-provider", `${path} (${provider.split(":")[0]})`)]);
  }
  const file: StackFile = { path, exists: true, config: asMap(yaml.config) };
  if (typeof yaml.encryptionsalt === "string") file.encryptionSalt = yaml.encryptionsalt;
  return file;
}

/** Adds the salt to the file, which is made where it is missing; what is there already stays as it is. */
export async function writeSalt(file: StackFile, saltText: string): Promise<void> {
  const line = `encryptionsalt: ${saltText}\n`;
  if (!file.exists) return writeFile(file.path, line);
  const before = await readFile(file.path, "utf8");
  await appendFile(file.path, before === "" || before.endsWith("\n") ? line : `\n${line}`);
}

/** Sets a value of the configuration in plain text; comments stay. Throws ProjectError where the file is not valid YAML. */
export async function writeConfig(
  { path }: Pick<StackFile, "path">,
  key: string,
  text: string,
): Promise<void> {
  const document = parseDocument(await readFile(path, "utf8"));
  const [error] = document.errors;
  if (error) throw new ProjectError(`${path} is not valid YAML: ${error.message}`);
  if (!isYamlMap(document.get("config", true))) document.set("config", document.createNode({}));
  document.setIn(["config", key], text);
  // Folded, a secret would be another text.
  await writeDurably(path, document.toString({ lineWidth: 0 }));
}

/**
 * The configuration of one stack: the project's values and defaults, then the stack's own. Secrets are decrypted.
 * Throws PassphraseError for a secret of another passphrase, ProjectError for a key that must be set and is not.
 */
export function resolveConfig(project: Project, file: StackFile, crypter: Decrypter): StackConfig {
  const values: StackConfig["values"] = new Map();
  for (const [key, declared] of Object.entries(project.config)) {
    const full = fullKey(project, key);
    const isDeclaration =
      isMap(declared) && ("type" in declared || "default" in declared || "value" in declared);
    const value = isDeclaration ? (declared.value ?? declared.default) : declared;
    if (value !== undefined) {
      values.set(full, asText(value, crypter));
    } else if (isDeclaration && !Object.keys(file.config).some((own) => fullKey(project, own) === full)) {
      throw new ProjectError(
        `The stack has no value for the configuration ${full} (declared in ${project.file}).`,
      );
    }
  }
  for (const [key, value] of Object.entries(file.config))
    values.set(fullKey(project, key), asText(value, crypter));
  const raw = Object.fromEntries(Object.entries(file.config).map(([key, v]) => [fullKey(project, key), v]));
  return { values, raw };
}

/** The configuration as the properties of the default provider, secrets marked. */
export function configProps(config: StackConfig): { [key: string]: Value } {
  const props: { [key: string]: Value } = {};
  for (const [key, { text, secret: hidden }] of config.values) props[key] = hidden ? secret(text) : text;
  return props;
}

function fullKey(project: Project, key: string): string {
  const full = key.includes(":") ? key : `${project.name}:${key}`;
  return full.replace(/^([^:]+):config:/, "$1:");
}

function asText(value: unknown, crypter: Decrypter): { text: string; secret: boolean } {
  if (isMap(value) && Object.keys(value).length === 1 && typeof value.secure === "string") {
    return { text: crypter.decrypt(value.secure), secret: true };
  }
  if (typeof value !== "object" || value === null) return { text: String(value ?? ""), secret: false };
  let hidden = false;
  const opened = JSON.stringify(value, (_key, item: unknown) => {
    if (isMap(item) && Object.keys(item).length === 1 && typeof item.secure === "string") {
      hidden = true;
      return crypter.decrypt(item.secure);
    }
    return item;
  });
  return { text: opened, secret: hidden };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asMap(value: unknown): Record<string, unknown> {
  return isMap(value) ? value : {};
}
