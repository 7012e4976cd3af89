import fc from "fast-check";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { cidr, hostname, login } from "../../provider/helpers/patterns.ts";
import { namesIn, rangesIn } from "../../provider/import/helperCalls.ts";
import type { Program, ProgramOptions } from "../../provider/import/model.ts";
import { writeProgram } from "../../provider/import/writeProgram.ts";
import { canonicalInputs, declaringInputs } from "../../provider/model/values.ts";
import { type Declarable, definitionNamed } from "../../provider/namespace/liveObjects.ts";
import { packageVersion } from "../../provider/packageFile.ts";
import { programs } from "./support/programs.ts";

const KINDS = [
  "Namespace",
  "Member",
  "PublicKey",
  "FirewallRule",
  "ApiKey",
  "TrustedWorkload",
  "DeviceTags",
] as const;
const OPTIONS: ProgramOptions = {
  project: "access",
  namespace: "prod",
  service: "https://access.example.org",
  tenant: "3dd0d1f8-8246-4519-b11a-a3dd33717f65",
  format: "typescript",
  plugin: false,
  adopt: false,
};

// Names that a program must not interpret as references.
// biome-ignore lint/suspicious/noTemplateCurlyInString: the text is not a template
const REFERENCE = "${ana}";
// biome-ignore lint/suspicious/noTemplateCurlyInString: the text is not a template
const TEMPLATE = "`${1}`";

/** Names that break the generated program unless it escapes them. */
const nasty = fc.oneof(
  fc.constantFrom(
    "ana",
    "ana",
    "ana-2",
    "",
    " ",
    "constructor",
    "__proto__",
    "toString",
    "7",
    "a::b",
    "it's",
    '"',
    "\\",
    "line\nbreak",
    "e\u0301",
    "\u00e9",
    "\u202eright to left",
    "\u2028",
    "🦊",
    REFERENCE,
    TEMPLATE,
    "*/ evil()",
    "</script>",
    "$$",
    "a$$$b",
    "x".repeat(1_000),
  ),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 5 }),
  // One character of each kind of invisible characters, such as direction marks, zero-width characters and
  // noncharacters.
  fc.string({
    unit: fc.constantFrom(
      ..."a\0\t\u007f\u0085\u00ad\u034f\u200b\u2028\u2029\u202e\u2066\u3164\ufeff\ufe0f\ufdd0\uffff\u{1fffe}\u{e0041}",
    ),
  }),
);

/** Compares the files of a program with those in a document, such as `support/imported-typescript.md`. */
async function expectFiles(files: Program["files"], name: string): Promise<void> {
  const blocks = files.map(
    ({ path, text }) => `## ${path}\n\n\`\`\`${path.split(".").at(-1)}\n${text}\`\`\`\n`,
  );
  const version = `version = "~> ${packageVersion()}"`;
  await expect(blocks.join("\n").replace(version, 'version = "~> <version>"')).toMatchFileSnapshot(
    `support/imported-${name}.md`,
  );
}

/** Checks that line breaks are the only invisible characters in the files. */
function expectVisible({ files }: Program): void {
  const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{NChar}]/u;
  for (const { text } of files) expect(text.split("\n").filter((line) => invisible.test(line))).toEqual([]);
}

/** A random object, in a form that is readable in a counterexample. */
interface Sample {
  readonly kind: (typeof KINDS)[number];
  readonly id: string;
  readonly name: string;
  readonly inputs: Readonly<Record<string, unknown>>;
}

const sampleOf = (kind: Sample["kind"], index: number): fc.Arbitrary<Sample> =>
  fc.record({ args: programs(kind), name: nasty }).map(({ args, name }) => {
    const fields = definitionNamed(kind).inputs;
    const inputs = declaringInputs(fields, canonicalInputs(fields, args));
    // The service accepts any text as the name of a key.
    return {
      kind,
      id: `tenant/${kind}${index}`,
      name,
      inputs: kind === "PublicKey" ? { ...inputs, name } : inputs,
    };
  });

