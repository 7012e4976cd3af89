import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packed from "@sparticuz/chromium";
import { type Browser, chromium } from "playwright-core";

const MODULES = fileURLToPath(new URL("../../../node_modules/", import.meta.url));

/** A browser, or why there is none here. */
export type Started = { readonly browser: Browser } | { readonly reason: string };

/** Starts the browser that the package brings with it: nothing is downloaded, nothing of the machine's is used. */
export async function startBrowser(): Promise<Started> {
  try {
    const executablePath = await unpack();
    // Without a sandbox it runs as root and in containers too; it opens nothing but files of the tests.
    return { browser: await chromium.launch({ executablePath, args: ["--no-sandbox"] }) };
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
    try {
      renameSync(making, folder);
    } catch (error) {
      rmSync(making, { recursive: true });
      // Another run was quicker.
      if (!existsSync(folder)) throw error;
    }
  }
  return join(folder, "chromium");
}

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
