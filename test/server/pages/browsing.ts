import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type Started, startBrowser } from "../../support/browser.ts";

/** Opens an address in a browser context without stored data. */
type Open = (address: string, options?: BrowserContextOptions) => Promise<Page>;

/**
 * Starts a browser for the tests of a file. If no browser starts, the tests are skipped, and the report contains the
 * reason. A test fails if a page violates its content security policy, reports an error, requests another origin, or
 * opens a dialog.
 */
export function useBrowser(): Open {
  let started: Started;
  const open: Page[] = [];
  const complaints: string[] = [];
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
    for (const page of open.splice(0)) await page.context().close();
    expect(complaints.splice(0)).toEqual([]);
  });
  return async (address, options = {}) => {
    const { browser } = started as { readonly browser: Browser };
    const context = await browser.newContext({ locale: "en-GB", ...options });
    const page = await context.newPage();
    open.push(page);
    const { origin } = new URL(address);
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== origin && !request.url().startsWith("data:"))
        complaints.push(`requests ${request.url()}`);
    });
    page.on("console", (message) => {
      // The browser logs each response with an error status. The messages about the API and about the opened address
      // are not counted as complaints, because the pages show such errors to the user.
      const { url } = message.location();
      const failed =
        message.text().startsWith("Failed to load resource") && (url.includes("/api/") || url === page.url());
      if (!failed) complaints.push(`${message.type()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
    page.on("dialog", async (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
    await page.goto(address);
    return page;
  };
}

/** Presses the button with the name. */
export const press = (page: Page, name: string): Promise<void> => page.getByRole("button", { name }).click();

/** Fills in the fields with these labels, and presses the button with the name. */
export async function submit(
  page: Page,
  fields: Readonly<Record<string, string>>,
  button: string,
): Promise<void> {
  for (const [label, text] of Object.entries(fields)) {
    await page.getByLabel(label, { exact: true }).fill(text);
  }
  await press(page, button);
}

/** Waits until the page shows the message and has moved the focus to it. */
export async function expectMessage(page: Page, text: string | RegExp): Promise<void> {
  await expect
    .poll(() => page.locator("#message").innerText())
    .toMatch(typeof text === "string" ? new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")) : text);
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("message");
}

/**
 * Expects that the page has discarded the secrets of a mailed link: its address, its storage and the history do not
 * contain them.
 */
export async function expectForgotten(page: Page, ...secrets: readonly string[]): Promise<void> {
  const kept = await page.evaluate(() =>
    JSON.stringify([
      location.href,
      history.state,
      document.title,
      { ...localStorage },
      { ...sessionStorage },
    ]),
  );
  expect(await page.evaluate(() => history.state)).toBeNull();
  for (const secret of secrets) expect(kept).not.toContain(secret);
}
