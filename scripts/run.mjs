// The entry point of every npm script. It runs on Node 20 or newer, so that a fresh clone has no other requirements. It
// installs the dependencies, including the project's version of Node, generates code, and builds. Then it runs the
// command, with the project's Node first on the PATH.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readFlags } from "../examples/demo/flags.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const bin = join(modules, ".bin");
const path = [bin, process.env.PATH].join(delimiter);
const windows = process.platform === "win32";

/**
 * Runs a command and waits for its exit. If the command fails, prints its captured output, and exits with the same exit
 * code.
 */
async function run(command, args, { stdio = "inherit" } = {}) {
  const env = { ...process.env, PATH: path };
  const child = spawn(command, args, { cwd: root, env, shell: windows, stdio });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => output.push(chunk));
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  if (code === 0) return;
  process.stderr.write(Buffer.concat(output));
  process.exit(code ?? 1);
}

/** Runs a step of the setup. Prints the output of the step only if the step fails. */
async function step(title, command, args) {
  const started = Date.now();
  // Steps may run concurrently, so the start and the end of a step are printed in separate lines.
  process.stderr.write(`${title} …\n`);
  await run(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  process.stderr.write(`${title}: ${((Date.now() - started) / 1000).toFixed(1)} s\n`);
}

const digest = (...files) =>
  files
    .reduce((hash, file) => hash.update(readFileSync(join(root, file))), createHash("sha256"))
    .digest("hex");

/**
 * Runs a step only if its inputs have changed since its last run. A stamp file in `folder` records the inputs, so a
 * deletion of `folder` also deletes the stamp file.
 */
async function once(name, key, work, folder = modules) {
  const stamp = join(folder, ".gatehouse", name);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === key) return;
  await work();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, key);
}

/**
 * Returns the path of the Node that the project runs on. This is the installed Node package for this machine. Without
 * this package, it is the current Node if its version is new enough.
 */
function node() {
  const name = `node-${windows ? "win" : process.platform}-${process.arch}`;
  const installed = join(modules, name, "bin", windows ? "node.exe" : "node");
  if (existsSync(installed)) return installed;
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return process.execPath;
  console.error(`No package of Node 22 exists for ${name}. Install Node 22.19 or newer.`);
  process.exit(1);
}

const tsc = (title, ...args) => step(title, node(), [join(modules, "typescript-7", "bin", "tsc"), ...args]);

/** Runs the command's script with the project's Node. */
const script = (file, args = []) => run(node(), [file, ...args]);

/** Returns true if this process may create a folder, or may write to the folder if it exists. */
function isWritable(folder) {
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  try {
    accessSync(existing, constants.W_OK);
    return statSync(existing).isDirectory();
  } catch {
    return false;
  }
}

/** Installs the dependencies of the package in a folder. */
async function npmCi(title, folder) {
  const ci = ["ci", `--prefix=${folder}`, "--no-audit", "--no-fund", "--loglevel=error"];
  const usual = process.env.npm_config_cache ?? join(homedir(), ".npm");
  if (windows || isWritable(usual)) return step(title, "npm", ci);
  process.stderr.write(
    `Cannot write to npm's cache ${usual}: using a temporary one. Set npm_config_cache to use a permanent one.\n`,
  );
  const cache = mkdtempSync(join(tmpdir(), "gatehouse-npm-"));
  process.once("exit", () => rmSync(cache, { recursive: true, force: true }));
  await step(title, "npm", [...ci, `--cache=${cache}`]);
}

const install = () =>
  once("install", digest("package-lock.json", "package.json"), () => npmCi("Installing dependencies", "."));

const SITE = "docs/site";
const installSite = () =>
  once(
    "install",
    digest(`${SITE}/package-lock.json`, `${SITE}/package.json`),
    () => npmCi("Installing the site generator", SITE),
    join(root, SITE, "node_modules"),
  );

const generateClients = () => {
  const schema = ["server/db/models.prisma", "server/db/migrations/schemas.ts"];
  return once("prisma", digest("package-lock.json", ...schema), () =>
    step("Generating database clients", node(), ["server/db/migrations/generate.ts"]),
  );
};

async function generateClasses() {
  await tsc("Building the contract", "-b", "sdk");
  await step("Generating resource classes", node(), ["provider/providers/generate/generate.ts"]);
}

/**
 * Runs a function that only one process at a time may run in this clone. Other processes wait. The lock is a local
 * socket, which the system closes when the process that holds it exits.
 */
async function exclusively(work) {
  const name = `gatehouse-setup-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`;
  const onDisk = process.platform !== "linux" && !windows;
  const path = windows ? `\\\\.\\pipe\\${name}` : onDisk ? join(tmpdir(), name) : `\0${name}`;
  const waiting = new Set();
  const lock = createServer((socket) => {
    waiting.add(socket);
    socket.on("error", () => {}).on("close", () => waiting.delete(socket));
  });
  let hasWaited = false;
  for (;;) {
    const error = await new Promise((resolve) => {
      lock.once("error", resolve).listen(path, () => resolve(undefined));
    });
    if (!error) break;
    if (error.code !== "EADDRINUSE") throw error;
    await new Promise((resolve) => {
      const holder = connect(path);
      holder.on("connect", () => {
        if (!hasWaited) process.stderr.write("Waiting for another run that sets up this clone …\n");
        hasWaited = true;
      });
      holder.on("error", ({ code }) => {
        // A killed process does not remove its socket file.
        if (onDisk && code === "ECONNREFUSED") rmSync(path, { force: true });
      });
      holder.on("close", resolve).resume();
    });
  }
  try {
    await work();
  } finally {
    lock.close();
    for (const socket of waiting) socket.destroy();
  }
}

