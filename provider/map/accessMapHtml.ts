import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { packageFile } from "../packageFile.ts";
import type { AccessMapData } from "./data.ts";
import { pageBody } from "./pageBody.ts";

/** The page's scripts, in the order in which they are joined; without the ends of their names. */
const PAGE_SCRIPTS = [
  ...["model", "filter", "rows", "state", "columns", "keyboard"],
  ...["links", "tables", "details", "list", "head", "main"],
];
/** Libraries that draw, each after those that it needs; all hang themselves on one global `d3`. */
const LIBRARIES = ["d3-path", "d3-selection", "d3-shape"];

const require = createRequire(import.meta.url);
const ofPackage = (path: string) => readFileSync(packageFile(path), "utf8");

const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** JSON that cannot end the element that it stands in. */
const inert = (data: AccessMapData) => JSON.stringify(data).replaceAll("<", "\\u003c");

/**
 * The access map as one HTML file, which needs nothing else and makes no request: the browser is told to run the one
 * script and to take the one style sheet that it has, and nothing besides.
 */
export function accessMapHtml(data: AccessMapData): string {
  const [style, script] = [elementText(pageStyle(), "style"), elementText(pageScript(), "script")];
  const policy = [
    "default-src 'none'",
    `script-src ${sha256(script)}`,
    `style-src ${sha256(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Access map</title>
<style>${style}</style>
</head>
${pageBody()}
<script id="data" type="application/json">${inert(data)}</script>
<script>${script}</script>
</html>
`;
}

/** The text of a file of ours, as it is. */
function elementText(text: string, element: string): string {
  if (text.toLowerCase().includes(`</${element}`))
    throw new Error(`the page's ${element} must not end itself`);
  return text.replaceAll("\r\n", "\n");
}

/** The style of the page; its sheets are published as they were written. */
const pageStyle = (): string =>
  ["head", "map", "details"].map((name) => ofPackage(`map/page/${name}.css`)).join("\n");

/** All scripts of the page as one, the libraries with their licences in front. */
function pageScript(): string {
  const own = PAGE_SCRIPTS.map((name) => ofPackage(`dist/map/page/${name}.js`)).join("\n");
  return `${LIBRARIES.map(library).join("\n")}\n(() => {\n"use strict";\n${own}})();\n`;
}

/** A library as it is published for browsers. */
function library(name: string): string {
  const folder = dirname(dirname(require.resolve(name)));
  const licence = readFileSync(join(folder, "LICENSE"), "utf8").trim();
  const code = readFileSync(join(folder, "dist", `${name}.min.js`), "utf8");
  return `/*! ${name}\n${licence.replaceAll("*/", "* /")}\n*/\n${code}`;
}
