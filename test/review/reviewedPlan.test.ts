import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { Plan, Step } from "../../provider/engine/index.ts";
import { capturePlan } from "../../provider/plan/saved/capturePlan.ts";
import { OutdatedPlanError, planDifferences } from "../../provider/plan/saved/planDifferences.ts";
import type { ReviewedContent, ReviewedObject, ReviewedStep } from "../../provider/plan/saved/planFile.ts";
import { readPlan, savePlan } from "../../provider/plan/saved/planFile.ts";
import { emptyNamespace, type NamespaceFixture, namespaceOf } from "./support/namespace.ts";
import { device } from "./support/planned.ts";

const step = (more: Partial<ReviewedStep> = {}): ReviewedStep => ({
  op: "update",
  title: 'PublicKey "ana"',
  about: { id: "1/ab:cd" },
  declared: { name: "ana", username: "^root$", filter: { tags: ["prod"] } },
  found: { name: "ana", username: "^ana$", filter: { tags: ["prod"] } },
  ...more,
});
const object = (title: string, fields: ReviewedObject["fields"]): ReviewedObject => ({ title, fields });

const content = (more: Partial<ReviewedContent> = {}): ReviewedContent => ({
  project: "fleet",
  stack: "prod",
  service: "https://gate.example.org",
  home: "1",
  at: "2026-01-01T00:00:00.000Z",
  refresh: true,
  steps: { "urn:ana": step() },
  namespaces: {
    1: {
      name: "fleet",
      unread: [],
      objects: { "FirewallRule 7": object('FirewallRule "7"', { priority: 1, action: "deny" }) },
      devices: { uid: object('device "web-1"', { name: "web-1", tags: ["prod"] }) },
    },
  },
  ...more,
});

const namespace = (more: Partial<ReviewedContent["namespaces"][string]>) =>
  content({ namespaces: { 1: { name: "fleet", unread: [], objects: {}, devices: {}, ...more } } });
const messages = (was: ReviewedContent, is: ReviewedContent) =>
  planDifferences(was, is).differences.map(({ message }) => message);

describe("a plan compared with the reviewed plan", () => {
  test("does not differ from itself, even if its time differs", () => {
    expect(planDifferences(content(), content({ at: "2027-01-01T00:00:00.000Z" }))).toEqual({
      differences: [],
      notes: [],
    });
  });

  test.each<[string, Partial<ReviewedStep>, string]>([
    [
      "a changed declaration",
      { declared: { ...step().declared, username: "^.*$" } },
      'PublicKey "ana": username was "^root$" and is now "^.*$" in the program',
    ],
    [
      "a field that the program no longer sets",
      { declared: { name: "ana", username: "^root$" } },
      'PublicKey "ana": filter was {"tags":["prod"]} and is now not set in the program',
    ],
    [
      "a changed value in the state",
      { found: { ...step().found, username: "^bob$" } },
      'PublicKey "ana": username was "^ana$" and is now "^bob$" in the state',
    ],
    [
      "another object of the resource",
      { about: { id: "1/ab:ef" } },
      'PublicKey "ana", matched object: id was "1/ab:cd" and is now "1/ab:ef" on the service',
    ],
    ["a removed resource", { op: "delete", declared: null }, 'PublicKey "ana" is no longer in the program'],
    [
      "a changed operation alone",
      { op: "replace" },
      'PublicKey "ana": the reviewed plan has update, and the current plan has replace',
    ],
  ])("reports %s", (_, more, message) => {
    expect(messages(content(), content({ steps: { "urn:ana": step(more) } }))).toEqual([message]);
  });

  test("reports added and removed resources, and unreadable namespaces", () => {
    const other = content({ steps: { "urn:bob": step({ title: 'PublicKey "bob"', op: "create" }) } });
    expect(messages(content(), other)).toEqual([
      'PublicKey "ana" is no longer in the program or the state',
      'PublicKey "bob" was not in the reviewed plan',
    ]);
    expect(messages(content(), content({ namespaces: {} }))).toEqual([
      "the namespace fleet can no longer be read",
    ]);
  });

  test("reports objects that were added, removed or changed on the service", () => {
    const [one, two] = [
      object('ApiKey "ci"', { role: "observer" }),
      object('ApiKey "ci"', { role: "owner" }),
    ];
    expect(messages(namespace({ unread: ["API keys"] }), namespace({ objects: { k: one } }))).toEqual([
      "the permission to read API keys of fleet has changed since the review",
    ]);
    expect(messages(namespace({}), namespace({ objects: { k: one } }))).toEqual([
      'ApiKey "ci" is new on the service',
    ]);
    expect(messages(namespace({ objects: { k: one } }), namespace({}))).toEqual([
      'ApiKey "ci" no longer exists on the service',
    ]);
    expect(messages(namespace({ objects: { k: one } }), namespace({ objects: { k: two } }))).toEqual([
      'ApiKey "ci": role was "observer" and is now "owner" on the service',
    ]);
  });

  test("reports changed tags of a device, and notes added and removed devices", () => {
    const web = (name: string, tags: string[]) => object(`device "${name}"`, { name, tags });
    const was = namespace({ devices: { a: web("a", []), b: web("b", []) } });
    const is = namespace({ devices: { a: web("a", ["prod"]), c: web("c", ["prod"]) } });
    expect(planDifferences(was, is)).toEqual({
      differences: [expect.objectContaining({ in: "service", object: 'device "a"', field: "tags" })],
      notes: ['added since the review: device "c"', 'removed since the review: device "b"'],
    });
  });

  test("reports exactly the changed fields", () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.array(fc.string(), { maxLength: 3 }));
    const fields = fc.dictionary(fc.string({ minLength: 1 }), value, { maxKeys: 6 });
    fc.assert(
      fc.property(fields, fields, (old, now) => {
        const declaring = (declared: typeof old) => content({ steps: { urn: step({ declared }) } });
        const named = planDifferences(declaring(old), declaring(now)).differences.map(({ field }) => field);
        const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])];
        const changed = keys.filter((key) => JSON.stringify(old[key]) !== JSON.stringify(now[key]));
        expect(named.toSorted()).toEqual(changed.toSorted());
      }),
    );
  });
});

