// Entry of every npm script. Runs on Node 20 or newer, so that a fresh clone needs nothing else: it installs
// the dependencies (among them the Node that the project runs on), generates code, builds, and then runs the
// command with that Node first on the PATH.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, "node_modules", ".bin");
const path = [bin, process.env.PATH].join(delimiter);
const env = { ...process.env, PATH: path };
const windows = process.platform === "win32";

/** Runs a command to its end; on failure shows its output and ends with its exit code. */
function run(title, command, args, { quiet = true, extraEnv = {} } = {}) {
  const started = Date.now();
  if (quiet) process.stderr.write(`${title} … `);
  const result = spawnSync(command, args, {
    cwd: root,
    env: { ...env, ...extraEnv },
    shell: windows,
    stdio: quiet ? ["ignore", "pipe", "pipe"] : "inherit",
    maxBuffer: 1 << 28,
  });
  if (result.error) throw result.error;
  if (result.status !== 0) {
    if (quiet) process.stderr.write(`failed\n${result.stdout}${result.stderr}`);
    process.exit(result.status ?? 1);
  }
  if (quiet) process.stderr.write(`${((Date.now() - started) / 1000).toFixed(1)} s\n`);
}

const digest = (...files) =>
  files
    .reduce((hash, file) => hash.update(readFileSync(join(root, file))), createHash("sha256"))
    .digest("hex");

/** Does a step only when what it was made from has changed since. */
function once(name, key, step) {
  const stamp = join(root, "node_modules", ".gatehouse", name);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === key) return;
  step();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, key);
}

const node = () => join(root, "node_modules", "node", "bin", windows ? "node.exe" : "node");

function install() {
  once("install", digest("package-lock.json", "package.json"), () => {
    run("Installing dependencies", "npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    // Scripts of packages are off (.npmrc); this one fetches the Node that the project runs on.
    run("Installing Node 22", "npm", ["rebuild", "node", "--ignore-scripts=false", "--loglevel=error"]);
  });
}

function generate() {
  const schema = ["server/db/models.prisma", "server/db/sqlite.prisma", "server/db/postgresql.prisma"];
  once("prisma", digest("package-lock.json", ...schema), () => {
    run("Generating database clients", node(), ["server/db/generate.ts"]);
  });
  run("Generating resource classes", node(), ["provider/pulumi/generate.ts"]);
}

function build() {
  install();
  run("Building the contract", node(), ["node_modules/typescript/bin/tsc", "-b", "sdk"]);
  generate();
  run("Building", node(), ["node_modules/typescript/bin/tsc", "-b"]);
}

const [command = "help", ...args] = process.argv.slice(2);
const major = Number(process.versions.node.split(".")[0]);
if (major < 20) {
  console.error(`Gatehouse needs Node 20 or newer to set itself up; this is Node ${process.versions.node}.`);
  process.exit(1);
}

const commands = {
  setup: build,
  build,
  demo() {
    build();
    run("demo", node(), ["examples/demo.ts", ...args], { quiet: false });
  },
  test() {
    build();
    run("Checking types of the tests", node(), ["node_modules/typescript/bin/tsc", "-p", "test"]);
    run("test", node(), ["node_modules/vitest/vitest.mjs", "run", ...args], { quiet: false });
  },
  bench() {
    build();
    run("bench", node(), ["bench/provider.ts", ...args], { quiet: false });
  },
  "bench:server"() {
    build();
    run("bench:server", node(), ["bench/server.ts", ...args], { quiet: false });
  },
  "bench:attack"() {
    build();
    run("bench:attack", node(), ["bench/attack.ts", ...args], { quiet: false });
  },
  "bench:policy"() {
    build();
    run("bench:policy", node(), ["bench/policy.ts", ...args], { quiet: false });
  },
  fuzz() {
    build();
    run("fuzz", node(), ["test/fuzz/run.ts", ...args], { quiet: false });
  },
  docs() {
    build();
    run("Writing the reference", node(), ["docs/generate.ts"]);
  },
  check() {
    build();
    run("biome", join(bin, "biome"), ["check", "."], { quiet: false });
    run("types", node(), ["node_modules/typescript/bin/tsc", "-p", "test"], { quiet: false });
  },
};

if (!(command in commands)) {
  console.error(`Usage: node scripts/run.mjs ${Object.keys(commands).join("|")}`);
  process.exit(1);
}
commands[command]();
