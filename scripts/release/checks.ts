import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { satisfies as isWithin } from "semver";
import satisfies from "spdx-satisfies";
import { pages, schemaFiles } from "../../docs/generate/pages.ts";
import { PULUMI_RANGE, rangeText, TERRAFORM_TRIED } from "../../docs/generate/supportedVersionsPage.ts";
import {
  type AppliedMigration,
  migrationsFolder,
  pendingMigrations,
  readMigrations,
} from "../../server/db/migrations/migrations.ts";
import { type Manifest, manifestOf, PACKAGES, type Packed } from "./artifacts.ts";
import { type Component, licenseOf, licenseTexts } from "./bills.ts";
import { ROOT } from "./bundle.ts";

/** A finding that blocks a release. */
export interface Finding {
  readonly what: string;
  /**
   * True for a task that is due on the day of the release, such as a git tag. A dry run reports this finding but does
   * not fail.
   */
  readonly isOfTheDay?: boolean;
}

/** The package.json files, by folder (`.` for the root), and the lock file's entries for these packages. */
export interface Manifests {
  readonly own: Readonly<Record<string, Manifest>>;
  readonly locked: Readonly<Record<string, Manifest>>;
}

/** Reads all package.json files and the lock file. */
export async function readManifests(): Promise<Manifests> {
  const own = [".", ...PACKAGES].map(async (folder) => [folder, await manifestOf(folder)] as const);
  const { packages: locked } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  return { own: Object.fromEntries(await Promise.all(own)), locked };
}

/** Checks the versions of the packages, and the version ranges of the dependencies between them. */
export function versionFindings({ own, locked }: Manifests, version: string): Finding[] {
  const names = new Map(PACKAGES.map((folder) => [own[folder]?.name, folder]));
  return Object.entries(own).flatMap(([folder, manifest]) => {
    const problems: string[] = [];
    const file = join(folder, "package.json");
    if (manifest.version !== version)
      problems.push(`${file}: version is ${manifest.version}, not ${version}`);
    const lock = locked[folder === "." ? "" : folder];
    if (lock?.version !== manifest.version) {
      problems.push(`package-lock.json: ${folder} has version ${lock?.version}, not ${manifest.version}`);
    }
    for (const [name, range] of Object.entries(manifest.dependencies ?? {})) {
      if (names.has(name) && range !== `^${version}`) {
        problems.push(`${file}: the range of ${name} is ${range}, not ^${version}`);
      }
    }
    return problems.map((what) => ({ what }));
  });
}