describe("a captured plan", () => {
  const inStatus = (uid: string, status: "accepted" | "pending") => device("db-1", [], { uid, status });
  const type = "pulumi-nodejs:dynamic/gatehouse:Device";
  const steps: Step[] = [
    {
      op: "create",
      urn: `urn:pulumi:prod::fleet::${type}::db`,
      type,
      name: "db",
      fields: [],
      after: { inputs: { device: "db-1", status: "accepted" }, outputs: {} },
    },
  ];
  const of = (devices: NamespaceFixture["devices"], planSteps = steps) =>
    capturePlan({ project: "fleet", stack: "prod", steps: planSteps } as unknown as Plan, {
      service: "https://gate.example.org",
      home: "1",
      refresh: true,
      live: [namespaceOf(emptyNamespace("1", { devices }))],
    });

  test("contains the device that a name selects, also if the device is pending", () => {
    const [old, other] = [inStatus("a".repeat(64), "pending"), inStatus("b".repeat(64), "pending")];
    // If several pending devices have the name, the provider selects the first one. So a second pending device changes
    // nothing.
    expect(messages(of([old]), of([old, other]))).toEqual([]);
    expect(messages(of([old]), of([other]))).toEqual([
      `Device "db", matched object: device was "${old.uid}" and is now "${other.uid}" on the service`,
    ]);
    expect(messages(of([old]), of([old, { ...other, status: "accepted" }]))).toContainEqual(
      expect.stringContaining("matched object: device was"),
    );
  });

  test("contains every deleted object, also if two objects have the same URN", () => {
    const deletion = (id: string): Step => ({
      op: "delete",
      urn: "urn",
      type,
      name: "db",
      fields: [],
      id,
      before: { inputs: {}, outputs: {} },
    });
    expect(Object.keys(of([], [deletion("1/a"), deletion("1/b")]).steps)).toEqual(["urn", "urn 1/b"]);
  });
});

test("the error message lists the first of many differences, and the error object contains all differences", () => {
  const differences = Array.from({ length: 30 }, (_, index) => ({
    in: "program" as const,
    object: "x",
    message: `difference\u202e ${index}`,
  }));
  const error = new OutdatedPlanError(differences);
  expect(error.differences).toHaveLength(30);
  expect(error.message.split("\n")).toHaveLength(22);
  expect(error.message).toContain("and 10 more");
  expect(error.message).not.toContain("\u202e");
});

describe("the file of a plan", () => {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-plan-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "plan.json");
  const stack = (more: { stack?: string } = {}) => ({
    project: "fleet",
    stack: "prod",
    encrypt: async (text: string) => Buffer.from(text).toString("hex"),
    decrypt: async (text: string) => Buffer.from(text, "hex").toString(),
    ...more,
  });

  test("contains the whole plan", async () => {
    await savePlan(file, stack(), content());
    expect(await readPlan(file, stack())).toEqual(content());
  });

  test("is valid for one stack only, whatever its unencrypted part contains", async () => {
    await savePlan(file, stack(), content());
    await expect(readPlan(file, stack({ stack: "test" }))).rejects.toThrow(
      "it is for fleet/prod, not for fleet/test",
    );
    await savePlan(file, stack({ stack: "test" }), content());
    await expect(readPlan(file, stack({ stack: "test" }))).rejects.toThrow(
      "its content and its header are for different stacks",
    );
  });

  test.each([
    ["no JSON", "plan"],
    ["another JSON object", "{}"],
    ["a plan without its content", '{"gatehouse":"reviewed plan","version":2,"project":"fleet"}'],
  ])("is rejected if it is %s", async (_, text) => {
    writeFileSync(file, text);
    await expect(readPlan(file, stack())).rejects.toThrow("gatehouse review --save did not write this file");
  });

  test.each([1, 3])("is rejected if it has the format of version %d", async (version) => {
    writeFileSync(
      file,
      `{"gatehouse":"reviewed plan","version":${version},"project":"fleet","stack":"prod","content":""}`,
    );
    await expect(readPlan(file, stack())).rejects.toThrow(
      "another version of gatehouse wrote this file, so save the plan again with gatehouse review --save",
    );
  });

  test("is rejected if its content is not a plan", async () => {
    const anySecret = {
      ...stack(),
      decrypt: async () => gzipSync(JSON.stringify(content())).toString("base64"),
    };
    await savePlan(file, stack(), content());
    await expect(readPlan(file, anySecret)).rejects.toThrow("its encrypted content is not a plan");
    await savePlan(file, stack(), { ...content(), more: 1 } as ReviewedContent);
    await expect(readPlan(file, stack())).rejects.toThrow(
      "does not have the format of this version of gatehouse",
    );
    const unpacked = await stack().encrypt("gatehouse reviewed plan 2 AAAA");
    const sealed = {
      gatehouse: "reviewed plan",
      version: 2,
      project: "fleet",
      stack: "prod",
      content: unpacked,
    };
    writeFileSync(file, JSON.stringify(sealed));
    await expect(readPlan(file, stack())).rejects.toThrow("its content cannot be read");
    await expect(readPlan(join(folder, "none"), stack())).rejects.toThrow("it does not exist");
  });
});
