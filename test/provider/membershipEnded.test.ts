import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { requestsDuring } from "../support/requests.ts";
import { sharedFleet } from "../support/shared.ts";
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
const rule = {
  type: "FirewallRule",
  args: { action: "deny", priority: 1, sourceIp: ".*", username: "y", filter: { hostname: "z" } },
};
const key = { type: "ApiKey", args: { validDays: 30, role: "observer" } };
const program: Program = {
  rule,
  key,
  tags: { type: "DeviceTags", args: { device: "shared", tags: ["edge"] } },
};

/** Ana declares what is in a namespace of somebody else. */
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

describe("a user who is no member of the namespace any more", () => {
  beforeEach(async () => {
    const { members } = await owner().getNamespace({ params: { tenant } });
    const uid = members.find(({ email }) => email === "ana@example.com")?.id ?? "";
    await owner().removeMember({ params: { tenant, uid } });
  });
  afterEach(() => owner().deleteNamespace({ params: { tenant } }));

  const refusal =
    /credential: the user of the credential is not a member of the namespace .* add the user to the namespace/;

  it("is told so by a refresh, which takes nothing for deleted", async () => {
    await expect(harness.refresh()).rejects.toThrow(refusal);
    expect([...harness.state.keys()].sort()).toEqual(["key", "rule", "tags"]);
  });

  it("is told so by a destroy, of each object that is still there", async () => {
    const failure: unknown = await harness.up({}).catch((error: unknown) => error);
    expect((failure as AggregateError).errors.map(String)).toEqual(
      Array.from({ length: 3 }, () => expect.stringMatching(refusal)),
    );
    expect(await owner().getFirewallRules()).toHaveLength(1);
  });
});

// A 404 without a word does not tell a namespace that was deleted from one that the user was removed from.
describe("a namespace that was deleted", () => {
  it("took all with it: a refresh takes it for gone, and a destroy has nothing left to do", async () => {
    await owner().deleteNamespace({ params: { tenant } });
    expect(await harness.up({})).toEqual(["delete key", "delete rule", "delete tags"]);
  });

  it("is gone for a refresh, too", async () => {
    await owner().deleteNamespace({ params: { tenant } });
    expect((await harness.refresh()).sort()).toEqual(["delete key", "delete rule", "delete tags"]);
  });
});

it("a service whose lists leave members out takes no Member away", async () => {
  const sparse = await startSparseService(fleet.service.url, { withoutListedMembers: true });
  const through = new Harness({ ...fleet.env, GATEHOUSE_URL: sparse.url });
  // So many that the namespaces are listed, not asked for one by one.
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
