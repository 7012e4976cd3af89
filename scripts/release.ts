// Builds all artifacts of a release, checks them, and tests their installation (`npm run release`). The command does
// not publish anything. docs/architecture/releasing.md describes how to publish the release.
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  billOfPackage,
  manifestOf,
  PACKAGES,
  pack,
  packPlugin,
  packTerraformProvider,
  sums,
} from "./release/artifacts.ts";
import { type Bill, writeBill } from "./release/bills.ts";
import { PLUGIN, ROOT, TERRAFORM_PROVIDER } from "./release/bundle.ts";
import {
  changelogFindings,
  docsFindings,
  type Finding,
  fixtureFindings,
  gitFindings,
  licenseFindings,
  packageFindings,
  readManifests,
  toolFindings,
  toolVersions,
  versionFindings,
} from "./release/checks.ts";

const HELP = `Usage: npm run release -- [--dry-run] [--out <folder>] [--no-trial]

Builds the packages, the plugin's archives, the Terraform provider's archives with their checksums, bills of materials
and checksums of all artifacts. Checks versions, changelog, fixtures, documents and licenses. Installs the artifacts into
empty folders and follows the quick start there. It publishes nothing (docs/architecture/releasing.md).

  --dry-run        report tasks of the release day (the changelog's title, the tag) without failing
  --out <folder>   output folder: a new or empty folder, or one with an earlier release, which is replaced
                   (default: dist/release/<version>, which is always replaced)
  --no-trial       do not install and test the artifacts

Exit codes: 0 = OK, 2 = blocking findings, 1 = error`;

/** The exit code for blocking findings. */
const BLOCKED = 2;

const log = (line: string) => process.stderr.write(`${line}\n`);

/** Runs a step of the release, and prints the duration of the step. */
async function step<T>(title: string, work: () => Promise<T> | T): Promise<T> {
  const started = Date.now();
  log(`${title} …`);
  const result = await work();
  log(`${title}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
  return result;
}

/** Builds all artifacts in a folder. */
async function buildArtifacts(out: string, version: string): Promise<Finding[]> {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const packed = await step("Packing the packages", () => pack(out));
  const findings = packed.flatMap(packageFindings);
  const programs: Bill[] = [];
  for (const [{ name }, pack] of [
    [PLUGIN, packPlugin],
    [TERRAFORM_PROVIDER, packTerraformProvider],
  ] as const) {
    const bill = await step(`Building ${name}`, () => pack(out, version));
    await writeBill(out, name, bill);
    findings.push(...licenseFindings(bill.components, true));
    programs.push(bill);
  }
  for (const name of PACKAGES) {
    const carried = name === "provider" ? programs[1] : undefined;
    const bill = await step(`Listing the dependencies of ${name}`, () =>
      billOfPackage(packed, name, carried),
    );
    await writeBill(out, name, bill);
    findings.push(...licenseFindings(bill.components, false));
  }
  await writeFile(join(out, "SHA256SUMS"), await sums(out, (await readdir(out)).sort()));
  // Removes duplicate findings, because several bills of materials may contain the same library.
  return [...new Map(findings.map((finding) => [finding.what, finding])).values()];
}

/** Runs all release checks of the repository, and returns their findings. */
async function checkRepository(version: string): Promise<Finding[]> {
  return [
    ...versionFindings(await readManifests(), version),
    ...changelogFindings(await readFile(join(ROOT, "CHANGELOG.md"), "utf8"), version),
    ...fixtureFindings(version),
    ...(await docsFindings()),
    ...gitFindings(version),
    ...toolFindings(toolVersions()),
  ];
}

/**
 * Checks that the output folder is missing, is empty, or contains an earlier release.
 * @throws Error if the folder has other content, and so must not be replaced
 */
async function assertReplaceable(out: string): Promise<void> {
  if (!existsSync(out) || (await readdir(out)).length === 0) return;
  const checksums = join(out, "SHA256SUMS");
  const existing = existsSync(checksums) ? await readFile(checksums, "utf8") : "";
  if (/ gatehouse-access-sdk-\S+\.tgz$/m.test(existing)) return;
  throw new Error(
    `--out ${out}: the folder is not empty and contains no release (no matching SHA256SUMS). ` +
      "Specify a new or empty folder, or one with an earlier release, which is replaced",
  );
}

/** Prints the artifacts with their sizes. */
async function list(out: string): Promise<void> {
  for (const name of (await readdir(out)).sort()) {
    const kib = (await stat(join(out, name))).size / 1024;
    console.log(`${name.padEnd(62)} ${kib.toFixed(0).padStart(6)} KiB`);
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
  if (values.out !== undefined) await assertReplaceable(out);
  const findings = await step("Checking the repository", () => checkRepository(version));
  findings.push(...(await buildArtifacts(out, version)));
  const trial = values.trial
    ? await step("Installing and testing the artifacts", async () => {
        const { tryRelease } = await import("./release/trial.ts");
        return tryRelease(out);
      })
    : undefined;
  findings.push(...(trial?.findings ?? []));

  await list(out);
  console.log(`\nOutput folder: ${out}`);
  console.log(trial ? `Trial: ${trial.passed} tests passed.` : "No trial: --no-trial.");
  for (const name of trial?.untried ?? []) console.log(`Skipped: ${name}`);
  const isOpen = ({ isOfTheDay = false }: Finding) => values["dry-run"] && isOfTheDay;
  for (const { what } of findings.filter(isOpen)) console.log(`Before publishing: ${what}`);
  const blocking = findings.filter((finding) => !isOpen(finding));
  for (const { what } of blocking) console.log(`Blocking: ${what}`);
  console.log(
    blocking.length > 0
      ? `Release ${version} has ${blocking.length} blocking ${blocking.length === 1 ? "finding" : "findings"}.`
      : `Release ${version} has no blocking findings. To publish it, follow docs/architecture/releasing.md.`,
  );
  return blocking.length > 0 ? BLOCKED : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  log(`error: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
