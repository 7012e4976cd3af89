import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { packageFile } from "../packageFile.ts";
import type { AccessMapData } from "./data.ts";

/** The page's scripts in the order of concatenation, without file extensions. */
const PAGE_SCRIPTS = ["model", "rows", "columns", "links", "tables", "main"];
/**
 * The drawing libraries in load order: each library comes after its dependencies. All libraries add functions to the
 * global `d3`.
 */
const LIBRARIES = ["d3-path", "d3-selection", "d3-shape"];

const require = createRequire(import.meta.url);
const ofPackage = (path: string) => readFileSync(packageFile(path), "utf8");

const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Returns a value as JSON that is safe inside an HTML element: it cannot contain the element's closing tag. */
const inert = (data: AccessMapData) => JSON.stringify(data).replaceAll("<", "\\u003c");

/**
 * Returns the access map as one self-contained HTML file. The page makes no requests. Its Content-Security-Policy
 * allows only the script and the style sheet in the file.
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
${pageBody(data)}
<script id="data" type="application/json">${inert(data)}</script>
<script>${script}</script>
</html>
`;
}

/**
 * Returns the page for a namespace whose access is not known. The page contains the reason and the notes instead of a
 * map.
 */
export function unknownMapHtml({ title, notes }: AccessMapData, reason: string): string {
  const lines = [reason, ...notes.filter((note) => note !== reason)];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<title>Access map</title>
<h1>${escaped(title)}</h1>
<p>There is no map, because the access is not known.</p>
<ul>
${lines.map((line) => `<li>${escaped(line)}</li>`).join("\n")}
</ul>
</html>
`;
}

const escaped = (text: string) => text.replaceAll(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`);

function elementText(text: string, element: string): string {
  if (text.toLowerCase().includes(`</${element}`))
    throw new Error(`the page's ${element} must not contain its own closing tag`);
  return text.replaceAll("\r\n", "\n");
}

const pageStyle = (): string =>
  ["head", "map", "details"].map((name) => ofPackage(`map/page/${name}.css`)).join("\n");

/**
 * Returns all scripts of the page as one script: first the libraries, each with its license, then the page's scripts.
 */
function pageScript(): string {
  const own = PAGE_SCRIPTS.map((name) => ofPackage(`dist/map/page/${name}.js`)).join("\n");
  return `${LIBRARIES.map(library).join("\n")}\n(() => {\n"use strict";\n${own}})();\n`;
}

function library(name: string): string {
  const folder = dirname(dirname(require.resolve(name)));
  const license = readFileSync(join(folder, "LICENSE"), "utf8").trim();
  const code = readFileSync(join(folder, "dist", `${name}.min.js`), "utf8");
  return `/*! ${name}\n${license.replaceAll("*/", "* /")}\n*/\n${code}`;
}

const ICONS = {
  keys: "M10.5 1a4.5 4.5 0 0 0-4.3 5.8L1 12v3h3v-2h2v-2h2l1.2-1.2A4.5 4.5 0 1 0 10.5 1Zm1 2.5a1.3 1.3 0 1 1 0 2.6 1.3 1.3 0 0 1 0-2.6Z",
  "keys-group": "M8 8a3.2 3.2 0 1 0 0-6.4A3.2 3.2 0 0 0 8 8Zm-6 6.5c0-3 2.7-5 6-5s6 2 6 5Z",
  devices:
    "M2 2.5h12a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1H9.5v1.5H12V14.5H4V13h2.5v-1.5H2a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1Zm.7 1.7v5.6h10.6V4.2Z",
  "devices-group":
    "M2 1.5h12a.8.8 0 0 1 .8.8v3.4a.8.8 0 0 1-.8.8H2a.8.8 0 0 1-.8-.8V2.3A.8.8 0 0 1 2 1.5Zm0 8h12a.8.8 0 0 1 .8.8v3.4a.8.8 0 0 1-.8.8H2a.8.8 0 0 1-.8-.8v-3.4A.8.8 0 0 1 2 9.5Zm1.5-6v1.2h2V3.5Zm0 8v1.2h2v-1.2Z",
};

const icons = () =>
  Object.entries(ICONS)
    .map(([name, path]) => `<symbol id="icon-${name}" viewBox="0 0 16 16"><path d="${path}"/></symbol>`)
    .join("");

const SIGNS = { gained: "+", lost: "−", kept: "=" };

const card = (change: keyof typeof SIGNS) =>
  `<div class="card"><span class="change ${change}" aria-hidden="true">${SIGNS[change]}</span>` +
  `<strong id="card-${change}"></strong><span class="quiet" id="card-${change}-on"></span></div>`;

const labeled = (label: string, control: string, more = "") =>
  `<label class="quiet"${more}>${label}${control}</label>`;

const typed = (id: string, label: string, list: string, more = "") =>
  labeled(label, `<input id="filter-${id}" list="${list}" autocomplete="off" placeholder="any">`, more) +
  `<datalist id="${list}"></datalist>`;

const chosen = (id: string, label: string, options: string, more = "") =>
  labeled(label, `<select id="filter-${id}">${options}</select>`, more);

const ANY = '<option value="">any</option>';

/** The options of the filter for changes: the labels, by value. */
const CHANGES = { all: "All", changed: "Changed", gained: "+ Gained", lost: "− Lost", kept: "= Kept" };

const changes = () =>
  Object.entries(CHANGES)
    .map(([value, text]) => `<option value="${value}">${text}</option>`)
    .join("");

