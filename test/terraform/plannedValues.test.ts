/**
 * Slow: random plans. test/provider checks the plans of its programs through Terraform's protocol.
 *
 * @module-tag long
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ResourceDefinition } from "../../provider/model/definition.ts";
import { type FilledFleet, startFilledFleet } from "../provider/support/filledFleet.ts";
import type { CreatedObject, FrontEnd } from "../provider/support/frontEnd.ts";
import { programs } from "../provider/support/programs.ts";
import { terraformFrontEnd } from "../provider/support/terraformFrontEnd.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";

type Values = Record<string, unknown>;

/** Inputs that only control later runs. Objects on the service do not contain them. */
const OF_RUNS = ["forceDestroy", "rotateBefore", "overlap", "keepers", "onDestroy", "allowLockout"];

/** The spelling in a configuration of values that have several equivalent spellings, such as MAC addresses. */
type Spelling = "as it is" | "one way" | "another way";

const pick = (values: Values, names: readonly string[]): Values =>
  Object.fromEntries(names.map((name) => [name, values[name]]));

/**
 * A random test case: a resource configuration, a second configuration of the same resource, and how the second one
 * spells equivalent values.
 */
interface Case {
  readonly before: Values;
  readonly other: Values;
  /** Names of the inputs for which the second configuration has a different value. */
  readonly changed: readonly string[];
  readonly spelling: Spelling;
  /** True if the state comes from an import. False if it comes from a create. */
  readonly isImported: boolean;
}

const cases = ({ name, inputs }: ResourceDefinition): fc.Arbitrary<Case> =>
  fc.record({
    before: programs(name),
    other: programs(name),
    changed: fc.subarray(
      // Omits inputs that must stay the same: the status of an accepted device cannot change, and no second device has
      // the same name.
      Object.keys(inputs).filter(
        (input) => !(name === "Device" && ["status", "device", "tenant"].includes(input)),
      ),
      { maxLength: 2 },
    ),
    spelling: fc.constantFrom<Spelling>("as it is", "one way", "another way"),
    isImported: fc.boolean(),
  });

describe("a plan and the following apply", () => {
  let fleet: FilledFleet;
  beforeAll(async () => {
    fleet = await startFilledFleet();
  });
  afterAll(() => fleet.stop());

  async function inRun<T>(work: (frontEnd: FrontEnd) => Promise<T>): Promise<T> {
    const frontEnd = await terraformFrontEnd({ env: fleet.env, stack: "s", stateId: "1", replace: [] });
    try {
      return await work(frontEnd);
    } finally {
      await frontEnd.close();
    }
  }

  /**
   * Returns equivalent inputs in another spelling.
   * @param now the inputs of the existing object
   */
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

  /** Returns another selector of the same device: its uid, or its MAC address in uppercase. */
  async function deviceIn(selector: string, isFirst: boolean, { tenant, name: now }: Values) {
    const client = tenant ? fleet.client.forTenant(String(tenant)) : fleet.client;
    const names = [selector.toLowerCase(), String(now).toLowerCase()];
    const found = (await client.getDevices({ query: { perPage: 100 } })).find(
      ({ name, identity }) => names.includes(name) || names.includes(identity.mac),
    );
    if (!found) throw new Error(`no device ${selector}`);
    return isFirst ? found.uid : found.identity.mac.toUpperCase();
  }

  it.each(ownDefinitions.map((definition) => [definition.name, definition] as const))(
    "%s: have the same values, whatever the spelling in the configuration and in the state",
    { timeout: 120_000 },
    async (type, definition) => {
      const resource = { type, name: "it" };
      await fc.assert(
        fc.asyncProperty(cases(definition), async ({ before, other, changed, spelling, isImported }) => {
          if (type === "Device") await fleet.restoreDevices();
          const given = fleet.here(before) as Values;
          const created = await inRun(async (frontEnd) => {
            const { inputs, failures } = await frontEnd.check(resource, {}, given);
            expect(failures).toEqual([]);
            return frontEnd.create(resource, inputs);
          });
          const next = await configured(
            type,
            { ...given, ...pick(fleet.here(other), changed) },
            spelling,
            given,
          );
          const left = await inRun(async (frontEnd): Promise<CreatedObject> => {
            const now = isImported ? await frontEnd.read(resource, created.id, {}) : created;
            if (!now) throw new Error("the object no longer exists");
            const { inputs, failures } = await frontEnd.check(resource, created.outputs, next);
            // Each of the two configurations is valid, but a combination of their values may be invalid.
            if (failures.length > 0) return now;
            const difference = await frontEnd.diff(resource, now.id, now.outputs, inputs);
            const isKnown = !isImported || OF_RUNS.every((name) => next[name] === undefined);
            if (isKnown && changed.every((name) => name === "adopt")) expect(difference).toBeUndefined();
            if (difference === undefined) return now;
            if (difference.replaces.length === 0) {
              return { id: now.id, outputs: await frontEnd.update(resource, now.id, now.outputs, inputs) };
            }
            return frontEnd.create(resource, (await frontEnd.check(resource, {}, next)).inputs);
          });
          await inRun((frontEnd) => frontEnd.delete(resource, left.id, left.outputs));
        }),
        { numRuns: 12, endOnFailure: true },
      );
    },
  );
});
