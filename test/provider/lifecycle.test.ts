import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { definitions } from "../../provider/resources/index.ts";
import { isTerraform } from "./support/frontDoor.ts";
import { Harness } from "./support/harness.ts";
import { sampleOf } from "./support/samples.ts";
import { startWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const cases = definitions.map((definition) => ({ type: definition.name, definition }));

describe.each(cases)("$type", ({ type, definition }) => {
  const { base, changes } = sampleOf(definition);
  const program = (args: Record<string, unknown>) => ({ it: { type, args: world.here(args) } });
  let harness: Harness;

  beforeEach(() => {
    harness = new Harness(world.env);
  });
  afterEach(async () => {
    await harness.up({});
    await harness.close();
    if (type === "Device") await world.restoreDevices();
  });

  const settled = async (args: Record<string, unknown>) => {
    expect(await harness.preview(program(args))).toEqual([]);
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program(args))).toEqual([]);
  };

  it("is made, then needs nothing, and is gone after its removal", async () => {
    expect(await harness.preview(program(base))).toEqual(["create it"]);
    expect(await harness.up(program(base))).toEqual(["create it"]);
    const { outputs = {} } = harness.state.get("it") ?? {};
    // A state of Terraform holds no secret; those that a configuration chooses are known all the same.
    const missing = Object.entries(definition.outputs).filter(
      ([name, { secret, choice }]) => outputs[name] === undefined && !(isTerraform && secret && !choice),
    );
    expect(missing).toEqual([]);
    await settled(base);
    expect(await harness.up({})).toEqual(["delete it"]);
    if (type === "Device") await world.restoreDevices();
    // Nothing is in the way of the next one.
    expect(await harness.up(program(base))).toEqual(["create it"]);
  });

  it.each([...changes].map(([field, value]) => ({ field, value })))(
    "$field is changed as the plan says, and back",
    async ({ field, value }) => {
      await harness.up(program(base));
      for (const args of [{ ...base, [field]: value }, base]) {
        const before = harness.state.get("it");
        const step = definition.inputs[field]?.replaces ? `replace it ${field}` : "update it";
        expect(await harness.preview(program(args))).toEqual([step]);
        expect(await harness.up(program(args))).toEqual([step]);
        await settled(args);
        const after = harness.state.get("it");
        if (definition.inputs[field]?.replaces) expect(after).not.toEqual(before);
        else expect(after?.id).toBe(before?.id);
      }
    },
  );
});