const column = (
  id: string,
  label: string,
  numbers: string,
  hint: string,
) => `<section class="pane" aria-labelledby="${id}-head">
<div class="pane-head"><h2 id="${id}-head">${label}</h2><small class="quiet">${numbers}</small></div>
<ul class="tree" id="${id}" role="tree" aria-labelledby="${id}-head" aria-describedby="keys-help"></ul>
<p class="none quiet" id="${id}-none" hidden>${hint}</p>
</section>`;

const legendLine = (change: string, path: string, text: string, more = "") =>
  `<li${more}><svg width="48" height="16" aria-hidden="true"><path class="link ${change}" d="M0,8H48"/>${path}</svg>${text}</li>`;

const mark = (change: string, path: string) =>
  `<g class="mark ${change}" transform="translate(24,8)"><circle r="7"/><path d="${path}"/></g>`;

/**
 * The words for the subjects of a map, and the attributes that hide controls. In identity mode, a user is also the
 * person, so controls for persons are hidden. Public keys have no conditions, so controls for conditions are hidden.
 */
const SUBJECTS = {
  key: { noun: "Key", searched: "Key, person", column: "Keys and people", ofKeys: "", ofUsers: " hidden" },
  user: {
    noun: "User",
    searched: "User",
    column: "Users and service accounts",
    ofKeys: " hidden",
    ofUsers: "",
  },
};

/** Returns the body of the page. It contains no map data: the page's script inserts the data. */
function pageBody({ subject, times, isDrift }: AccessMapData): string {
  const { noun, searched, column: subjects, ofKeys, ofUsers } = SUBJECTS[subject];
  const [gained, lost] = isDrift ? ["gained, not declared", "lost, but declared"] : ["gained", "lost"];
  return `<body${isDrift ? ' class="drift"' : ""}>
<a class="skip" href="#map">Skip to the map</a>
<svg hidden>${icons()}</svg>
<header>
<div class="head"><svg class="logo" width="44" height="44" viewBox="0 0 32 32" aria-hidden="true"><path d="M16 2 28 6.5v8.7c0 7-4.8 12.3-12 14.8C8.8 27.5 4 22.2 4 15.2V6.5Z"/><path class="bars" d="M10.5 22v-9.5a5.5 5.5 0 0 1 11 0V22M16 7.2V22M10.5 16h11"/></svg>
<div><p class="quiet">Gatehouse access map</p><h1 id="title"></h1></div>
<button type="button" id="theme">Dark theme</button></div>
<dl id="facts"></dl>
<p class="quiet" id="evaluated"></p>
</header>
<noscript><p>This page needs JavaScript. Enable JavaScript in the browser.</p></noscript>
<main>
<section class="cards" aria-label="Summary">${card("gained")}${card("lost")}${card("kept")}</section>
<form id="filters" role="search" aria-label="Filters" autocomplete="off">
${labeled("Search", `<input id="filter-text" type="search" autocomplete="off" placeholder="${searched}, device or tag">`)}
${typed("person", "Person", "people", ofKeys)}
${typed("key", noun, "key-names")}
${typed("device", "Device", "device-names")}
${typed("tag", "Tag", "tags")}
${chosen("login", "Login", ANY)}
${chosen("time", "Time", '<option value="" id="filter-time-first"></option>', times.length > 1 ? "" : " hidden")}
${chosen("condition", "Condition", ANY, ofUsers)}
${chosen("change", "Access", changes())}
<button type="reset">Clear</button>
</form>
<div class="bar"><p class="quiet" id="status" role="status"></p>
<ul class="legend" aria-label="Legend">
${legendLine("gained", mark("gained", "M-3.5,0H3.5M0,-3.5V3.5"), gained)}
${legendLine("lost", mark("lost", "M-3.5,0H3.5"), lost)}
${legendLine("kept", "", "kept")}
${legendLine("kept conditional", "", "with a condition", ofUsers)}
</ul></div>
<div class="stage" id="stage">
<div class="map" id="map" tabindex="-1">
${column("keys", subjects, "+ − devices", `No ${subject} matches the filters.`)}
<div class="pane" aria-hidden="true"><div class="pane-head"></div><svg id="links"><g id="paths"></g><g id="marks"></g></svg></div>
${column("devices", "Devices by tag", `+ − ${subject}s`, "No device matches the filters.")}
</div>
<aside class="details pane" id="details" aria-labelledby="details-title">
<div class="pane-head"><h2><bdi id="details-title"></bdi></h2><button type="button" id="details-close" hidden>Close</button></div>
<div id="details-body"></div>
</aside>
</div>
<p class="help quiet" id="keys-help">Press Tab to switch lists, and Up or Down to move within a list. Press Right to open a
group or to go to the first device of a ${subject}, and Left to go back. Press Enter to select, and Escape to clear the
selection.</p>
<section class="list" aria-labelledby="list-head">
<h2 id="list-head">Table</h2>
<div id="list-body"></div>
<button type="button" id="list-more" hidden>Show 100 more</button>
</section>
<section class="notes" id="notes" aria-labelledby="notes-head"><h2 id="notes-head">Notes</h2><ul id="notes-list"></ul></section>
</main>
<footer><p>An open group shows up to 200 members, and a list shows up to 400 groups. The others are hidden in one line;
use a filter to find them. This file makes no requests. It includes d3-selection and d3-shape with their licenses.</p></footer>
`;
}
