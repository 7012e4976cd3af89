import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ResourceDefinition } from "../../provider/resources/definition.ts";
import { definitions } from "../../provider/resources/index.ts";
import type { FrontDoor, Made } from "../provider/support/door.ts";
import { programs } from "../provider/support/programs.ts";
import { terraformDoor } from "../provider/support/terraformDoor.ts";
import { startWorld, type World } from "../provider/support/world.ts";

type Values = Record<string, unknown>;

/** Inputs that say what a run does later, which no object on the service tells. */
const OF_RUNS = ["forceDestroy", "rotateBefore", "overlap", "keepers", "onDestroy"];

/** How values are written that may be written in several ways. */
type Spelling = "as it is" | "one way" | "another way";

const pick = (values: Values, names: readonly string[]): Values =>
  Object.fromEntries(names.map((name) => [name, values[name]]));

/** A resource, another configuration of it, and how the values of that are written. */
interface Case {
  readonly before: Values;
  readonly other: Values;
  /** Names of the inputs that the second configuration has from `other`. */
  readonly changed: readonly string[];
  readonly spelling: Spelling;
  /** True where the state has what an import says of the object, in place of what a create did. */
  readonly isImported: boolean;
}

const cases = ({ name, inputs }: ResourceDefinition): fc.Arbitrary<Case> =>
  fc.record({
    before: programs(name),
    other: programs(name),
    changed: fc.subarray(
      // An accepted device takes no other status, and another one cannot have its name.
      Object.keys(inputs).filter(
        (input) => !(name === "Device" && ["status", "device", "tenant"].includes(input)),
      ),
      { maxLength: 2 },
    ),
    spelling: fc.constantFrom<Spelling>("as it is", "one way", "another way"),
    isImported: fc.boolean(),
  });

describe("a plan and the apply after it", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.stop());

  async function inRun<T>(work: (door: FrontDoor) => Promise<T>): Promise<T> {
    const door = await terraformDoor({ env: world.env, stack: "s", stateId: "1", replace: [] });
    try {
      return await work(door);
    } finally {
      await door.close();
    }
  }

  /** Inputs in other words that mean the same. @param now those of the object as it is */
  async function configured(type: string, inputs: Values, spelling: Spelling, now: Values): Promise<Values> {
    if (spelling === "as it is") return inputs;
    const isFirst = spelling === "one way";
    const reversed = (value: unknown) => (Array.isArray(value) ? [...value].reverse() : value);
    const all: Record<string, (value: string) => unknown> = {
      email: (value) => (isFirst ? value.toUpperCase() : value.toLowerCase()),
      data: (value) => `  ${value.split(" ").slice(0, 2).join("  ")} other ${isFirst}`,
      ...(["Namespace", "Device"].includes(type) && {
        name: (value) => (isFirst ? value.toUpperCase() : value.toLowerCase()),
      }),
      device: (value) => deviceIn(value, isFirst, { tenant: inputs.tenant, name: now.name }),
    };
    const entries = Object.entries(inputs).map(async ([name, value]) => {
      const write = typeof value === "string" ? all[name] : reversed;
      return [name, await (write?.(value as string) ?? value)] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  /** A device by its uid or its MAC address. */
  async function deviceIn(selector: string, isFirst: boolean, { tenant, name: now }: Values) {
    const client = tenant ? world.client.forTenant(String(tenant)) : world.client;
    const names = [selector.toLowerCase(), String(now).toLowerCase()];
    const found = (await client.getDevices({ query: { perPage: 100 } })).find(
      ({ name, identity }) => names.includes(name) || names.includes(identity.mac),
    );
    if (!found) throw new Error(`no device ${selector}`);
    return isFirst ? found.uid : found.identity.mac.toUpperCase();
  }

  it.each(definitions.map((definition) => [definition.name, definition] as const))(
    "%s: have the same values, whatever words the configuration and the state have for them",
    { timeout: 120_000 },
    async (type, definition) => {
      const resource = { type, name: "it" };
      await fc.assert(
        fc.asyncProperty(cases(definition), async ({ before, other, changed, spelling, isImported }) => {
          if (type === "Device") await world.restoreDevices();
          const given = world.here(before) as Values;
          const made = await inRun(async (door) => {
            const { inputs, failures } = await door.check(resource, {}, given);
            expect(failures).toEqual([]);
            return door.create(resource, inputs);
          });
          const next = await configured(
            type,
            { ...given, ...pick(world.here(other), changed) },
            spelling,
            given,
          );
          const left = await inRun(async (door): Promise<Made> => {
            const now = isImported ? await door.read(resource, made.id, {}) : made;
            if (!now) throw new Error("it is gone");
            const { inputs, failures } = await door.check(resource, made.outputs, next);
            // Each of the two is right, and together they need not be.
            if (failures.length > 0) return now;
            const replaces = await door.diff(resource, now.id, now.outputs, inputs);
            const isTold = !isImported || OF_RUNS.every((name) => next[name] === undefined);
            if (isTold && changed.every((name) => name === "adopt")) expect(replaces).toBeUndefined();
            if (replaces === undefined) return now;
            if (replaces.length === 0) {
              return { id: now.id, outputs: await door.update(resource, now.id, now.outputs, inputs) };
            }
            return door.create(resource, (await door.check(resource, {}, next)).inputs);
          });
          await inRun((door) => door.delete(resource, left.id, left.outputs));
        }),
        { numRuns: 12, endOnFailure: true },
      );
    },
  );
});
