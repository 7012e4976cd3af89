import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { accessMapHtml } from "../../../provider/map/accessMapHtml.ts";
import type { AccessMapData } from "../../../provider/map/data.ts";

/** An access map that is open in a browser without a network. */
export interface OpenMap {
  readonly page: Page;
  /** Everything that a page must not have: requests, errors and warnings, dialogs. */
  readonly complaints: string[];
  readonly close: () => Promise<void>;
}

/** Writes the map to a file and opens that. */
export async function openMap(
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