/** Random objects of all kinds. A kind with many objects causes the program to declare them in a table. */
const tenants: fc.Arbitrary<Sample[]> = fc
  .tuple(
    ...KINDS.map((kind) => fc.nat({ max: kind === "Namespace" ? 1 : 20 }).map((count) => ({ kind, count }))),
  )
  .chain((counts) =>
    fc.tuple(
      ...counts.flatMap(({ kind, count }) =>
        Array.from({ length: count }, (_, index) => sampleOf(kind, index)),
      ),
    ),
  );

const objectsOf = (samples: readonly Sample[]): Declarable[] =>
  samples.map(({ kind, ...object }) => ({ ...object, definition: definitionNamed(kind) }));

interface Registered {
  readonly kind: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly options: unknown;
  /** The object that the class returned. */
  readonly object?: object;
}

/**
 * Runs a program with the real helper functions. The resource classes are replaced with classes that record their
 * arguments.
 */
function run({ files }: Program, from = "@gatehouse-access/provider"): Registered[] {
  const registered: Registered[] = [];
  const classes = Object.fromEntries(
    [...KINDS, "AccessPolicy", "ServiceAccount"].map((kind) => [
      kind,
      class {
        readonly accountId = {};
        constructor(name: string, args: Registered["args"], options?: unknown) {
          registered.push({ kind, name, args, options, object: this });
        }
      },
    ]),
  );
  const modules: Record<string, unknown> = {
    "node:fs": { readFileSync: (path: string) => files.find((file) => file.path === path)?.text },
    "node:path": { join: (_folder: string, ...names: string[]) => names.join("/") },
    "@gatehouse-access/provider": { cidr, hostname, login, ...(from.endsWith("provider") && classes) },
    [from]: { ...(from.endsWith("provider") && { cidr, hostname, login }), ...classes },
  };
  const loaded = new Map<string, object>();
  const load = (name: string): object => {
    if (!name.startsWith("./")) return modules[name] as object;
    const known = loaded.get(name);
    if (known) return known;
    const exports = {};
    loaded.set(name, exports);
    const source = files.find(({ path }) => path === `${name.slice(2)}.ts`)?.text ?? "";
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
    });
    new Function("exports", "require", "__dirname", outputText)(exports, load, "");
    return exports;
  };
  load("./index");
  return registered;
}

const PREFIX = "pulumi-nodejs:dynamic/gatehouse:";
const byId = (left: { id: string }, right: { id: string }) => (left.id < right.id ? -1 : 1);

/** Returns the declarations that the program contains, by the ids of their resources. */
function declaredIn({ resources }: Program, registered: readonly Registered[], prefix = PREFIX) {
  return resources
    .map(({ type, name, id }) => {
      const all = registered.filter((one) => `${prefix}${one.kind}` === type && one.name === name);
      expect(all).toHaveLength(1);
      return { id, inputs: all[0]?.args };
    })
    .sort(byId);
}

const asDeclared = (objects: readonly Declarable[]) =>
  objects.map(({ id, inputs }) => ({ id, inputs })).sort(byId);

