import { createHash } from "node:crypto";
import { pageScript, pageStyle } from "./assets.ts";
import type { AccessMapData } from "./data.ts";
import { pageBody } from "./pageBody.ts";

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
