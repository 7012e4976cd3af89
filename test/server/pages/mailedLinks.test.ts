/**
 * These tests perform the steps of a user in a browser. The tests in test/server/features check the service's
 * responses.
 *
 * @module-tag long
 */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { call } from "../../support/call.ts";
import { shared } from "../../support/shared.ts";
import { expectForgotten, expectMessage, press, submit, useBrowser } from "./browsing.ts";
import { linkIn, loginStatus, mailTo, newUser, PASSWORD, startCloud, wholeLog, withMfa } from "./cloud.ts";

const open = useBrowser();
const service = shared(startCloud);

const parameter = (link: string, name: string) => new URL(link).searchParams.get(name) ?? "";

/** Turns off a second factor with the codes of two mails. */
const turnOff = (page: Page, first: string, second: string) => {
  const codes = {
    "First code, sent to your e-mail address": first,
    "Second code, sent to your recovery e-mail address": second,
  };
  return submit(page, codes, "Turn off the second factor");
};

/** Expects that the log, the address, the page's storage and the history do not contain a secret. */
async function expectNoTrace(page: Page, ...secrets: string[]): Promise<void> {
  await expectForgotten(page, ...secrets);
  const log = await wholeLog(service);
  for (const secret of secrets) expect(log).not.toContain(secret);
}

describe("confirming an account", () => {
  const register = async (username: string) => {
    const email = `${username}@example.org`;
    const account = { name: "A Person", username, email, password: PASSWORD, email_marketing: false };
    expect((await call(service, "POST /api/register", { body: account })).status).toBe(200);
    return { email, link: linkIn(service, await mailTo(service, email)) };
  };

  test("needs a click on the button; programs that open the link change nothing", async () => {
    const { email, link } = await register("ana");
    expect(new URL(link).pathname).toBe("/validation-account");
    for (const method of ["HEAD", "GET"]) {
      const { status, headers } = await fetch(link, { method });
      expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    }
    const page = await open(link);
    await expect.poll(() => page.locator("main").innerText()).toContain(email);
    expect(await loginStatus(service, "ana", PASSWORD)).toBe(403);
    await press(page, "Confirm the account");
    await expectMessage(page, "The account is confirmed.");
    expect(await loginStatus(service, "ana", PASSWORD)).toBe(200);
    await expectNoTrace(page, parameter(link, "token"));
  });

  test("offers another mail if the link is no longer valid", async () => {
    const { email, link } = await register("ben");
    const page = await open(
      link.replace(/token=[^&]+/, `token=${"0".repeat(8)}-0000-0000-0000-${"0".repeat(12)}`),
    );
    await press(page, "Confirm the account");
    await expectMessage(page, "This link has already been used, is older than 24 hours");
    await press(page, "Send another confirmation mail");
    await expectMessage(page, "a confirmation mail has been sent");
    const again = await open(linkIn(service, await mailTo(service, email, 2)));
    await press(again, "Confirm the account");
    await expectMessage(again, "The account is confirmed.");
  });
});

describe("a new password", () => {
  test("is set once, and ends earlier logins", async () => {
    const token = await newUser(service, "carla");
    await call(service, "POST /api/user/recover_password", { body: { username: "carla" } });
    const link = linkIn(service, await mailTo(service, "carla@example.com"));
    const page = await open(link);
    expect(await page.getByLabel("New password", { exact: true }).getAttribute("autocomplete")).toBe(
      "new-password",
    );
    await submit(page, { "New password": "abc" }, "Set the password");
    await expectMessage(page, "Please check: New password.");
    await submit(page, { "New password": " another horse " }, "Set the password");
    await expectMessage(page, "The new password is set");
    expect([
      await loginStatus(service, "carla", " another horse "),
      (await call(service, "GET /api/auth/user", { token })).status,
    ]).toEqual([200, 401]);
    await expectNoTrace(page, parameter(link, "token"), "another horse");

    const again = await open(link);
    await submit(again, { "New password": "third-horse" }, "Set the password");
    await expectMessage(again, "This link has already been used");
    expect(await loginStatus(service, "carla", "third-horse")).toBe(401);
  });
});

describe("a lost second factor", () => {
  const CODE = /code is:\s+([A-Z2-7]{16})\s/;

  test("is turned off by the codes of both mails", async () => {
    await withMfa(service, "dora", "dora@elsewhere.org");
    expect(await loginStatus(service, "dora", PASSWORD)).toBe(401);

    await call(service, "POST /api/user/mfa/reset", { body: { identifier: "dora" } });
    const mails = [
      await mailTo(service, "dora@example.com", 3),
      await mailTo(service, "dora@elsewhere.org", 2),
    ];
    const [main = "", recovery = ""] = mails.map((text) => CODE.exec(text)?.[1] ?? "");
    const [link = "", other] = mails.map((text) => linkIn(service, text));
    expect([link, main === recovery]).toEqual([other, false]);
    const page = await open(link);
    await turnOff(page, recovery, main);
    await expectMessage(page, /Please check: First code.*, Second code/);
    expect(await page.locator(".error").allTextContents()).toEqual([
      "Wrong, used or expired.",
      "Wrong, used or expired.",
    ]);
    // Users may copy a code with surrounding whitespace.
    await turnOff(page, ` ${main.toLowerCase()}\t`, recovery);
    await expectMessage(page, "The second factor is turned off");
    expect(await loginStatus(service, "dora", PASSWORD)).toBe(200);
    await expectNoTrace(page, main, recovery);
    expect(await page.content()).not.toContain("eyJ");
  });
});

