import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A library that is a part of a program, or that a package brings with it. */
export interface Library {
  readonly name: string;
  readonly version: string;
  /** As SPDX names it; what its package.json says in another way; empty where it says nothing. */
  readonly license: string;
  /** False for a part of a program that has no text of its licence to go along. */
  readonly hasText?: boolean;
}

/** Libraries whose package.json does not say as SPDX does what their file LICENSE says; somebody has read that one. */
const IN_THEIR_FILES: Readonly<Record<string, string>> = {
  "@logdna/tail-file@2.2.0": "MIT",
  "buildcheck@0.0.7": "MIT",
  "cpu-features@0.0.10": "MIT",
  "ssh2@1.17.0": "MIT",
};

/** The licence of a library, of whose package.json something has taken what it says. */
export const licenceOf = (name: string, version: string, said: unknown): string =>
  IN_THEIR_FILES[`${name}@${version}`] ?? (typeof said === "string" ? said : (JSON.stringify(said) ?? ""));

/** The library that a folder has. */
export function libraryIn(folder: string): Library {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return {
    ...{ name, version, license: licenceOf(name, version, license) },
    hasText: licenceTexts(folder).length > 0,
  };
}

/** What a library's folder has that must go along with copies of it. */
export const licenceTexts = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(licen[cs]e|copying|notice|copyright)/i.test(entry.name))
    .map(({ name }) => name)
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8").trim());
