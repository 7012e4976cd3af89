import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { ServiceSettings } from "../../../server/settings/readConfig.ts";
import { withSharedApp } from "../http/lab.ts";
import { startApp, type TestApp } from "../http/testApp.ts";

const EVERYWHERE = ["/", "/setup", "/confirm-address"];
const ENTERPRISE = [...EVERYWHERE, "/reset-mfa", "/accept-invite"];
const ALL = [...ENTERPRISE, "/validation-account", "/update-password"];

async function withApp(settings: Partial<ServiceSettings>, use: (app: TestApp) => Promise<void>) {
  const app = await startApp(settings);
  try {
    await use(app);
  } finally {
    await app.stop();
  }
}

/** Requests every page path without query parameters. Returns the responses. */
const answers = (app: TestApp) =>
  Promise.all(
    ALL.map(async (path) => {
      const { status, headers, body } = await app.send("GET", path);
      return { path, status, type: headers.get("content-type"), body };
    }),
  );
const served = async (app: TestApp) =>
  (await answers(app)).filter(({ status }) => status === 200).map(({ path }) => path);

describe("the served pages", () => {
  test.each([
    ["community", EVERYWHERE],
    ["enterprise", ENTERPRISE],
    ["cloud", ALL],
  ] as const)("%s serves the pages whose operations it has", async (edition, paths) => {
    await withApp({ edition }, async (app) => expect(await served(app)).toEqual(paths));
  });

  test("are none but /docs if a console serves these paths", async () => {
    await withApp({ edition: "cloud", pages: false }, async (app) => {
      for (const answer of await answers(app))
        expect(answer).toMatchObject({
          status: 404,
          type: "application/json; charset=utf-8",
          body: { message: "no such path" },
        });
      for (const path of ["/docs", "/docs/"]) expect((await app.send("GET", path)).status).toBe(200);
    });
  });
});

describe("each page", () => {
  const app = withSharedApp({ edition: "cloud" });

  const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const inline = (html: string, element: string) =>
    [...html.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, "gs"))].map((match) => match[1] ?? "");

  test.each(ALL)("%s can use its one script and its one style, and nothing else", async (path) => {
    const { text, headers } = await app.send("GET", path);
    const [[script = ""], [style = ""]] = [inline(text, "script"), inline(text, "style")];
    expect([script.length > 1000, style.length > 1000]).toEqual([true, true]);
    expect(headers.get("content-security-policy")?.split("; ")).toEqual([
      "default-src 'none'",
      `script-src ${sha256(script)}`,
      `style-src ${sha256(style)}`,
      "img-src data:",
      "connect-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    const markup = text.replace(script, "").replace(style, "");
    expect(markup.match(/<(script|style)/g)).toEqual(["<style", "<script"]);
    expect(markup).not.toMatch(/\son\w+=|\sstyle=|javascript:|https?:|\ssrc=/i);
    expect(script).not.toMatch(
      /innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|localStorage|sessionStorage/,
    );
  });

  test.each(ALL)("%s is the same for any query, and changes nothing", async (path) => {
    const changes = () => app.services.db.auditEntry.count();
    const before = await changes();
    const plain = await app.send("GET", path);
    const response = await app.send("GET", `${path}?token=%3Cscript%3E&email=%22&sign=1`);
    expect([response.status, response.text === plain.text]).toEqual([200, true]);
    const head = await app.send("HEAD", path);
    expect([head.status, head.text, head.headers.get("content-security-policy")]).toEqual([
      200,
      "",
      plain.headers.get("content-security-policy"),
    ]);
    const posted = await app.send("POST", path, {
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    expect(await changes()).toBe(before);
  });

  test("changes nothing for programs that open the link in a mail", async () => {
    const account = { name: "Ana", username: "ana", email: "ana@example.org", password: "correct-horse" };
    const registered = await app.call("registerUser", { body: { ...account, email_marketing: false } });
    expect(registered.status).toBe(200);
    await app.deliverMails();
    const link = new URL(/https:\S+/.exec(app.mails.at(-1)?.text ?? "")?.[0] ?? "");
    for (const method of ["HEAD", "GET"])
      expect((await app.send(method, link.pathname + link.search)).status).toBe(200);
    const { username, password } = account;
    expect((await app.call("login", { body: { username, password } })).status).toBe(403);
    const query = Object.fromEntries(link.searchParams);
    expect((await app.call("validateAccount", { query })).status).toBe(200);
    expect((await app.call("login", { body: { username, password } })).status).toBe(200);
  });

  test("cannot be read or framed by another origin", async () => {
    const { headers } = await app.send("GET", "/setup", { headers: { origin: "https://evil.example" } });
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });
});
