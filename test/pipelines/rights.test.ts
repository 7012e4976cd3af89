import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fleet } from "../support/fleet.ts";
import { firewallRule, type Policy } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { type Credentials, startPolicyFleet } from "./support/policyRepository.ts";

/** What an apply needs at least, as the table of examples/pipelines/README.md has it; reviews and drift are tried by their jobs. */
describe("the rights of an apply", { tags: ["long"], timeout: 120_000 }, () => {
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
    return { code, said: stdout + stderr };
  };
  const rule: Policy = { nobody: firewallRule("deny", 5, { sourceIp: "^192\\.0\\.2\\." }) };

  it("for tags, names and statuses of devices are an operator's", async () => {
    const devices: Policy = {
      web: { type: "Device", args: { device: "02:00:00:00:00:01", name: "web-one", status: "accepted" } },
      tags: { type: "DeviceTags", args: { device: "02:00:00:00:00:01", tags: ["prod"] } },
    };
    expect(await apply(devices, credentials.operator)).toMatchObject({ code: 0 });
    expect(await fleet.client.getDevices()).toMatchObject([{ name: "web-one", tags: ["prod"] }]);
    expect(await apply(rule, credentials.operator)).toMatchObject({ code: 1 });
  });

  it("for members and API keys are those of a user, and an API key's are not enough", async () => {
    const people: Policy = {
      carla: { type: "Member", args: { email: "carla@example.com", role: "observer" } },
      nightly: { type: "ApiKey", args: { name: "made-by-a-pipeline", role: "observer", validDays: 30 } },
    };
    const { id } = await fleet.client.createApiKey({
      body: { name: "administrator", expiresAt: 30, role: "administrator" },
    });
    const administratorKey = { GATEHOUSE_API_KEY: id };
    expect(await apply(rule, administratorKey)).toMatchObject({ code: 0 });
    const refused = await apply(people, administratorKey);
    expect([refused.code, refused.said]).toEqual([1, expect.stringMatching(/users/)]);
    expect(await apply(people, credentials.administrator)).toMatchObject({ code: 0 });
  });
});
