import { expect, it } from "vitest";
import { describeEngines } from "../support/gatehouse.ts";
import { firewallRule, type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";

// Checks of inputs work offline: no service listens on this address, and no setting selects a namespace.
const env = { GATEHOUSE_URL: "http://127.0.0.1:9", GATEHOUSE_USERNAME: "ana", GATEHOUSE_PASSWORD: "horse" };

const refused: Policy = {
  key: publicKey("laptop", "("),
  rule: firewallRule("deny", -1, { filter: { tags: ["prod"] } }),
};
const duplicates: Policy = {
  web: { type: "DeviceTags", args: { device: "web-01", tags: ["prod"] } },
  again: { type: "DeviceTags", args: { device: "WEB-01", tags: ["web"] } },
};

describeEngines("a program with invalid inputs", {}, (engine) => {
  const program = sharedProgram();

  it.each([
    [
      refused,
      {
        priority: "error: FirewallRule rule: priority must be at least 0",
        username: "error: PublicKey key: username must be a regular expression in RE2 syntax",
      },
    ],
    [duplicates, { "device:": "manage the same object. Remove one of the two" }],
  ])(
    "gets an error with limits for each field",
    { tags: ["long"], timeout: 120_000 },
    async (policy, messages) => {
      const { code, stdout, stderr } = await program
        .stack({ engine, env })
        .run(["preview", "--create", "--offline"], policyEnv(policy));
      expect(code).toBe(1);
      const lines = (stdout + stderr).split("\n");
      const reports = Object.entries(messages).map(([field, message]) => ({
        field,
        of: lines.filter((line) => line.includes(message)),
      }));
      // The CLI stops at the first error that it receives. Which error arrives first differs between runs.
      const missing = reports.filter(({ of }) => of.length === 0).length;
      expect(missing).toBeLessThan(engine === "cli" ? reports.length : 1);
      for (const { field, of } of reports)
        for (const line of of) expect(line.split(field), line).toHaveLength(2);
      expect(stdout + stderr).not.toMatch(/expected|received|Unexpected/);
    },
  );
});
