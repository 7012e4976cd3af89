import { setImmediate as nextTurn } from "node:timers/promises";
import { RE2JS } from "re2js";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { FIREWALL_PATTERNS_MAX, FORWARDING_PATTERNS_MAX } from "../../../sdk/contract/index.ts";
import { patternCost } from "../../../sdk/policy/index.ts";
import { DecisionTurns } from "../../../server/DecisionTurns.ts";
import { tooManyDecisions } from "../../../server/errors.ts";
import { admit } from "../../../server/gateway/logins/admit.ts";
import { statusesOf } from "../http/answers.ts";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { acceptedDevice } from "../http/fixtures.ts";
import { DENY_RULE, enroll } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
let uid = "";
beforeEach(async () => {
  ({ uid } = await acceptedDevice(app, ana, "web-1"));
});

/** A pattern that costs about a thousand instructions. Patterns of different numbers are different. */
const large = (number: number) => `(?:[a-z]|[0-9]x){120}[a-z]y${1000 + number}`;
const rule = (username: string, more = {}) => ({ ...DENY_RULE, username, ...more });
const create = (username: string, more = {}) =>
  ana.call("createFirewallRule", { body: rule(username, more) });
const update = (id: number | string, body: object) =>
  ana.call("updateFirewallRule", { params: { id: String(id) }, body });

/** Stores rules as earlier versions of the service did, without a check. */
async function store(patterns: readonly { username: string; sourceIp: string; hostname: string }[]) {
  const common = { tenantId: ana.tenant, action: "deny", active: true, priority: 1 };
  const data = patterns.map((one) => ({ ...common, ...one }));
  for (let start = 0; start < data.length; start += 500) {
    await app.services.db.firewallRule.createMany({ data: data.slice(start, start + 500) });
  }
  return app.services.db.firewallRule.findMany({ where: { tenantId: ana.tenant }, orderBy: { id: "asc" } });
}

const storedOf = (username: string) => ({ username, sourceIp: ".*", hostname: ".*" });

/** Stores rules whose patterns leave almost nothing of the maximum. */
const fill = () => {
  const count = Math.floor(FIREWALL_PATTERNS_MAX / patternCost(large(0)));
  return store(Array.from({ length: count }, (_, number) => storedOf(large(number))));
};

test("a new rule is refused if the different patterns of the namespace would cost too much", async () => {
  await fill();
  const refused = await create(large(999));
  expect([refused.status, refused.body.message]).toEqual([
    403,
    expect.stringContaining(`would exceed ${FIREWALL_PATTERNS_MAX}`),
  ]);
  for (const more of [{ source_ip: large(999) }, { filter: { hostname: large(999) } }]) {
    expect((await create("root", more)).status).toBe(403);
  }
  // Equal patterns count once, and patterns of literals cost nothing.
  expect((await create(large(0), { source_ip: large(1) })).status).toBe(200);
  expect((await create("^(?:root|deploy)$", { source_ip: "^10\\.0\\.0\\.7$" })).status).toBe(200);
  const eve = await app.user("eve", "eves");
  expect((await eve.call("createFirewallRule", { body: rule(large(999)) })).status).toBe(200);
});

test("concurrent creations do not exceed the maximum cost", async () => {
  const [first] = await fill();
  await ana.call("deleteFirewallRule", { params: { id: String(first?.id) } });
  expect(await statusesOf([901, 902, 903, 904].map((number) => create(large(number))))).toEqual([
    200, 403, 403, 403,
  ]);
});

test("a stored policy above the maximum can shrink but not grow", async () => {
  const rules = await store(Array.from({ length: 300 }, (_, number) => storedOf(large(number))));
  const [first, , third] = rules;
  expect((await update(first?.id ?? 0, rule(large(0), { priority: 7 }))).status).toBe(200);
  expect((await update(first?.id ?? 0, rule(large(999)))).status).toBe(200);
  expect((await update(first?.id ?? 0, rule(large(999), { source_ip: large(998) }))).status).toBe(403);
  // The pattern of another rule is replaced by a new one: the number of different patterns grows.
  expect((await update(first?.id ?? 0, rule(large(1)))).status).toBe(200);
  expect((await update(first?.id ?? 0, rule(large(997)))).status).toBe(403);
  expect((await update(third?.id ?? 0, rule("[0-9]+"))).status).toBe(200);
  expect((await update(third?.id ?? 0, rule("root"))).status).toBe(200);
  expect((await create(large(999))).status).toBe(403);
  expect((await create("^root$")).status).toBe(200);
});

