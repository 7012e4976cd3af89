import { createHash } from "node:crypto";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import type { ServiceSettings } from "../../../server/settings/readConfig.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { startApp, type TestApp } from "../http/testApp.ts";

const EVERYWHERE = ["/", "/setup", "/confirm-address", "/login"];
const ENTERPRISE = [...EVERYWHERE, "/mfa-login", "/reset-mfa", "/accept-invite"];
const ALL = [...ENTERPRISE, "/validation-account", "/update-password"];

const CONSOLE = "https://console.example.org";

/** The header that browsers send when a user opens an address. */
const BROWSER = { headers: { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" } };
const NO_SUCH_PATH = { status: 404, body: { message: "no such path" } };

const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
/** Returns the contents of the elements with this name. */
const inline = (html: string, element: string) =>
  [...html.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, "gs"))].map((match) => match[1] ?? "");

/** Expects the headers that allow a page to use only its script and its style, and that keep its address secret. */
function expectProtected(headers: Headers, { script, style }: { script?: string; style: string }): void {
  expect(headers.get("content-security-policy")?.split("; ")).toEqual([
    "default-src 'none'",
    ...(script === undefined ? [] : [`script-src ${sha256(script)}`]),
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
}

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
      expect(await app.send("GET", "/unknown", BROWSER)).toMatchObject(NO_SUCH_PATH);
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

  test.each(ALL)("%s can use its one script and its one style, and nothing else", async (path) => {
    const { text, headers } = await app.send("GET", path);
    const [[script = ""], [style = ""]] = [inline(text, "script"), inline(text, "style")];
    expect([script.length > 1000, style.length > 1000]).toEqual([true, true]);
    expectProtected(headers, { script, style });
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

describe("a service with a console", () => {
  const app = withSharedApp({ edition: "cloud", consoleUrl: CONSOLE });
  const target = async (path: string, method = "GET") => {
    const { status, headers } = await app.send(method, path, { redirect: "manual" });
    expect([status, headers.get("cache-control")]).toEqual([302, "no-store"]);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    return headers.get("location");
  };

  test("links to the console on the start page", async () => {
    const { text } = await app.send("GET", "/");
    expect(text).toContain(`<a href="${CONSOLE}/login">Log in to the console</a>`);
    expect(text).not.toContain("This service has no web console");
  });

  test.each(["/login", "/mfa-login"])(
    "redirects %s to the console, with the unchanged query",
    async (path) => {
      for (const query of [
        "",
        "?token=a.b.c&missing_assertions=true",
        "?redirect=//evil.example",
        "?token=%zz%00&&=?",
        "?@evil.example/",
        "?url=https://evil.example/login",
        "?a=%0d%0aLocation:%20https://evil.example",
      ]) {
        expect(await target(path + query)).toBe(`${CONSOLE}${path}${query}`);
        expect(await target(path + query, "HEAD")).toBe(`${CONSOLE}${path}${query}`);
      }
    },
  );

  test("redirects a request with a whole address only to the console", async () => {
    const path = "http://evil.example/login?token=a";
    const request = get({ port: new URL(app.url).port, path, headers: { host: "evil.example" } });
    const [response] = (await once(request, "response")) as [IncomingMessage];
    response.resume();
    expect(response.headers.location).toBe(`${CONSOLE}/login?token=a`);
  });
});

describe("an unknown address", () => {
  const app = withSharedApp();
  const inBrowser = (path: string, method = "GET") => app.send(method, path, BROWSER);

  test.each(["/unknown", "/setup/", "/a/b/c/", "/apis", "/Login"])(
    "is a page for browsers: %s",
    async (path) => {
      const { status, headers, text } = await inBrowser(path);
      expect([status, headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
      expect(text).toContain("<h1>Page not found</h1>");
      const [style = ""] = inline(text, "style");
      expectProtected(headers, { style });
      expect(text).not.toContain("<script");
      const head = await inBrowser(path, "HEAD");
      expect([head.status, head.text, head.headers.get("content-type")]).toEqual([
        404,
        "",
        "text/html; charset=utf-8",
      ]);
    },
  );

  test("is JSON for other clients, for operations of the API, and for other methods", async () => {
    for (const accept of ["*/*", "application/json", "text/plain"])
      expect(await app.send("GET", "/unknown", { headers: { accept } })).toMatchObject(NO_SUCH_PATH);
    for (const path of ["/api", "/api/", "/api/unknown", "/internal", "/internal/unknown?a=/b"])
      expect(await inBrowser(path)).toMatchObject(NO_SUCH_PATH);
    for (const method of ["POST", "PUT", "DELETE"])
      expect(await inBrowser("/unknown", method)).toMatchObject(NO_SUCH_PATH);
    expect((await inBrowser("/setup", "POST")).status).toBe(405);
  });

  test("does not occur in its page", async () => {
    const { text } = await inBrowser("/plain");
    for (const path of ["/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/x?<b>=\"'&y=<script>", "/'onload=alert(1)"])
      expect((await inBrowser(path)).text).toBe(text);
  });

  // A proxy can serve the service below a path, which the service does not know.
  test.each(["", "/gate", "/tools/gate"])(
    "links to the start page below the prefix '%s' of a proxy",
    async (prefix) => {
      for (const path of [
        "/x",
        "/x/",
        "/x/y",
        "/x/y/z/",
        "/x?a=/b/c",
        "//evil.example",
        "//evil.example/x",
      ]) {
        const { text } = await inBrowser(path);
        const links = [...text.matchAll(/<a href="([^"]*)"/g)].map(([, href = ""]) => href);
        const targets = links.map((href) => new URL(href, `https://gate.example.org${prefix}${path}`).href);
        const start = `https://gate.example.org${prefix}/`;
        expect(targets).toEqual([start, start]);
        for (const href of links) expect(href).toMatch(/^(\.\/|(\.\.\/)+)$/);
      }
    },
  );
});