describe("a new e-mail address", () => {
  test("is confirmed with the password, once", async () => {
    const token = await newUser(service, "kim");
    const address = "kim@elsewhere.example.org";
    const change = await call(service, "PATCH /api/users", { body: { email: address }, token });
    expect(change.body).toMatchObject({ pending: ["email"] });
    const link = linkIn(service, await mailTo(service, address));
    const page = await open(link);
    await submit(page, { Password: "not-the-password" }, "Confirm the address");
    await expectMessage(page, "Please check: Password.");
    await submit(page, { Password: PASSWORD }, "Confirm the address");
    await expectMessage(page, "The address is confirmed");
    await expectNoTrace(page, new URL(link).searchParams.get("token") ?? "");
    expect(await loginStatus(service, address, PASSWORD)).toBe(200);
    const again = await open(link);
    await submit(again, { Password: PASSWORD }, "Confirm the address");
    await expectMessage(again, "This link has already been used");
  });

  test("requires the code of a second factor if the user has one", async () => {
    const { token, totp } = await withMfa(service, "lee", "lee@recovery.org");
    const address = "lee@elsewhere.example.org";
    await call(service, "PATCH /api/users", { body: { email: address }, token });
    const page = await open(linkIn(service, await mailTo(service, address)));
    await submit(page, { Password: PASSWORD }, "Confirm the address");
    await expectMessage(page, "Please check: Code of your second factor.");
    await submit(page, { "Code of your second factor": totp.generate() }, "Confirm the address");
    await expectMessage(page, "The address is confirmed");
  });
});

describe("the page reports the service's response", () => {
  const link = () => `${service.url}/reset-mfa?id=0123456789abcdef01234567`;

  test.each([
    [429, { "X-Account-Lockout": "4102444800" }, "", /Please try again after \d\d:\d\d:\d\d/],
    [
      429,
      { "Retry-After": "30" },
      '{"message":"too many requests"}',
      /Please try again after \d\d:\d\d:\d\d/,
    ],
    [500, { "X-Request-ID": "the-id" }, '{"message":"internal error"}', "report the request id the-id"],
    [503, {}, "<html>of a proxy", "The service failed to process the request"],
    [404, {}, '{"message":"user-id: no such user"}', "User-id: no such user."],
    [400, {}, '{"message":"MFA is not enabled"}', "MFA is not enabled."],
    [400, {}, "", "The service rejected the request (status 400)."],
    [409, {}, '["main_email_code"]', "Please check: First code"],
  ] as const)("%i %j", async (status, headers, body, message) => {
    const page = await open(link());
    const contentType = body.startsWith("<") ? "text/html" : "application/json";
    await page.route("**/api/user/mfa/reset/*", (route) =>
      body === "" && status === 400
        ? route.fulfill({ status, contentType: "text/plain" })
        : route.fulfill({ status, headers: { ...headers, "Content-Type": contentType }, body: body || "{}" }),
    );
    await turnOff(page, "AAAA", "BBBB");
    await expectMessage(page, message);
  });

  test("reports a missing response", async () => {
    const page = await open(link());
    await page.route("**/api/user/mfa/reset/*", (route) => route.abort());
    await turnOff(page, "AAAA", "BBBB");
    await expectMessage(page, "Cannot reach the service.");
  });
});

describe("an incomplete address", () => {
  test.each([
    ["/setup", "Missing: sign."],
    ["/validation-account?email=ana%40example.org", "Missing: token."],
    ["/validation-account?email=ana%40example.org&token=12", "Damaged: token."],
    ["/validation-account?email=Call%20555%20now!%20a%40b&token=12", "Damaged: email, token."],
    ["/update-password?id=../../login&token=12", "Damaged: id, token."],
    ["/accept-invite", "Missing: tenant-id, user-id, email, sig."],
    ["/reset-mfa?id=%3Cimg%20src=x%20onerror=alert(1)%3E", "Damaged: id."],
    ["/confirm-address?token=", "Missing: id, token."],
  ])("%s shows the fault, and no form", async (path, message) => {
    const page = await open(service.url + path);
    await expectMessage(page, message);
    expect(await page.locator("form:visible").count()).toBe(0);
  });

  test("shows its parameters as text", async () => {
    const hostile = "<img/src=x/onerror=alert(1)>@example.org";
    const query = new URLSearchParams({ email: hostile, token: "01234567-89ab-cdef-0123-456789abcdef" });
    const page = await open(`${service.url}/validation-account?${query}`);
    await expect.poll(() => page.locator("#address").textContent()).toBe(hostile);
    expect(await page.locator("img").count()).toBe(0);
  });
});
