import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { EngineError, PassphraseError } from "../errors.ts";
import { ifThere, parseYamlMap } from "../files.ts";

export interface CliTarget {
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
  readonly projectFolder: string;
  readonly stack: string;
  /** Path of Pulumi.<stack>.yaml, which contains the secrets provider and the encryption keys. */
  readonly stackFile: string;
}

/** The configuration key under which the temporary configuration file stores the string. */
const KEY = "gatehouse:text";

/**
 * Encrypts a string with the stack's encryption key. The CLI has no command for this purpose, so the function stores
 * the string as a secret in a temporary configuration file.
 * @throws EngineError (`pulumi_cli`) if the CLI fails
 */
export function encryptByCli(target: CliTarget, plain: string): Promise<string> {
  return withConfigFile(target, undefined, async (file) => {
    await pulumi(target, ["config", "set", "--secret", KEY, "--config-file", file], plain);
    const { config } = parseYamlMap(await readFile(file, "utf8"), file);
    const stored = (config as Record<string, { secure?: unknown } | undefined> | undefined)?.[KEY]?.secure;
    if (typeof stored !== "string")
      throw new EngineError("pulumi_cli", "pulumi config set stored no encrypted value.");
    if (JSON.stringify(await keysOf(file)) !== JSON.stringify(await keysOf(target.stackFile))) {
      // The stack's settings file contains no key, so the CLI created a new key. The new key would be lost together
      // with the temporary file.
      throw new EngineError(
        "pulumi_cli",
        `${target.stackFile} contains no encryption key for the stack's secrets.`,
      );
    }
    return stored;
  });
}

/** Decrypts a string that `encryptByCli` encrypted. @throws PassphraseError if the CLI cannot decrypt the string */
export function decryptByCli(target: CliTarget, encrypted: string): Promise<string> {
  return withConfigFile(target, encrypted, async (file) => {
    try {
      return await pulumi(target, ["config", "get", KEY, "--config-file", file], "");
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new PassphraseError(`The text cannot be decrypted with the key of this stack: ${error.message}`);
    }
  });
}

/**
 * Calls a function with a temporary configuration file. The file contains the stack's encryption keys but not the
 * stack's configuration values. Only the user can access the directory of the file.
 */
async function withConfigFile<T>(
  { stackFile }: CliTarget,
  secure: string | undefined,
  work: (file: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-"));
  try {
    const file = join(folder, "Pulumi.yaml");
    const config = secure === undefined ? {} : { config: { [KEY]: { secure } } };
    // The file can be written as JSON, since JSON is a subset of YAML.
    await writeFile(file, JSON.stringify({ ...(await keysOf(stackFile)), ...config }), { mode: 0o600 });
    return await work(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function keysOf(stackFile: string): Promise<Record<string, unknown>> {
  const text = (await ifThere(readFile(stackFile, "utf8"))) ?? "";
  const { encryptionsalt, encryptedkey, secretsprovider } = parseYamlMap(text, stackFile);
  const keys = { secretsprovider, encryptedkey, encryptionsalt };
  return Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
}

/**
 * Runs a command of the CLI. Passes the string through standard input, since other processes can read the arguments of
 * a command.
 */
async function pulumi(target: CliTarget, args: readonly string[], input: string): Promise<string> {
  const { command, env, projectFolder, stack } = target;
  const child = spawn(command, [...args, "--stack", stack, "--non-interactive"], { cwd: projectFolder, env });
  const ended = new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 128));
  });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  if (code === 0) return stdout.replace(/\n$/, "");
  throw new EngineError("pulumi_cli", `pulumi ${args.slice(0, 2).join(" ")} failed: ${stderr.trim()}`);
}
