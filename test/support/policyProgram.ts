import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, onTestFinished } from "vitest";
import { newCrypter } from "../../provider/engine/state/crypter.ts";
import { isNoSettings, PASSPHRASE, Stack, type StackOptions } from "./gatehouse.ts";

const PROGRAM = fileURLToPath(new URL("../endToEnd/fixtures/commonjs", import.meta.url));
const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

/**
 * A program in a separate folder, and a folder for its states. The program declares the resources in the variable
 * POLICY.
 */
export class PolicyProgram {
  #root: string | undefined;

  /** The folder of both. The first use creates it, so that skipped tests create none. */
  get #folders(): string {
    if (this.#root !== undefined) return this.#root;
    const root = mkdtempSync(join(tmpdir(), "gatehouse-program-"));
    cpSync(PROGRAM, join(root, "program"), { recursive: true, filter: isNoSettings });
    symlinkSync(MODULES, join(root, "program", "node_modules"));
    mkdirSync(join(root, "states"));
    this.#root = root;
    return root;
  }

  get folder(): string {
    return join(this.#folders, "program");
  }

  get states(): string {
    return join(this.#folders, "states");
  }

  /** The settings of the state backend. Commands without a stack of this class need them. */
  get backend(): Record<string, string> {
    return { PULUMI_BACKEND_URL: `file://${this.states}`, PULUMI_CONFIG_PASSPHRASE: PASSPHRASE };
  }

  /** Returns the path of a file in the program's folder. */
  path(name: string): string {
    return join(this.folder, name);
  }

  /** Returns the path of a stack's state file. */
  stateFile(stack: string): string {
    return join(this.states, ".pulumi", "stacks", "commonjs-program", `${stack}.json`);
  }

  /** Returns a stack of this program. Default engine: embedded. */
  stack(options: Pick<StackOptions, "env"> & Partial<StackOptions>): Stack {
    return new Stack({ program: this.folder, folder: this.states, engine: "embedded", ...options });
  }

  /** Writes a file into the program's folder. */
  write(name: string, text: string): void {
    writeFileSync(this.path(name), text);
  }

  /** Writes the configuration file of a stack. All values are encrypted. */
  async configure(stack: string, values: Record<string, string>, passphrase: string): Promise<void> {
    const crypter = await newCrypter(passphrase);
    const config = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, { secure: crypter.encrypt(value) }]),
    );
    // The file's extension is `.yaml`. The values are written as JSON, which is valid YAML.
    this.write(
      `Pulumi.${stack}.yaml`,
      `encryptionsalt: ${crypter.saltText}\nconfig: ${JSON.stringify(config)}\n`,
    );
  }

  remove(): void {
    if (this.#root !== undefined) rmSync(this.#root, { recursive: true, force: true });
    this.#root = undefined;
  }
}

/** A program for the surrounding tests. It is removed after them. */
export function sharedProgram(): PolicyProgram {
  const program = new PolicyProgram();
  afterAll(() => program.remove());
  return program;
}

/** A program that is removed when the calling test ends. */
export function testProgram(): PolicyProgram {
  const program = new PolicyProgram();
  onTestFinished(() => program.remove());
  return program;
}
