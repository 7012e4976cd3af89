import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newCrypter } from "../../provider/engine/state/crypter.ts";
import { isNoSettings, Stack, type StackOptions } from "./gatehouse.ts";

const PROGRAM = fileURLToPath(new URL("../endToEnd/fixtures/commonjs", import.meta.url));
const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

/**
 * A program in a separate folder, and a folder for its states. The program declares the resources in the variable
 * POLICY.
 */
export class PolicyProgram {
  readonly #root = mkdtempSync(join(tmpdir(), "gatehouse-program-"));
  readonly folder = join(this.#root, "program");
  readonly states = join(this.#root, "states");

  constructor() {
    cpSync(PROGRAM, this.folder, { recursive: true, filter: isNoSettings });
    symlinkSync(MODULES, join(this.folder, "node_modules"));
    mkdirSync(this.states);
  }

  /** Returns a stack of this program. Default engine: embedded. */
  stack(options: Pick<StackOptions, "env"> & Partial<StackOptions>): Stack {
    return new Stack({ program: this.folder, folder: this.states, engine: "embedded", ...options });
  }

  /** Writes a file into the program's folder. */
  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
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
    rmSync(this.#root, { recursive: true, force: true });
  }
}
