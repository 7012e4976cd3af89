import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";

/**
 * Returns the HTML page that shows the OpenAPI document.
 * @param assets folder of the page's files, relative to the page's own address
 */
const pageAt = (assets: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gatehouse API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assets}/swagger-ui.css">
<div id="swagger-ui"></div>
<script src="${assets}/swagger-ui-bundle.js"></script>
<script src="${assets}/start.js"></script>
</html>
`;

// The page keeps entered credentials only in memory, and does not send the document to an external validator. The
// document's URL is relative to this script, because the page has two URLs, `/docs` and `/docs/`.
const START = `SwaggerUIBundle({
  url: new URL("../openapi.json", document.currentScript.src).href,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  persistAuthorization: false,
  validatorUrl: null,
});
`;

/**
 * Headers that restrict the page to its own files and to requests to this service. They also prevent other pages from
 * showing this page in a frame.
 */
const PAGE_HEADERS = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "Referrer-Policy": "no-referrer",
};

// Use only the static files of `@fastify/swagger-ui`, not its routes: the app would reject the routes, because they do
// not declare their access. The files contain Swagger UI without the telemetry that Swagger UI's own package installs.
const read = (name: string) =>
  readFileSync(fileURLToPath(import.meta.resolve(`@fastify/swagger-ui/static/${name}`)));

/**
 * Serves a page that shows the OpenAPI document, at `/docs` and `/docs/`. All content of the page comes from this
 * service.
 */
export function serveDocumentation(app: FastifyInstance): void {
  const files = [
    ["/docs", "text/html; charset=utf-8", pageAt("docs")],
    ["/docs/", "text/html; charset=utf-8", pageAt(".")],
    ["/docs/start.js", "text/javascript; charset=utf-8", START],
    ["/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8", read("swagger-ui-bundle.js")],
    ["/docs/swagger-ui.css", "text/css; charset=utf-8", read("swagger-ui.css")],
  ] as const;
  for (const [url, type, content] of files) {
    app.get(
      url,
      { config: { publicBecause: "shows the OpenAPI document, which is public; contains no user data" } },
      async (_request, reply) => reply.headers(PAGE_HEADERS).type(type).send(content),
    );
  }
}
