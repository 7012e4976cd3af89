import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { AccessMapData } from "../../../provider/map/data.ts";
import { type Started, startBrowser } from "../../support/browser.ts";
import { type OpenMap, openMap } from "./page.ts";

/** How long a test waits for what a page shows soon: as long as the browser's own tools do. */
export const PATIENCE = { timeout: 30_000 };

/** Opens a map, see `openMap`. */
export type Show = (map: AccessMapData, options?: Parameters<typeof openMap>[2]) => Promise<OpenMap>;

/**
 * Starts a browser for the tests of a file; where none starts they are skipped, with the reason. Each map is closed
 * after its test, which fails where the page did what it must not.
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

/** Chooses the first line that has the text. */
export const chooseLine = (page: Page, text: string): Promise<void> =>
  page.locator(".line", { hasText: text }).first().click();

/** The names in a list, from above. */
export const names = (page: Page, side: "keys" | "devices"): Promise<string[]> =>
  page.locator(`#${side} .line .name`).allTextContents();
