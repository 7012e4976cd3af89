// Bundles each program of the provider package into one file. The build runs `node scripts/release/bundle.ts`, which
// writes the Terraform provider to provider/dist. A release also bundles the plugin.
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { cyclonedxEsbuildPlugin } from "@cyclonedx/cyclonedx-esbuild";
import { build } from "esbuild";
import { type Bill, licenseTexts, readProgramBill } from "./bills.ts";

/** The root folder of the repository. */
export const ROOT = join(import.meta.dirname, "..", "..");

/** A program to bundle into one file. */
interface Program {
  /** Name of the program in messages. */
  readonly name: string;
  /** TypeScript source of the entry module. Its paths are relative to the folder `provider`. */
  readonly source: string;
}

/** The program that Terraform starts. */
export const TERRAFORM_PROVIDER: Program = {
  name: "terraform-provider-gatehouse",
  source: `import "./providers/terraform/main.ts";`,
};

/** The program that the Pulumi CLI starts. It requires package.json and schemas/pulumi.json in its folder. */
export const PLUGIN: Program = {
  name: "pulumi-resource-gatehouse",
  source: `import { main } from "./providers/plugin/main.ts"; main(process.argv.slice(2));`,
};

const { nodeProblem } = createRequire(import.meta.url)("../../sdk/startProgram.cjs") as {
  readonly nodeProblem: () => string | undefined;
};
const { engines } = JSON.parse(readFileSync(join(ROOT, "provider", "package.json"), "utf8")) as {
  readonly engines: { readonly node: string };
};

/**
 * Returns the code that precedes the bundle. This code first checks the version of Node.js. It prints the Terraform
 * provider's error to stdout, because Terraform shows the first line of stdout and hides stderr. The bundle has no file
 * extension, so Node.js treats it as a CommonJS or an ECMAScript module, depending on the folder. The code wraps the
 * bundle in a function that works in both kinds of modules.
 */
const banner = (name: string) => `#!/usr/bin/env node
${nodeProblem};
const problem = nodeProblem("${name}", ${JSON.stringify(engines.node)});
if (problem !== undefined) {
  console.${name === TERRAFORM_PROVIDER.name ? "log" : "error"}(problem);
  process.exit(1);
}
((require, ownUrl) => {`;
const FOOTER = `})(
  process.getBuiltinModule("node:module").createRequire(process.execPath),
  process.getBuiltinModule("node:url").pathToFileURL(process.getBuiltinModule("node:fs").realpathSync(process.argv[1])).href,
);`;

/**
 * Bundles a program into one file. Writes the licenses of the bundled libraries to `<file>.LICENSES.txt`.
 * @returns the program's bill of materials, with the texts of the licenses
 */
export async function bundle({ name, source }: Program, file: string): Promise<Bill> {
  mkdirSync(dirname(file), { recursive: true });
  // Writes to a temporary file and then renames it. The rename is atomic, so a process that starts the program always
  // reads a complete file.
  const written = `${file}.${process.pid}`;
  const outputFile = `${written}.cdx.json`;
  const { outputFiles } = await build({
    // The entry source must have the name of a file in the provider package. Otherwise, esbuild's bill-of-materials
    // plugin does not list the provider as a component of the program.
    stdin: { contents: source, resolveDir: join(ROOT, "provider"), sourcefile: "package.json", loader: "ts" },
    outfile: file,
    absWorkingDir: ROOT,
    bundle: true,
    platform: "node",
    // The oldest version of Node.js that can parse the bundle. A version that can parse the bundle but is too old for
    // the program prints an error about its version.
    target: "node16.11",
    format: "cjs",
    minify: true,
    legalComments: "none",
    define: { "import.meta.url": "ownUrl" },
    write: false,
    banner: { js: banner(name) },
    footer: { js: FOOTER },
    plugins: [
      cyclonedxEsbuildPlugin({
        outputFile,
        specVersion: "1.5",
        logLevel: "silent",
        outputReproducible: true,
        gatherLicenseTexts: true,
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
  if (!existsSync(folder)) throw new Error("provider/dist is missing: run npm run build");
  await bundle(TERRAFORM_PROVIDER, join(folder, TERRAFORM_PROVIDER.name));
}
