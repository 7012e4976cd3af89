import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join, relative } from "node:path";
import { build, type Metafile } from "esbuild";

const ROOT = join(import.meta.dirname, "..", "..");
const FILE = join(ROOT, "provider", "dist", "terraform", "terraform-provider-gatehouse");

/**
 * Around the bundle: it has no ending, so whether it is a CommonJS or an ECMAScript module depends on the folders that it
 * is copied to. Within this function it is neither.
 */
const BANNER = `#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error("terraform-provider-gatehouse needs Node.js 22.19 or newer; this is " + process.versions.node + ".");
  process.exit(1);
}
((require) => {`;
const FOOTER = `})(process.getBuiltinModule("node:module").createRequire(process.execPath));`;

/** Writes the Terraform provider as one file, and beside it the licences of the libraries in it. */
async function bundle(): Promise<void> {
  const { metafile } = await build({
    entryPoints: [join(import.meta.dirname, "main.ts")],
    outfile: FILE,
    absWorkingDir: ROOT,
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
    minify: true,
    legalComments: "none",
    logOverride: { "empty-import-meta": "silent" },
    metafile: true,
    banner: { js: BANNER },
    footer: { js: FOOTER },
  });
  await chmod(FILE, 0o755);
  writeFileSync(`${FILE}.LICENSES.txt`, licences(metafile));
}

/** The licences of all libraries in the bundle. */
function licences({ inputs }: Metafile): string {
  const folders = Object.keys(inputs).flatMap(
    (input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? [],
  );
  const texts = [...new Set(folders)].sort().map((folder) => {
    const path = join(ROOT, folder);
    const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
    const manifest = join(path, "package.json");
    const { license } = existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")) : {};
    const text = file ? readFileSync(join(path, file), "utf8").trim() : `Licence: ${license}`;
    return `${relative("node_modules", folder)}\n\n${text}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

await bundle();
