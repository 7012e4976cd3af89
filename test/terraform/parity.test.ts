/**
 * Slow: random estates pass through Pulumi and Terraform. allResources.test.ts imports one estate in short runs.
 *
 * @module-tag long
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { startFilledFleet } from "../provider/support/filledFleet.ts";
import { frontEnds } from "../provider/support/frontEnds.ts";
import { programs } from "../provider/support/programs.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { configurationOf, typeOf } from "./support/configurations.ts";
import { hasTerraform, LABEL, sharedTerraform } from "./support/terraform.ts";

type Values = Record<string, unknown>;

/** Inputs that only control later runs. Objects on the service do not contain them. */
const OF_RUNS = ["adopt", "forceDestroy", "rotateBefore", "overlap", "keepers", "onDestroy", "allowLockout"];

/**
 * A random estate in the user's own namespace, with at most one object of each kind, in the form of a program's inputs.
 */
const estates = fc
  .record(
    Object.fromEntries(ownDefinitions.map(({ name }) => [name, programs(name)])),
    // The next step omits API keys. The service returns the secret of an API key only to its creator. Pulumi states
    // must contain this secret, and Terraform states must not contain it.
    { requiredKeys: ["PublicKey"] },
  )
  .map(({ ApiKey: _apiKey, ...estate }) => estate as Readonly<Record<string, Values>>)
  .map((estate) =>
    Object.entries(estate).map(([type, inputs]) => {
      const lasting = Object.entries(inputs).filter(([name]) => !OF_RUNS.includes(name) && name !== "tenant");
      return { type, inputs: Object.fromEntries(lasting) };
    }),
  );

describe.runIf(hasTerraform)(`the same objects with Pulumi and with ${LABEL}`, () => {
  const fleet = sharedTerraform(startFilledFleet);
  const named = (type: string) => typeOf({ name: type });
  const open = (name: keyof typeof frontEnds) =>
    frontEnds[name]({ env: fleet.env, stack: "parity", stateId: "7b0e", replace: [] });

  describe.each(["dynamic", "plugin"] as const)("of Pulumi's %s resources", (name) => {
    it("is imported in both directions, and the plan is empty after each import", {
      timeout: 240_000,
    }, async () => {
      await fc.assert(
        fc.asyncProperty(estates, async (estate) => {
          const configured = Object.fromEntries(
            estate.map(({ type, inputs }) => [named(type), { it: configurationOf(inputs) }]),
          );
          await fleet.restoreDevices();
          // Pulumi creates the objects.
          const frontEnd = await open(name);
          const ids = new Map<string, string>();
          const outputs = new Map<string, Values>();
          for (const { type, inputs } of estate) {
            const resource = { type, name: "it" };
            const checked = await frontEnd.check(resource, {}, inputs);
            expect(checked.failures).toEqual([]);
            const created = await frontEnd.create(resource, checked.inputs);
            ids.set(type, created.id);
            outputs.set(type, created.outputs);
          }
          await frontEnd.close();
          // Terraform imports the objects, destroys them, and creates them again.
          const root = fleet.newModule();
          const imports = [...ids].map(([type, id]) => ({ to: `${named(type)}.it`, id }));
          root.write({ resource: configured, import: imports });
          expect((await root.changes()).sort()).toEqual(
            [...ids.keys()].map((type) => `${named(type)}.it: no-op+import`).sort(),
          );
          await root.must("apply", "plan");
          expect(await root.changes()).toEqual([]);
          await root.destroy();
          await root.applied({ resource: configured });
          // Pulumi imports the objects.
          const again = await open(name);
          const left: string[] = [];
          for (const { type, inputs } of estate) {
            const resource = { type, name: "it" };
            const [instance] =
              root.state().resources.find((one) => one.type === named(type))?.instances ?? [];
            const id = String(instance?.attributes.id);
            const live = await again.read(resource, id, {});
            const checked = await again.check(resource, {}, inputs);
            if (!live || (await again.diff(resource, id, live.outputs, checked.inputs)) !== undefined) {
              left.push(type);
            }
          }
          await again.close();
          expect(left).toEqual([]);
          await root.destroy();
        }),
        { numRuns: 5, endOnFailure: true },
      );
    });
  });
});
