import { globSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { definitions, definitionsByName, kinds } from "../provider/resources/index.ts";
import { internalOperations, operations } from "../sdk/contract/index.ts";
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
 * Returns the imports of a file: paths from the repository root for own files, and package names for packages.
 * @param types whether to count type-only imports, which the compiler removes
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

/** True for a folder with sources. Other folders hold start scripts or generated files. */
const sourceFolder = (path: string): boolean =>
  lstatSync(join(ROOT, path)).isDirectory() && !SKIPPED.has(basename(path)) && sources(path).length > 0;

const from =
  (...places: string[]) =>
  (imported: string) =>
    places.some((place) => imported === place || imported.startsWith(`${place}/`));

describe("the imports between packages and folders", () => {
  it("include the imports of a file", () => {
    expect(importsOf("provider/resources/index.ts")).toContain("provider/resources/publicKey.ts");
  });

  it.each([
    ["sdk", from("server", "provider", "@gatehouse-access/server", "@gatehouse-access/provider")],
    ["server", from("provider", "agent", "@gatehouse-access/provider", "@pulumi/pulumi")],
    ["agent", from("server", "provider", "@gatehouse-access/server", "@gatehouse-access/provider")],
    ["provider", from("server", "@gatehouse-access/server")],
    ["provider/model", from("@pulumi/pulumi")],
    ["provider/resources", from("@pulumi/pulumi")],
    // The engine imports nothing that depends on the service. From the SDK it imports only the errors, the JSON
    // reader, the promises and the times.
    [
      "provider/engine",
      (name) => from("@gatehouse-access/sdk")(name) && !/\/sdk\/(errors|json|promises|times)$/.test(name),
    ],
    ["provider/lifecycle", from("@pulumi/pulumi", "provider/engine")],
    ["provider/review", from("@pulumi/pulumi")],
    // Policy test files import this folder. It must load fast, and must not depend on the test runner.
    [
      "provider/policyTests/api",
      (name) => from("provider/policyTests")(name) && !from("provider/policyTests/api")(name),
    ],
    ["provider/revisions", from("@pulumi/pulumi")],
    ["sdk/contract", from("undici")],
  ])("%s has no forbidden import", (folder, forbidden) => {
    expect(sources(folder).length).toBeGreaterThan(0);
    expect(offenders(folder, forbidden)).toEqual([]);
  });
});

/**
 * The folders of a module, and the sibling folders that each of them may import. A nested folder counts as part of its
 * parent, unless it belongs to a module of its own in `modules`.
 */
interface Module {
  /**
   * Files in the module's folder that every subfolder may import. Common files import no subfolder, except for types.
   * The other files in the module's folder are the entry points of the module.
   */
  readonly common: readonly string[];
  /** Subfolders that common files may import, as exceptions. */
  readonly commonUses?: readonly string[];
  readonly folders: Readonly<Record<string, readonly string[]>>;
}

/** The files directly in a module's folder, without the entry points of the module. */
const filesOf = (module: string, ...entrances: readonly string[]): string[] =>
  readdirSync(join(ROOT, module)).filter((name) => name.endsWith(".ts") && !entrances.includes(name));

const modules: Readonly<Record<string, Module>> = {
  // The folder policy imports the maximum size of patterns from the folder contract.
  sdk: {
    common: [
      "errors.ts",
      "errorCodes.ts",
      "commandLine.ts",
      "fileErrors.ts",
      "issuer.ts",
      "mask.ts",
      "requestSentences.ts",
      "sentence.ts",
      "times.ts",
      "variables.ts",
    ],
    folders: { contract: [], policy: ["contract"] },
  },
  "sdk/policy": { common: filesOf("sdk/policy", "index.ts"), folders: { lint: [] } },
  provider: {
    common: filesOf("provider", "index.ts"),
    folders: {
      service: [],
      model: ["engine", "service"],
      resources: ["engine", "model", "service"],
      lifecycle: ["model", "service"],
      engine: [],
      terraform: ["engine", "model", "resources"],
      namespace: ["engine", "lifecycle", "model", "resources", "service"],
      plan: ["engine", "lifecycle", "model", "namespace", "resources", "service", "terraform"],
      access: ["model", "namespace", "resources"],
      privileges: ["access", "model", "namespace", "resources"],
      map: ["access", "import"],
      policyTests: ["access", "model", "namespace", "resources", "service"],
      review: [
        "engine",
        "lifecycle",
        "model",
        "namespace",
        "plan",
        "policyTests",
        "privileges",
        "resources",
        "service",
      ],
      helpers: ["service"],
      providers: [
        "access",
        "engine",
        "helpers",
        "lifecycle",
        "model",
        "namespace",
        "resources",
        "schemas",
        "service",
        "terraform",
      ],
      import: ["engine", "helpers", "model", "namespace", "resources", "terraform"],
      drift: [
        "engine",
        "import",
        "lifecycle",
        "model",
        "namespace",
        "plan",
        "privileges",
        "resources",
        "review",
        "service",
        "terraform",
      ],
      revisions: ["engine"],
      verify: ["access", "engine", "model", "namespace", "resources", "service"],
      cli: [
        "access",
        "drift",
        "engine",
        "import",
        "map",
        "model",
        "namespace",
        "plan",
        "policyTests",
        "providers",
        "resources",
        "review",
        "revisions",
        "service",
        "terraform",
        "verify",
      ],
    },
  },
  "provider/engine": {
    common: filesOf("provider/engine", "index.ts"),
    folders: { state: [], embedded: ["state"], cli: ["state"] },
  },
  // Files in this folder call the folder deploy. The folder deploy calls the folder program.
  "provider/engine/embedded": {
    common: [],
    folders: { program: [], deploy: ["program"] },
  },
  server: {
    common: filesOf("server", "app.ts", "main.ts", "start.ts"),
    // Common files convert database errors to errors of the service.
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

describe.each(Object.entries(modules))("folders of %s", (module, { common, commonUses = [], folders }) => {
  it("match the rules", () => {
    const found = readdirSync(join(ROOT, module), { withFileTypes: true }).filter(({ name }) =>
      sourceFolder(join(module, name)),
    );
    expect(found.map(({ name }) => name).sort()).toEqual(Object.keys(folders).sort());
  });

  it("are not imported by common files", () => {
    const within = from(...[...common, ...commonUses].map((name) => `${module}/${name}`));
    const offending = common.flatMap((file) =>
      importsOf(join(module, file), { types: false })
        .filter((name) => from(module)(name) && !within(name))
        .map((name) => `${file} imports ${name}`),
    );
    expect(offending).toEqual([]);
  });

  it.each(Object.entries(folders))("%s imports only allowed folders", (folder, allowed) => {
    const within = from(...[folder, ...common, ...allowed].map((name) => `${module}/${name}`));
    expect(offenders(join(module, folder), (name) => from(module)(name) && !within(name))).toEqual([]);
  });
});

describe("the names of kinds of objects", () => {
  const names = definitions.map(({ name }) => name);
  const literals = new RegExp(`["'](?:${names.join("|")})["']`, "g");

  it("are written in few places of the provider outside the definitions", () => {
    const files = sources("provider").filter(
      (file) =>
        !/^provider\/(model|resources)\//.test(file) &&
        !file.startsWith("provider/providers/dynamic/generated/"),
    );
    const places = files.flatMap((file) =>
      (readFileSync(join(ROOT, file), "utf8").match(literals) ?? []).map((literal) => `${file} ${literal}`),
    );
    // Two listings that belong to no page name a kind in their errors, and the functions name the type of their results.
    expect(places.filter((place) => !/^provider\/(service|providers)\//.test(place))).toEqual([
      'provider/map/accessMapHtml.ts "Device"',
      'provider/map/accessMapHtml.ts "Tag"',
    ]);
    expect(places.length).toBeLessThanOrEqual(10);
  });

  it("in the index are the names of the definitions", () => {
    const renamed = Object.entries(definitionsByName).filter(
      ([name, definition]) => definition.name !== name,
    );
    expect(renamed).toEqual([]);
  });
});

it("the inputs of a kind contain each field of the requests that create or change its objects", () => {
  const excepted = [
    "Namespace.tenant", // the service chooses it: an output
    "Namespace.type", // programs create namespaces of the default type
    "Member.accessExpiresAt", // the input expiresAt
    "ApiKey.expiresAt", // the input validDays
    "ApiKey.key", // a secret of the provider, or the output key
    "Tag.tag", // the input name
    "Device.publicUrl", // no program declares the public address of a device
  ];
  const fields = kinds.flatMap(({ definition: { name, inputs }, operations: { create, update } }) =>
    [...create, ...update]
      .filter((id): id is keyof typeof operations => Object.hasOwn(operations, id))
      .flatMap((id) => {
        const { body } = operations[id];
        return body instanceof z.ZodObject ? Object.keys(body.shape) : [];
      })
      .map((field) => field.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()))
      .map((field) => ({ field: `${name}.${field}`, isInput: Object.hasOwn(inputs, field) })),
  );
  expect(fields.length).toBeGreaterThan(40);
  expect(new Set(fields.filter(({ isInput }) => !isInput).map(({ field }) => field))).toEqual(
    new Set(excepted),
  );
});

describe("the gateway process", () => {
  it("loads no code of the database, the HTTP API or secrets", () => {
    const reached = new Set(["server/gateway/ssh/main.ts"]);
    for (const file of reached) {
      for (const name of importsOf(file, { types: false })) if (name.endsWith(".ts")) reached.add(name);
    }
    const outside = [...reached].filter((file) => !file.startsWith("server/gateway/ssh/")).sort();
    expect(outside).toEqual([
      "server/DecisionTurns.ts",
      "server/NamespacePatterns.ts",
      "server/OperatorError.ts",
      "server/addresses.ts",
      "server/gateway/protocol.ts",
      "server/http/limits/memoryCounts.ts",
      "server/periods.ts",
      "server/process/logging.ts",
    ]);
  });
});

describe("the Terraform provider", () => {
  it("loads no code of the engine or Pulumi", () => {
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
  /** The files of one import cycle, in import order. Empty if there is no cycle. */
  function cycle(): string[] {
    const left = new Map(
      ["sdk", "server", "agent", "provider", "test", "bench", "docs", "examples"].flatMap((folder) =>
        sources(folder).map((file) => [file, importsOf(file)] as const),
      ),
    );
    expect(left.size).toBeGreaterThan(500);
    // Removes the files that import no remaining file, since they are in no cycle. Each file that remains at the end is
    // in a cycle or imports a file of a cycle.
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

  it("contain no cycle, neither of values nor of types", () => {
    expect(cycle()).toEqual([]);
  });
});

describe("exports of values", () => {
  /** Files whose importers are not in the repository, are generated, or are the tools that load them. */
  const loadedFromOutside = new Set([
    ...["contract/index", "errors", "index", "json", "policy/index", "promises", "ssh2", "times"].map(
      (name) => `sdk/${name}.ts`,
    ),
    "provider/index.ts",
    "provider/policyTests/api/index.ts",
    "provider/providers/dynamic/classInputs.ts",
    "provider/providers/dynamic/providers.ts",
  ]);

  /** This file imports whole modules, but uses only their handlers, whose names are ids of operations. */
  const HANDLERS = "server/features/handlers.ts";
  const ids = Object.keys({ ...operations, ...internalOperations });

  /** Returns the exports that a file imports as `file#name`, and as `file#*` for an import of the whole module. */
  function importedNames(file: string): string[] {
    const text = readFileSync(join(ROOT, file), "utf8");
    const keys = (specifier: string, names: readonly string[]) => {
      const path = relative(ROOT, resolve(ROOT, dirname(file), specifier));
      const source = path.replace("/dist/", "/").replace(/\.js$/, ".ts");
      return names.map((name) => `${source}#${name}`);
    };
    const named = [...text.matchAll(/\{([^{}]*)\} from "(\.[^"]+)"/g)].flatMap(
      ([, list = "", specifier = ""]) =>
        keys(
          specifier,
          list.split(",").map((item) =>
            item
              .trim()
              .replace(/^type /, "")
              .replace(/ as .*/, ""),
          ),
        ),
    );
    const whole = [...text.matchAll(/(?:\*(?: as \w+)? from|import\()\s*"(\.[^"]+)"/g)].flatMap(
      ([, specifier = ""]) => keys(specifier, file === HANDLERS ? ids : ["*"]),
    );
    return [...named, ...whole];
  }

  it("are imported by another file", () => {
    const folders = ["sdk", "server", "agent", "provider"];
    const importing = [...folders, "test", "bench", "docs", "scripts"].flatMap(sources);
    const imported = new Set([...importing, ...globSync("*/bin/*.js", { cwd: ROOT })].flatMap(importedNames));
    const exported = folders.flatMap(sources).flatMap((file) => {
      if (loadedFromOutside.has(file) || imported.has(`${file}#*`)) return [];
      const text = readFileSync(join(ROOT, file), "utf8");
      const names = text.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm);
      return Array.from(names, ([, name]) => `${file}#${name}`);
    });
    expect(exported.length).toBeGreaterThan(1000);
    expect(exported.filter((name) => !imported.has(name))).toEqual([]);
  });
});

describe("the map in CONTRIBUTING.md", () => {
  it("lists every folder of the first two levels", () => {
    const text = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");
    const named = [...text.matchAll(/^\| `([a-z][\w/-]*)` +\|/gim)].map((match) => match[1]);
    const folders = (path: string): string[] =>
      readdirSync(join(ROOT, path), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && !SKIPPED.has(entry.name) && !entry.name.startsWith("."))
        .map(({ name }) => join(path, name))
        .filter((folder) => readdirSync(join(ROOT, folder)).length > 0);
    const existing = folders("").flatMap((folder) => [folder, ...folders(folder)]);
    expect(named.toSorted()).toEqual(existing.sort());
  });
});

describe("the tests that need no build", () => {
  /** Files that start built programs as processes. */
  const starting = ["test/support/service.ts", "test/support/gatehouse.ts"];

  /** Returns the files of test/ that a test file loads, directly or indirectly, including the test file. */
  function reached(file: string, known = new Set<string>()): Set<string> {
    if (known.has(file)) return known;
    known.add(file);
    for (const imported of importsOf(file, { types: false }).filter(from("test"))) reached(imported, known);
    return known;
  }

  it("start no process of the build", () => {
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
