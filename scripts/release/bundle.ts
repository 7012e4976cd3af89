// Programs of the provider as one file each: `node scripts/release/bundle.ts` writes the Terraform provider into
// provider/dist, which the build does; a release makes the plugin too.
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cyclonedxEsbuildPlugin } from "@cyclonedx/cyclonedx-esbuild";
import { build } from "esbuild";
import { type Bill, licenseTexts, readProgramBill } from "./bills.ts";

/** The repository. */
export const ROOT = join(import.meta.dirname, "..", "..");

/** A program that is one file. */
interface Program {
  /** What it is called in messages. */
  readonly name: string;
  /** What is run, as TypeScript in the folder `provider`. */
  readonly source: string;
}

/** What Terraform starts. */
export const TERRAFORM_PROVIDER: Program = {
  name: "terraform-provider-gatehouse",
  source: `import "./providers/terraform/main.ts";`,
};

/** What the Pulumi CLI starts. Beside it must be package.json and schemas/pulumi.json. */
export const PLUGIN: Program = {
  name: "pulumi-resource-gatehouse",
  source: `import { main } from "./providers/plugin/main.ts"; main(process.argv.slice(2));`,
};

/**
 * Around the bundle: it has no ending, so whether it is a CommonJS or an ECMAScript module depends on the folders that it
 * is copied to. Within this function it is neither.
 */
const banner = (name: string) => `#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error("${name} needs Node.js 22.19 or newer; this is " + process.versions.node + ".");
  process.exit(1);
}
((require, ownUrl) => {`;
const FOOTER = `})(
  process.getBuiltinModule("node:module").createRequire(process.execPath),
  process.getBuiltinModule("node:url").pathToFileURL(process.getBuiltinModule("node:fs").realpathSync(process.argv[1])).href,
);`;

/**
 * Writes a program as one file, and beside it, as `<file>.LICENSES.txt`, the licenses of the libraries in it.
 * @returns the program's bill of materials, with the texts of the licenses
 */
export async function bundle({ name, source }: Program, file: string): Promise<Bill> {
  mkdirSync(dirname(file), { recursive: true });
  // The rename below is atomic: a process that starts the program meanwhile reads a complete file.
  const written = `${file}.${process.pid}`;
  const outputFile = `${written}.cdx.json`;
  const { outputFiles } = await build({
    // Any file of the provider: the plugin then lists the provider as what the program consists of.
    stdin: { contents: source, resolveDir: join(ROOT, "provider"), sourcefile: "package.json", loader: "ts" },
    outfile: file,
    absWorkingDir: ROOT,
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
    minify: true,
    legalComments: "none",
    define: { "import.meta.url": "ownUrl" },
    write: false,
    banner: { js: banner(name) },
    footer: { js: FOOTER },
    plugins: [
      cyclonedxEsbuildPlugin({
        ...{ outputFile, specVersion: "1.5", logLevel: "silent" },
        ...{ outputReproducible: true, gatherLicenseTexts: true },
      }),
    ],
  });
  for (const { contents } of outputFiles) writeFileSync(written, contents);
  chmodSync(written, 0o755);
  renameSync(written, file);
  const bill = readProgramBill(readFileSync(outputFile, "utf8"), name);
  rmSync(outputFile);
  const libraries = bill.components.filter(({ purl }) => !purl.startsWith("pkg:npm/%40gatehouse-access/"));
  const texts = libraries.map((one) => [one["bom-ref"].split("#")[0], ...licenseTexts(one)].join("\n\n"));
  writeFileSync(`${file}.LICENSES.txt`, texts.join(`\n\n${"-".repeat(80)}\n\n`));
  return bill;
}

if (process.argv[1] === import.meta.filename) {
  const folder = join(ROOT, "provider", "dist", "terraform");
  if (!existsSync(folder)) throw new Error("provider/dist is missing: build first");
  await bundle(TERRAFORM_PROVIDER, join(folder, TERRAFORM_PROVIDER.name));
}
