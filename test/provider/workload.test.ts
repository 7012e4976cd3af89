import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { testFolder } from "../support/folder.ts";
import { firewallRule } from "../support/policy.ts";
import { shared } from "../support/shared.ts";
import { startTrustingFleet } from "../support/trustingFleet.ts";
import { Harness, type Program } from "./support/harness.ts";

const trusting = shared(() => startTrustingFleet());
let token: string;
let harness: Harness;

beforeEach(async () => {
  const { fleet, issuer } = trusting;
  token = await issuer.mint({ aud: fleet.service.url, sub: "system:serviceaccount:ops:policy" });
  const file = join(testFolder(), "token");
  writeFileSync(file, token);
  harness = new Harness({
    GATEHOUSE_URL: fleet.service.url,
    GATEHOUSE_TENANT: fleet.tenant,
    GATEHOUSE_OIDC: "file",
    GATEHOUSE_OIDC_TOKEN_FILE: file,
  });
});
afterEach(async () => {
  await harness.close();
  const { client } = trusting.fleet;
  for (const { id } of await client.listTrustedWorkloads()) {
    await client.deleteTrustedWorkload({ params: { id } });
  }
});

const claims = { sub: "system:serviceaccount:ops:policy" };
const rule = (more: Record<string, unknown> = {}) => firewallRule("deny", 1, more);

it("a workload with the role administrator manages all objects of the namespaces that trust it", async () => {
  const { fleet, issuer } = trusting;
  await trusting.trust({ role: "administrator", claims });
  const { tenantId: other } = await fleet.client.createNamespace({ body: { name: "other" } });
  await fleet.client.forTenant(other).createTrustedWorkload({
    body: {
      name: "elsewhere",
      issuer: issuer.url,
      audience: fleet.service.url,
      role: "administrator" as const,
      claims,
    },
  });
  await fleet.enroll("web-1");
  await fleet.service.createUser({ username: "mia", password: "correct-horse" });
  const program: Program = {
    rule: rule(),
    elsewhere: rule({ tenant: other }),
    key: { type: "ApiKey", args: { validDays: 30, role: "observer" } },
    member: { type: "Member", args: { email: "mia@example.com", role: "operator" } },
    tags: { type: "DeviceTags", args: { device: "web-1", tags: ["edge"] } },
  };
  await harness.up(program);
  await harness.import("settings", "Namespace", other);
  Object.assign(program, { settings: { type: "Namespace", args: { name: "renamed" } } });
  await harness.up(program);
  expect(await harness.preview(program)).toEqual([]);
  expect(await harness.refresh()).toEqual([]);
  expect(await fleet.client.forTenant(other).getFirewallRules()).toHaveLength(1);
  const [entry] = await fleet.client.getAuditTrail({
    params: { tenant: fleet.tenant },
    query: { perPage: 1 },
  });
  const name = expect.stringMatching(/: https:\/\/127\.0\.0\.1:\d+ "system:serviceaccount:ops:policy"$/);
  expect(entry?.actor).toMatchObject({ kind: "workload", name });
  expect(JSON.stringify([...harness.state])).not.toContain(token.split(".")[2]);
  const { settings } = program;
  await harness.up(settings ? { settings } : {});
  expect(await fleet.client.getFirewallRules()).toEqual([]);
});

it("a workload with the role observer reads objects, and changes none", async () => {
  await trusting.trust({ claims });
  await expect(harness.up({ rule: rule() })).rejects.toThrow(/Permission denied/);
  expect(await trusting.fleet.client.getFirewallRules()).toEqual([]);
});

it("reports a token that the namespace does not trust", async () => {
  await trusting.trust({ claims: { sub: "system:serviceaccount:ops:other" } });
  await expect(harness.up({ rule: rule() })).rejects.toThrow(/The server refused the token of the workload/);
});
