import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { firewallRule, publicKey } from "../support/policy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { Harness } from "./support/harness.ts";

// A resource that is created again has the same idempotency key as its first creation. The service then returns the
// object of the first creation, also if the state lost the object or another stack manages it.

const fleet = sharedFleet();
let one: Harness;
let two: Harness;

beforeEach(() => {
  one = new Harness(fleet.env, "one");
  two = new Harness(fleet.env, "two");
});
afterEach(async () => {
  await Promise.all([one.close(), two.close()]);
  await fleet.clear();
});

const rules = () => fleet.client.getFirewallRules();
const keys = () => fleet.client.getPublicKeys();
const deny = firewallRule("deny", 10);
const wide = firewallRule("deny", 20);

/** Moves a resource from the state of the first stack to the state of the second one. */
function move(name: string): void {
  const entry = one.state.get(name);
  if (!entry) throw new Error(`the state has no ${name}`);
  one.state.delete(name);
  two.state.set(name, entry);
}

/** An administrator disables the only rule. */
async function disableRule(): Promise<void> {
  const [rule] = await rules();
  if (!rule) throw new Error("no rule");
  const { id, action, priority, sourceIp, username, filter } = rule;
  const body = { action, priority, sourceIp, username, filter: { hostname: filter.hostname }, active: false };
  await fleet.client.updateFirewallRule({ params: { id }, body: body as never });
}

describe("a resource that is created again after its state was lost", () => {
  it("does not revert the manual change of its first object", async () => {
    await one.up({ deny });
    one.state.clear();
    await disableRule();
    await expect(one.up({ deny })).rejects.toThrow(/active is false, declared true.*\[already_exists\]/);
    expect(await rules()).toMatchObject([{ active: false }]);
    expect(one.state.size).toBe(0);
  });

  it("reverts the manual change with adopt: overwrite", async () => {
    await one.up({ deny });
    one.state.clear();
    await disableRule();
    await one.up({ deny: { ...deny, args: { ...deny.args, adopt: "overwrite" } } });
    expect(await rules()).toMatchObject([{ active: true }]);
  });

  it("updates its first object if no other actor changed the object, as after a creation whose answer was lost", async () => {
    await one.up({ deny });
    one.state.clear();
    await one.up({ deny: wide });
    expect(await rules()).toMatchObject([{ priority: 20 }]);
  });
});

describe("a resource that is created again after its first object moved to another stack", () => {
  it("creates another rule, and does not change the rule of the other stack", async () => {
    await one.up({ deny });
    move("deny");
    await two.up({ deny });
    await one.up({ deny: wide });
    expect(one.state.get("deny")?.id).not.toBe(two.state.get("deny")?.id);
    expect(await rules()).toMatchObject([
      { priority: 10, declaredBy: { stack: "two" } },
      { priority: 20, declaredBy: { stack: "one" } },
    ]);
    expect(await two.refresh()).toEqual([]);
  });

  it.each([true, false])("reports that the key already exists, if it is equal: %s", async (isEqual) => {
    const ana = publicKey("ana");
    await one.up({ ana });
    move("ana");
    await two.up({ ana });
    const again = isEqual ? ana : { ...ana, args: { ...ana.args, username: "^ana$" } };
    await expect(one.up({ ana: again })).rejects.toThrow(/\[already_exists\]/);
    expect(await keys()).toMatchObject([{ username: "^root$", declaredBy: { stack: "two" } }]);
    expect(one.state.size).toBe(0);
  });
});

it("a stack claims an API key that moved to it, although an administrator renamed the key", async () => {
  const ci = { type: "ApiKey", args: { name: "ci-key", role: "observer", validDays: 30 } };
  await one.up({ ci });
  move("ci");
  await fleet.client.updateApiKey({ params: { key: "ci-key" }, body: { name: "ci-renamed" } });
  expect(await two.up({ ci })).toEqual(["update ci"]);
  expect(await fleet.client.listApiKeys()).toMatchObject([
    { name: "ci-renamed", declaredBy: { stack: "two" } },
  ]);
});
