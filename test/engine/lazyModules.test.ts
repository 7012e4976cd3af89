import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { RARELY_USED, standIn } from "../../provider/engine/embedded/program/unseenWork.ts";

const sdk = createRequire(createRequire(import.meta.url).resolve("@pulumi/pulumi/cmd/run/index.js"));

class Resolver {
  static readonly fast = true;
  readonly path: string;
  constructor(path: string) {
    this.path = path;
  }
}

it("loads nothing until somebody looks", () => {
  let loads = 0;
  const exports = standIn(() => {
    loads += 1;
    return { version: "6.0.3" };
  });
  // What compiled imports ask of every module, and what marks this one as needing no copy of its properties.
  expect((exports as { __esModule?: boolean }).__esModule).toBe(true);
  expect(loads).toBe(0);
  expect((exports as { version?: string }).version).toBe("6.0.3");
  expect((exports as { version?: string }).version).toBe("6.0.3");
  expect(loads).toBe(1);
});

it("is called, made and read as what it stands for", () => {
  const Stand = standIn(() => Resolver) as typeof Resolver;
  expect(Stand.fast).toBe(true);
  expect(new Stand("/work").path).toBe("/work");
  expect(new Stand("/work")).toBeInstanceOf(Resolver);
  const twice = standIn(() => (value: number) => value * 2) as (value: number) => number;
  expect(twice(21)).toBe(42);
  class Own extends Stand {}
  expect(new Own("/work")).toBeInstanceOf(Own);
});

it.each(RARELY_USED)("the SDK has %s", (name) => {
  expect(sdk.resolve(name)).toContain("node_modules");
});

it("shows the properties of a module whose getters stay", () => {
  const compiler: object = createRequire(import.meta.url)("typescript");
  const stand = standIn(() => compiler);
  expect(Object.keys(stand)).toEqual(Object.keys(compiler));
  expect({ ...stand }).toEqual({ ...compiler });
  expect("SyntaxKind" in stand).toBe(true);
});

it("takes what is put into it", () => {
  const real: Record<string, number> = { one: 1 };
  const stand = standIn(() => real) as Record<string, number>;
  stand.two = 2;
  delete stand.one;
  expect(real).toEqual({ two: 2 });
});
