import fc from "fast-check";
import { expect, it } from "vitest";
import { definitions } from "../../provider/resources/index.ts";
import { canonicalInputs } from "../../provider/resources/values.ts";
import { Harness, type Program } from "./support/harness.ts";
import { programs } from "./support/programs.ts";
import { sharedWorld } from "./support/world.ts";

const world = sharedWorld();

type Values = Record<string, unknown>;

/** What a resource of a random program is called: by its object, so that an object stays with its resource. */
function nameOf(type: string, args: Values, index: number): string {
  const definition = definitions.find((candidate) => candidate.name === type);
  const inputs = canonicalInputs(definition?.inputs ?? {}, args);
  const [claim] = definition?.identity?.ofInputs(inputs as never) ?? [];
  // One of them on a device: a fourth tag would not fit while the old ones are still there.
  if (type === "DeviceTagAttachment") return `attachment ${inputs.tenant ?? ""} ${inputs.device}`;
  return claim?.key ?? `${type} ${index}`;
}

/** Devices outlive a program, and their names are unique: each has a name of its own. */
function livable(type: string, { adopt: _adopt, ...args }: Values): Values {
  if (type !== "Device") return args;
  return {
    ...args,
    onDestroy: "keep",
    ...("name" in args && { name: `gate-${String(args.device).slice(-1)}` }),
  };
}

const resource = fc.oneof(
  ...definitions.map(({ name }) => programs(name).map((args) => ({ type: name, args: livable(name, args) }))),
);

const program: fc.Arbitrary<Program> = fc
  .array(resource, { maxLength: 14 })
  .map((resources) =>
    Object.fromEntries(resources.map((one, index) => [nameOf(one.type, one.args, index), one])),
  );

async function converge(runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(program, { minLength: 3, maxLength: 3 }), async (versions) => {
      const harness = new Harness(world.env);
      try {
        for (const version of versions.map((one) => world.here(one))) {
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
  const { client } = world;
  expect(await client.getPublicKeys()).toEqual([]);
  expect(await client.getFirewallRules()).toEqual([]);
  expect(await client.listApiKeys()).toEqual([]);
  expect(await client.getNamespaces({ query: { perPage: 100 } })).toHaveLength(2);
}

it(
  "random programs, each changed twice, converge to an empty plan and leave nothing",
  { timeout: 120_000 },
  () => converge(5),
);

// A rare program is found in one of many runs only.
it("many random programs do", { tags: ["long"], timeout: 600_000 }, () => converge(40));
