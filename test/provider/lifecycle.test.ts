import { afterEach, describe, expect, it } from "vitest";
import { isSparse } from "../projects.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { requestsDuring } from "../support/requests.ts";
import { sharedFilledFleet } from "./support/filledFleet.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { type Program, type Steps, testHarness } from "./support/harness.ts";
import { sampleOf } from "./support/samples.ts";

const fleet = sharedFilledFleet();

/**
 * The number of write requests for each step that does not send exactly one. The reference documentation has these
 * numbers in a table. A change of a `local` input sends no request.
 */
const WRITES: Record<string, { create?: number; delete?: number; local?: readonly string[] }> = {
  // A namespace with non-default settings needs a second request.
  Namespace: { create: 2, local: ["forceDestroy"] },
  TrustedWorkload: { local: ["allowLockout"] },
  Member: { local: ["allowLockout"] },
  ApiKey: { local: ["rotateBefore", "overlap", "allowLockout"] },
  // A create or delete of a Tag resource sends no request; only a rename does.
  Tag: { create: 0, delete: 0 },
  // `status` is not in this list: the device already has the declared status.
  Device: { local: ["onDestroy"] },
};
const isWrite = (request: string) => !/^GET |^POST \/api\/login|^POST \/api\/auth\/user/.test(request);

const cases = ownDefinitions.map((definition) => ({ type: definition.name, definition }));

describe.each(cases)("$type", ({ type, definition }) => {
  const { base, changes } = sampleOf(definition);
  const writes = WRITES[type] ?? {};
  const program = (args: Record<string, unknown>) => ({ it: { type, args: fleet.here(args) } });
  afterEach(async () => {
    if (type === "Device") await fleet.restoreDevices();
  });
  const harness = testHarness(() => fleet.env);

  /** Runs steps, and checks the number of write requests if the service supports combined updates. */
  const expectSteps = async (run: () => Promise<Steps>, expected: Steps, count: number) => {
    const requests = await requestsDuring(fleet.service, async () => {
      expect(await run()).toEqual(expected);
    });
    if (!isSparse) expect(requests.filter(isWrite)).toHaveLength(count);
    return requests;
  };
  const up = (program: Program, expected: Steps, count: number) =>
    expectSteps(() => harness.up(program), expected, count);
  const expectNoSteps = async (run: () => Promise<Steps>) => {
    const requests = await expectSteps(run, [], 0);
    if (!isSparse) expect(requests).toEqual([]);
  };
  const settled = async (args: Record<string, unknown>) => {
    expect(await harness.preview(program(args))).toEqual([]);
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program(args))).toEqual([]);
  };

  it("is created, then needs no change, and is deleted after its removal from the program", async () => {
    expect(await harness.preview(program(base))).toEqual(["create it"]);
    await up(program(base), ["create it"], writes.create ?? 1);
    await expectNoSteps(() => harness.up(program(base)));
    await expectNoSteps(() => harness.preview(program(base)));
    const { outputs = {} } = harness.state.get("it") ?? {};
    // With Terraform, the outputs lack secrets that the service generates.
    const missing = Object.entries(definition.outputs).filter(
      ([name, { secret, choice }]) => outputs[name] === undefined && !(isTerraform && secret && !choice),
    );
    expect(missing).toEqual([]);
    await settled(base);
    // The service removes only one tag per request, so DeviceTags sends one request for each tag.
    const tags = Array.isArray(base.tags) ? base.tags.length : 1;
    const deletes = type === "DeviceTags" ? tags : base.onDestroy === "keep" ? 0 : (writes.delete ?? 1);
    await up({}, ["delete it"], deletes);
    if (type === "Device") await fleet.restoreDevices();
    // A deletion must be complete: the service must accept a new object with the same unique fields.
    expect(await harness.up(program(base))).toEqual(["create it"]);
  });

  it.each([...changes].map(([field, value]) => ({ field, value })))(
    "$field is changed and reverted like in the plan",
    async ({ field, value }) => {
      await harness.up(program(base));
      for (const args of [{ ...base, [field]: value }, base]) {
        const before = harness.state.get("it");
        const replaces = definition.inputs[field]?.replaces;
        const step = replaces ? `replace it ${field}` : "update it";
        expect(await harness.preview(program(args))).toEqual([step]);
        if (replaces) expect(await harness.up(program(args))).toEqual([step]);
        else await up(program(args), [step], writes.local?.includes(field) ? 0 : 1);
        await settled(args);
        const after = harness.state.get("it");
        if (replaces) expect(after).not.toEqual(before);
        else expect(after?.id).toBe(before?.id);
      }
    },
  );
});
