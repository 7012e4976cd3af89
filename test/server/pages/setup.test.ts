/**
 * These tests perform the steps of a user in a browser. The tests in test/server/features check the service's
 * responses.
 *
 * @module-tag long
 */
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { startService } from "../../support/service.ts";
import { shared } from "../../support/shared.ts";
import { expectForgotten, expectMessage, submit, useBrowser } from "./browsing.ts";
import { loginStatus, wholeLog } from "./cloud.ts";

const open = useBrowser();
const service = shared(startService);
let link: string;
let sign: string;
beforeAll(async () => {
  link = (await service.admin(["setup-link"])).stdout.trim();
  sign = new URL(link).searchParams.get("sign") ?? "";
  expect(sign).toMatch(/^[0-9a-f]{64}$/);
});

/** The first user, by the labels of the form, in the order of the fields. */
const ANA = {
  "Your name": "Ana Silva",
  "E-mail address": "ana@example.org",
  "User name": "ana",
  "New password": "correct-horse",
};

const isSetUp = async () => ((await (await fetch(`${service.url}/info`)).json()) as { setup: boolean }).setup;

test("reports a wrong link, and the command that prints the right one", async () => {
  const page = await open(`${service.url}/setup?sign=${"0".repeat(64)}`);
  await submit(page, ANA, "Create the first user");
  await expectMessage(page, "gatehouse-server admin setup-link");
  expect(await isSetUp()).toBe(false);
});

test("shows rejected values at their fields, and accepts the corrected ones", async () => {
  const page = await open(link);
  const password = page.getByLabel("New password", { exact: true });
  const rejected = { ...ANA, "Your name": "A", "User name": "ana silva", "New password": "abc" };
  await submit(page, rejected, "Create the first user");
  await expectMessage(page, "Please check: Your name, User name, New password.");
  expect(await page.locator("[aria-invalid=true]").count()).toBe(3);
  const descriptions = await page.locator("[aria-invalid=true]").evaluateAll((inputs) =>
    inputs.map((input) =>
      (input.getAttribute("aria-describedby") ?? "")
        .split(" ")
        .map((id) => document.getElementById(id)?.textContent)
        .join(" "),
    ),
  );
  expect(descriptions).toEqual([
    "3 to 20 characters Must have at least 3 characters.",
    "3 to 30 characters: letters, digits, - _ . @ May contain letters, digits and - _ . @.",
    "5 to 30 characters Must have at least 5 characters.",
  ]);
  expect(await password.getAttribute("type")).toBe("password");
  await page.getByLabel("Show the password").check();
  expect(await password.getAttribute("type")).toBe("text");
  expect(await isSetUp()).toBe(false);
});

test("creates the first user on the page of `admin setup-link`, with the keyboard alone", async () => {
  const page = await open(link);
  // The page removes the secret of the link from the address immediately. After a reload, the page still has the
  // secret.
  expect(page.url()).toBe(`${service.url}/setup`);
  await page.reload();
  expect(page.url()).toBe(`${service.url}/setup`);
  const labelInFocus = () =>
    page.evaluate(() =>
      (document.activeElement as HTMLInputElement | null)?.labels?.[0]?.textContent?.trim(),
    );
  for (const [label, text] of Object.entries(ANA)) {
    for (let step = 0; step < 5 && (await labelInFocus()) !== label; step += 1)
      await page.keyboard.press("Tab");
    expect(await labelInFocus()).toBe(label);
    await page.keyboard.type(text);
  }
  await page.keyboard.press("Enter");
  await expectMessage(page, "The service is set up, and ana is its first user.");
  expect([await isSetUp(), await loginStatus(service, "ana", "correct-horse")]).toEqual([true, 200]);
  await expectForgotten(page, sign, "correct-horse");
  expect(await page.locator("form:visible").count()).toBe(0);
  await page.reload();
  await expectMessage(page, "Missing: sign.");
});

test("the link is invalid afterwards", async () => {
  const page = await open(link);
  const eve = { ...ANA, "Your name": "Eve Silva", "E-mail address": "eve@example.org", "User name": "eve" };
  await submit(page, eve, "Create the first user");
  await expectMessage(page, "the user already exists");
});

test("neither sign nor password is in the log", async () => {
  const log = await wholeLog(service);
  expect(log).toContain('"url":"/setup?sign=[redacted]"');
  for (const secret of [sign, "correct-horse"]) expect(log).not.toContain(secret);
});

test("with --pages off, the service leaves the address of the link to a console", async () => {
  const other = await startService({ flags: ["--pages", "off"] });
  onTestFinished(async () => void (await other.stop()));
  const answer = await fetch((await other.admin(["setup-link"])).stdout.trim());
  expect([answer.status, await answer.json()]).toEqual([404, { message: "no such path" }]);
});
