// `npm run release`: makes everything that a release consists of, checks it, and tries it. It publishes nothing:
// docs/releasing.md says how a person does.
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

Makes the packages, the plugin's archives, the Terraform provider's archives with their checksums, bills of materials and
checksums of all; checks versions, changelog, fixtures, documents and licenses; installs what it made into empty folders
and does there what the README says. It publishes nothing (docs/releasing.md).

  --dry-run        name what is put right on the day of the release (the changelog's title, the tag), and go on
  --out <folder>   where to put it: a new or an empty folder, or an earlier release's, which is replaced
                   (default: dist/release/<version>, whatever it has)
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

/** Makes all artifacts in a folder. */
async function make(out: string, version: string): Promise<Finding[]> {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const packed = await step("Packing the packages", () => pack(out));
  const found = packed.flatMap(packageFindings);
  const programs: Bill[] = [];
  for (const [{ name }, pack] of [
    [PLUGIN, packPlugin],
    [TERRAFORM_PROVIDER, packTerraformProvider],
  ] as const) {
    const bill = await step(`Making ${name}`, () => pack(out, version));
    await writeBill(out, name, bill);
    found.push(...licenseFindings(bill.components, true));
    programs.push(bill);
  }
  for (const name of PACKAGES) {
    const carried = name === "provider" ? programs[1] : undefined;
    const bill = await step(`Asking what ${name} brings with it`, () => billOfPackage(packed, name, carried));
    await writeBill(out, name, bill);
    found.push(...licenseFindings(bill.components, false));
  }
  await writeFile(join(out, "SHA256SUMS"), await sums(out, (await readdir(out)).sort()));
  // A library may be in several bills.
  return [...new Map(found.map((finding) => [finding.what, finding])).values()];
}

/** What the repository itself says against a release. */
async function check(version: string): Promise<Finding[]> {
  return [
    ...versionFindings(await readManifests(), version),
    ...changelogFindings(await readFile(join(ROOT, "CHANGELOG.md"), "utf8"), version),
    ...fixtureFindings(version),
    ...docsFindings(),
    ...gitFindings(version),
    ...toolFindings(toolVersions()),
  ];
}

/**
 * Refuses a folder whose files nobody would expect to lose.
 * @throws Error
 */
async function assertReplaceable(out: string): Promise<void> {
  if (!existsSync(out) || (await readdir(out)).length === 0) return;
  const checksums = join(out, "SHA256SUMS");
  const made = existsSync(checksums) ? await readFile(checksums, "utf8") : "";
  if (/ gatehouse-access-sdk-\S+\.tgz$/m.test(made)) return;
  throw new Error(
    `--out ${out}: this folder is not empty, and no release's (it has no SHA256SUMS of one); ` +
      "name a new or an empty folder, or one with an earlier release, which is replaced",
  );
}

/** Prints what was made. */
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
  const found = await step("Checking the repository", () => check(version));
  found.push(...(await make(out, version)));
  const tried = values.trial
    ? await step("Installing and trying it", async () => {
        const { tryRelease } = await import("./release/trial.ts");
        return tryRelease(out);
      })
    : undefined;
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