test("a login is decided by 1,500 rules of three different patterns, and others run meanwhile", async () => {
  const patterns = (number: number) => `[a-z]{3}(?:[0-9]|[a-f]x)*[k-p]${1000 + number}`;
  await store(
    Array.from({ length: 1500 }, (_, number) => ({
      username: `o${patterns(number)}|.t$`,
      sourceIp: `1${patterns(number)}|[0-9]7$`,
      hostname: `w${patterns(number)}|-[${number === 0 ? "1" : "2"}]`,
    })),
  );
  let time = 0;
  // Each step takes a millisecond of the clock.
  const decisions = new DecisionTurns(tooManyDecisions, () => {
    time += 1;
    return time;
  });
  Object.assign(app.services, { decisions });
  const query = { domain: "lab", name: "web-1", username: "root", ip_address: "10.0.0.17" };
  let isDecided = false;
  const decided = internal.call("evaluateFirewall", { query }).finally(() => {
    isDecided = true;
  });
  let turns = 0;
  while (!isDecided) {
    await nextTurn();
    turns += 1;
  }
  const { status, body } = await decided;
  const [first] = await app.services.db.firewallRule.findMany({ orderBy: { id: "asc" }, take: 1 });
  expect([status, body.message]).toEqual([403, `denied by firewall rule ${first?.id}`]);
  // The rules have 4,500 patterns, and a slice has three steps.
  expect(turns).toBeGreaterThan(1000);
});

test("a login is refused while too many decisions of its namespace wait, and others are admitted", async () => {
  await store(Array.from({ length: 50 }, (_, number) => storedOf(large(number))));
  const eve = await app.user("eve", "eves");
  const other = await enroll(app, eve.tenant, "00:00:00:00:00:02");
  await eve.call("acceptDevice", { params: { uid: other.uid } });
  const question = (device: string) =>
    ({
      device: { uid: device },
      login: "root",
      address: "192.0.2.1",
      key: undefined,
      firewall: true,
    }) as const;
  let isOver = false;
  function* untilTheEnd() {
    while (!isOver) yield;
  }
  const all = Array.from({ length: 200 }, () => app.services.decisions.run(ana.tenant, untilTheEnd()));
  // Decisions of this test must not run during the tests of other files.
  onTestFinished(async () => {
    isOver = true;
    await Promise.all(all);
  });
  expect(await admit(app.services, question(uid))).toEqual({
    refused: "busy",
    reason: "too many decisions of the namespace are waiting; try again",
  });
  expect(await admit(app.services, question(other.uid))).toHaveProperty("device");
  const query = { domain: "lab", name: "web-1", username: "root", ip_address: "10.0.0.7" };
  expect((await internal.call("evaluateFirewall", { query })).status).toBe(503);
});

test("forwarding rules with too many large patterns are refused before a pattern is compiled", async () => {
  const edit = (login: string, count: number) =>
    ana.call("editNamespace", {
      body: {
        settings: { ssh_forwarding: Array.from({ length: count }, () => ({ login, target: "db:5432" })) },
      },
    });
  const compile = vi.spyOn(RE2JS, "compile");
  const refused = await edit("[b-z]{999}", 50);
  expect(compile).not.toHaveBeenCalled();
  compile.mockRestore();
  expect([refused.status, refused.body.message]).toEqual([
    400,
    expect.stringContaining(`total size of at most ${FORWARDING_PATTERNS_MAX}`),
  ]);
  expect((await edit("[a-z]{999}", 50)).status).toBe(400);
  expect((await edit("[a-z]{999}", 5)).status).toBe(200);
  expect((await edit("^(?:root|deploy)$", 50)).status).toBe(200);
});
