import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const REQUIREMENTS = fileURLToPath(new URL("./requirements.txt", import.meta.url));
const ENVIRONMENT = fileURLToPath(new URL("../../node_modules/.cache/gatehouse-fuzz", import.meta.url));
const windows = process.platform === "win32";
const PYTHON = windows ? "python" : "python3";
const BIN = join(ENVIRONMENT, windows ? "Scripts" : "bin");
/** The oldest version of Python that Schemathesis supports. */
const OLDEST = [3, 10] as const;

/**
 * Returns the path of the Schemathesis program. Installs Schemathesis at first use and when the pinned versions change.
 * @throws Error there is no supported version of Python, or the installation failed
 */
export function installSchemathesis(): string {
  const command = join(BIN, windows ? "schemathesis.exe" : "schemathesis");
  const stamp = join(ENVIRONMENT, "installed");
  const key = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === key) return command;
  requirePython();
  console.log("Installing Schemathesis …");
  rmSync(ENVIRONMENT, { recursive: true, force: true });
  mkdirSync(dirname(ENVIRONMENT), { recursive: true });
  run(PYTHON, ["-m", "venv", ENVIRONMENT]);
  run(join(BIN, "python"), ["-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS]);
  writeFileSync(stamp, key);
  return command;
}

function requirePython(): void {
  const { error, stdout } = spawnSync(PYTHON, ["--version"], { encoding: "utf8" });
  const [major = 0, minor = 0] =
    /(\d+)\.(\d+)/
      .exec(stdout ?? "")
      ?.slice(1)
      .map(Number) ?? [];
  if (error || major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    const problem = error ? "none is on the PATH" : `this is ${stdout.trim()}`;
    throw new Error(`The fuzzer needs ${PYTHON} ${OLDEST.join(".")} or newer with venv; ${problem}.`);
  }
}

function run(command: string, args: readonly string[]): void {
  const { error, status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (error) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}:\n${stdout}${stderr}`);
}
