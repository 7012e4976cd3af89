// `npm run release`: makes everything that a release consists of, checks it, and tries it. It publishes nothing:
// docs/releasing.md says how a person does.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  billOfPackage,
  billOfProgram,
  type Manifest,
  manifestOf,
  PACKAGES,
  pack,
  packPlugin,
  packTerraformProvider,
  sums,
  withFolder,
} from "./release/artefacts.ts";
import { type Library, PLUGIN, ROOT, TERRAFORM_PROVIDER } from "./release/bundle.ts";
import {
  changelogFindings,
  docsFindings,
  type Finding,
  fixtureFindings,
  gitFindings,
  licenceFindings,
  packageFindings,
  versionFindings,
} from "./release/checks.ts";

const HELP = `Usage: npm run release -- [--dry-run] [--out <folder>] [--no-trial]

Makes the packages, the plugin's archives, the Terraform provider's archives with their checksums, bills of materials and
checksums of all; checks versions, changelog, fixtures, documents and licences; installs what it made into empty folders
and does there what the README says. It publishes nothing (docs/releasing.md).

  --dry-run        name what is put right on the day of the release (the changelog's title, the tag), and go on
  --out <folder>   where to put it; it is emptied (default: dist/release/<version>)
  --no-trial       do not install and try what was made

Exit codes: 0 fine; 2 something stands against a release; 1 an error.`;

/** The exit code where something stands against a release. */
const OBJECTED = 2;

const say = (line: string) => process.stderr.write(`${line}\n`);

/** Does a step, and says how long it took. */
async function step<T>(title: string, work: () => Promise<T> | T): Promise<T> {
  const started = Date.now();
  say(`${title} …`);
  const result = await work();
  say(`${title}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
  return result;
}

/** Makes all artefacts in a folder. */
async function make(out: string, version: string): Promise<Finding[]> {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const packed = await step("Packing the packages", () => pack(out));
  const libraries: Library[] = [];
  const programs = [
    [PLUGIN.name, packPlugin],
    [TERRAFORM_PROVIDER.name, packTerraformProvider],
  ] as const;
  for (const [name, make] of programs) {
    const inside = await step(`Making ${name}`, () => make(out, version));
    await billOfProgram(out, name, inside);
    libraries.push(...inside);
  }
  for (const name of PACKAGES) {
    const brought = await step(`Asking what ${name} brings with it`, () => billOfPackage(out, packed, name));
    libraries.push(...brought.filter((library) => !library.name.startsWith("@gatehouse-access/")));
  }
  await writeFile(join(out, "SHA256SUMS"), await sums(out, (await readdir(out)).sort()));
  return [...packed.flatMap(packageFindings), ...licenceFindings(libraries)];
}

/** What the repository itself says against a release. */
async function check(version: string): Promise<Finding[]> {
  const folders = [".", ...PACKAGES];
  const own = Object.fromEntries(
    await Promise.all(folders.map(async (folder) => [folder, await manifestOf(folder)] as const)),
  );
  const { packages: locked } = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, Manifest>;
  };
  return [
    ...versionFindings({ own, locked }, version),
    ...changelogFindings(await readFile(join(ROOT, "CHANGELOG.md"), "utf8"), version),
    ...fixtureFindings(version),
    ...docsFindings(),
    ...gitFindings(version),
  ];
}

/** What a trial came to. */
interface Trial {
  readonly findings: readonly Finding[];
  readonly passed: number;
  /** What could not be tried here, with the reason where one was given. */
  readonly untried: readonly string[];
}

/** A report of Vitest, as far as it is looked at. */
interface TestReport {
  readonly testResults: readonly {
    readonly message: string;
    readonly status: string;
    readonly name: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

/** Installs what was made into empty folders, and does what the README says. */
async function trial(out: string): Promise<Trial> {
  return withFolder(async (folder) => {
    const report = join(folder, "report.json");
    const args = [
      "run",
      "--project=processes",
      "--reporter=json",
      `--outputFile=${report}`,
      "test/packaging",
      "test/deploy",
    ];
    const child = spawn(process.execPath, [join(ROOT, "node_modules/vitest/vitest.mjs"), ...args], {
      cwd: ROOT,
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, GATEHOUSE_RELEASE: out },
    });
    await once(child, "close");
    const { testResults } = JSON.parse(await readFile(report, "utf8")) as TestReport;
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
    const failed = tests.filter(({ status }) => status === "failed");
    const broken = testResults.filter(
      ({ status, assertionResults }) =>
        status === "failed" && assertionResults.every((test) => test.status !== "failed"),
    );
    return {
      passed: tests.filter(({ status }) => status === "passed").length,
      findings: [
        ...failed.map(({ fullName, failureMessages: [why = ""] = [] }) => ({
          what: `${fullName}: ${why.split("\n")[0]}`,
        })),
        ...broken.map(({ name, message }) => ({
          what: `${relative(ROOT, name)}: ${message.split("\n")[0]}`,
        })),
      ],
      untried: tests
        .filter(({ status }) => !["passed", "failed"].includes(status))
        .map(({ fullName }) => fullName),
    };
  });
}

/** Prints what was made. */
async function list(out: string): Promise<void> {
  const checksums = new Map(
    (await readFile(join(out, "SHA256SUMS"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );
  for (const name of (await readdir(out)).sort()) {
    const kib = (await stat(join(out, name))).size / 1024;
    console.log(
      `${name.padEnd(62)} ${kib.toFixed(0).padStart(6)} KiB  ${checksums.get(name)?.slice(0, 16) ?? ""}`,
    );
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      "dry-run": { type: "boolean", default: false },
      out: { type: "string" },
      trial: { type: "boolean", default: true },
      help: { type: "boolean", short: "h", default: false },
    },
    allowNegative: true,
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const { version } = await manifestOf(".");
  const out = resolve(values.out ?? join(ROOT, "dist", "release", version));
  const found = await step("Checking the repository", () => check(version));
  found.push(...(await make(out, version)));
  const tried = values.trial ? await step("Installing and trying it", () => trial(out)) : undefined;
  found.push(...(tried?.findings ?? []));

  await list(out);
  console.log(`\nAll of it is in ${out}`);
  console.log(tried ? `Tried: ${tried.passed} tests pass.` : "Not tried: --no-trial.");
  for (const name of tried?.untried ?? []) console.log(`Not tried here: ${name}`);
  const isOpen = ({ isOfTheDay = false }: Finding) => values["dry-run"] && isOfTheDay;
  for (const { what } of found.filter(isOpen)) console.log(`Before publishing: ${what}`);
  const against = found.filter((finding) => !isOpen(finding));
  for (const { what } of against) console.log(`Against it: ${what}`);
  console.log(
    against.length > 0
      ? `${against.length} ${against.length === 1 ? "thing stands" : "things stand"} against release ${version}.`
      : `Nothing stands against release ${version}. docs/releasing.md says how it is published.`,
  );
  return against.length > 0 ? OBJECTED : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  say(`error: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
