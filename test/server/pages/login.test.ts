/**
 * These tests perform the steps of a user in a browser. The tests in test/server/features check the service's
 * responses.
 *
 * @module-tag long
 */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { axeFindings } from "../../support/browser.ts";
import { call } from "../../support/call.ts";
import { testService } from "../../support/service.ts";
import { shared } from "../../support/shared.ts";
import { expectForgotten, expectMessage, press, useBrowser } from "./browsing.ts";
import { newUser, PASSWORD, startCloud, withMfa } from "./cloud.ts";

const open = useBrowser();
const service = shared(startCloud);

const tokenOn = (page: Page) => page.getByLabel("Token").inputValue();

describe("/login", () => {
  test("describes how to log in", async () => {
    const page = await open(`${service.url}/login`);
    expect(await page.locator("#how").isVisible()).toBe(true);
    expect(await page.locator("#signed-in").isVisible()).toBe(false);
    for (const link of await page
      .locator("main a")
      .evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).href)))
      expect((await fetch(link)).status).toBe(200);
  });

  test("shows the token of a login with an identity provider, and copies it", async () => {
    const token = await newUser(service, "ana");
    const page = await open(`${service.url}/login?token=${token}`, {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await expectMessage(page, "You are logged in as ana.");
    expect(await tokenOn(page)).toBe(token);
    expect(await page.getByLabel("Token").getAttribute("type")).toBe("password");
    await expectForgotten(page, token);
    await press(page, "Copy the token");
    await expectMessage(page, "The token is copied.");
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(token);
    await page.reload();
    await expect.poll(() => page.locator("#how").isVisible()).toBe(true);
  });

  test("selects the token if the browser has no clipboard", async () => {
    const token = await newUser(service, "cleo");
    const page = await open(`${service.url}/login?token=${token}`);
    await expectMessage(page, "You are logged in as cleo.");
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await press(page, "Copy the token");
    await expect.poll(() => page.locator("#message").innerText()).toContain("Copy the selected token.");
    expect(await page.evaluate(() => getSelection()?.toString())).toBe(token);
    expect(await axeFindings(page)).toEqual([]);
  });

  test("reports that the token of the link is invalid", async () => {
    const page = await open(`${service.url}/login?token=aa.bb.cc`);
    await expectMessage(page, "The token in this link is invalid or has expired.");
    expect(await page.locator("#signed-in").isVisible()).toBe(false);
    await expectForgotten(page, "aa.bb.cc");
    expect(await axeFindings(page)).toEqual([]);
  });

  test("keeps the link if the service does not respond", async () => {
    const token = await newUser(service, "dora");
    const page = await open(`${service.url}/login`);
    await page.route("**/api/auth/user", (route) => route.fulfill({ status: 503, body: "{}" }), { times: 1 });
    await page.goto(`${service.url}/login?token=${token}`);
    await expectMessage(page, "Reload the page to try again.");
    expect(await page.locator("#signed-in").isVisible()).toBe(false);
    await page.reload();
    await expectMessage(page, "You are logged in as dora.");
  });

  test("reports that the identity provider sent no address", async () => {
    const page = await open(`${service.url}/login?missing_assertions=true`);
    await expectMessage(page, "Your identity provider sent no usable e-mail address.");
    expect(await axeFindings(page)).toEqual([]);
  });

  test.each([
    ["?token=", "Missing: token."],
    ["?token=<img src=x>", "Damaged: token."],
    ["?token=%zz", "Damaged: token."],
    ["?token=a.b.c&token=Call%20555", "Damaged: token."],
  ])("reports a link that is damaged: %s", async (query, text) => {
    const page = await open(`${service.url}/login${query}`);
    await expectMessage(page, text);
    expect(await page.locator("#signed-in").isVisible()).toBe(false);
  });
});

describe("/mfa-login", () => {
  test("shows the token of the login after the second factor", async () => {
    const { totp } = await withMfa(service, "ben", "ben@backup.example.org");
    const { headers } = await call(service, "POST /api/login", {
      body: { username: "ben", password: PASSWORD },
    });
    const pending = headers.get("x-mfa-token") ?? "";
    const page = await open(`${service.url}/mfa-login?token=${pending}`);
    const code = page.getByLabel("Code of your second factor");
    await code.fill("12");
    await press(page, "Log in");
    await expectMessage(page, "Please check: Code of your second factor.");
    await code.fill(totp.generate() === "000000" ? "000001" : "000000");
    await press(page, "Log in");
    await expectMessage(page, "The code is wrong or has already been used.");
    await code.fill(totp.generate());
    await press(page, "Log in");
    await expectMessage(page, "You are logged in as ben.");
    const token = await tokenOn(page);
    expect((await call(service, "GET /api/namespaces", { token })).status).toBe(200);
    await expectForgotten(page, pending, token);
    expect(await page.locator("form:visible").count()).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
  });

  test.each([
    ["", "Missing: token."],
    ["?token=a.b.c", "Damaged: token."],
  ])("reports a link that is incomplete: '%s'", async (query, text) => {
    const page = await open(`${service.url}/mfa-login${query}`);
    await expectMessage(page, text);
    expect(await page.locator("form:visible").count()).toBe(0);
  });
});

test("the start page of a service without users shows the command for the first user", async () => {
  const empty = await testService({ env: { GATEHOUSE_SSH_ENDPOINT: "gate.example.org:2222" } });
  const page = await open(`${empty.url}/`);
  await expect.poll(() => page.locator("#no-user").isVisible()).toBe(true);
  const ssh = page.locator("code", { hasText: "ssh " });
  expect(await ssh.innerText()).toBe("ssh -p 2222 <login>@<namespace>.<device>@gate.example.org");
  await empty.setup();
  await page.reload();
  await expect.poll(() => page.locator("#health").textContent()).toBe("operational");
  expect(await page.locator("#no-user").isVisible()).toBe(false);
});

test("the start page of a service with a console links to the console", async () => {
  const env = {
    GATEHOUSE_CONSOLE_URL: "https://console.example.org",
    GATEHOUSE_SSH_ENDPOINT: "gate.example.org:22",
  };
  const { url } = await testService({ env });
  const page = await open(`${url}/`, { viewport: { width: 390, height: 600 } });
  await expect.poll(() => page.locator("#health").textContent()).toBe("operational");
  const link = page.getByRole("link", { name: "Log in to the console" });
  expect(await link.getAttribute("href")).toBe("https://console.example.org/login");
  const ssh = page.locator("code", { hasText: "ssh " });
  expect(await ssh.innerText()).toBe("ssh <login>@<namespace>.<device>@gate.example.org");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  expect(await axeFindings(page)).toEqual([]);
});
