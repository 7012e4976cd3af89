import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { accessMapHtml } from "../../../provider/map/accessMapHtml.ts";
import type { AccessMapData } from "../../../provider/map/data.ts";
import { type Started, startBrowser } from "../../support/browser.ts";

/** Timeout for content that a page shows after a short time. The browser's own tools use the same timeout. */
export const PATIENCE = { timeout: 30_000 };

/** Opens an access map in the browser, see `openMap`. */
type Show = (map: AccessMapData, options?: Parameters<typeof openMap>[2]) => Promise<OpenMap>;

/**
 * Starts a browser for the tests of a file. If no browser starts, the tests are skipped, and their titles contain the
 * reason. Closes each map after its test. A test fails if the `complaints` of its map are not empty.
 */
export function useMaps(): { show: Show; shown: (...args: Parameters<Show>) => Promise<Page> } {
  let started: Started;
  let open: OpenMap | undefined;
  beforeAll(async () => {
    started = await startBrowser();
  });
  afterAll(async () => {
    if ("browser" in started) await started.browser.close();
  });
  beforeEach(({ skip }) => {
    if ("reason" in started) skip(started.reason);
  });
  afterEach(async () => {
    const { complaints = [] } = open ?? {};
    await open?.close();
    open = undefined;
    expect(complaints).toEqual([]);
  });
  const show: Show = async (map, options) => {
    const { browser } = started as { readonly browser: Browser };
    open = await openMap(browser, map, options);
    return open;
  };
  return { show, shown: async (...args) => (await show(...args)).page };
}

/** Clicks on the first line that contains the text. */
export const chooseLine = (page: Page, text: string): Promise<void> =>
  page.locator(".line", { hasText: text }).first().click();

/** Returns the names in a list of the page, from top to bottom. */
export const names = (page: Page, side: "keys" | "devices"): Promise<string[]> =>
  page.locator(`#${side} .line .name`).allTextContents();

/** An access map that is open in a browser without a network. */
interface OpenMap {
  readonly page: Page;
  /** Browser events that fail a test: requests, errors, warnings and dialogs. */
  readonly complaints: string[];
  readonly close: () => Promise<void>;
}

/** Writes an access map to a file, and opens the file in the browser. */
async function openMap(
  browser: Browser,
  data: AccessMapData,
  options: BrowserContextOptions = {},
): Promise<OpenMap> {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-map-"));
  const file = join(folder, "map.html");
  writeFileSync(file, accessMapHtml(data));
  const address = pathToFileURL(file).href;
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  const complaints: string[] = [];
  const page = await context.newPage();
  await context.setOffline(true);
  await context.route("**", (route) =>
    route.request().url() === address ? route.continue() : route.abort(),
  );
  page.on("request", (request) => {
    if (request.url() !== address) complaints.push(`requests ${request.url()}`);
  });
  page.on("console", (message) => {
    complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => {
    complaints.push(`error: ${error.message}`);
  });
  page.on("dialog", async (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  await page.goto(address);
  const close = async () => {
    await context.close();
    rmSync(folder, { recursive: true });
  };
  return { page, complaints, close };
}
