import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { TestModule } from "vitest/node";
import { PULUMI_RANGE, TERRAFORM_TRIED } from "../../docs/generate/supportedVersionsPage.ts";
import type { Manifest } from "../../scripts/release/artifacts.ts";
import { licenseOf, licenseTexts, readBill, readProgramBill } from "../../scripts/release/bills.ts";
import {
  changelogFindings,
  docsFindings,
  fixtureFindings,
  gitFindings,
  licenseFindings,
  packageFindings,
  readManifests,
  toolFindings,
  toolVersions,
  versionFindings,
} from "../../scripts/release/checks.ts";
import { trialOf } from "../../scripts/release/trial.ts";
import { migrationsFolder, readMigrations } from "../../server/db/migrations/migrations.ts";
import { testFolder } from "../support/folder.ts";
import { gitOnPath, TestRepository } from "../support/git.ts";
import { ROOT } from "./packages.ts";

const { own, locked } = await readManifests();
const { version } = own["."] as Manifest;

describe("the checks of a release", () => {
  const texts = (findings: readonly { readonly what: string }[]) => findings.map(({ what }) => what);

  it("report packages of different versions, and dependency ranges that accept another release", () => {
    expect(versionFindings({ own, locked }, version)).toEqual([]);
    const sdk = own.sdk as Manifest;
    const wrong = { ...own, sdk: { ...sdk, version: "0.0.9" } };
    expect(texts(versionFindings({ own: wrong, locked }, version))).toEqual([
      `sdk/package.json: version is 0.0.9, not ${version}`,
      `package-lock.json: sdk has version ${version}, not 0.0.9`,
    ]);
    const loose = { ...own, agent: { ...(own.agent as Manifest), dependencies: { [sdk.name]: "*" } } };
    expect(texts(versionFindings({ own: loose, locked }, version))).toEqual([
      `agent/package.json: the range of ${sdk.name} is *, not ^${version}`,
    ]);
  });

  it("report a changelog without the version, as a task for the release day if it has unreleased changes", () => {
    const missing = 'CHANGELOG.md: the section "## 1.2.3 (YYYY-MM-DD)" is missing';
    expect(changelogFindings("# Changelog\n\n## 1.2.3 (2027-01-31)\n", "1.2.3")).toEqual([]);
    expect(changelogFindings("## Unreleased\n\n## 1.2.2 (2026-01-31)\n", "1.2.3")).toEqual([
      { what: missing, isOfTheDay: true },
    ]);
    expect(changelogFindings("## 1.2.2 (2026-01-31)\n", "1.2.3")).toEqual([
      { what: missing, isOfTheDay: false },
    ]);
    expect(texts(changelogFindings("## 1.2.3 of today\n", "1.2.3"))).toEqual([
      'CHANGELOG.md: the title "## 1.2.3 of today" must be "## 1.2.3 (YYYY-MM-DD)"',
    ]);
  });

  const library = (licenses?: object[], more = {}) => ({
    "bom-ref": "lib@1.0.0",
    purl: "pkg:npm/lib@1.0.0",
    ...more,
    ...(licenses && { licenses }),
  });

  it("report a license that is not allowed or not valid SPDX", () => {
    const found = (...licenses: object[]) => texts(licenseFindings([library(licenses)], false));
    for (const id of ["MIT", "0BSD", "Zlib"]) expect(found({ license: { id } })).toEqual([]);
    const fine = ["(MIT OR GPL-3.0)", "(BSD-3-Clause AND Apache-2.0)", "(GPL-3.0-only OR CC0-1.0)"];
    for (const expression of fine) expect(found({ expression })).toEqual([]);
    for (const expression of [
      "GPL-3.0",
      "MIT AND GPL-3.0-only",
      "(MIT OR Apache-2.0) AND GPL-3.0-only",
      "MIT OR",
      "",
      "Apache-2.0 WITH LLVM-exception",
    ]) {
      expect(found({ expression })).toEqual([
        `lib@1.0.0: the license ${expression || "(none)"} is not allowed`,
      ]);
    }
    const named = found({ license: { name: "SEE LICENSE IN LICENSE" } });
    expect(named).toEqual(["lib@1.0.0: the license SEE LICENSE IN LICENSE is not allowed"]);
    expect(found()).toEqual(["lib@1.0.0: the license (none) is not allowed"]);
    expect(found({ license: { id: "MIT" } }, { license: { id: "GPL-3.0" } })).toHaveLength(1);
  });

  it("report a bundled library without a license text", () => {
    const licenses = [{ license: { id: "MIT" } }];
    expect(licenseFindings([library(licenses)], false)).toEqual([]);
    expect(texts(licenseFindings([library(licenses)], true))).toEqual([
      "lib@1.0.0: no file of the package contains the license",
    ]);
    const content = Buffer.from("Copyright \u00a9 2026\n").toString("base64");
    const withText = library(licenses, {
      evidence: { licenses: [{ license: { name: "file: LICENSE", text: { content, encoding: "base64" } } }] },
    });
    expect(licenseFindings([withText], true)).toEqual([]);
    expect(licenseTexts(withText)).toEqual(["Copyright \u00a9 2026"]);
  });

  it("accept a license that was read manually for that version", () => {
    const of = (version: string) => {
      const components = [library(undefined, { purl: `pkg:npm/ssh2@${version}` })];
      return readBill(JSON.stringify({ components })).components.map(licenseOf);
    };
    expect(of("1.17.0")).toEqual(["MIT"]);
    expect(of("99.0.0")).toEqual([""]);
  });

  it("convert the bill of materials of a program, with the package URLs of npm", () => {
    const ref = "gatehouse@1.2.3-rc.1#0123";
    const read = readProgramBill(
      JSON.stringify({
        metadata: { component: { ...library(), "bom-ref": ref, name: "gatehouse" } },
        components: [
          library([], { purl: "pkg:npm/lib@1.0.0?vcs_url=git%2Bhttps%3A%2F%2Fexample.com%2Flib.git" }),
        ],
        dependencies: [{ ref, dependsOn: ["lib@1.0.0"] }],
      }),
      "program",
    );
    expect(read).toEqual({
      metadata: {
        component: {
          "bom-ref": "program@1.2.3-rc.1",
          name: "program",
          purl: "pkg:generic/program@1.2.3-rc.1",
        },
      },
      components: [library([])],
      dependencies: [{ ref: "program@1.2.3-rc.1", dependsOn: ["lib@1.0.0"] }],
    });
  });

  it("report missing and unexpected files of a package", () => {
    const files = ["LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts"];
    expect(packageFindings({ name: "sdk", files })).toEqual([]);
    const unexpected = ["dist/index.test.js.map", "client.ts", "dist/.tsbuildinfo", ".env"];
    expect(texts(packageFindings({ name: "sdk", files: [...files.slice(1), ...unexpected] }))).toEqual([
      "sdk: LICENSE is not in the package",
      ...unexpected.map((file) => `sdk: ${file} must not be in the package`),
    ]);
    expect(texts(packageFindings({ name: "sdk", files: [...files, "dist/policy/gone.js"] }))).toEqual([
      "sdk: dist/policy/gone.js has no source file: remove dist, and build again",
    ]);
  });

  it("report missing fixtures, and fixtures of an older schema", () => {
    const root = testFolder();
    expect(texts(fixtureFindings("9.9.9", root))).toContain(
      "test/fixtures/releases/9.9.9/state.json is missing; run node test/fixtures/make.ts 9.9.9",
    );
    const fixtures = "test/fixtures/releases/0.1.0";
    cpSync(join(ROOT, fixtures), join(root, fixtures), { recursive: true });
    const migrations = readMigrations(migrationsFolder("sqlite"));
    const newest = migrations.at(-1)?.name ?? "";
    const change = (sql: string, rows: readonly (readonly string[])[]) => {
      const sqlite = new Sqlite(join(root, fixtures, "gatehouse.db"));
      const statement = sqlite.prepare(sql);
      for (const row of rows) statement.run(...row);
      sqlite.close();
    };
    const all = migrations.map(({ name, checksum }) => [name, checksum]);
    change(`INSERT OR IGNORE INTO "_migration" VALUES (?, ?, '2026-01-01')`, all);
    expect(fixtureFindings("0.1.0", root)).toEqual([]);
    change('DELETE FROM "_migration" WHERE name = ?', [[newest]]);
    const what = `${fixtures}/gatehouse.db is older than the migration ${newest}; run node test/fixtures/make.ts 0.1.0`;
    expect(fixtureFindings("0.1.0", root)).toEqual([{ what, isOfTheDay: true }]);
    expect(texts(fixtureFindings(version)).join()).not.toContain("is missing");
  });

  it("report a tool whose version differs from the documentation", () => {
    const found = (terraform?: string, pulumi?: string) => toolFindings({ terraform, pulumi });
    expect([
      ...found(),
      ...found(TERRAFORM_TRIED, PULUMI_RANGE.slice(1)),
      ...found(undefined, "3.1000.0"),
    ]).toEqual([]);
    expect(found("1.999.0", "4.0.0")).toEqual(
      [
        `terraform on the PATH has version 1.999.0, but docs/generate/supportedVersionsPage.ts has ${TERRAFORM_TRIED}`,
        "pulumi on the PATH has version 4.0.0, but the supported versions are 3.260 and newer, before 4",
      ].map((what) => ({ what, isOfTheDay: true })),
    );
    expect(found(undefined, "3.99.0")).toHaveLength(1);

    const folder = testFolder();
    const env = { PATH: folder };
    expect(toolVersions(env)).toEqual({});
    const tool = (name: string, output: string) =>
      writeFileSync(join(folder, name), `#!/bin/sh\necho '${output}'\n`, { mode: 0o755 });
    tool("terraform", '{"terraform_version": "1.12.0-rc1", "provider_selections": {"a": "2.0.0"}}');
    tool("pulumi", "v3.260.0");
    expect(toolVersions(env)).toEqual({ terraform: "1.12.0-rc1", pulumi: "3.260.0" });
    tool("pulumi", "I am broken");
    expect(texts(toolFindings(toolVersions(env))).join()).toContain("pulumi on the PATH has version unknown");
  });

  it("report a test run that failed, that broke off, or that had no tests", () => {
    const error = { message: "It broke\n  at once" };
    const module = (relativeModuleId: string, states: readonly string[], errors: readonly Error[] = []) => {
      const testModule = { relativeModuleId, errors: () => errors, ok: () => errors.length === 0 };
      const tests = states.map((state, index) => ({
        fullName: `${relativeModuleId} ${index}`,
        module: testModule,
        result: () => ({ state, errors: state === "failed" ? [error] : undefined }),
      }));
      const suites = [{ errors: () => [] }];
      return Object.assign(testModule, { children: { allTests: () => tests, allSuites: () => suites } });
    };
    const trial = (modules: ReturnType<typeof module>[], unhandled: readonly unknown[] = [], exitCode = 0) =>
      trialOf(modules as unknown as TestModule[], unhandled, exitCode);
    const fine = module("test/packaging/demo.test.ts", ["passed", "skipped"]);

    expect(trial([fine, module("test/deploy/files.test.ts", ["skipped"])])).toEqual({
      findings: [],
      passed: 1,
      untried: ["test/packaging/demo.test.ts 1", "test/deploy/files.test.ts 0"],
    });
    const failed = module("test/packaging/quickStart.test.ts", ["failed", "passed"]);
    const broken = module("test/packaging/clone.test.ts", [], [new Error("No such module\n  at all")]);
    expect(trial([fine, broken, failed], [error]).findings).toEqual([
      { what: "test/packaging/quickStart.test.ts 0: It broke" },
      { what: "test/packaging/clone.test.ts: No such module" },
      { what: "Vitest: It broke" },
    ]);
    expect(trial([fine, module("test/packaging/quickStart.test.ts", ["skipped"])]).findings).toEqual([
      { what: "test/packaging/quickStart.test.ts: no test in the file ran", isOfTheDay: true },
    ]);
    expect(texts(trial([]).findings)).toEqual(["no test of the trial passed"]);
    expect(texts(trial([fine], [], 1).findings)).toEqual([
      "Vitest ended with exit code 1, but no test failed",
    ]);
    expect(trial([fine, failed], [], 1).findings).toHaveLength(1);
  });

  it.skipIf(!gitOnPath)("report uncommitted changes, a missing tag and an unreadable repository", () => {
    const repository = new TestRepository(testFolder());
    repository.write({ "a.txt": "a" });
    const found = () => texts(gitFindings("1.2.3", repository.root));
    expect(found()).toContain("the repository has uncommitted changes");
    repository.commit("All");
    expect(found()).toEqual(["the commit has no tag v1.2.3"]);
    repository.git("tag", "v1.2.3");
    expect(found()).toEqual([]);
    expect(texts(gitFindings("1.2.3", join(testFolder(), "nowhere"))).join()).toMatch(
      /^cannot read the git repository/,
    );
  });

  it("find no outdated generated page in this repository", async () => {
    expect(await docsFindings()).toEqual([]);
  });
});
