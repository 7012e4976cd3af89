import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { x as extract } from "tar";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SOURCE, TERRAFORM_CLIS } from "../../provider/terraform/source.ts";
import { manifestOf, PACKAGES } from "../../scripts/release/artifacts.ts";
import { MINUTE } from "../../sdk/times.ts";
import { environmentWithout, runCommand } from "../support/command.ts";
import { testFolder } from "../support/folder.ts";
import { PluginClient } from "../support/pluginClient.ts";
import { hasTerraform, LABEL } from "../terraform/support/terraform.ts";
import { OFFLINE, RELEASE, ROOT, reachesRegistry, run } from "./packages.ts";

const { version } = await manifestOf(".");

/** The fields of a bill of materials that the tests check. */
interface Bill {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}
interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses?: unknown;
}

it("a release does not overwrite existing files", async () => {
  const folder = testFolder();
  const release = () =>
    runCommand([join(ROOT, "scripts/release.ts"), "--dry-run", "--no-trial", "--out", folder]);
  writeFileSync(join(folder, "thesis.txt"), "Years of work");
  for (const checksums of [undefined, `${"0".repeat(64)}  debian-12.iso\n`]) {
    if (checksums !== undefined) writeFileSync(join(folder, "SHA256SUMS"), checksums);
    const { code, stderr } = await release();
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(
        `error: --out ${folder}: the folder is not empty and contains no release`,
      ),
    });
    expect(readFileSync(join(folder, "thesis.txt"), "utf8")).toBe("Years of work");
  }
});

