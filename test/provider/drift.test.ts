import { basename } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nameText, whoChanged } from "../../provider/drift/whoChanged.ts";
import { canonicalInputs } from "../../provider/model/values.ts";
import type { Client } from "../../sdk/index.ts";
import { isSparse } from "../projects.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { typeOf } from "../terraform/support/configurations.ts";
import { sharedFilledFleet } from "./support/filledFleet.ts";
import { isTerraform } from "./support/frontEnds.ts";
import { Harness, type Program } from "./support/harness.ts";
import { outOfBandChanges } from "./support/outOfBand.ts";
import { sampleOf } from "./support/samples.ts";

const fleet = sharedFilledFleet();

/** Inputs that a user cannot change on an existing object: they identify it, or exist only in the program. */
const FIXED = ["tenant", "email", "data", "device", "tag", "validDays", "keepers", "rotateBefore", "overlap"];
/** The name of a Tag identifies the tag, so it cannot change either. */
const NAMES: Record<string, readonly string[]> = { Tag: ["name"] };
// Servers of others do not have ends and owners. The tests of expiry change owners.
const LOCAL = ["forceDestroy", "onDestroy", "adopt", "status", "owner", "allowLockout"];
if (isSparse) LOCAL.push("expiresAt");

/** Returns the declarations that the service stores for objects in the namespace. */
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
    ...(isSparse ? [] : await client.listTrustedWorkloads({ query })),
  ];
  return objects.flatMap(({ declaredBy }) => declaredBy ?? []);
}

const cases = ownDefinitions.map((definition) => ({ type: definition.name, definition }));

describe.each(cases)("$type changed out of band", ({ type, definition }) => {
  const { base } = sampleOf(definition);
  const outOfBand = outOfBandChanges[type];
  if (!outOfBand) throw new Error(`add out-of-band changes of ${type} to support/outOfBand.ts`);
  let program: Program;
  const harness = new Harness(() => fleet.env);
  beforeEach(async () => {
    program = { it: { type, args: fleet.here(base) } };
    await harness.up(program);
  });
  afterEach(async () => {
    await harness.refresh();
    await harness.end();
    if (type === "Device") await fleet.restoreDevices();
  });

  const outputs = () => harness.state.get("it")?.outputs ?? {};
  const client = () => fleet.client.forTenant(String(outputs().tenant));
  const asDeclared = async () => {
    const live = await outOfBand.read(client(), outputs());
    const declared = canonicalInputs(definition.inputs, base);
    for (const field of Object.keys(outOfBand.change)) {
      const canonical = definition.inputs[field]?.canonical ?? ((value: unknown) => value);
      expect(canonical(live?.[field])).toEqual(declared[field]);
    }
  };

  it("the tests of drift cover every input that can be changed", () => {
    const covered = [...Object.keys(outOfBand.change), ...FIXED, ...LOCAL, ...(NAMES[type] ?? [])];
    expect(Object.keys(definition.inputs).filter((field) => !covered.includes(field))).toEqual([]);
  });

  // Tags have no declaration: many objects use a tag, and several programs can declare it.
  it.skipIf(isSparse || type === "Tag")(
    "the service stores the declaration with the object, and no declaration in the audit entry of a manual change",
    async () => {
      // Terraform does not send resource names to a provider.
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
      const [change] = Object.values(outOfBand.change);
      await (change ?? outOfBand.remove)?.(client(), outputs());
      expect(await lastChange()).toBeUndefined();
      if (change) expect(await declarations(client(), String(outputs().tenant))).toMatchObject([own]);
    },
  );

  it.each(Object.keys(outOfBand.change))(
    "%s: is detected by refresh, planned and reverted",
    async (field) => {
      const before = outputs()[field];
      await outOfBand.change[field]?.(client(), outputs());
      expect(await harness.refresh()).toEqual(["update it"]);
      expect(outputs()[field]).not.toEqual(before);
      expect(await harness.preview(program)).toEqual(["update it"]);
      await harness.up(program);
      await asDeclared();
      expect(await harness.refresh()).toEqual([]);
      expect(await harness.preview(program)).toEqual([]);
    },
  );

  it.runIf(outOfBand.remove)(
    "a removed object: refresh detects the removal, and up creates the object again",
    async () => {
      await outOfBand.remove?.(client(), outputs());
      const [seen, planned] = type === "DeviceTags" ? ["update it", "update it"] : ["delete it", "create it"];
      expect(await harness.refresh()).toEqual([seen]);
      if (type === "Device") await fleet.restoreDevices();
      expect(await harness.preview(program)).toEqual([planned]);
      await harness.up(program);
      await asDeclared();
      expect(await harness.preview(program)).toEqual([]);
    },
  );

  // An empty 404 of this service does not show whether the namespace was deleted or the user is no longer a member.
  const isAmbiguous = isSparse && type === "Namespace";
  it.runIf(outOfBand.remove && !isAmbiguous)(
    "a removed object without a refresh: the deletion of its resource succeeds",
    async () => {
      await outOfBand.remove?.(client(), outputs());
      expect(await harness.up({})).toEqual(["delete it"]);
    },
  );
});
