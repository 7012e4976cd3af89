import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { jsonKind } from "../../sdk/case.ts";
import { camelKey, fromWire, type Operation, publicOperations, toWire } from "../../sdk/index.ts";

/** Random values with the structure of a schema and the key spelling of the wire format. Leaves are any JSON scalar. */
function valuesOf(schema: z.core.$ZodType): fc.Arbitrary<unknown> {
  if (schema instanceof z.ZodObject) {
    const shape = Object.entries(schema.shape as Record<string, z.core.$ZodType>);
    return fc.record(Object.fromEntries(shape.map(([key, child]) => [key, valuesOf(child)])), {
      requiredKeys: [],
    });
  }
  if (schema instanceof z.ZodArray) {
    return fc.array(valuesOf(schema.element), { maxLength: 3 });
  }
  if (schema instanceof z.ZodRecord) {
    return fc.dictionary(fc.string(), valuesOf(schema.valueType as z.core.$ZodType), { maxKeys: 3 });
  }
  if (schema instanceof z.ZodUnion) {
    return fc.oneof(...schema.options.map(valuesOf));
  }
  const inner = (schema._zod.def as { innerType?: z.core.$ZodType }).innerType;
  return inner ? valuesOf(inner) : fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
}

const schemas = Object.values(publicOperations as Record<string, Operation>).flatMap((operation) =>
  [operation.params, operation.query, operation.body, operation.success.body].flatMap((schema, index) =>
    schema ? [[`${operation.id} ${["params", "query", "body", "response"][index]}`, schema] as const] : [],
  ),
);

const nested = z.object({
  tenant_id: z.string(),
  by_name: z.record(z.string(), z.object({ first_seen: z.string(), any_thing: z.unknown() })),
  some_list: z.array(z.union([z.object({ item_a: z.string() }), z.object({ item_b: z.array(z.string()) })])),
  wrapped_in: z
    .object({ is_deep: z.boolean().default(false) })
    .nullish()
    .catch(null),
  refined: z.object({ one_two: z.string() }).refine(() => true),
});

test.each([...schemas, ["nested", nested] as const])(
  "%s: converts from the wire and back without a change",
  (_, schema) => {
    fc.assert(
      fc.property(valuesOf(schema), (wire) => {
        const inside = fromWire(schema, wire);
        expect(toWire(schema, inside)).toEqual(wire);
        expect(fromWire(schema, inside)).toEqual(inside);
      }),
      { numRuns: 30 },
    );
  },
);

test("converts known keys at every level, and keeps the keys of records and of unknown content", () => {
  const wire = {
    tenant_id: "a_b",
    by_name: { user_key: { first_seen: "x", any_thing: { inner_key: [{ deep_key: 1 }] } } },
    some_list: [{ item_a: "1" }, { item_b: ["two_three"] }],
    wrapped_in: { is_deep: true },
    refined: { one_two: "x" },
    not_known: { inner_key: 1 },
  };
  expect(fromWire(nested, wire)).toEqual({
    tenantId: "a_b",
    byName: { user_key: { firstSeen: "x", anyThing: { inner_key: [{ deep_key: 1 }] } } },
    someList: [{ itemA: "1" }, { itemB: ["two_three"] }],
    wrappedIn: { isDeep: true },
    refined: { oneTwo: "x" },
    not_known: { inner_key: 1 },
  });
});

test("prefers a known key to an unknown key of the same spelling", () => {
  const schema = z.object({ tenant_id: z.string() });
  expect(fromWire(schema, { tenantId: "unknown", tenant_id: "known" })).toEqual({ tenantId: "known" });
  expect(fromWire(schema, { tenant_id: "known", tenantId: "unknown" })).toEqual({ tenantId: "known" });
});

test("keeps values that do not match the schema", () => {
  for (const value of [null, undefined, 1, "x", [1, { a_b: 1 }]]) {
    expect(fromWire(nested, value)).toEqual(value);
  }
  expect(fromWire(nested, { some_list: null, refined: 7 })).toEqual({ someList: null, refined: 7 });
});

test("converts an object in place of a text to the object's name, since newer servers send tags as objects", () => {
  const schema = z.object({ tags: z.array(z.string()), some_data: z.object({ a_b: z.string() }) });
  const wire = {
    tags: ["one", { name: "two", tenant_id: "x" }],
    some_data: { name: "kept", a_b: { id: 1 } },
  };
  expect(fromWire(schema, wire)).toEqual({ tags: ["one", "two"], someData: { name: "kept", aB: { id: 1 } } });
  expect(toWire(schema, { tags: [{ name: "two" }] })).toEqual({ tags: [{ name: "two" }] });
});

test("treats __proto__ and constructor as ordinary keys", () => {
  const wire = JSON.parse('{"__proto__": {"tenant_id": 1}, "constructor": 2, "tenant_id": "x"}');
  const inside = fromWire(nested, wire) as object;
  expect(Object.keys(inside).sort()).toEqual(["__proto__", "constructor", "tenantId"]);
  expect(Object.getPrototypeOf(inside)).toBe(Object.prototype);
  expect(({} as Record<string, unknown>).tenant_id).toBeUndefined();
});

test("rejects a schema with two keys of one camelCase spelling", () => {
  const schema = z.object({ a_b: z.string(), "a-b": z.string() });
  expect(() => fromWire(schema, {})).toThrow(/"a_b" and "a-b"/);
});

test("converts values of a recursive schema", () => {
  interface Tree {
    child_list: Tree[];
  }
  const tree: z.ZodType<Tree> = z.lazy(() => z.object({ child_list: z.array(tree) }));
  const wire = { child_list: [{ child_list: [] }] };
  expect(fromWire(tree, wire)).toEqual({ childList: [{ childList: [] }] });
  expect(jsonKind(tree)).toBe("object");
});

test.each([
  ["tenant_id", "tenantId"],
  ["user-id", "userId"],
  ["a_b_c", "aBC"],
  ["plain", "plain"],
  ["_id", "Id"],
  ["a__b", "aB"],
  ["totp_2fa", "totp2fa"],
])("converts %s to %s", (wire, camel) => {
  expect(camelKey(wire)).toBe(camel);
});