describe("a release", { tags: ["long"] }, () => {
  let out = "";
  const release = (folder: string, env: NodeJS.ProcessEnv = {}) =>
    runCommand([join(ROOT, "scripts/release.ts"), "--dry-run", "--no-trial", "--out", folder], {
      env: { ...environmentWithout("npm_", "GATEHOUSE_"), ...env },
    });
  const sumsIn = (folder: string) => readFileSync(join(folder, "SHA256SUMS"), "utf8").split("\n");
  const billIn = (folder: string, name: string): Bill =>
    JSON.parse(readFileSync(join(folder, `${name}.cdx.json`), "utf8"));
  let reached = true;

  beforeAll(async () => {
    reached = RELEASE !== undefined || (await reachesRegistry());
    if (!reached) return;
    out = RELEASE ?? mkdtempSync(join(tmpdir(), "gatehouse-release-"));
    if (RELEASE !== undefined) return;
    const { stdout, stderr } = await release(out);
    // Ignores blocking findings that are only about a dependency's license.
    const blocking = stdout.split("\n").filter((line) => /^Blocking: (?!.*: the license )/.test(line));
    expect(blocking).toEqual([]);
    expect(stdout, stderr).toMatch(new RegExp(`Release ${version.replaceAll(".", "\\.")} has `));
  });
  afterAll(() => {
    if (out !== "" && out !== RELEASE) rmSync(out, { recursive: true, force: true });
  });

  it("is complete, has valid checksums, and is reproducible", {
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
    if (RELEASE !== undefined) return;

    const again = join(testFolder(), "again");
    // Builds the release again in a time zone that differs by hours.
    await release(again, { TZ: process.env.TZ === "America/New_York" ? "Asia/Tokyo" : "America/New_York" });
    const billed = (folder: string, name: string) =>
      billIn(folder, name).components.map((one) => `${one.name}@${one.version}`);
    // Ignores packages whose bill of materials changed: a dependency may have published a new version between the two
    // builds.
    const renewed = PACKAGES.filter((name) => `${billed(again, name)}` !== `${billed(out, name)}`);
    const lasting = (line: string) => !renewed.some((name) => line.endsWith(` ${name}.cdx.json`));
    expect(sumsIn(again).filter(lasting)).toEqual(sumsIn(out).filter(lasting));
  });

  it("has bills of materials of each package and program, with dependencies and licenses", ({ skip }) => {
    if (!reached) skip(OFFLINE);
    const refsAreComplete = ({ metadata, components, dependencies }: Bill) => {
      const refs = [metadata.component, ...components].map((one) => one["bom-ref"]);
      expect(new Set(refs).size).toBe(refs.length);
      expect(dependencies.map(({ ref }) => ref).sort()).toEqual(refs.sort());
      const needed = dependencies.flatMap(({ dependsOn = [] }) => dependsOn);
      expect(refs).toEqual(expect.arrayContaining(needed));
      // Every component except the described package itself is a dependency of another component.
      expect(refs.filter((ref) => !needed.includes(ref))).toEqual([metadata.component["bom-ref"]]);
    };
    for (const name of PACKAGES) {
      const bill = billIn(out, name);
      const own = `@gatehouse-access/${name}`;
      expect(bill).toMatchObject({
        bomFormat: "CycloneDX",
        metadata: {
          component: {
            "bom-ref": `${own}@${version}`,
            type: name === "sdk" ? "library" : "application",
            name: own,
            version,
            licenses: [{ license: { id: "Apache-2.0" } }],
            purl: `pkg:npm/${own.replace("@", "%40")}@${version}`,
          },
        },
      });
      refsAreComplete(bill);
    }
    const purlsIn = (name: string) => billIn(out, name).components.map(({ purl }) => purl);
    for (const name of ["pulumi-resource-gatehouse", "terraform-provider-gatehouse"]) {
      const bill = billIn(out, name);
      expect(bill.metadata.component).toMatchObject({
        type: "application",
        name,
        version,
        purl: `pkg:generic/${name}@${version}`,
        licenses: [{ license: { id: "Apache-2.0" } }],
      });
      expect(bill.components.flatMap((one) => Object.keys(one))).not.toContain("evidence");
      refsAreComplete(bill);
    }
    expect(purlsIn("pulumi-resource-gatehouse").join()).toContain("pkg:npm/%40grpc/grpc-js@");
    const carried = purlsIn("terraform-provider-gatehouse");
    expect(carried.join()).toContain("%40msgpack/msgpack@");
    expect(purlsIn("provider")).toEqual(expect.arrayContaining(carried));
    const server = billIn(out, "server").components;
    expect(server.map(({ name }) => name)).toEqual(expect.arrayContaining(["fastify", "@prisma/client"]));
    // A maintainer confirmed that ssh2 1.17.0 has the MIT license. If the registry already has a newer version, the
    // test skips this check.
    for (const one of server.filter(({ name, version: of }) => `${name}@${of}` === "ssh2@1.17.0"))
      expect(one.licenses).toEqual([{ license: { id: "MIT" } }]);
  });

  it.runIf(hasTerraform)(
    `has a provider that ${LABEL} installs from a mirror of the registry's layout`,
    {
      timeout: 2 * MINUTE,
    },
    async ({ skip }) => {
      if (!reached) skip(OFFLINE);
      const folder = testFolder();
      const source = join(TERRAFORM_CLIS.terraform.host, SOURCE);
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
        `terraform {\n  required_providers {\n    gatehouse = { source = "${SOURCE}" }\n  }\n}\n` +
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

  it("has a plugin that starts from any folder and returns its version and schema", {
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
    // A license file of google-protobuf. The package contains two license files, and this text is in the second one.
    expect(readFileSync(join(folder, "pulumi-resource-gatehouse.LICENSES.txt"), "utf8")).toContain(
      "BSD 3-Clause License\n\nCopyright (c) 2022, Google Inc.",
    );
    const child = spawn(join(folder, "pulumi-resource-gatehouse"), [], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [port] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
      const client = new PluginClient(Number(port));
      expect(await client.call("getPluginInfo")).toEqual({ version });
      const { schema } = await client.call("getSchema");
      expect(JSON.parse(schema)).toMatchObject({ name: "gatehouse", version });
      client.close();
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });
});
