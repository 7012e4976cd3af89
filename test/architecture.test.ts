import { globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { ofBuilt } from "./projects.ts";

const ROOT = resolve(import.meta.dirname, "..");
const SKIPPED = new Set(["node_modules", "dist", "generated"]);

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : sources(path);
    return entry.name.endsWith(".ts") ? [path] : [];
  });
}

/**
 * What a file imports: paths from the root for own files, package names for the rest.
 * @param types whether imports of types alone count, which are gone when it runs
 */
function importsOf(file: string, { types = true } = {}): string[] {
  const written = readFileSync(join(ROOT, file), "utf8");
  const text = types ? written : written.replaceAll(/import type [^;]*;/g, "");
  const specifiers = [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map((match) => match[1] ?? "");
  return specifiers.map((name) =>
    name.startsWith(".") ? relative(ROOT, resolve(ROOT, dirname(file), name)) : name,
  );
}

function offenders(folder: string, forbidden: (imported: string) => boolean): string[] {
  return sources(folder).flatMap((file) =>
    importsOf(file)
      .filter(forbidden)
      .map((imported) => `${file} imports ${imported}`),
  );
}

const from =
  (...places: string[]) =>
  (imported: string) =>
    places.some((place) => imported === place || imported.startsWith(`${place}/`));

describe("the arrows between the rooms", () => {
  it("sees imports at all", () => {
    expect(importsOf("provider/resources/index.ts")).toContain("provider/resources/publicKey.ts");
  });

  it.each([
    ["sdk", from("server", "provider", "@gatehouse-access/server", "@gatehouse-access/provider")],
    ["server", from("provider", "@gatehouse-access/provider", "@pulumi/pulumi")],
    ["provider", from("server", "@gatehouse-access/server")],
    ["provider/resources", from("provider/pulumi", "provider/engine", "provider/cli", "@pulumi/pulumi")],
    [
      "provider/engine",
      from(
        "provider/resources",
        "provider/pulumi",
        "provider/review",
        "provider/revisions",
        "provider/cli",
        "@gatehouse-access/sdk",
      ),
    ],
    ["provider/review", from("provider/pulumi", "provider/cli", "@pulumi/pulumi")],
    [
      "provider/revisions",
      from("provider/resources", "provider/pulumi", "provider/review", "provider/cli", "@pulumi/pulumi"),
    ],
    ["sdk/contract", from("sdk/policy", "undici")],
  ])("%s keeps to its side", (folder, forbidden) => {
    expect(sources(folder).length).toBeGreaterThan(0);
    expect(offenders(folder, forbidden)).toEqual([]);
  });
});

describe("the tests that need no build", () => {
  /** What starts processes of what was built. */
  const starting = ["test/support/service.ts", "test/support/gatehouse.ts"];

  /** What a test runs of this folder, itself and by what it imports. */
  function reached(file: string, known = new Set<string>()): Set<string> {
    if (known.has(file)) return known;
    known.add(file);
    for (const imported of importsOf(file, { types: false }).filter(from("test"))) reached(imported, known);
    return known;
  }

  it("start no process of it", () => {
    const built = new Set(globSync(ofBuilt, { cwd: ROOT }));
    const withoutBuild = globSync("test/**/*.test.ts", { cwd: ROOT }).filter(
      (file) => !built.has(file) && !from("test/server/postgresql")(file),
    );
    expect(withoutBuild.length).toBeGreaterThan(100);
    const offending = withoutBuild.flatMap((file) =>
      starting.filter((start) => reached(file).has(start)).map((start) => `${file} reaches ${start}`),
    );
    expect(offending).toEqual([]);
  });
});
