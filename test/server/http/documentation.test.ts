import { expect, test } from "vitest";
import { withSharedApp } from "./appOfTest.ts";

const app = withSharedApp();

test.each(["/docs", "/docs/"])(
  "%s is complete: the service serves each linked file, with its type",
  async (path) => {
    const page = await app.send("GET", path);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const links = [...page.text.matchAll(/(?:src|href)="([^":]+)"/g)].map((match) => match[1] ?? "");
    const names = links.map((link) => new URL(link, app.url + path).pathname);
    expect(names).toEqual(["/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js", "/docs/start.js"]);
    for (const name of names) {
      const file = await app.send("GET", name);
      expect(file.status, name).toBe(200);
      expect(file.text.length, name).toBeGreaterThan(100);
      const type = name.endsWith(".js") ? "text/javascript" : "text/css";
      expect(file.headers.get("content-type"), name).toBe(`${type}; charset=utf-8`);
      // Without this header, a browser can guess another type for a file.
      expect(file.headers.get("x-content-type-options"), name).toBe("nosniff");
    }
  },
);

test("loads nothing from other hosts, and its content security policy allows no other host", async () => {
  const { text, headers } = await app.send("GET", "/docs");
  expect(text).not.toMatch(/https?:|\/\//);
  // The page contains no inline scripts or styles.
  expect(text).not.toMatch(/<script>|<style|style=|onload/);
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
});

test("shows the document of this service, and stores no credentials", async () => {
  const { text } = await app.send("GET", "/docs/start.js");
  expect(text).toContain('url: new URL("../openapi.json", document.currentScript.src).href');
  expect(text).toContain("persistAuthorization: false");
  expect(text).toContain("validatorUrl: null");
});
