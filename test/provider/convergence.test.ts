import fc from "fast-check";
import { expect, it } from "vitest";
import { canonicalInputs } from "../../provider/model/values.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { sharedFilledFleet } from "./support/filledFleet.ts";
import { Harness, type Program } from "./support/harness.ts";
import { programs } from "./support/programs.ts";

const fleet = sharedFilledFleet();

type Values = Record<string, unknown>;

/**
 * Returns the name that a resource has in random programs. It is the same in all programs if the resource manages the
 * same object.
 */
function nameOf(type: string, args: Values, index: number): string {
  const definition = ownDefinitions.find((candidate) => candidate.name === type);
  const inputs = canonicalInputs(definition?.inputs ?? {}, args);
  const [claim] = definition?.identity?.ofInputs(inputs as never) ?? [];
  // All attachments of a device have the same name, so a program has at most one of them. The engine adds new tags
  // before it removes old ones, so more attachments could exceed the limit of three tags.
  if (type === "DeviceTagAttachment") return `attachment ${inputs.tenant ?? ""} ${inputs.device}`;
  return claim?.key ?? `${type} ${index}`;
}

/** Sets `onDestroy: keep` for a device, and a different name for each device, because device names are unique. */
function withOwnDeviceName(type: string, { adopt: _adopt, ...args }: Values): Values {
  if (type !== "Device") return args;
  return {
    ...args,
    onDestroy: "keep",
    ...("name" in args && { name: `gate-${String(args.device).slice(-1)}` }),
  };
}

const resource = fc.oneof(
  ...ownDefinitions.map(({ name }) =>
    programs(name).map((args) => ({ type: name, args: withOwnDeviceName(name, args) })),
  ),
);

const program: fc.Arbitrary<Program> = fc
  .array(resource, { maxLength: 14 })
  .map((resources) =>
    Object.fromEntries(resources.map((one, index) => [nameOf(one.type, one.args, index), one])),
  );

async function converge(runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(program, { minLength: 3, maxLength: 3 }), async (versions) => {
      const harness = new Harness(fleet.env);
      try {
        for (const version of versions.map((one) => fleet.here(one))) {
          const planned = await harness.preview(version);
          expect(await harness.up(version)).toEqual(planned);
          expect(await harness.preview(version)).toEqual([]);
          expect(await harness.refresh()).toEqual([]);
          expect([...harness.state.keys()].sort()).toEqual(Object.keys(version).sort());
        }
      } finally {
        await harness.up({});
        await harness.close();
      }
    }),
    { numRuns: runs },
  );
  const { client } = fleet;
  expect(await client.getPublicKeys()).toEqual([]);
  expect(await client.getFirewallRules()).toEqual([]);
  expect(await client.listApiKeys()).toEqual([]);
  expect(await client.getNamespaces({ query: { perPage: 100 } })).toHaveLength(2);
}

it(
  "random programs with two changes each converge to an empty plan and leave no objects",
  { timeout: 120_000 },
  () => converge(5),
);

// Some kinds of programs are so rare that they occur only in many runs.
it(
  "many random programs converge to an empty plan and leave no objects",
  { tags: ["long"], timeout: 600_000 },
  () => converge(40),
);
