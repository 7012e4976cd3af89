import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packed from "@sparticuz/chromium";
import { type Browser, chromium, type Page } from "playwright-core";

const MODULES = fileURLToPath(new URL("../../node_modules/", import.meta.url));

/** A browser, or the reason why no browser is available. */
export type Started = { readonly browser: Browser } | { readonly reason: string };

/**
 * Starts the browser in the npm package. Downloads no browser, and uses no browser that is installed on the machine.
 */
export async function startBrowser(): Promise<Started> {
  try {
    const folder = await unpack();
    const env = { ...process.env, FONTCONFIG_FILE: join(folder, "fonts.conf") } as Record<string, string>;
    const executablePath = join(folder, "chromium");
    // Without the sandbox, the browser also runs as root and in containers. The browser only opens files that tests
    // write.
    return { browser: await chromium.launch({ executablePath, env, args: ["--no-sandbox"] }) };
  } catch (error) {
    return { reason: `no browser starts here: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Unpacks the browser once for each version of the package. Other processes never find an incomplete browser. */
async function unpack(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(MODULES, "@sparticuz/chromium/package.json"), "utf8"));
  const folder = join(MODULES, ".cache", `chromium-${version}`);
  if (!existsSync(folder)) {
    mkdirSync(join(MODULES, ".cache"), { recursive: true });
    const unpacking = mkdtempSync(join(MODULES, ".cache", "unpack-"));
    await unpackTo(unpacking);
    writeFileSync(
      join(unpacking, "fonts.conf"),
      fontSettings(join(folder, "fonts"), join(folder, "font-cache")),
    );
    try {
      renameSync(unpacking, folder);
    } catch (error) {
      rmSync(unpacking, { recursive: true });
      // Another test run has unpacked the same version first.
      if (!existsSync(folder)) throw error;
    }
  }
  return folder;
}

/** Uses only the fonts in the package, so that pictures are the same on every machine. */
const fontSettings = (fonts: string, cache: string) =>
  `<?xml version="1.0"?><fontconfig><dir>${fonts}</dir><cachedir>${cache}</cachedir></fontconfig>\n`;

/** Unpacks the browser to a folder. Sets TMPDIR for this, since the package reads the folder only from TMPDIR. */
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

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the findings of axe for the current state of the page. */
export async function axeFindings(page: Page): Promise<string[]> {
  // The content security policy of the page blocks added script elements, but not scripts that the test runs through
  // the browser's debugging protocol.
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = (globalThis as unknown as { axe: typeof import("axe-core") }).axe;
    const { violations } = await axe.run();
    return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html}`);
  });
}
