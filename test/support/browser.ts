import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packed from "@sparticuz/chromium";
import { type Browser, chromium } from "playwright-core";

const MODULES = fileURLToPath(new URL("../../node_modules/", import.meta.url));

/** A browser, or why there is none here. */
export type Started = { readonly browser: Browser } | { readonly reason: string };

/** Starts the browser that the package brings with it: nothing is downloaded, nothing of the machine's is used. */
export async function startBrowser(): Promise<Started> {
  try {
    const folder = await unpack();
    const env = { ...process.env, FONTCONFIG_FILE: join(folder, "fonts.conf") } as Record<string, string>;
    const executablePath = join(folder, "chromium");
    // Without a sandbox it runs as root and in containers too; it opens nothing but files of the tests.
    return { browser: await chromium.launch({ executablePath, env, args: ["--no-sandbox"] }) };
  } catch (error) {
    return { reason: `no browser starts here: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Unpacks it once for each version, whole or not at all. */
async function unpack(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(MODULES, "@sparticuz/chromium/package.json"), "utf8"));
  const folder = join(MODULES, ".cache", `chromium-${version}`);
  if (!existsSync(folder)) {
    mkdirSync(join(MODULES, ".cache"), { recursive: true });
    const making = mkdtempSync(join(MODULES, ".cache", "unpack-"));
    await unpackTo(making);
    writeFileSync(
      join(making, "fonts.conf"),
      fontSettings(join(folder, "fonts"), join(folder, "font-cache")),
    );
    try {
      renameSync(making, folder);
    } catch (error) {
      rmSync(making, { recursive: true });
      // Another run was quicker.
      if (!existsSync(folder)) throw error;
    }
  }
  return folder;
}

/** The package's own fonts alone, so that pictures are the same everywhere. */
const fontSettings = (fonts: string, cache: string) =>
  `<?xml version="1.0"?><fontconfig><dir>${fonts}</dir><cachedir>${cache}</cachedir></fontconfig>\n`;

/** The package knows no other way to be told where to. */
async function unpackTo(folder: string): Promise<void> {
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  try {
    await packed.executablePath();
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
}
