import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";
import "../http/access/declaredAccess.ts";
import { packageFile } from "../files/packageFile.ts";
import { linkedPages, type PageSource } from "./sources.ts";

/** A page as sent, the same for everybody. */
interface Page {
  readonly html: string;
  readonly policy: string;
}

/**
 * Serves the pages that the service's own links lead to, if the instance serves their operations. They are the same for
 * everybody, and reading one changes nothing, since mail scanners open every link: a link takes effect when a person
 * presses the button.
 */
export function servePages(app: FastifyInstance, operations: readonly Operation[]): void {
  for (const source of linkedPages(new Set(operations))) {
    // Made on the first request, since few pages are ever read on an instance.
    let page: Page | undefined;
    app.get(
      source.path,
      {
        exposeHeadRoute: true,
        config: { publicBecause: "a page without data; what it asks for is guarded" },
      },
      async (_request, reply) => {
        page ??= makePage(source);
        return reply
          .header("Content-Security-Policy", page.policy)
          .type("text/html; charset=utf-8")
          .send(page.html);
      },
    );
  }
}

/** Scripts of every page, each after those that it uses. */
const SHARED_SCRIPTS = ["say", "link", "call", "form"];

const read = (path: string) => readFileSync(packageFile(path), "utf8").replaceAll("\r\n", "\n");

const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Makes a page. Its script reads everything about the link from the address. */
function makePage({ title, body, scripts, start }: PageSource): Page {
  const own = [...SHARED_SCRIPTS, ...scripts].map((name) => read(`dist/pages/browser/${name}.js`)).join("\n");
  const script = elementText(`(() => {\n"use strict";\n${own}\n${start}();\n})();\n`, "script");
  // The style is part of the package as written.
  const style = elementText(read("pages/pages.css"), "style");
  return { html: htmlOf(title, body, style, script), policy: policyOf(style, script) };
}

/** The text of a file of this package, checked not to end its element. */
function elementText(text: string, element: string): string {
  if (text.toLowerCase().includes(`</${element}`))
    throw new Error(`the page's ${element} must not end itself`);
  return text;
}

/** The policy of a page: only its script, its style and calls of this service; no other page may frame it. */
const policyOf = (style: string, script: string): string =>
  [
    "default-src 'none'",
    `script-src ${sha256(script)}`,
    `style-src ${sha256(style)}`,
    // The empty icon, without which browsers request one.
    "img-src data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

const htmlOf = (title: string, body: string, style: string, script: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · Gatehouse</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<header><a href="./">Gatehouse</a></header>
<main>
<h1>${title}</h1>
<noscript><p class="bad">This page needs JavaScript.</p></noscript>
<div id="message" role="status" tabindex="-1"></div>
${body}</main>
<script>${script}</script>
</body>
</html>
`;
