import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type pluginProto from "@pulumi/pulumi/proto/plugin_pb.js";
import type providerProto from "@pulumi/pulumi/proto/provider_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import emptyProto from "google-protobuf/google/protobuf/empty_pb.js";
import { x as extract } from "tar";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Manifest, PACKAGES } from "../../scripts/release/artefacts.ts";
import {
  changelogFindings,
  docsFindings,
  fixtureFindings,
  gitFindings,
  licenceFindings,
  packageFindings,
  versionFindings,
} from "../../scripts/release/checks.ts";
import { environmentWithout, runCommand } from "../support/command.ts";
import { testFolder } from "../support/folder.ts";
import { gitOnPath, TestRepository } from "../support/git.ts";
import { PluginClient } from "../support/pluginClient.ts";
import { hasTerraform, LABEL } from "../terraform/support/terraform.ts";
import { OFFLINE, RELEASE, ROOT, reachesRegistry, run } from "./packages.ts";

const MINUTE = 60_000;
const manifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8"));
const { version } = manifest(".");

describe("what stands against a release", () => {
  const own = Object.fromEntries([".", ...PACKAGES].map((folder) => [folder, manifest(folder)]));
  const { packages: locked } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const texts = (found: readonly { readonly what: string }[]) => found.map(({ what }) => what);

  it("is a version that disagrees, and a range that another release would fit", () => {
    expect(versionFindings({ own, locked }, version)).toEqual([]);
    const sdk = own.sdk as Manifest;
    const wrong = { ...own, sdk: { ...sdk, version: "0.0.9" } };
    expect(texts(versionFindings({ own: wrong, locked }, version))).toEqual([
      `sdk/package.json: version is 0.0.9, not ${version}`,
      `package-lock.json: sdk is of version ${version}, not 0.0.9`,
    ]);
    const loose = { ...own, agent: { ...(own.agent as Manifest), dependencies: { [sdk.name]: "*" } } };
    expect(texts(versionFindings({ own: loose, locked }, version))).toEqual([
      `agent/package.json: ${sdk.name} is needed as *, not as ^${version}`,
    ]);
  });

  it("is a changelog without the version; one that is still to be named is for the day itself", () => {
    const missing = 'CHANGELOG.md: there is no section "## 1.2.3 (YYYY-MM-DD)"';
    expect(changelogFindings("# Changelog\n\n## 1.2.3 (2027-01-31)\n", "1.2.3")).toEqual([]);
    expect(changelogFindings("## Unreleased\n\n## 1.2.2 (2026-01-31)\n", "1.2.3")).toEqual([
      { what: missing, isOfTheDay: true },
    ]);
    expect(changelogFindings("## 1.2.2 (2026-01-31)\n", "1.2.3")).toEqual([
      { what: missing, isOfTheDay: false },
    ]);
    expect(texts(changelogFindings("## 1.2.3 of today\n", "1.2.3"))).toEqual([
      'CHANGELOG.md: "## 1.2.3 of today" is not written "## 1.2.3 (YYYY-MM-DD)"',
    ]);
  });

  it("is a licence that nobody agreed to", () => {
    const library = (license: string) => ({ name: "lib", version: "1.0.0", license });
    const fine = ["MIT", "(MIT OR GPL-3.0)", "(BSD-3-Clause AND Apache-2.0)", "(GPL-3.0 OR CC0-1.0)"];
    expect(licenceFindings(fine.map(library))).toEqual([]);
    for (const license of ["GPL-3.0", "MIT AND GPL-3.0", ""]) {
      expect(texts(licenceFindings([library(license)]))).toEqual([
        `lib 1.0.0: its licence, ${license || "none"}, is not among those agreed to`,
      ]);
    }
  });

  it("is a file that is missing in a package, or does not belong there", () => {
    const files = ["LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts"];
    expect(packageFindings({ name: "sdk", files })).toEqual([]);
    const strange = ["dist/a.test.js", "client.ts", "dist/.tsbuildinfo", ".env"];
    expect(texts(packageFindings({ name: "sdk", files: [...files.slice(1), ...strange] }))).toEqual([
      "sdk: LICENSE is not in the package",
      ...strange.map((file) => `sdk: ${file} does not belong into the package`),
    ]);
  });

  it("is a release without fixtures, or with those of an older schema", () => {
    const root = testFolder();
    expect(texts(fixtureFindings("9.9.9", root))).toContain(
      "test/fixtures/releases/9.9.9/state.json is missing; node test/fixtures/make.ts 9.9.9 makes them",
    );
    expect(texts(fixtureFindings(version)).join()).not.toContain("is missing");
  });

  it.skipIf(!gitOnPath)("is a tree that is not committed and tagged, and where git cannot tell, that", () => {
    const repository = new TestRepository(testFolder());
    repository.write({ "a.txt": "a" });
    const found = () => texts(gitFindings("1.2.3", repository.root));
    expect(found()).toContain("there are changes that are not committed");
    repository.commit("All");
    expect(found()).toEqual(["the commit has no tag v1.2.3"]);
    repository.git("tag", "v1.2.3");
    expect(found()).toEqual([]);
    expect(texts(gitFindings("1.2.3", join(testFolder(), "nowhere"))).join()).toMatch(/^git does not say/);
  });

  it("is none of the generated pages", () => {
    expect(docsFindings()).toEqual([]);
  });
});

