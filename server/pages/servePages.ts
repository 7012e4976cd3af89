import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import "../http/access/declaredAccess.ts";
import { packageFile } from "../files/packageFile.ts";
import { linkedPages, type PageSource } from "./sources.ts";

/** The HTML and the Content-Security-Policy of a page. All users receive the same page. */
interface Page {
  readonly html: string;
  readonly policy: string;
}

/**
 * Serves the web pages that the service's own links open, such as the links in mails. Serves a page only if the
 * instance has all operations that the page calls. Opening a page changes nothing, because mail scanners open every
 * link. A link takes effect only when a user presses the button on the page.
 */
export function servePages(
  app: FastifyInstance,
  operations: readonly Operation[],
  consoleUrl: string | undefined,
): void {
  if (consoleUrl !== undefined) redirectLogins(app, consoleUrl);
  for (const source of linkedPages(new Set(operations), consoleUrl)) {
    // Build each page on its first request, because most instances need only a few of the pages.
    let page: Page | undefined;
    app.get(
      source.path,
      {
        exposeHeadRoute: true,
        config: { publicBecause: "a page without data; the operations that it calls are protected" },
      },
      async (_request, reply) => {
        page ??= buildPage(source);
        return sendPage(reply, page);
      },
    );
  }
}

const sendPage = (reply: FastifyReply, { html, policy }: Page): FastifyReply =>
  reply.header("Content-Security-Policy", policy).type("text/html; charset=utf-8").send(html);

/** Returns true if a browser requests the address as a page, and not as an operation of the API. */
const opensPage = ({ method, url, headers }: FastifyRequest): boolean =>
  (method === "GET" || method === "HEAD") &&
  !/^\/(api|internal)(\/|$)/.test(url.split("?", 1)[0] ?? "") &&
  (headers.accept ?? "").includes("text/html");

/**
 * Sends the page for an address that the service does not serve. Returns undefined if the request is not a browser's
 * request for a page.
 */
export function sendNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  if (!opensPage(request)) return undefined;
  // The link is relative, because a proxy may serve the service under a different path.
  const depth = (request.url.split("?", 1)[0] ?? "").split("/").length - 2;
  const start = depth > 0 ? "../".repeat(depth) : "./";
  const style = readStyle();
  const body = `<p>This service has no page at this address. Check the address, or open the <a href="${start}">start page</a>.</p>\n`;
  const html = htmlOf({ title: "Page not found", body, style, start });
  return sendPage(reply.code(404), { html, policy: policyOf(style) });
}

/** Redirects the login pages to the console. The query may contain the result of a login with an identity provider. */
function redirectLogins(app: FastifyInstance, consoleUrl: string): void {
  for (const path of ["/login", "/mfa-login"]) {
    const config = { publicBecause: "redirects to the console" };
    app.get(path, { exposeHeadRoute: true, config }, async ({ url }, reply) => {
      // Use only the query, because the target of a request may be a complete URL.
      const start = url.indexOf("?");
      return reply.redirect(`${consoleUrl}${path}${start < 0 ? "" : url.slice(start)}`);
    });
  }
}

/** Scripts that every page contains. Each script comes after the scripts that it uses. */
const SHARED_SCRIPTS = ["message", "link", "call", "form"];

const read = (path: string) => readFileSync(packageFile(path), "utf8").replaceAll("\r\n", "\n");

const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/**
 * Builds a page. The page contains no data from the link, because the page's script reads the data from the address.
 */
function buildPage({ title, body, scripts, start }: PageSource): Page {
  const pageScripts = [...SHARED_SCRIPTS, ...scripts]
    .map((name) => read(`dist/pages/browser/${name}.js`))
    .join("\n");
  const script = elementText(`(() => {\n"use strict";\n${pageScripts}\n${start}();\n})();\n`, "script");
  const style = readStyle();
  return { html: htmlOf({ title, body, style, script }), policy: policyOf(style, script) };
}

let styleOfPages: string | undefined;

/** Returns the style sheet of all pages. The style sheet is a source file of the package, not a build output. */
function readStyle(): string {
  styleOfPages ??= elementText(read("pages/pages.css"), "style");
  return styleOfPages;
}

/**
 * Returns the text for a `script` or `style` element.
 * @throws Error the text contains the end tag of the element
 */
function elementText(text: string, element: string): string {
  if (text.toLowerCase().includes(`</${element}`))
    throw new Error(`the page's ${element} must not contain its own end tag`);
  return text;
}

/**
 * Returns the Content-Security-Policy of a page. The policy allows only the page's script and style, and requests to
 * this service. It also prevents other pages from embedding the page in a frame.
 */
const policyOf = (style: string, script?: string): string =>
  [
    "default-src 'none'",
    ...(script === undefined ? [] : [`script-src ${sha256(script)}`]),
    `style-src ${sha256(style)}`,
    // The icon is empty. Without this element, browsers would request an icon from the service.
    "img-src data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

const MESSAGE = `<noscript><p class="bad">This page needs JavaScript.</p></noscript>
<div id="message" role="status" tabindex="-1"></div>
`;

interface Parts {
  readonly title: string;
  readonly body: string;
  readonly style: string;
  readonly script?: string;
  /** Relative address of the start page. */
  readonly start?: string;
}

const htmlOf = ({ title, body, style, script, start = "./" }: Parts): string => `<!doctype html>
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
<header><a href="${start}">Gatehouse</a></header>
<main>
<h1>${title}</h1>
${script === undefined ? "" : MESSAGE}${body}</main>
${script === undefined ? "" : `<script>${script}</script>\n`}</body>
</html>
`;
