import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { packageFile } from "../../packageFile.ts";

/** The page's scripts, in the order in which they are joined; without the ends of their names. */
const PAGE_SCRIPTS = [
  ...[
    "model",
    "filter",
    "rows",
    "state",
    "columns",
    "keyboard",
    "links",
    "tables",
    "details",
    "list",
    "head",
  ],
  "main",
];
/** Libraries that draw, each after those that it needs; all hang themselves on one global `d3`. */
const LIBRARIES = ["d3-path", "d3-selection", "d3-shape"];

const require = createRequire(import.meta.url);
const ofPackage = (path: string) => readFileSync(packageFile(path), "utf8");

/** The style of the page; its sheets are published as they were written. */
export const pageStyle = (): string =>
  ["head", "map", "details"].map((name) => ofPackage(`review/map/page/${name}.css`)).join("\n");

/** All scripts of the page as one, the libraries with their licences in front. */
export function pageScript(): string {
  const own = PAGE_SCRIPTS.map((name) => ofPackage(`dist/review/map/page/${name}.js`)).join("\n");
  return `${LIBRARIES.map(library).join("\n")}\n(() => {\n"use strict";\n${own}})();\n`;
}

/** A library as it is published for browsers. */
function library(name: string): string {
  const folder = dirname(dirname(require.resolve(name)));
  const licence = readFileSync(join(folder, "LICENSE"), "utf8").trim();
  const code = readFileSync(join(folder, "dist", `${name}.min.js`), "utf8");
  return `/*! ${name}\n${licence.replaceAll("*/", "* /")}\n*/\n${code}`;
}