describe("what a release consists of", { tags: ["long"] }, () => {
  let out = "";
  const make = (folder: string) =>
    runCommand([join(ROOT, "scripts/release.ts"), "--dry-run", "--no-trial", "--out", folder], {
      env: environmentWithout("npm_", "GATEHOUSE_"),
    });
  const sumsIn = (folder: string) => readFileSync(join(folder, "SHA256SUMS"), "utf8").split("\n");
  let reached = true;

  beforeAll(async () => {
    reached = RELEASE !== undefined || (await reachesRegistry());
    if (!reached) return;
    out = RELEASE ?? mkdtempSync(join(tmpdir(), "gatehouse-release-"));
    if (RELEASE !== undefined) return;
    const { stdout, stderr } = await make(out);
    // What a package brings with it today, and by which licence, is not this test's business.
    const against = stdout.split("\n").filter((line) => /^Against it: (?!.* its licence, )/.test(line));
    expect(against).toEqual([]);
    expect(stdout, stderr).toMatch(new RegExp(`against release ${version.replaceAll(".", "\\.")}\\.`));
  }, 5 * MINUTE);
  afterAll(() => {
    if (out !== "" && out !== RELEASE) rmSync(out, { recursive: true, force: true });
  });

  it("is all there, with checksums that hold, and the same when it is made again", {
    timeout: 5 * MINUTE,
  }, async ({ skip }) => {
    if (!reached) skip(OFFLINE);
    const platforms = ["darwin", "linux"].flatMap((os) => ["amd64", "arm64"].map((arch) => [os, arch]));
    expect(readdirSync(out).sort()).toEqual(
      [
        "SHA256SUMS",
        ...PACKAGES.flatMap((name) => [`gatehouse-access-${name}-${version}.tgz`, `${name}.cdx.json`]),
        ...platforms.map(([os, arch]) => `pulumi-resource-gatehouse-v${version}-${os}-${arch}.tar.gz`),
        "pulumi-resource-gatehouse.cdx.json",
        ...platforms.map(([os, arch]) => `terraform-provider-gatehouse_${version}_${os}_${arch}.zip`),
        `terraform-provider-gatehouse_${version}_SHA256SUMS`,
        `terraform-provider-gatehouse_${version}_manifest.json`,
        "terraform-provider-gatehouse.cdx.json",
      ].sort(),
    );
    for (const name of ["SHA256SUMS", `terraform-provider-gatehouse_${version}_SHA256SUMS`]) {
      await run("sha256sum", ["--check", "--quiet", name], { cwd: out });
    }
    const named = (bill: string) => {
      const { bomFormat, components } = JSON.parse(readFileSync(join(out, bill), "utf8"));
      expect(bomFormat).toBe("CycloneDX");
      return components.map(({ name }: { name: string }) => name);
    };
    expect(named("server.cdx.json")).toEqual(expect.arrayContaining(["fastify", "@prisma/client"]));
    expect(named("pulumi-resource-gatehouse.cdx.json")).toContain("@grpc/grpc-js");
    if (RELEASE !== undefined) return;

    const again = join(testFolder(), "again");
    await make(again);
    // What a package brings with it may have been published in between.
    const lasting = (line: string) => !/ (sdk|provider|server|agent)\.cdx\.json$/.test(line);
    expect(sumsIn(again).filter(lasting)).toEqual(sumsIn(out).filter(lasting));
  });

  it.runIf(hasTerraform)(
    `has a provider that ${LABEL} installs from a mirror of the registry's layout`,
    {
      timeout: 2 * MINUTE,
    },
    async ({ skip }) => {
      if (!reached) skip(OFFLINE);
      const folder = testFolder();
      const source = "registry.terraform.io/gatehouse-access/gatehouse";
      const mirror = join(folder, "mirror", source);
      mkdirSync(mirror, { recursive: true });
      const arch = process.arch === "x64" ? "amd64" : process.arch;
      const zip = `terraform-provider-gatehouse_${version}_${process.platform}_${arch}.zip`;
      writeFileSync(join(mirror, zip), readFileSync(join(out, zip)));
      writeFileSync(
        join(folder, "terraform.rc"),
        `provider_installation {\n  filesystem_mirror {\n    path = "${join(folder, "mirror")}"\n  }\n}\n`,
      );
      writeFileSync(
        join(folder, "main.tf"),
        'terraform {\n  required_providers {\n    gatehouse = { source = "gatehouse-access/gatehouse" }\n  }\n}\n' +
          'output "office" {\n  value = provider::gatehouse::cidr("203.0.113.0/24")\n}\n',
      );
      const env = {
        ...environmentWithout("GATEHOUSE_", "TF_"),
        TF_CLI_CONFIG_FILE: join(folder, "terraform.rc"),
      };
      const terraform = (...args: string[]) => run("terraform", args, { cwd: folder, env });
      expect((await terraform("init", "-no-color")).stdout).toContain(`v${version}`);
      expect((await terraform("plan", "-no-color")).stdout).toContain('"^203\\\\.0\\\\.113\\\\.');
    },
  );

  it("has a plugin that starts wherever it is unpacked, and knows its version and its schema", {
    timeout: MINUTE,
  }, async ({ skip }) => {
    if (!reached) skip(OFFLINE);
    const folder = testFolder();
    await extract({
      file: join(out, `pulumi-resource-gatehouse-v${version}-linux-amd64.tar.gz`),
      cwd: folder,
    });
    expect(readdirSync(folder).sort()).toEqual([
      "LICENSE",
      "package.json",
      "pulumi-resource-gatehouse",
      "pulumi-resource-gatehouse.LICENSES.txt",
      "schemas",
    ]);
    const child = spawn(join(folder, "pulumi-resource-gatehouse"), [], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [port] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
      const client = new PluginClient(Number(port));
      const info = await client.ask<pluginProto.PluginInfo>("getPluginInfo", new emptyProto.Empty());
      expect(info.getVersion()).toBe(version);
      const schema = await client.ask<providerProto.GetSchemaResponse>(
        "getSchema",
        new proto.GetSchemaRequest(),
      );
      expect(JSON.parse(schema.getSchema())).toMatchObject({ name: "gatehouse", version });
      client.close();
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });
});