const DOCUMENTATION = ["concepts", "get-started", "guides", "operate", "reference", "tutorials"];

/** Returns the Markdown pages of a folder of documentation, by path. A missing folder has no pages. */
function pagesIn(folder) {
  const files = DOCUMENTATION.flatMap((part) =>
    existsSync(join(folder, part))
      ? readdirSync(join(folder, part), { recursive: true }).map((file) => join(part, file))
      : [],
  );
  const pages = files.filter((file) => file.endsWith(".md")).sort();
  return Object.fromEntries(pages.map((page) => [page, readFileSync(join(folder, page), "utf8")]));
}

/**
 * Copies the documentation pages to the package `sdk`, so that `--help` can refer to installed files. Changes nothing if
 * the copies are current, because a run as a different user may not be allowed to replace them.
 */
function copyDocumentation() {
  const pages = pagesIn(join(root, "docs"));
  const copies = join(root, "sdk/docs");
  if (JSON.stringify(pages) === JSON.stringify(pagesIn(copies))) return;
  rmSync(copies, { recursive: true, force: true });
  for (const [page, text] of Object.entries(pages)) {
    mkdirSync(dirname(join(copies, page)), { recursive: true });
    writeFileSync(join(copies, page), text);
  }
}

async function build() {
  await install();
  copyDocumentation();
  await Promise.all([generateClients(), generateClasses()]);
  await tsc("Building", "-b");
  await step("Bundling the Terraform provider", node(), ["scripts/release/bundle.ts"]);
}

const [command = "help", ...args] = process.argv.slice(2);
const major = Number(process.versions.node.split(".")[0]);
if (major < 20) {
  console.error(`The setup of Gatehouse needs Node 20 or newer; this is Node ${process.versions.node}.`);
  process.exit(1);
}

const REPORTERS = ["--reporter=default", "--reporter=test/support/durations.ts"];
const vitest = (...flags) =>
  script("node_modules/vitest/vitest.mjs", ["run", ...REPORTERS, ...flags, ...args]);

/** Filters for Vitest's projects. CONTRIBUTING.md describes the projects and tags. */
const ONCE = "--project=!again-*";
const AGAIN = "--project=again-*";

/** Returns the files that contain tests with the tag `long`. Without this list, Vitest would load all test files. */
const taggedLong = () =>
  readdirSync(join(root, "test"), { recursive: true })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join("test", file))
    .filter((file) => /\["long"\]|@module-tag long/.test(readFileSync(join(root, file), "utf8")));

const commands = {
  setup: () => {},
  build: () => {},
  demo: () => script("examples/demo.ts", args),
  test: () => vitest(ONCE, "--tags-filter=!long"),
  async "test:rest"() {
    await vitest(ONCE, "--tags-filter=long", ...taggedLong());
    // Excludes the slow tests, because they have just run, and the tests of pages, because pages are the same on every
    // database.
    await vitest(AGAIN, "--tags-filter=!long", "--exclude=test/server/pages/**");
  },
  "test:all": () => vitest(),
  bench: () => script("bench/provider.ts", args),
  release: () => script("scripts/release.ts", args),
  size: () => script("scripts/size.ts", args),
  fuzz: () => script("test/fuzz/run.ts", args),
  mutants: () => script("test/mutants/run.ts", args),
  "test:clients": () => script("test/gateway/clients/run.ts", args),
  docs: () => script("docs/generate/generate.ts"),
  "docs:pictures": () => script("docs/generate/pictures.ts"),
  async "docs:site"() {
    await exclusively(installSite);
    const flags = args.length > 0 ? ["--", ...args] : [];
    await run("npm", ["--prefix", SITE, "run", "build", ...flags]);
    const preview = ["npm", "--prefix", SITE, "run", "preview", ...flags].join(" ");
    console.log(`The site is in ${SITE}/dist. Show it with: ${preview}`);
  },
  async check() {
    await run(join(bin, "biome"), ["check", "."]);
    await tsc("Checking types of the tests", "-p", "test");
    await step("Checking the spelling", node(), [
      "node_modules/cspell/bin.mjs",
      "--config=test/cspell.json",
      "--no-progress",
      "--no-summary",
      "--unique",
    ]);
    await step("Checking the links of documents", node(), [
      "node_modules/remark-cli/cli.js",
      "--frail",
      "--no-stdout",
      "--quiet",
      "--use=remark-validate-links=repository:false",
      `--ignore-pattern=${SITE}/src/`,
      "--ignore-pattern=sdk/docs/",
      ".",
    ]);
    await script("node_modules/vitest/vitest.mjs", [
      "run",
      "--project=sources",
      "--project=processes",
      "test/language.test.ts",
      "test/docs.test.ts",
      "test/packaging/commandLines.test.ts",
    ]);
  },
};

for (const name of ["server", "lists", "attack", "policy", "terraform", "gateway", "retention"])
  commands[`bench:${name}`] = () => script(`bench/${name}.ts`, args);

if (!(command in commands)) {
  console.error(`Usage: node scripts/run.mjs ${Object.keys(commands).join("|")}`);
  process.exit(1);
}
// Checks the flags of the demo first, since the build takes half a minute.
if (command === "demo") readFlags(args);
await exclusively(build);
await commands[command]();
