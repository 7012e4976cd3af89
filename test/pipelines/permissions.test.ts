import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fleet } from "../support/fleet.ts";
import { firewallRule, type Policy } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { type Credentials, startPolicyFleet } from "./support/policyRepository.ts";

/**
 * Checks the minimum permissions in the table of examples/pipelines/README.md for an apply. The tests of the jobs check
 * the permissions for reviews and drift.
 */
describe("the permissions of an apply", { tags: ["long"], timeout: 120_000 }, () => {
  let fleet: Fleet;
  let credentials: Credentials;
  beforeAll(async () => {
    ({ fleet, credentials } = await startPolicyFleet("carla"));
  });
  afterAll(() => fleet?.stop());

  const apply = async (policy: Policy, credential: Readonly<Record<string, string>>) => {
    const program = new PolicyProgram();
    const { GATEHOUSE_URL = "", GATEHOUSE_TENANT = "" } = fleet.env;
    const env = { GATEHOUSE_URL, GATEHOUSE_TENANT, POLICY: JSON.stringify(policy), ...credential };
    const { code, stdout, stderr } = await program.stack({ env }).run(["up", "--yes"]);
    program.remove();
    return { code, output: stdout + stderr };
  };
  const rule: Policy = { testNetwork: firewallRule("deny", 5, { sourceIp: "^192\\.0\\.2\\." }) };

  it("include the role operator for tags, names and statuses of devices", async () => {
    const devices: Policy = {
      web: { type: "Device", args: { device: "02:00:00:00:00:01", name: "web-one", status: "accepted" } },
      tags: { type: "DeviceTags", args: { device: "02:00:00:00:00:01", tags: ["prod"] } },
    };
    expect(await apply(devices, credentials.operator)).toMatchObject({ code: 0 });
    expect(await fleet.client.getDevices()).toMatchObject([{ name: "web-one", tags: ["prod"] }]);
    expect(await apply(rule, credentials.operator)).toMatchObject({ code: 1 });
  });

  it("require a user's credential, not an API key, for members and API keys", async () => {
    const accounts: Policy = {
      carla: { type: "Member", args: { email: "carla@example.com", role: "observer" } },
      nightly: { type: "ApiKey", args: { name: "created-by-pipeline", role: "observer", validDays: 30 } },
    };
    const { id } = await fleet.client.createApiKey({
      body: { name: "administrator", expiresAt: 30, role: "administrator" },
    });
    const administratorKey = { GATEHOUSE_API_KEY: id };
    expect(await apply(rule, administratorKey)).toMatchObject({ code: 0 });
    const rejected = await apply(accounts, administratorKey);
    expect([rejected.code, rejected.output]).toEqual([
      1,
      expect.stringMatching(/API keys cannot call this operation/),
    ]);
    expect(await apply(accounts, credentials.administrator)).toMatchObject({ code: 0 });
  });
});
