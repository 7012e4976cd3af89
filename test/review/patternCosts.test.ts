import { beforeEach, expect, test } from "vitest";
import { planProblems } from "../../provider/review/guards/planProblems.ts";
import type { Connection } from "../../provider/service/connection.ts";
import { FIREWALL_PATTERNS_MAX } from "../../sdk/contract/index.ts";
import { patternCost } from "../../sdk/policy/index.ts";
import { withAppAndUser } from "../server/http/appOfTest.ts";
import { connectionOf } from "./support/connectionOf.ts";
import { creation, planOf } from "./support/steps.ts";

const { app, ana } = withAppAndUser();

/** A pattern that costs about a thousand instructions. Patterns of different numbers are different. */
const large = (number: number) => `(?:[a-z]|[0-9]x){120}[a-z]y${1000 + number}`;
const FULL = Math.floor(FIREWALL_PATTERNS_MAX / patternCost(large(0)));

const rule = (username: string) => ({
  action: "allow",
  active: true,
  priority: 1,
  sourceIp: ".*",
  username,
  filter: { hostname: ".*" },
});

let connection: Connection;
beforeEach(() => {
  connection = connectionOf(app.url, ana);
  return () => connection.client.close();
});

const problemsOf = (usernames: readonly string[]) => {
  const steps = usernames.map((username, number) =>
    creation("FirewallRule", `rule-${number}`, rule(username)),
  );
  return planProblems(connection, planOf(...steps), { tenant: ana.tenant, unsettled: undefined });
};

test("a preview refuses firewall rules whose patterns together exceed the maximum cost", {
  tags: ["long"],
}, async () => {
  const patterns = Array.from({ length: FULL + 1 }, (_, number) => large(number));
  expect(await problemsOf(patterns)).toEqual([
    {
      about: "quota",
      text: expect.stringMatching(
        `^FirewallRule "rule-0", .*: the patterns of the firewall rules of the namespace ${ana.tenant} would have a total cost of [0-9]+, and the maximum is ${FIREWALL_PATTERNS_MAX}; use`,
      ),
    },
  ]);
  expect(await problemsOf(patterns.slice(1))).toEqual([]);
  expect(await problemsOf(patterns.map((pattern, number) => (number === 0 ? large(1) : pattern)))).toEqual(
    [],
  );
});

test("a preview counts the patterns of the rules on the service, and allows rules that cost nothing", async () => {
  await app.services.db.firewallRule.createMany({
    data: Array.from({ length: FULL + 5 }, (_, number) => ({
      tenantId: ana.tenant,
      action: "allow",
      active: true,
      priority: 1,
      sourceIp: ".*",
      hostname: ".*",
      username: large(number),
    })),
  });
  expect((await problemsOf([large(900)])).map(({ about }) => about)).toEqual(["quota"]);
  expect(await problemsOf([large(0), "^(?:root|deploy)$"])).toEqual([]);
});