describe("the program for existing objects", () => {
  test("declares exactly the existing objects, for any names of objects", { tags: ["long"] }, () => {
    fc.assert(
      fc.property(tenants, fc.boolean(), (samples, plugin) => {
        const objects = objectsOf(samples);
        const program = writeProgram(objects, { ...OPTIONS, plugin });
        expectVisible(program);
        const registered = run(program, plugin ? "@gatehouse-access/pulumi" : undefined);
        expect(registered).toHaveLength(objects.length);
        const prefix = plugin ? "gatehouse:index:" : PREFIX;
        expect(declaredIn(program, registered, prefix)).toEqual(asDeclared(objects));
        for (const { kind, options } of registered) {
          expect(options).toEqual(kind === "Namespace" ? { protect: true } : undefined);
        }
      }),
      { numRuns: 40 },
    );
  });

  test("declares new policies with their accounts, and the namespace after them, for any names", () => {
    const namespace = {
      definition: definitionNamed("Namespace"),
      id: "tenant",
      name: "prod",
      inputs: { name: "prod", settings: { sshAccessMode: "legacy" } },
    };
    const logins = ["root"];
    fc.assert(
      fc.property(
        fc.array(fc.tuple(nasty, fc.boolean()), { minLength: 1 }),
        fc.boolean(),
        (names, plugin) => {
          const newObjects = names.flatMap(([name, isNew], index): Declarable[] => {
            const id = `new ${index}`;
            const policy = {
              definition: definitionNamed("AccessPolicy"),
              id,
              name,
              comment: name,
              inputs: { name, subject: { user: isNew ? id : "ana" }, logins },
            };
            if (!isNew) return [policy];
            const inputs = { name, data: `key ${index}` };
            return [policy, { definition: definitionNamed("ServiceAccount"), id, name, inputs }];
          });
          const options = { ...OPTIONS, plugin, newObjects };
          const program = writeProgram([namespace], options);
          expectVisible(program);
          const registered = run(program, plugin ? "@gatehouse-access/pulumi" : undefined);
          const of = (kind: string) => registered.filter((one) => one.kind === kind);
          const accounts = new Map(
            of("ServiceAccount").map(({ object, args }) => [
              (object as { accountId: object }).accountId,
              args,
            ]),
          );
          const declared = of("AccessPolicy").map(({ args }) => {
            const { user } = args.subject as { user: object | string };
            return [args.name, accounts.get(user as object) ?? user];
          });
          const expected = names.map(([name, isNew], index) => [
            name,
            isNew ? { name, data: `key ${index}` } : "ana",
          ]);
          const sorted = (list: unknown[]) => list.map((one) => JSON.stringify(one)).sort();
          expect(sorted(declared)).toEqual(sorted(expected));
          for (const kind of ["AccessPolicy", "ServiceAccount"])
            expect(new Set(of(kind).map(({ name }) => name)).size).toBe(of(kind).length);
          expect(of("Namespace")).toMatchObject([{ args: { settings: { sshAccessMode: "identity" } } }]);
          const last = of("Namespace")[0]?.options as { dependsOn: unknown; protect: unknown };
          expect(last).toEqual({ protect: true, dependsOn: of("AccessPolicy").map(({ object }) => object) });
          expect(registered.at(-1)?.kind).toBe("Namespace");
          for (const format of ["yaml", "terraform"] as const) {
            const other = writeProgram([namespace], { ...options, format });
            expectVisible(other);
            if (format === "yaml") {
              const { resources } = parse(other.files[0]?.text ?? "");
              expect(Object.keys(resources)).toHaveLength(registered.length);
            }
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test("declares the existing objects in YAML", () => {
    fc.assert(
      fc.property(tenants, (samples) => {
        const objects = objectsOf(samples);
        const program = writeProgram(objects, { ...OPTIONS, format: "yaml" });
        expectVisible(program);
        const text = program.files.find(({ path }) => path === "Pulumi.yaml")?.text ?? "";
        const { resources = {}, variables = {} } = parse(text);
        const value = (given: unknown): unknown => {
          if (typeof given === "string") {
            const [, name] = /^\$\{(\w+)\}$/.exec(given) ?? [];
            return name === undefined ? given.replaceAll("$$", () => "$") : value(variables[name]);
          }
          if (Array.isArray(given)) return given.map(value);
          if (typeof given !== "object" || given === null) return given;
          return Object.fromEntries(Object.entries(given).map(([key, item]) => [key, value(item)]));
        };
        const registered = Object.entries<Record<string, unknown>>(resources).map(([key, resource]) => ({
          kind: String(resource.type).replace("gatehouse:", ""),
          name: value(resource.name ?? key) as string,
          args: value(resource.properties ?? {}) as Registered["args"],
          options: resource.options,
        }));
        expect(declaredIn(program, registered, "gatehouse:index:")).toEqual(asDeclared(objects));
        for (const key of [...Object.keys(resources), ...Object.keys(variables)]) {
          expect(key).toMatch(/^[A-Za-z_][\w-]*$/);
        }
      }),
      { numRuns: 40 },
    );
  });

  test("adopts the existing objects without a state, and lists objects that cannot be adopted", () => {
    const sample = objectsOf(fc.sample(tenants, { numRuns: 1, seed: 5 })[0] ?? []);
    const program = writeProgram(sample, { ...OPTIONS, adopt: true });
    const registered = run(program);
    expect(registered.every(({ args }) => args.adopt === true)).toBe(true);
    expect(registered.some(({ kind }) => kind === "ApiKey")).toBe(false);
    expect(program.leftOut).toEqual(sample.filter(({ definition }) => definition.name === "ApiKey"));
    expect(registered).toHaveLength(sample.length - program.leftOut.length);
  });

  test("imports each object once into Terraform, under a valid name", () => {
    fc.assert(
      fc.property(tenants, (samples) => {
        const objects = objectsOf(samples);
        const program = writeProgram(objects, { ...OPTIONS, format: "terraform" });
        expectVisible(program);
        const { files, resources } = program;
        const text = (path: string) => files.find((file) => file.path === path)?.text ?? "";
        const declared = files.flatMap(({ text }) =>
          [...text.matchAll(/^resource "(\w+)" "([A-Za-z]\w*)" \{$/gm)].map(
            ([, type, name]) => `${type}.${name}`,
          ),
        );
        const imported = [...text("imports.tf").matchAll(/^ {2}to +=\s(\w+\.\w+)(\[each\.key\])?$/gm)];
        expect(new Set(declared).size).toBe(declared.length);
        expect(imported.map(([, address]) => address)).toEqual(declared);
        const ids = [...text("imports.tf").matchAll(/^ {2}id = "(.*)"$/gm)].map(([, id]) => id);
        const rows = files
          .filter(({ path }) => path.startsWith("data/"))
          .flatMap(({ text }) => Object.entries<{ id: string }>(JSON.parse(text)));
        expect([...ids, ...rows.map(([, { id }]) => id)].sort()).toEqual(objects.map(({ id }) => id).sort());
        // Names of resources must also differ after Unicode normalization, since Terraform normalizes them.
        expect(rows.map(([name]) => name)).toEqual(rows.map(([name]) => name.normalize()));
        expect(resources.map(({ id }) => id).sort()).toEqual(objects.map(({ id }) => id).sort());
      }),
      { numRuns: 40 },
    );
  });

  test("has one resource for each of 10,000 keys with the same name", () => {
    const definition = definitionNamed("PublicKey");
    const objects = Array.from({ length: 10_000 }, (_, index) => ({
      definition,
      id: `tenant/${index}`,
      name: index % 2 ? "laptop" : `key ${index}`,
      inputs: { name: "laptop", username: "^root$", filter: { hostname: ".*" } },
    }));
    const { resources, files } = writeProgram(objects, OPTIONS);
    expect(new Set(resources.map(({ name }) => name)).size).toBe(10_000);
    const rows = files.find(({ path }) => path === "data/keys.json")?.text ?? "";
    expect(rows.split("\n")).toHaveLength(10_003);
    expect(Object.keys(JSON.parse(rows))).toHaveLength(10_000);
  });

  test("has the format of a handwritten program", async () => {
    const object = (kind: string, name: string, inputs: Record<string, unknown>): Declarable => ({
      definition: definitionNamed(kind),
      id: `tenant/${kind} ${name}`,
      name,
      inputs,
    });
    const rule = (priority: number, sourceIp: string) =>
      object("FirewallRule", "", {
        action: "deny",
        priority,
        sourceIp,
        username: ".*",
        filter: { hostname: hostname("db-1") },
      });
    const { files } = writeProgram(
      [
        object("Member", "carla@example.org", { email: "carla@example.org", role: "operator" }),
        rule(10, cidr("10.0.0.0/8")),
        rule(20, cidr("10.0.0.0/8")),
        rule(30, "^10\\."),
        ...Array.from({ length: 13 }, (_, index) =>
          object("DeviceTags", `web-${index}`, {
            device: index === 3 ? "other" : `web-${index}`,
            tags: ["web"],
          }),
        ),
      ],
      OPTIONS,
    );
    // The other files contain versions of packages.
    const ofProgram = files.filter(({ path }) => path.endsWith(".ts") || path.startsWith("data/"));
    await expectFiles(ofProgram, "typescript");
  });
});

describe("the root module for existing objects", () => {
  const object = (kind: string, index: number, inputs: Record<string, unknown>): Declarable => ({
    definition: definitionNamed(kind),
    id: `tenant/${index}`,
    name: `ana ${index}`,
    inputs,
  });
  const filesOf = (objects: readonly Declarable[]) =>
    writeProgram(objects, { ...OPTIONS, format: "terraform" }).files;
  const member = (index: number) =>
    object("Member", index, { email: `ana${index}@example.org`, role: "operator" });
  const rule = (priority: number) =>
    object("FirewallRule", priority, {
      action: "deny",
      priority,
      sourceIp: cidr("10.0.0.0/8"),
      username: ".*",
      filter: { hostname: ".*" },
    });
  const many = <T>(of: (index: number) => T) => Array.from({ length: 13 }, (_, index) => of(index));

  test("has the format of a handwritten program", () =>
    expectFiles(filesOf([member(1), rule(10)]), "terraform"));

  test("protects the namespace from destroy, and contains no secret", () =>
    expectFiles(
      filesOf([object("Namespace", 1, { name: "prod" }), object("ApiKey", 2, { validDays: 30 })]),
      "terraform-namespace",
    ));

  test("reads its rows from a data file", () => expectFiles(filesOf(many(rule)), "terraform-rows"));

  test.each([
    ["1.5", "single blocks", [member(1)]],
    ["1.7", "a table", many(member)],
    ["1.8", "a function", [rule(1)]],
  ])("requires Terraform %s for %s", (version, _construct, objects) => {
    const text = filesOf(objects).find(({ path }) => path === "versions.tf")?.text;
    expect(text).toContain(`required_version = ">= ${version}"`);
  });

  test("calls no helper with names for which Terraform has a different sort order", () => {
    const key = (index: number, username: string) =>
      object("PublicKey", index, { name: "ana", data: "ssh-rsa AAAA", username, filter: { tags: ["prod"] } });
    const files = filesOf([key(1, login("e\u0301", "f")), key(2, login("e\u0301"))]);
    const { text = "" } = files.find(({ path }) => path === "keys.tf") ?? {};
    expect([...text.matchAll(/username = (.*)/g)].map(([, value]) => value)).toEqual([
      '"^(\u00e9|f)$"',
      'provider::gatehouse::login("\u00e9")',
    ]);
  });

  test("omits objects that Terraform cannot name", () => {
    const key = { ...object("ApiKey", 1, { name: "ke\u0301y", validDays: 30 }), id: "tenant/ke\u0301y" };
    const { leftOut, resources } = writeProgram([key], { ...OPTIONS, format: "terraform" });
    expect([leftOut, resources]).toEqual([[key], []]);
  });
});

describe("the helper call of a pattern", () => {
  const names = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), {
    minLength: 1,
    maxLength: 4,
  });

  test("is recognized for names", () => {
    fc.assert(
      fc.property(names, (some) => {
        const pattern = login(...some);
        const call = namesIn("login", pattern);
        expect(call && login(...call.args)).toBe(pattern);
      }),
    );
  });

  test("is recognized for networks", () => {
    const range = fc.tuple(fc.nat({ max: 2 ** 32 - 1 }), fc.nat({ max: 32 })).map(([address, bits]) => {
      const first = bits === 0 ? 0 : (address & (-1 << (32 - bits))) >>> 0;
      return `${[24, 16, 8, 0].map((shift) => (first >>> shift) & 255).join(".")}/${bits}`;
    });
    fc.assert(
      fc.property(fc.array(range, { minLength: 1, maxLength: 3 }), (ranges) => {
        const pattern = cidr(...ranges);
        const call = rangesIn(pattern);
        expect(call && cidr(...call.args)).toBe(pattern);
      }),
    );
  });

  test.each([".*", "root", "^root", "^(root|ana)$", "^[a-z]+$", "^$", "^a|b$", "^((a|b))$"])(
    "does not exist for %s",
    (pattern) => {
      expect(namesIn("login", pattern)).toBeUndefined();
      expect(rangesIn(pattern)).toBeUndefined();
    },
  );
});
