import { readFileSync } from "node:fs";
import type { Json } from "./messages.ts";
import type { Named } from "./scenario.ts";

/** What stands in a recording for something that is known by a name. */
export const markOf = (name: string): string => `«${name}»`;

const ofPackage = (path: string) =>
  readFileSync(new URL(`../../../provider/${path}`, import.meta.url), "utf8");

/**
 * Fields of responses that another release answers differently, which is no reason to record anew: by method, with what
 * this release has to answer.
 */
export const decidedByRelease: Readonly<Record<string, Named>> = {
  GetPluginInfo: { version: (JSON.parse(ofPackage("package.json")) as { version: string }).version },
  GetSchema: { schema: ofPackage("schemas/pulumi.json") },
};

/** The value with marks in place of what is known by a name, the longest first. */
export function withMarks<T>(value: T, named: Named): T {
  const names = Object.entries(named)
    .filter(([, known]) => known !== "")
    .sort(([, a], [, b]) => b.length - a.length)
    .map(
      ([name, known]) =>
        [name, new RegExp(`(?<![0-9A-Za-z])${patternOf(known)}(?![0-9A-Za-z])`, "g")] as const,
    );
  return mapTexts(value, (text) =>
    names.reduce((marked, [name, pattern]) => marked.replace(pattern, markOf(name)), text),
  );
}

/** A pattern of this text alone. */
export const patternOf = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

/** The value with each text in it as `map` makes it. */
export function mapTexts<T>(value: T, map: (text: string) => string): T {
  const each = (json: Json): Json => {
    if (typeof json === "string") return map(json);
    if (Array.isArray(json)) return json.map(each);
    if (typeof json !== "object" || json === null) return json;
    return Object.fromEntries(Object.entries(json).map(([name, member]) => [name, each(member)]));
  };
  return each(value as Json) as T;
}
