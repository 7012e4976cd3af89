import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isMap as isYamlMap, parseDocument } from "yaml";
import { ProjectError, UnsupportedError } from "../errors.ts";
import { asMap, isMap, parseYamlMap } from "../parseYamlMap.ts";
import { parseStackName } from "../stack.ts";
import type { Crypter } from "../state/crypter.ts";
import { isNoSuchFile, writeDurably } from "../state/durableFile.ts";
import { unsupportedUse } from "../unsupported.ts";
import { type Props, secret } from "../value.ts";
import type { Project } from "./project.ts";

/** Pulumi.<stack>.yaml as written. */
export interface StackFile {
  readonly path: string;
  readonly exists: boolean;
  readonly encryptionSalt?: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** A value of a configuration as plain text. */
interface ConfigValue {
  readonly text: string;
  readonly secret: boolean;
}

/** The configuration that a program gets. */
export interface StackConfig {
  /** By `namespace:key`. */
  readonly values: ReadonlyMap<string, ConfigValue>;
  /** As in the file, with secrets encrypted: for the history. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** Where the stack's file is, or would be. @throws StackSelectionError as of {@link parseStackName} */
export const stackFilePath = ({ configFolder }: Pick<Project, "configFolder">, stack: string): string =>
  join(configFolder, `Pulumi.${parseStackName(stack).name}.yaml`);

/**
 * Reads the stack's file; a missing one is an empty one.
 * @throws ProjectError where it cannot be read; UnsupportedError for an ESC environment or another secrets provider
 */
export async function readStackFile(project: Project, stack: string): Promise<StackFile> {
  const path = stackFilePath(project, stack);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (isNoSuchFile(error)) return { path, exists: false, config: {} };
    throw new ProjectError(`${path} cannot be read: ${(error as Error).message}`);
  }
  const yaml = parseYamlMap(text, path);
  if (yaml.environment !== undefined) throw new UnsupportedError([unsupportedUse("environment", path)]);
  const provider = yaml.secretsprovider;
  if (typeof provider === "string" && !["", "default", "passphrase"].includes(provider)) {
    throw new UnsupportedError([unsupportedUse("secrets-provider", `${path} (${provider.split(":")[0]})`)]);
  }
  const salt = typeof yaml.encryptionsalt === "string" ? yaml.encryptionsalt : undefined;
  return { path, exists: true, encryptionSalt: salt, config: asMap(yaml.config) };
}

/** Adds the salt to the file, whose other content stays as it is; a missing file is made. */
export async function writeSalt(file: StackFile, saltText: string): Promise<void> {
  const line = `encryptionsalt: ${saltText}\n`;
  if (!file.exists) return writeFile(file.path, line);
  const before = await readFile(file.path, "utf8");
  await appendFile(file.path, before === "" || before.endsWith("\n") ? line : `\n${line}`);
}

/**
 * Sets a value of the configuration in plain text; comments stay.
 * @throws ProjectError where the file is not valid YAML
 */
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
  // A long line that was folded would be another text.
  await writeDurably(path, document.toString({ lineWidth: 0 }));
}

/**
 * The configuration of one stack: the project's values and defaults, then the stack's own. Secrets are decrypted.
 * @throws PassphraseError for a secret of another passphrase; ProjectError for a key that must be set and is not
 */
export function resolveConfig(
  project: Project,
  file: StackFile,
  crypter: Pick<Crypter, "decrypt">,
): StackConfig {
  const values = new Map<string, ConfigValue>();
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
export function configProps({ values }: StackConfig): Props {
  return Object.fromEntries(
    [...values].map(([key, { text, secret: hidden }]) => [key, hidden ? secret(text) : text]),
  );
}

function fullKey(project: Project, key: string): string {
  const full = key.includes(":") ? key : `${project.name}:${key}`;
  return full.replace(/^([^:]+):config:/, "$1:");
}

function asText(value: unknown, crypter: Pick<Crypter, "decrypt">): ConfigValue {
  if (isSecured(value)) return { text: crypter.decrypt(value.secure), secret: true };
  if (typeof value !== "object" || value === null) return { text: String(value ?? ""), secret: false };
  let hidden = false;
  const opened = JSON.stringify(value, (_key, item: unknown) => {
    if (!isSecured(item)) return item;
    hidden = true;
    return crypter.decrypt(item.secure);
  });
  return { text: opened, secret: hidden };
}

const isSecured = (value: unknown): value is { readonly secure: string } =>
  isMap(value) && Object.keys(value).length === 1 && typeof value.secure === "string";