/** Checks that the changelog has a section for the version, and that its title contains the release date. */
export function changelogFindings(text: string, version: string): Finding[] {
  const titles = [...text.matchAll(/^## (.*)$/gm)].map(([, title = ""]) => title);
  const own = titles.find((title) => title.split(" ")[0] === version);
  if (own === undefined) {
    const isOfTheDay = titles[0] === "Unreleased";
    return [{ what: `CHANGELOG.md: the section "## ${version} (YYYY-MM-DD)" is missing`, isOfTheDay }];
  }
  if (/^\S+ \(\d{4}-\d\d-\d\d\)$/.test(own)) return [];
  return [{ what: `CHANGELOG.md: the title "## ${own}" must be "## ${version} (YYYY-MM-DD)"` }];
}

/**
 * Allowed licenses of libraries. Each license is compatible with an Apache-2.0 program, and requires only that the
 * program includes the license text.
 */
const LICENSES = (
  "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BlueOak-1.0.0 CC0-1.0 CC-BY-3.0 CC-BY-4.0 ISC MIT MIT-0 Python-2.0 " +
  "Unlicense WTFPL Zlib"
).split(" ");

/**
 * Checks that the licenses of libraries are allowed.
 * @param inside true if a bundled program contains the libraries. The bundle must then include the license texts
 */
export function licenseFindings(libraries: readonly Component[], inside: boolean): Finding[] {
  return libraries.flatMap((library) => {
    const license = licenseOf(library);
    const problems = isAllowed(license) ? [] : [`the license ${license || "(none)"} is not allowed`];
    if (inside && licenseTexts(library).length === 0)
      problems.push("no file of the package contains the license");
    return problems.map((what) => ({ what: `${library["bom-ref"].split("#")[0]}: ${what}` }));
  });
}

function isAllowed(license: string): boolean {
  try {
    return satisfies(license, LICENSES);
  } catch {
    // `satisfies` throws an error if the license is not an SPDX expression.
    return false;
  }
}

/** Checks a package for missing files, unexpected files and stale files. */
export function packageFindings({ name, files }: Pick<Packed, "name" | "files">): Finding[] {
  const missing = ["LICENSE", "README.md", "package.json"].filter((file) => !files.includes(file));
  const strange = files.filter((file) =>
    /\.test\.|\.tsbuildinfo|(^|\/)test\/|(?<!\.d)\.ts$|\.env/.test(file),
  );
  // When a source file is deleted, the compiler does not remove its output. So the package may contain stale files.
  const stale = files.filter((file) => {
    const [, source] = /^dist\/(.*)\.js$/.exec(file) ?? [];
    return source !== undefined && !existsSync(join(ROOT, name, `${source}.ts`));
  });
  const problems = [
    ...missing.map((file) => `${file} is not in the package`),
    ...strange.map((file) => `${file} must not be in the package`),
    ...stale.map((file) => `${file} has no source file: remove dist, and build again`),
  ];
  return problems.map((what) => ({ what: `${name}: ${what}` }));
}

/**
 * Checks the test fixtures of this version, which contain a state and a database. The tests of later releases upgrade
 * these fixtures, so the fixtures must be recreated for the release.
 */
export function fixtureFindings(version: string, root = ROOT): Finding[] {
  const folder = join("test/fixtures/releases", version);
  const remedy = `run node test/fixtures/make.ts ${version}`;
  const missing = ["state.json", "settings.yaml", "program.json", "gatehouse.db", "secret"]
    .map((file) => join(folder, file))
    .filter((file) => !existsSync(join(root, file)));
  if (missing.length > 0) return missing.map((file) => ({ what: `${file} is missing; ${remedy}` }));
  // Opens a copy of the database, because SQLite creates files in the folder of the database.
  const copies = mkdtempSync(join(tmpdir(), "gatehouse-release-"));
  copyFileSync(join(root, folder, "gatehouse.db"), join(copies, "gatehouse.db"));
  const sqlite = new Sqlite(join(copies, "gatehouse.db"));
  try {
    const applied = sqlite.prepare('SELECT name, checksum FROM "_migration" ORDER BY name').all();
    const [first] = pendingMigrations(
      folder,
      applied as AppliedMigration[],
      readMigrations(migrationsFolder("sqlite")),
    );
    if (!first) return [];
    const what = `${folder}/gatehouse.db is older than the migration ${first.name}; ${remedy}`;
    return [{ what, isOfTheDay: true }];
  } finally {
    sqlite.close();
    rmSync(copies, { recursive: true });
  }
}

/** Returns a finding for each generated page or schema that differs from the output of the current definitions. */
export async function docsFindings(): Promise<Finding[]> {
  const isWritten = (file: string, text: string) =>
    existsSync(join(ROOT, file)) && readFileSync(join(ROOT, file), "utf8") === text;
  return Object.entries({ docs: await pages(), "provider/schemas": schemaFiles() })
    .flatMap(([folder, files]) =>
      Object.entries(files).map(([name, text]) => [join(folder, name), text] as const),
    )
    .filter(([file, text]) => !isWritten(file, text))
    .map(([file]) => ({ what: `${file} differs from the definitions: run npm run docs` }));
}

/** The versions of the tools on the PATH; undefined for a missing tool. */
export interface ToolVersions {
  readonly terraform?: string | undefined;
  readonly pulumi?: string | undefined;
}

/** Returns the versions of the tools on the PATH. */
export function toolVersions(env = process.env): ToolVersions {
  const versionOf = (tool: string, ...args: string[]) => {
    const { error, stdout } = spawnSync(tool, args, {
      env: { ...env, CHECKPOINT_DISABLE: "1", PULUMI_SKIP_UPDATE_CHECK: "true" },
      encoding: "utf8",
    });
    return error ? undefined : (/\d+\.\d+\.\d+[^\s"]*/.exec(stdout)?.[0] ?? "unknown");
  };
  return { terraform: versionOf("terraform", "version", "-json"), pulumi: versionOf("pulumi", "version") };
}

/**
 * Returns a finding for each tool whose version does not match the tested or supported versions in
 * docs/reference/supported-versions.md.
 */
export function toolFindings({ terraform, pulumi }: ToolVersions): Finding[] {
  const problems: string[] = [];
  if (terraform !== undefined && terraform !== TERRAFORM_TRIED)
    problems.push(
      `terraform on the PATH has version ${terraform}, but docs/generate/supportedVersionsPage.ts has ${TERRAFORM_TRIED}`,
    );
  if (pulumi !== undefined && !isWithin(pulumi, PULUMI_RANGE, { includePrerelease: true }))
    problems.push(
      `pulumi on the PATH has version ${pulumi}, but the supported versions are ${rangeText(PULUMI_RANGE)}`,
    );
  return problems.map((what) => ({ what, isOfTheDay: true }));
}

/** Checks that the working tree of the git repository is clean, and that the commit has the tag of the version. */
export function gitFindings(version: string, root = ROOT): Finding[] {
  const git = (...args: string[]) => {
    const { status, stdout, stderr, error } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
    if (status !== 0) throw new Error((error?.message ?? stderr).trim());
    return stdout.trim();
  };
  const tag = `v${version}`;
  const problems: string[] = [];
  try {
    if (git("status", "--porcelain") !== "") problems.push("the repository has uncommitted changes");
    if (!git("tag", "--points-at", "HEAD").split("\n").includes(tag))
      problems.push(`the commit has no tag ${tag}`);
  } catch (error) {
    problems.push(`cannot read the git repository: ${(error as Error).message}`);
  }
  return problems.map((what) => ({ what, isOfTheDay: true }));
}
