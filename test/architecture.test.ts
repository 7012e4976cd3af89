import { globSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
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
  const specifiers = [...text.matchAll(/(?:from|import\(?|require\()\s*"([^"]+)"/g)].map(
    (match) => match[1] ?? "",
  );
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

/** Whether a folder has sources: others hold scripts to start by, or what is generated. */
const sourceFolder = (path: string): boolean =>
  lstatSync(join(ROOT, path)).isDirectory() && !SKIPPED.has(basename(path)) && sources(path).length > 0;

const from =
  (...places: string[]) =>
  (imported: string) =>
    places.some((place) => imported === place || imported.startsWith(`${place}/`));

describe("the arrows between the packages and their rooms", () => {
  it("sees imports at all", () => {
    expect(importsOf("provider/resources/index.ts")).toContain("provider/resources/publicKey.ts");
  });

  it.each([
    ["sdk", from("server", "provider", "@gatehouse-access/server", "@gatehouse-access/provider")],
    ["server", from("provider", "agent", "@gatehouse-access/provider", "@pulumi/pulumi")],
    ["agent", from("server", "provider", "@gatehouse-access/server", "@gatehouse-access/provider")],
    ["provider", from("server", "@gatehouse-access/server")],
    ["provider/resources", from("@pulumi/pulumi")],
    // It knows nothing of the service: of the SDK it has errors and the reading of JSON alone.
    ["provider/engine", (name) => from("@gatehouse-access/sdk")(name) && !/\/sdk\/(errors|json)$/.test(name)],
    ["provider/lifecycle", from("@pulumi/pulumi", "provider/engine")],
    ["provider/review", from("@pulumi/pulumi")],
    // What the authors of policy tests import: it must load fast, and says nothing of how tests are run.
    [
      "provider/policyTests/written",
      (name) => from("provider/policyTests")(name) && !from("provider/policyTests/written")(name),
    ],
    ["provider/revisions", from("@pulumi/pulumi")],
    ["sdk/contract", from("undici")],
  ])("%s keeps to its side", (folder, forbidden) => {
    expect(sources(folder).length).toBeGreaterThan(0);
    expect(offenders(folder, forbidden)).toEqual([]);
  });
});

/**
 * The folders of a room, and which others of them each one imports: those alone. Folders below them are one with them,
 * unless they are in a room of their own here.
 */
interface Room {
  /**
   * Files beside the folders that all of them may import; the others are the room's own entrances. Through them a folder
   * reaches no other one, but for types.
   */
  readonly common: readonly string[];
  /** Folders that common files import all the same. */
  readonly commonUses?: readonly string[];
  readonly folders: Readonly<Record<string, readonly string[]>>;
}

/** The files beside the folders of a room, without the room's own entrances. */
const filesOf = (room: string, ...entrances: readonly string[]): string[] =>
  readdirSync(join(ROOT, room)).filter((name) => name.endsWith(".ts") && !entrances.includes(name));

const rooms: Readonly<Record<string, Room>> = {
  // Both read patterns, of whose size the contract has the limit.
  sdk: { common: ["errors.ts", "errorCodes.ts"], folders: { contract: [], policy: ["contract"] } },
  "sdk/policy": { common: filesOf("sdk/policy", "index.ts"), folders: { lint: [] } },
  provider: {
    common: filesOf("provider", "index.ts"),
    folders: {
      service: [],
      resources: ["service"],
      lifecycle: ["resources", "service"],
      engine: [],
      terraform: ["engine", "resources"],
      estate: ["engine", "lifecycle", "resources", "service"],
      plan: ["engine", "estate", "lifecycle", "resources", "service", "terraform"],
      access: ["estate"],
      map: [],
      policyTests: ["access", "estate", "service"],
      review: ["access", "engine", "estate", "lifecycle", "plan", "policyTests", "resources", "service"],
      helpers: ["providers", "service"],
      providers: [
        "access",
        "engine",
        "estate",
        "helpers",
        "lifecycle",
        "resources",
        "schemas",
        "service",
        "terraform",
      ],
      import: ["engine", "estate", "helpers", "terraform"],
      drift: [
        "engine",
        "estate",
        "import",
        "lifecycle",
        "plan",
        "resources",
        "review",
        "service",
        "terraform",
      ],
      revisions: ["engine"],
      cli: [
        "access",
        "drift",
        "engine",
        "estate",
        "import",
        "map",
        "plan",
        "policyTests",
        "providers",
        "review",
        "revisions",
        "service",
        "terraform",
      ],
    },
  },
  "provider/engine": {
    common: filesOf("provider/engine", "index.ts"),
    folders: { state: [], embedded: ["state"], cli: ["state"] },
  },
  // A run goes down: from the files here to deploy and program.
  "provider/engine/embedded": {
    common: [],
    folders: { program: [], deploy: ["program"] },
  },
  server: {
    common: filesOf("server", "app.ts", "main.ts"),
    // Errors of the database are answered as those of the service.
    commonUses: ["db"],
    folders: {
      files: [],
      db: ["files"],
      mail: ["files"],
      settings: ["db", "files", "mail"],
      secrets: ["db", "files"],
      payments: ["db"],
      http: ["db", "secrets", "settings"],
      pages: ["files", "http"],
      lists: ["db", "http"],
      changes: ["db", "http"],
      features: ["changes", "db", "files", "http", "lists", "mail", "payments", "secrets", "settings"],
      gateway: [
        "changes",
        "db",
        "features",
        "files",
        "http",
        "process/boundMemory.ts",
        "process/logging.ts",
        "secrets",
        "settings",
      ],
      admin: ["changes", "db", "features", "files", "http", "payments", "secrets"],
      process: [
        "app.ts",
        "admin",
        "db",
        "features",
        "files",
        "gateway",
        "http",
        "mail",
        "payments",
        "secrets",
        "settings",
      ],
      cli: ["admin", "db", "features", "files", "payments", "process", "secrets", "settings"],
    },
  },
  "server/http": {
    common: ["handler.ts"],
    folders: {
      contract: [],
      listener: [],
      access: ["contract"],
      limits: ["access", "contract", "listener"],
    },
  },
  "server/db": {
    common: filesOf("server/db", "openDatabase.ts"),
    commonUses: ["generated"],
    folders: {
      migrations: [],
      sql: ["generated"],
      sqlite: ["generated", "migrations", "sql"],
      postgresql: ["generated", "migrations", "sql", "sqlite"],
    },
  },
  "provider/review": {
    common: [],
    folders: { guards: [], report: ["guards"] },
  },
  "provider/plan": {
    common: [],
    folders: { planned: ["steps.ts"], saved: ["steps.ts"], terraform: [] },
  },
  "provider/providers": {
    common: filesOf("provider/providers"),
    folders: { dynamic: [], plugin: ["dynamic"], terraform: [], generate: ["dynamic"] },
  },
};

describe.each(Object.entries(rooms))("the folders of %s", (room, { common, commonUses = [], folders }) => {
  it("are those that the rules name", () => {
    const found = readdirSync(join(ROOT, room), { withFileTypes: true }).filter(({ name }) =>
      sourceFolder(join(room, name)),
    );
    expect(found.map(({ name }) => name).sort()).toEqual(Object.keys(folders).sort());
  });

  it("are reached by no common file", () => {
    const within = from(...[...common, ...commonUses].map((name) => `${room}/${name}`));
    const offending = common.flatMap((file) =>
      importsOf(join(room, file), { types: false })
        .filter((name) => from(room)(name) && !within(name))
        .map((name) => `${file} imports ${name}`),
    );
    expect(offending).toEqual([]);
  });

  it.each(Object.entries(folders))("%s imports what it may", (folder, allowed) => {
    const within = from(...[folder, ...common, ...allowed].map((name) => `${room}/${name}`));
    expect(offenders(join(room, folder), (name) => from(room)(name) && !within(name))).toEqual([]);
  });
});

describe("the gateway process", () => {
  it("has no code of the database, of the HTTP API and of secrets", () => {
    const reached = new Set(["server/gateway/ssh/main.ts"]);
    for (const file of reached) {
      for (const name of importsOf(file, { types: false })) if (name.endsWith(".ts")) reached.add(name);
    }
    const outside = [...reached].filter((file) => !file.startsWith("server/gateway/ssh/")).sort();
    expect(outside).toEqual([
      "server/OperatorError.ts",
      "server/addresses.ts",
      "server/gateway/protocol.ts",
      "server/hasEnded.ts",
      "server/http/limits/memoryCounts.ts",
      "server/process/logging.ts",
    ]);
  });
});

describe("the Terraform provider", () => {
  it("has no code of an engine and of Pulumi", () => {
    const reached = new Set(["provider/providers/terraform/main.ts"]);
    for (const file of reached) {
      for (const name of importsOf(file, { types: false })) if (name.endsWith(".ts")) reached.add(name);
    }
    const packages = [...reached].flatMap((file) => importsOf(file, { types: false }));
    expect([...reached].filter(from("provider/engine"))).toEqual([]);
    expect(packages.filter(from("@pulumi/pulumi"))).toEqual([]);
  });
});

describe("imports", () => {
  /** The files of one circle, each of which imports the next one; none where there is no circle. */
  function circle(): string[] {
    const left = new Map(
      ["sdk", "server", "agent", "provider", "test", "bench", "docs", "examples"].flatMap((folder) =>
        sources(folder).map((file) => [file, importsOf(file)] as const),
      ),
    );
    expect(left.size).toBeGreaterThan(500);
    // Whatever imports none of the others is on no circle; what is left in the end leads to one.
    for (let before = 0; before !== left.size; ) {
      before = left.size;
      for (const [file, imports] of left) if (!imports.some((name) => left.has(name))) left.delete(file);
    }
    const path: string[] = [];
    let [file] = left.keys();
    while (file !== undefined && !path.includes(file)) {
      path.push(file);
      file = left.get(file)?.find((name) => left.has(name));
    }
    return file === undefined ? [] : path.slice(path.indexOf(file));
  }

  it("have no circle, of values or of types", () => {
    expect(circle()).toEqual([]);
  });
});

describe("the map in CONTRIBUTING.md", () => {
  it("names every folder of two levels", () => {
    const text = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");
    const named = [...text.matchAll(/^\| `([a-z][\w/-]*)` +\|/gim)].map((match) => match[1]);
    const folders = (path: string): string[] =>
      readdirSync(join(ROOT, path), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && !SKIPPED.has(entry.name) && !entry.name.startsWith("."))
        .map(({ name }) => join(path, name))
        .filter((folder) => readdirSync(join(ROOT, folder)).length > 0);
    const there = folders("").flatMap((folder) => [folder, ...folders(folder)]);
    expect(named.toSorted()).toEqual(there.sort());
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
