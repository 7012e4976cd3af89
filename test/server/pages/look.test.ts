/**
 * These tests perform the steps of a user in a browser. The tests in test/server/features check the service's
 * responses.
 *
 * @module-tag long
 */
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { axeFindings } from "../../support/browser.ts";
import { call } from "../../support/call.ts";
import { shared } from "../../support/shared.ts";
import { expectMessage, useBrowser } from "./browsing.ts";
import { linkIn, newUser, startCloud, tokenOf } from "./cloud.ts";

const open = useBrowser();
const service = shared(startCloud);
let [token, invitation] = ["", ""];
beforeAll(async () => {
  token = await newUser(service, "owner");
  const { body } = await call(service, "POST /api/namespaces", { body: { name: "lab" }, token });
  const owner = await tokenOf(service, "owner");
  const path = `/api/namespaces/${body.tenant_id}/members/invites`;
  const invited = { email: "ana@example.org", role: "observer" };
  invitation = (await call(service, `POST ${path}`, { body: invited, token: owner })).body.link ?? "";
  invitation = linkIn(service, invitation).slice(service.url.length);
});

const ID = "id=0123456789abcdef01234567";
const TOKEN = "token=01234567-89ab-cdef-0123-456789abcdef";
const PAGES: Readonly<Record<string, () => string>> = {
  "/setup": () => `/setup?sign=${"0".repeat(64)}`,
  "/validation-account": () => `/validation-account?email=ana%40example.org&${TOKEN}`,
  "/update-password": () => `/update-password?${ID}&${TOKEN}`,
  "/reset-mfa": () => `/reset-mfa?${ID}`,
  "/confirm-address": () => `/confirm-address?${ID}&${TOKEN}`,
  "/accept-invite": () => invitation,
  "/mfa-login": () => `/mfa-login?${TOKEN}`,
};

/** The pages without a form, each with a text that the page shows when it is complete. */
const TEXTS: Readonly<Record<string, () => readonly [address: string, text: string]>> = {
  "/": () => ["/", "operational"],
  "/login": () => ["/login", "This service has no web console"],
  "/login after a login": () => [`/login?token=${token}`, "You are logged in as owner."],
  "an unknown address": () => [`/${"unknown".repeat(10)}/path`, "This service has no page"],
};

async function openText(name: string, options: Parameters<typeof open>[1]): Promise<Page> {
  const [address, text] = TEXTS[name]?.() ?? ["", ""];
  const page = await open(service.url + address, options);
  await page.getByText(text).first().waitFor();
  return page;
}

/** Submits the form with values that the service rejects. */
async function sendNonsense(page: Page): Promise<void> {
  for (const input of await page.locator("form:visible input:not([type=checkbox])").all())
    await input.fill("a@b");
  await page.locator("form:visible button").click();
  await expect.poll(() => page.locator("form[aria-busy]").count()).toBe(0);
  await expectMessage(page, /./);
}

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  test.each(Object.keys(PAGES))(
    "%s: axe reports nothing about the form, a rejection, and the page without a link",
    async (path) => {
      const page = await open(service.url + PAGES[path]?.(), { colorScheme });
      await expect.poll(() => page.locator("form:visible").count()).toBe(1);
      const background = await page.evaluate(
        () => getComputedStyle(document.documentElement).backgroundColor,
      );
      expect(background).toBe(colorScheme === "dark" ? "rgb(13, 17, 23)" : "rgb(245, 247, 250)");
      expect(await axeFindings(page)).toEqual([]);
      await sendNonsense(page);
      expect(await axeFindings(page)).toEqual([]);
      await page.goto(service.url + path);
      await page.evaluate(() => history.replaceState(null, ""));
      await page.reload();
      await expectMessage(page, "Missing: ");
      expect(await axeFindings(page)).toEqual([]);
    },
  );

  test.each(Object.keys(TEXTS))("%s: axe reports nothing", async (name) => {
    const page = await openText(name, { colorScheme });
    expect(await axeFindings(page)).toEqual([]);
  });

  test("the start page shows the service's state, and links to the next steps", async () => {
    const page = await open(`${service.url}/`, { colorScheme });
    await expect.poll(() => page.locator("#health").textContent()).toBe("operational");
    expect(await page.locator("#version").textContent()).toBe("v0.19.0");
    expect(await page.locator("#no-user").isVisible()).toBe(false);
    expect(await axeFindings(page)).toEqual([]);
    const links = await page
      .locator("main a")
      .evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href));
    for (const link of links) expect((await fetch(link)).status).toBe(200);
    expect(links).toHaveLength(2);
  });
});

test("the start page reports that the database does not respond", async () => {
  const page = await open(`${service.url}/setup`);
  await page.route("**/api/info", (route) => route.fulfill({ status: 503, body: "{}" }));
  await page.goto(`${service.url}/#again`);
  await expect.poll(() => page.locator("#health").textContent()).toContain("unavailable");
});

test.each([320, 390])("a screen of %i pixels needs no horizontal scrolling", async (width) => {
  const narrow = { viewport: { width, height: 600 } };
  const contentWidth = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth);
  for (const path of ["/setup", "/accept-invite", "/mfa-login"]) {
    const page = await open(service.url + PAGES[path]?.(), narrow);
    await expect.poll(() => page.locator("form:visible").count()).toBe(1);
    expect(await contentWidth(page)).toBe(width);
  }
  for (const name of Object.keys(TEXTS)) expect(await contentWidth(await openText(name, narrow))).toBe(width);
});

test("the page for an unknown address leads to the start page", async () => {
  const page = await open(`${service.url}/unknown/path/`);
  expect(await page.title()).toBe("Page not found · Gatehouse");
  await page.getByRole("link", { name: "start page" }).click();
  await expect.poll(() => page.url()).toBe(`${service.url}/`);
});

test.each(["/docs", "/docs/"])("%s shows the document in a browser", async (path) => {
  const page = await open(service.url + path);
  await expect.poll(() => page.locator(".info .title").count()).toBeGreaterThan(0);
  expect(await page.locator(".errors-wrapper").count()).toBe(0);
});

test("without JavaScript, a page reports that it needs JavaScript, and has no form", async () => {
  const page = await open(service.url + PAGES["/update-password"]?.(), { javaScriptEnabled: false });
  expect(await page.locator("main").innerText()).toContain("This page needs JavaScript.");
  expect(await page.locator("form:visible").count()).toBe(0);
});
