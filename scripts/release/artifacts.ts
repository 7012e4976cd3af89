import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { create } from "tar";
import { ZipFile } from "yazl";
import { type Bill, readBill } from "./bills.ts";
import { bundle, PLUGIN, ROOT, TERRAFORM_PROVIDER } from "./bundle.ts";

/** The folders of the published packages. Each package comes after its dependencies. */
export const PACKAGES = ["sdk", "provider", "server", "agent"] as const;

/**
 * The platforms of the archives. All archives contain the same script. There is no archive for Windows, because Windows
 * cannot execute this script directly.
 */
const PLATFORMS = ["linux", "darwin"].flatMap((os) => ["amd64", "arm64"].map((arch) => [os, arch] as const));

/**
 * The modification time of all files in archives. npm uses the same time. Because the time is fixed, two builds of the
 * same sources are byte-identical. A tar file stores the time in UTC, and a zip file stores local time.
 */
const TIME = { tar: new Date(Date.UTC(1985, 9, 26, 8, 15)), zip: new Date(1985, 9, 26, 8, 15) };

/** The version of Terraform's plugin protocol that the provider supports. */
const PROTOCOL = "6.0";

const execute = promisify(execFile);

/** Returns the environment variables, except those that npm sets for child processes. */
const environment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));

/**
 * Runs npm and waits for its exit.
 * @returns npm's standard output
 * @throws Error npm failed; the message includes its standard error
 */
async function npm(args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await execute("npm", args, { cwd, env: environment(), maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** Creates a temporary folder, calls a function with it, and then removes the folder. */
async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-release-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** An npm package as an archive for publication. */
export interface Packed {
  readonly name: string;
  /** Path of the archive. */
  readonly file: string;
  /** Paths of the files in the archive. */
  readonly files: readonly string[];
}

/** Creates the archives of all packages in a folder. */
export async function pack(out: string): Promise<Packed[]> {
  const output = await npm(["pack", "--workspaces", "--json", "--pack-destination", out], ROOT);
  const packed = JSON.parse(output) as { name: string; filename: string; files: { path: string }[] }[];
  return packed.map(({ name, filename, files }) => ({
    name: name.replace(/^.*\//, ""),
    file: join(out, filename),
    files: files.map(({ path }) => path),
  }));
}

/**
 * Creates the archives of the plugin. In the layout that the Pulumi CLI requires, the program and the files that it
 * reads are in the top folder.
 * @returns the program's bill of materials
 */
export async function packPlugin(out: string, version: string): Promise<Bill> {
  return withFolder(async (folder) => {
    const bill = await bundle(PLUGIN, join(folder, PLUGIN.name));
    const { name, license, peerDependencies } = await manifestOf("provider");
    const own = { name, version, license, exports: { "./package.json": "./package.json" }, peerDependencies };
    await writeFile(join(folder, "package.json"), `${JSON.stringify(own, null, 2)}\n`);
    await mkdir(join(folder, "schemas"));
    await copyFile(join(ROOT, "provider/schemas/pulumi.json"), join(folder, "schemas/pulumi.json"));
    await copyFile(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
    const files = (await readdir(folder)).sort();
    for (const [os, arch] of PLATFORMS) {
      const file = join(out, `${PLUGIN.name}-v${version}-${os}-${arch}.tar.gz`);
      await create({ gzip: true, portable: true, mtime: TIME.tar, cwd: folder, file }, files);
    }
    return bill;
  });
}

/**
 * Creates the Terraform provider's archives, and the checksums and the manifest that the registry requires.
 * @returns the program's bill of materials
 */
export async function packTerraformProvider(out: string, version: string): Promise<Bill> {
  const base = `${TERRAFORM_PROVIDER.name}_${version}`;
  return withFolder(async (folder) => {
    const program = join(folder, TERRAFORM_PROVIDER.name);
    const bill = await bundle(TERRAFORM_PROVIDER, program);
    const names: string[] = [];
    for (const [os, arch] of PLATFORMS) {
      const zip = new ZipFile();
      const add = (file: string, name: string, mode: number) =>
        zip.addFile(file, name, { mtime: TIME.zip, mode, forceDosTimestamp: true });
      add(program, `${TERRAFORM_PROVIDER.name}_v${version}`, 0o100755);
      add(join(ROOT, "LICENSE"), "LICENSE", 0o100644);
      add(`${program}.LICENSES.txt`, "LICENSES.txt", 0o100644);
      zip.end();
      const name = `${base}_${os}_${arch}.zip`;
      await pipeline(zip.outputStream, createWriteStream(join(out, name)));
      names.push(name);
    }
    const manifest = `${base}_manifest.json`;
    const content = { version: 1, metadata: { protocol_versions: [PROTOCOL] } };
    await writeFile(join(out, manifest), `${JSON.stringify(content, null, 2)}\n`);
    await writeFile(join(out, `${base}_SHA256SUMS`), await sums(out, [...names, manifest]));
    return bill;
  });
}

/** Returns the checksums of files, in the format of `sha256sum --check`. */
export async function sums(folder: string, names: readonly string[]): Promise<string> {
  const lines = names.map(async (name) => `${await digest(join(folder, name))}  ${name}\n`);
  return (await Promise.all(lines)).join("");
}

const digest = async (file: string) =>
  createHash("sha256")
    .update(await readFile(file))
    .digest("hex");

/** The content of a package.json. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly engines?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Reads the package.json of a folder of the repository. */
export const manifestOf = async (folder: string, root = ROOT): Promise<Manifest> =>
  JSON.parse(await readFile(join(root, folder, "package.json"), "utf8")) as Manifest;

/**
 * Returns the bill of materials that npm creates for a package. The bill lists the versions of the dependencies that
 * npm would install today.
 * @param program the bill of materials of a program in the package, to include in the result
 * @throws Error npm's registry cannot be reached
 */
export async function billOfPackage(packed: readonly Packed[], name: string, program?: Bill): Promise<Bill> {
  const { devDependencies: _, ...manifest } = await manifestOf(name);
  const bill = await withFolder(async (folder) => {
    await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
    const sdk = packed.filter((one) => one.name === "sdk" && one.name !== name).map(({ file }) => file);
    await npm(["install", "--package-lock-only", "--no-audit", "--loglevel=error", ...sdk], folder);
    const form = ["--sbom-format=cyclonedx", `--sbom-type=${manifest.bin ? "application" : "library"}`];
    return readBill(await npm(["sbom", "--package-lock-only", ...form], folder));
  });
  // Sets the package name explicitly. By default, npm uses the directory name.
  Object.assign(bill.metadata.component, { name: manifest.name });
  if (!program) return bill;
  const refOf = ({ metadata }: Bill) => metadata.component["bom-ref"];
  bill.components.push(program.metadata.component, ...program.components);
  bill.dependencies.find(({ ref }) => ref === refOf(bill))?.dependsOn?.push(refOf(program));
  bill.dependencies.push(...program.dependencies);
  return bill;
}
