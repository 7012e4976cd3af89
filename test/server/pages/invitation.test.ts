/**
 * These tests perform the steps of a user in a browser. The tests in test/server/features check the service's
 * responses.
 *
 * @module-tag long
 */
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { call } from "../../support/call.ts";
import { startService, type TestService } from "../../support/service.ts";
import { shared } from "../../support/shared.ts";
import { expectForgotten, expectMessage, press, submit, useBrowser } from "./browsing.ts";
import { linkIn, mailTo, newUser, PASSWORD, startCloud, tokenOf, wholeLog, withMfa } from "./cloud.ts";

const open = useBrowser();
const service = shared(startCloud);
let owner: string;
let tenant: string;
beforeAll(async () => {
  [owner, tenant] = await ownerOf(service);
});

/** Creates an owner with a namespace. Returns the owner's token and the namespace's id. */
async function ownerOf(here: TestService): Promise<[string, string]> {
  const token = await newUser(here, "owner");
  const { body } = await call(here, "POST /api/namespaces", { body: { name: "lab" }, token });
  return [await tokenOf(here, "owner"), body.tenant_id ?? ""];
}

/** Invites an address by mail. Returns the link in the n-th mail to the address. */
async function invite(email: string, n = 1): Promise<string> {
  const body = { email, role: "operator" };
  expect((await call(service, `POST /api/namespaces/${tenant}/members`, { body, token: owner })).status).toBe(
    200,
  );
  return linkIn(service, await mailTo(service, email, n));
}

/** Creates an invitation and returns its link. The service sends no mail. */
async function linkFor(here: TestService, namespace: string, email: string, token: string): Promise<string> {
  const body = { email, role: "operator" };
  const path = `/api/namespaces/${namespace}/members/invites`;
  const link = new URL((await call(here, `POST ${path}`, { body, token })).body.link ?? "");
  return here.url + link.pathname + link.search;
}

const sigOf = (link: string) => new URL(link).searchParams.get("sig") ?? "";

/** Returns true if the user can get a token for the namespace. Only members can. */
async function isMember(here: TestService, username: string, namespace: string): Promise<boolean> {
  const token = await tokenOf(here, username);
  return (await call(here, `GET /api/auth/token/${namespace}`, { token })).status === 200;
}

const signUp = (page: Page, username: string, password = PASSWORD) => {
  const account = { "Your name": "A Person", "User name": username, "New password": password };
  return submit(page, account, "Create an account and accept");
};
const logIn = (page: Page, password = PASSWORD) => submit(page, { Password: password }, "Log in and accept");

