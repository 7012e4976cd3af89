import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { memberId } from "../support/fleet.ts";
import { firewallRule } from "../support/policy.ts";
import { requestsDuring } from "../support/requests.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { Harness, type Program } from "./support/harness.ts";

const fleet = sharedFleet(["ana"]);
let tenant: string;
let harness: Harness;
beforeAll(async () => {
  const credential = passwordCredential({ username: "ana", password: "correct-horse" });
  const ana = createClient({ url: fleet.service.url, credential });
  await ana.createNamespace({ body: { name: "anas" } });
  await ana.close();
});

const owner = () => fleet.client.forTenant(tenant);
const program: Program = {
  rule: firewallRule("deny", 1),
  key: { type: "ApiKey", args: { validDays: 30, role: "observer" } },
  tags: { type: "DeviceTags", args: { device: "shared", tags: ["edge"] } },
};

/** Ana's program declares objects in the namespace of another user. */
beforeEach(async () => {
  ({ tenantId: tenant } = await fleet.client.createNamespace({ body: { name: "shared" } }));
  await fleet.enroll("shared", undefined, tenant);
  const body = { email: "ana@example.com", role: "administrator" } as const;
  await owner().inviteMember({ params: { tenant }, body });
  harness = new Harness({
    ...fleet.env,
    GATEHOUSE_USERNAME: "ana",
    GATEHOUSE_PASSWORD: "correct-horse",
    GATEHOUSE_TENANT: tenant,
  });
  await harness.up(program);
});
afterEach(() => harness.close());

describe("a user who is no longer a member of the namespace", () => {
  beforeEach(async () => {
    const uid = await memberId({ client: owner(), tenant }, "ana@example.com");
    await owner().removeMember({ params: { tenant, uid } });
  });
  afterEach(() => owner().deleteNamespace({ params: { tenant } }));

  const refusal =
    /credential: The user of the credential is not a member of the namespace .* Add the user to the namespace/;

  it("gets an error from a refresh, which deletes no object from the state", async () => {
    await expect(harness.refresh()).rejects.toThrow(refusal);
    expect([...harness.state.keys()].sort()).toEqual(["key", "rule", "tags"]);
  });

  it("gets an error from a destroy for each existing object", async () => {
    const failure: unknown = await harness.up({}).catch((error: unknown) => error);
    expect((failure as AggregateError).errors.map(String)).toEqual(
      Array.from({ length: 3 }, () => expect.stringMatching(refusal)),
    );
    expect(await owner().getFirewallRules()).toHaveLength(1);
  });
});

// An empty 404 does not show whether the namespace was deleted or the user is no longer a member.
describe("a deleted namespace", () => {
  it("allows a destroy to succeed, with no remaining objects in the state", async () => {
    await owner().deleteNamespace({ params: { tenant } });
    expect(await harness.up({})).toEqual(["delete key", "delete rule", "delete tags"]);
  });

  it("causes a refresh to delete the namespace's objects from the state", async () => {
    await owner().deleteNamespace({ params: { tenant } });
    expect((await harness.refresh()).sort()).toEqual(["delete key", "delete rule", "delete tags"]);
  });
});

it("Members stay in the state if the service's lists omit members", { tags: ["long"] }, async () => {
  const sparse = await startSparseService(fleet.service.url, { withoutListedMembers: true });
  const through = new Harness({ ...fleet.env, GATEHOUSE_URL: sparse.url });
  // For this many namespaces, the provider sends list requests instead of reading each namespace separately.
  const members: Program = {};
  for (let count = 0; count < 8; count += 1) {
    const { tenantId } = await fleet.client.createNamespace({ body: { name: `stage-${count}` } });
    const args = { tenant: tenantId, email: "ana@example.com", role: "observer" };
    members[tenantId] = { type: "Member", args };
  }
  await through.up(members);
  const requests = await requestsDuring(fleet.service, async () => {
    expect(await through.refresh()).toEqual([]);
  });
  expect(requests).toContain("GET /api/namespaces");
  expect([...through.state.keys()].sort()).toEqual(Object.keys(members).sort());
  await through.close();
  await sparse.stop();
});
