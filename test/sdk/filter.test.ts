import fc from "fast-check";
import { expect, test } from "vitest";
import { and, ConfigurationError, type Filter, or, where } from "../../sdk/index.ts";

type Item = { type: string; params: { name: string; operator?: string; value?: unknown } };

const decode = (filter: Filter): Item[] => JSON.parse(Buffer.from(`${filter}`, "base64").toString("utf8"));

/**
 * Evaluates a filter like a server (rules section 6). The filter may compare only the fields of `facts`, with `eq
 * true`.
 */
function evaluate(items: Item[], facts: Record<string, boolean>): boolean {
  const groups: boolean[] = [];
  let open: boolean[] = [];
  for (const { type, params } of items) {
    if (type === "property") {
      open.push(facts[params.name] === params.value);
    } else {
      groups.push(params.name === "and" ? open.every(Boolean) : open.some(Boolean));
      open = [];
    }
  }
  // Every group of conditions must end with an `and` or `or` item. Servers evaluate an unfinished last group
  // differently in different lists.
  expect(open).toEqual([]);
  return groups.every(Boolean);
}

type Tree = { field: string } | { all: Tree[] } | { any: Tree[] };

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom("a", "b", "c", "d").map((field) => ({ field })),
    fc.array(tie("tree"), { minLength: 1, maxLength: 3 }).map((all) => ({ all })),
    fc.array(tie("tree"), { minLength: 1, maxLength: 3 }).map((any) => ({ any })),
  ),
}));

function build(node: Tree): Filter {
  if ("field" in node) {
    return where(node.field).eq(true);
  }
  const [first, ...rest] = ("all" in node ? node.all : node.any).map(build);
  return "all" in node ? and(first as Filter, ...rest) : or(first as Filter, ...rest);
}

function resultOf(node: Tree, facts: Record<string, boolean>): boolean {
  if ("field" in node) {
    return facts[node.field] === true;
  }
  return "all" in node
    ? node.all.every((child) => resultOf(child, facts))
    : node.any.some((child) => resultOf(child, facts));
}

test("encodes any nesting of and() and or() with the same result on the wire", () => {
  const facts = fc.record({ a: fc.boolean(), b: fc.boolean(), c: fc.boolean(), d: fc.boolean() });
  let checked = 0;
  fc.assert(
    fc.property(tree, facts, (node, values) => {
      let items: Item[];
      try {
        items = decode(build(node));
      } catch (error) {
        // A large filter can exceed the limit when it is expanded. The client then throws an error and sends no
        // request.
        expect(error).toBeInstanceOf(ConfigurationError);
        return;
      }
      checked += 1;
      expect(evaluate(items, values)).toBe(resultOf(node, values));
    }),
    { numRuns: 300 },
  );
  expect(checked).toBeGreaterThan(150);
});

test("encodes the documented example with a closed group", () => {
  expect(decode(where("tags").contains(["edge"]))).toEqual([
    { type: "property", params: { name: "tags", operator: "contains", value: ["edge"] } },
    { type: "operator", params: { name: "and" } },
  ]);
});

test("keeps the types of the operators' values", () => {
  const all = and(
    where("name").eq("x"),
    where("name").ne(1),
    where("info.version").gt(3),
    where("online").bool(true),
    where("name").contains("y"),
  );
  const properties = decode(all).filter((item) => item.type === "property");
  expect(properties.map(({ params }) => [params.operator, params.value])).toEqual([
    ["eq", "x"],
    ["ne", 1],
    ["gt", 3],
    ["bool", true],
    ["contains", "y"],
  ]);
});

test("encodes text outside ASCII so that UTF-8 and Latin-1 decode it alike", () => {
  const filter = where("name").eq("Zürich 🚀");
  const latin = JSON.parse(Buffer.from(`${filter}`, "base64").toString("latin1"));
  expect(latin[0].params.value).toBe("Zürich 🚀");
  expect(decode(filter)[0]?.params.value).toBe("Zürich 🚀");
  expect(`${filter}`).toMatch(/^[A-Za-z0-9+/]+=*$/);
});

test("rejects a filter that is too large for a server", () => {
  expect(() => `${where("name").eq("x".repeat(20_000))}`).toThrow(ConfigurationError);
  const pair = and(where("a").eq(1), where("b").eq(1));
  expect(() => or(pair, pair, pair, pair, pair, pair, pair, pair, pair)).toThrow(/too many combinations/);
});
