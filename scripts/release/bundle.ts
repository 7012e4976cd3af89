// Programs of the provider as one file each: `node scripts/release/bundle.ts` writes the Terraform provider into
// provider/dist, which the build does; a release makes the plugin too.
import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";
import { type Library, libraryIn, licenceTexts } from "./libraries.ts";

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
 * Writes a program as one file, and beside it, as `<file>.LICENSES.txt`, the licences of the libraries in it.
 * @returns the libraries
 */
export async function bundle({ name, source }: Program, file: string): Promise<Library[]> {
  mkdirSync(dirname(file), { recursive: true });
  const { metafile, outputFiles } = await build({
    stdin: { contents: source, resolveDir: join(ROOT, "provider"), loader: "ts" },
    outfile: file,
    absWorkingDir: ROOT,
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
    minify: true,
    legalComments: "none",
    define: { "import.meta.url": "ownUrl" },
    metafile: true,
    write: false,
    banner: { js: banner(name) },
    footer: { js: FOOTER },
  });
  // The rename is atomic: a process that starts the program meanwhile reads a complete file.
  const written = `${file}.${process.pid}`;
  for (const { contents } of outputFiles) writeFileSync(written, contents);
  chmodSync(written, 0o755);
  renameSync(written, file);
  const folders = Object.keys(metafile.inputs).flatMap(
    (input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? [],
  );
  const found = [...new Set(folders)].sort();
  writeFileSync(`${file}.LICENSES.txt`, found.map(licenceText).join(`\n${"-".repeat(80)}\n\n`));
  return found.map((folder) => libraryIn(join(ROOT, folder)));
}

const licenceText = (folder: string): string =>
  `${[relative("node_modules", folder), ...licenceTexts(join(ROOT, folder))].join("\n\n")}\n`;

if (process.argv[1] === import.meta.filename) {
  const folder = join(ROOT, "provider", "dist", "terraform");
  if (!existsSync(folder)) throw new Error("provider/dist is missing: build first");
  await bundle(TERRAFORM_PROVIDER, join(folder, TERRAFORM_PROVIDER.name));
}
