import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { firewallRule } from "../support/policy.ts";
import { testProgram } from "../support/policyProgram.ts";
import { shared } from "../support/shared.ts";
import { startTrustingFleet } from "../support/trustingFleet.ts";

const trusting = shared(() => startTrustingFleet());
afterEach(async () => {
  const { client } = trusting.fleet;
  for (const { id } of await client.listTrustedWorkloads()) {
    await client.deleteTrustedWorkload({ params: { id } });
  }
});

/** Returns the settings of a job whose token another program writes to a file. */
async function settingsOf() {
  const { fleet, issuer } = trusting;
  const file = join(testFolder(), "token");
  writeFileSync(file, await issuer.github({ aud: fleet.service.url }));
  return {
    GATEHOUSE_URL: fleet.service.url,
    GATEHOUSE_TENANT: fleet.tenant,
    GATEHOUSE_OIDC: "file",
    GATEHOUSE_OIDC_TOKEN_FILE: file,
  };
}

// The long test runs a program twice. test/provider/workload.test.ts covers the credential.
it("doctor reports the workload, its role and the end of its session", async () => {
  await trusting.trust();
  const { stdout } = await gatehouse(["doctor", testFolder()], await settingsOf());
  expect(stdout).toMatch(
    /workload deploy: https:\/\/127\.0\.0\.1:\d+ "repo:octo-org\/octo-repo:environment:prod" with the role observer, namespace admin \([0-9a-f-]+\), session can be renewed until 20/,
  );
});

it("doctor fails if no workload accepts the token", async () => {
  const { code, stdout } = await gatehouse(["doctor", testFolder()], await settingsOf());
  expect([code, stdout]).toEqual([
    2,
    expect.stringContaining("The server refused the token of the workload"),
  ]);
});

it("up applies a program, and a review reports the missing permissions of an observer", {
  tags: ["long"],
}, async () => {
  const id = await trusting.trust({ role: "administrator" });
  const program = testProgram();
  const policy = { rule: firewallRule("deny", 5, { sourceIp: "^192\\.0\\.2\\." }) };
  const stack = program.stack({ env: { ...(await settingsOf()), POLICY: JSON.stringify(policy) } });
  const done = await stack.run(["up", "--yes"]);
  expect([done.code, done.stdout + done.stderr]).toEqual([0, expect.any(String)]);
  expect(await trusting.fleet.client.getFirewallRules()).toHaveLength(1);

  const { issuer, fleet } = trusting;
  const claims = { repository: "octo-org/octo-repo" };
  await fleet.client.updateTrustedWorkload({
    params: { id },
    body: { name: "deploy", issuer: issuer.url, audience: fleet.service.url, role: "observer", claims },
  });
  const more = { other: firewallRule("deny", 6, { sourceIp: "^192\\.0\\.2\\." }) };
  const changed = program.stack({ env: { ...(await settingsOf()), POLICY: JSON.stringify(more) } });
  const review = await changed.run(["review", "--create"]);
  expect([review.code, review.stdout + review.stderr]).toEqual([
    2,
    expect.stringContaining("the credential has the role observer (createFirewallRule)"),
  ]);
});
