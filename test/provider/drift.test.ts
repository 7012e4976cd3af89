import { basename } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nameText, whoChanged } from "../../provider/drift/whoChanged.ts";
import { definitions } from "../../provider/resources/index.ts";
import { canonicalInputs } from "../../provider/resources/values.ts";
import type { Client } from "../../sdk/index.ts";
import { isSparse } from "../projects.ts";
import { typeOf } from "../terraform/support/configurations.ts";
import { byHand } from "./support/byHand.ts";
import { isTerraform } from "./support/frontDoor.ts";
import { Harness } from "./support/harness.ts";
import { sampleOf } from "./support/samples.ts";
import { sharedWorld } from "./support/world.ts";

const world = sharedWorld();

/** Inputs that nobody can change on an object: it would be another one, or they live in the program only. */
const OWN = ["tenant", "email", "data", "device", "tag", "validDays", "keepers", "rotateBefore", "overlap"];
/** A Tag's name is what a program calls it. */
const NAMES: Record<string, readonly string[]> = { Tag: ["name"] };
const LOCAL = ["forceDestroy", "onDestroy", "adopt", "status"];

/** Who declared objects of the namespace, of each that anybody declared. */
async function declarations(client: Client, tenant: string) {
  const query = { perPage: 100 };
  const namespace = await client.getNamespace({ params: { tenant } });
  const devices = await client.getDevices({ query });
  const objects = [
    namespace,
    ...namespace.members,
    ...devices,
    ...devices.map(({ tagsDeclaredBy }) => ({ declaredBy: tagsDeclaredBy })),
    ...(await client.getPublicKeys({ query })),
    ...(await client.getFirewallRules({ query })),
    ...(await client.listApiKeys({ query })),
  ];
  return objects.flatMap(({ declaredBy }) => declaredBy ?? []);
}

const cases = definitions.map((definition) => ({ type: definition.name, definition }));

describe.each(cases)("$type changed by hand", ({ type, definition }) => {
  const { base } = sampleOf(definition);
  const hand = byHand[type];
  if (!hand) throw new Error(`say in support/byHand.ts how ${type} is changed by hand`);
  let harness: Harness;
  let program: Record<string, { type: string; args: Record<string, unknown> }>;

  beforeEach(async () => {
    harness = new Harness(world.env);
    program = { it: { type, args: world.here(base) } };
    await harness.up(program);
  });
  afterEach(async () => {
    await harness.refresh();
    await harness.up({});
    await harness.close();
    if (type === "Device") await world.restoreDevices();
  });

  const outputs = () => harness.state.get("it")?.outputs ?? {};
  const client = () => world.client.forTenant(String(outputs().tenant));
  const asDeclared = async () => {
    const found = await hand.look(client(), outputs());
    const wanted = canonicalInputs(definition.inputs, base);
    for (const field of Object.keys(hand.change)) {
      const canonical = definition.inputs[field]?.canonical ?? ((value: unknown) => value);
      expect(canonical(found?.[field])).toEqual(wanted[field]);
    }
  };

  it("is covered in every input that can be", () => {
    const covered = [...Object.keys(hand.change), ...OWN, ...LOCAL, ...(NAMES[type] ?? [])];
    expect(Object.keys(definition.inputs).filter((field) => !covered.includes(field))).toEqual([]);
  });

  // Tags are on many objects, which have their own programs.
  it.skipIf(isSparse || type === "Tag")(
    "the object says whose it is, and the trail whose the change was not",
    async () => {
      // Terraform tells no provider what a resource is called.
      const own = isTerraform
        ? { project: basename(process.cwd()), stack: "default", resource: typeOf(definition) }
        : { project: "project", stack: "stack", resource: "it" };
      expect(await declarations(client(), String(outputs().tenant))).toEqual([
        { ...own, at: expect.any(String) },
      ]);
      const lastChange = async () => {
        const params = { tenant: String(outputs().tenant) };
        const [entry] = await client().getAuditTrail({ params, query: { perPage: 1 } });
        return entry?.declaredBy;
      };
      expect(await lastChange()).toEqual(own);
      if (type === "PublicKey") {
        const object = { kind: type, id: String(outputs().fingerprint) };
        const { changes } = await whoChanged(client(), String(outputs().tenant), [object]);
        expect(changes?.get(nameText(object))?.declaredBy).toEqual(own);
      }
      const [change] = Object.values(hand.change);
      await (change ?? hand.remove)?.(client(), outputs());
      expect(await lastChange()).toBeUndefined();
      if (change) expect(await declarations(client(), String(outputs().tenant))).toMatchObject([own]);
    },
  );

  it.each(Object.keys(hand.change))("%s: seen by refresh, planned, and set back", async (field) => {
    const before = outputs()[field];
    await hand.change[field]?.(client(), outputs());
    expect(await harness.refresh()).toEqual(["update it"]);
    expect(outputs()[field]).not.toEqual(before);
    expect(await harness.preview(program)).toEqual(["update it"]);
    await harness.up(program);
    await asDeclared();
    expect(await harness.refresh()).toEqual([]);
    expect(await harness.preview(program)).toEqual([]);
  });

  it.runIf(hand.remove)("removed: seen by refresh, and made again", async () => {
    await hand.remove?.(client(), outputs());
    const [seen, planned] = type === "DeviceTags" ? ["update it", "update it"] : ["delete it", "create it"];
    expect(await harness.refresh()).toEqual([seen]);
    if (type === "Device") await world.restoreDevices();
    expect(await harness.preview(program)).toEqual([planned]);
    await harness.up(program);
    await asDeclared();
    expect(await harness.preview(program)).toEqual([]);
  });

  // There a 404 without a word does not tell a namespace that was deleted from one that the user was removed from.
  const isUntold = isSparse && type === "Namespace";
  it.runIf(hand.remove && !isUntold)(
    "removed, and not refreshed: its deletion finds nothing to do",
    async () => {
      await hand.remove?.(client(), outputs());
      expect(await harness.up({})).toEqual(["delete it"]);
    },
  );
});