describe("an invited person without an account", () => {
  test("signs up with the link in the mail, and becomes a member", async () => {
    const link = await invite("ana@example.org");
    const page = await open(link);
    await expectMessage(page, "Create an account to accept the invitation.");
    expect(await page.locator("main").innerText()).toContain("ana@example.org");
    await signUp(page, "ana", "not allowed");
    await expectMessage(page, "Please check: New password.");
    await signUp(page, "owner");
    await expectMessage(page, "Please check: User name.");
    expect(await page.locator("#sign-up-username-error").textContent()).toBe("Is already taken.");
    await signUp(page, "ana");
    await expectMessage(page, "You are now a member of the namespace.");
    expect(await isMember(service, "ana", tenant)).toBe(true);
    await expectForgotten(page, sigOf(link), PASSWORD, "eyJ");
    const log = await wholeLog(service);
    for (const secret of [sigOf(link), PASSWORD]) expect(log).not.toContain(secret);

    const again = await open(link);
    await expectMessage(again, "This invitation has already been accepted");
    expect(await again.locator("form:visible").count()).toBe(0);
  });

  test("confirms the address first if the link was not mailed", async () => {
    const link = await linkFor(service, tenant, "ben@example.org", owner);
    const page = await open(link);
    await expectMessage(page, "Create an account to accept the invitation.");
    await signUp(page, "ben");
    await expectMessage(page, "Your account is not confirmed yet");
    await mailTo(service, "ben@example.org");
    const waiting = await open(link);
    await expectMessage(waiting, "Your account is not confirmed yet");
    await press(waiting, "Send another confirmation mail");
    await expectMessage(waiting, "a confirmation mail has been sent");
    const confirming = await open(linkIn(service, await mailTo(service, "ben@example.org", 2)));
    await press(confirming, "Confirm the account");
    await expectMessage(confirming, "The account is confirmed.");
    const accepting = await open(link);
    await expectMessage(accepting, "Log in to accept the invitation.");
    await logIn(accepting);
    await expectMessage(accepting, "You are now a member of the namespace.");
    expect(await isMember(service, "ben", tenant)).toBe(true);
  });

  test("becomes a member with the account on an enterprise instance", async () => {
    const enterprise = await startService();
    onTestFinished(async () => void (await enterprise.stop()));
    const [token, namespace] = await ownerOf(enterprise);
    const link = await linkFor(enterprise, namespace, "carla@example.org", token);
    const page = await open(link);
    await signUp(page, "carla");
    await expectMessage(page, "You are now a member of the namespace.");
    expect(await isMember(enterprise, "carla", namespace)).toBe(true);
    await expectForgotten(page, sigOf(link), PASSWORD, "eyJ");
    const again = await open(link);
    await signUp(again, "carla2");
    await expectMessage(again, "This invitation has already been accepted");
  });
});

describe("an invited user with an account", () => {
  test("logs in and accepts", async () => {
    await newUser(service, "dora");
    const link = await invite("dora@example.com");
    const page = await open(link);
    await expectMessage(page, "Log in to accept the invitation.");
    expect(await page.getByLabel("User name or e-mail address").inputValue()).toBe("dora@example.com");
    expect(await isMember(service, "dora", tenant)).toBe(false);
    await logIn(page, "wrong-horse");
    await expectMessage(page, "Wrong user name or password.");
    await logIn(page);
    await expectMessage(page, "You are now a member of the namespace.");
    expect(await isMember(service, "dora", tenant)).toBe(true);
    await expectForgotten(page, sigOf(link), PASSWORD, "eyJ");
  });

  test("enters the code of the second factor", async () => {
    const { totp } = await withMfa(service, "emil", "emil@elsewhere.org");
    // The first two mails to the user are about the recovery address and the second factor.
    const page = await open(await invite("emil@example.com", 3));
    await expectMessage(page, "Log in to accept the invitation.");
    await logIn(page);
    await expectMessage(page, "Enter the code of your second factor.");
    const code = page.getByLabel("Code of your second factor");
    expect(await code.getAttribute("autocomplete")).toBe("one-time-code");
    await code.fill("12345");
    await press(page, "Accept");
    await expectMessage(page, "Please check: Code of your second factor.");
    // This code is from an earlier time step and has expired.
    await code.fill(totp.generate({ timestamp: 0 }));
    await press(page, "Accept");
    await expectMessage(page, "The code is wrong or has already been used.");
    await code.fill(totp.generate());
    await press(page, "Accept");
    await expectMessage(page, "You are now a member of the namespace.");
    expect(await page.content()).not.toContain("eyJ");
    const { body } = await call(service, `GET /api/namespaces/${tenant}`, { token: owner });
    expect(JSON.stringify(body)).toContain("emil@example.com");
  });

  test("is rejected if the invitation is for another user", async () => {
    await newUser(service, "fred");
    await newUser(service, "gina");
    const page = await open(await invite("fred@example.com"));
    await expectMessage(page, "Log in to accept the invitation.");
    await page.getByLabel("User name or e-mail address").fill("gina");
    await logIn(page);
    await expectMessage(page, "This invitation is for another user.");
    expect(await isMember(service, "gina", tenant)).toBe(false);
    await page.getByLabel("User name or e-mail address").fill("fred");
    await logIn(page);
    await expectMessage(page, "You are now a member of the namespace.");
  });
});
