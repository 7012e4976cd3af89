import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test, vi } from "vitest";
import type { Device } from "../../provider/service/listings.ts";
import { SOURCE } from "../../provider/terraform/source.ts";
import { otherDevices } from "../../provider/verify/verifyNamespace.ts";
import { PermissionError, TransportError } from "../../sdk/index.ts";
import { HOUR } from "../../sdk/times.ts";
import { makeDataDir } from "../support/dataFolder.ts";
import { gatehouse, type Stack } from "../support/gatehouse.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { startLossyProxy } from "../support/proxy.ts";
import { labelsOf, type RecordedService, startRecordedService } from "../support/recordedService.ts";
import { schemaFaults } from "../support/schemas.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { admitLogin, beginSession, type PolicyWorld, startPolicyWorld } from "./support.ts";

const CLOCK = new URL("../support/movedClock.ts", import.meta.url).href;

describe("on this project's server", () => {
  let world: PolicyWorld;
  let folder: string;
  /** Moves the clock of the service. */
  const moveClock = (by: number) => writeFileSync(join(folder, "clock"), String(by));
  const verify = (...args: readonly string[]) => gatehouse(["verify", ...args], world.fleet.env);
  const json = async (...args: readonly string[]) => {
    const { code, stdout } = await verify("--json", ...args);
    return { code, result: JSON.parse(stdout) };
  };
  const uid = (name: string) => world.uids[name] ?? "";
  const login = (device: string, of: { login: string; address?: string }) =>
    admitLogin(world.fleet, uid(device), of);
  /** Sets a connection announcement, which is a change of the namespace. */
  const change = () =>
    world.fleet.client.editNamespace({
      params: { tenant: world.fleet.tenant },
      body: { settings: { connectionAnnouncement: `${Math.random()}` } },
    });
  /** The distance of the service's clock to the real time. */
  let distance = -12 * HOUR;
  const serviceTime = () => Date.now() + distance;
  const passTime = () => {
    distance += HOUR / 4;
    moveClock(distance);
  };
  /** Changes the namespace, and passes time, so that the sessions of a test begin long after the last change. */
  const startAfterChange = async () => {
    passTime();
    await change();
    passTime();
  };

  beforeAll(async () => {
    folder = await makeDataDir();
    moveClock(distance);
    const clock = { NODE_OPTIONS: `--import=${CLOCK}`, MOVED_CLOCK: join(folder, "clock") };
    world = await startPolicyWorld("enterprise", clock);
  });
  afterAll(async () => {
    await world?.fleet.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("exits with 0 if no login was admitted, and counts sessions whose login did not succeed", async () => {
    await startAfterChange();
    const first = await verify();
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toContain("No login was compared.");
    await beginSession(world.fleet, uid("web-1"), { login: "root", address: "203.0.113.9" });
    expect((await verify()).stdout).toContain("1 session not compared, because the login did not succeed");
  });

  test("exits with 0 if the policy allows all logins since its last change", async () => {
    await startAfterChange();
    await login("web-1", { login: "root" });
    await login("gate", { login: "root", address: "203.0.113.9" });
    const { code, stdout } = await verify();
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining("The policy allows all 2 logins that the service admitted."),
    ]);
    expect(stdout).toContain("2 without a key, which the firewall alone decides");
  });

  test("exits with 2 for a login that the policy refuses, and reports the session", async () => {
    await startAfterChange();
    await login("web-1", { login: "root" });
    const session = await login("db-1", { login: "root", address: "203.0.113.9" });
    const { code, stdout } = await verify();
    expect(code).toBe(2);
    expect(stdout).toMatch(
      new RegExp(
        `root on db-1 from 203\\.0\\.113\\.9, .* UTC, session ${session}: the firewall rule 1 \\(deny, priority 100\\) denies the login`,
      ),
    );
    expect(stdout).toContain("The policy refuses 1 of 2 logins that the service admitted.");
    expect(stdout).toContain("gatehouse access --explain");
    expect((await verify("--allow-incomplete")).code).toBe(2);
  });

  test("prints the differences as JSON", async () => {
    await startAfterChange();
    const session = await login("db-2", { login: "root" });
    const { code, result } = await json();
    expect(code).toBe(2);
    expect(schemaFaults("verify", result)).toEqual([]);
    expect(schemaFaults("verify", { ...result, differences: [{}] })).not.toEqual([]);
    expect(result).toMatchObject({
      namespace: world.fleet.tenant,
      lastChange: { operation: "editNamespace", actor: { kind: "user" } },
      compared: { total: 1, byFirewall: 1 },
      differences: [{ session, key: null, user: null, device: { name: "db-2" } }],
      notEvaluated: [],
    });
    expect(result.since).toBe(result.lastChange.at);
  });

  test("does not compare sessions that began before the last change, whatever --since contains", async () => {
    await startAfterChange();
    await login("db-2", { login: "root" });
    await change();
    expect((await json()).result).toMatchObject({ compared: { total: 0 }, differences: [] });
    const since = new Date(serviceTime() - HOUR).toISOString();
    const { code, result } = await json("--since", since);
    expect([code, result.compared.total, result.notes]).toEqual([
      0,
      0,
      [expect.stringContaining("Only the logins since the last change of the policy")],
    ]);
  });

  test("compares only the sessions since a later --since", async () => {
    await startAfterChange();
    await login("db-2", { login: "root" });
    const { startedAt } = (await world.fleet.client.getSessions({ query: { perPage: 1 } }))[0] ?? {};
    const since = new Date(Date.parse(`${startedAt}`) + 1);
    const { code, result } = await json("--since", since.toISOString());
    expect([code, result.since, result.compared.total]).toEqual([0, since.toISOString(), 0]);
  });

  test("changes of API keys, closed sessions and enrolled devices are no changes of the policy", async () => {
    await startAfterChange();
    const { client, tenant } = world.fleet;
    const session = await login("web-1", { login: "root" });
    await client.createApiKey({ body: { name: "another", role: "observer", expiresAt: 30 } });
    await client.closeSession({ params: { uid: session }, body: { device: uid("web-1") } });
    await world.fleet.enrollPending("another");
    const [{ operation } = { operation: "" }] = await client.getAuditTrail({ params: { tenant } });
    expect(operation).toBe("authDevice");
    expect((await json()).result.compared.total).toBe(1);
    await client.updateDeviceTags({ params: { uid: uid("lab") }, body: { tags: ["lab"] } });
    expect((await json()).result.compared.total).toBe(0);
  });

  test("a refused login right after a change is not evaluated, since the decision may be older", async () => {
    await change();
    await login("db-2", { login: "root" });
    const { code, stdout } = await verify();
    expect([code, stdout]).toEqual([
      2,
      expect.stringMatching(/Not evaluated: 1\n.*may have decided before the last change/),
    ]);
    expect((await verify("--allow-incomplete")).code).toBe(0);
  });

  test("sessions above --max-sessions are not evaluated", async () => {
    await startAfterChange();
    for (const device of ["web-1", "web-2", "web-3"]) await login(device, { login: "root" });
    const { code, result } = await json("--max-sessions", "2");
    expect([code, result.compared.total, result.notEvaluated]).toEqual([
      2,
      2,
      [expect.stringMatching(/^more than 2 sessions began since .*\(--max-sessions\)$/)],
    ]);
    expect((await json("--max-sessions", "3")).code).toBe(0);
  });

  describe("a policy that changes during the check", () => {
    /** Runs the command through a proxy, which changes the namespace before some of the requests for sessions. */
    async function verifyDuring(times: number) {
      await startAfterChange();
      await login("db-2", { login: "root" });
      const proxy = await startLossyProxy(world.fleet.service.url);
      const changeBefore = (left: number): void =>
        proxy.before((_method, path) => {
          if (left === 0 || !path.startsWith("/api/sessions?page=1&")) return undefined;
          return change().then(() => changeBefore(left - 1));
        });
      changeBefore(times);
      try {
        return await gatehouse(["verify"], { ...world.fleet.env, GATEHOUSE_URL: proxy.url });
      } finally {
        await proxy.stop();
      }
    }

    test("is read again", async () => {
      const { code, stdout } = await verifyDuring(1);
      expect([code, stdout]).toEqual([0, expect.stringContaining("No login was compared.")]);
    });

    test("is not evaluated if it changes at each attempt", async () => {
      const { code, stdout } = await verifyDuring(20);
      expect([code, stdout]).toEqual([2, expect.stringContaining("the policy changed during the check")]);
    });
  });

  test("needs --since with a credential that may not read the audit trail", async () => {
    await startAfterChange();
    await login("web-1", { login: "root" });
    const { client } = world.fleet;
    const { id } = await client.createApiKey({ body: { name: "reader", role: "observer", expiresAt: 30 } });
    const env = { GATEHOUSE_URL: world.fleet.service.url, GATEHOUSE_API_KEY: id };
    const { code, stderr } = await gatehouse(["verify"], env);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/--since is required.*audit trail could not be read.*Set --since to a time/),
    ]);
    const since = new Date(serviceTime() - HOUR / 8).toISOString();
    const { stdout } = await gatehouse(["verify", "--since", since], env);
    expect(stdout).toContain("The last change of the policy is not known");
  });

  test.each([
    ["2026-12-01", "--since must be a time with an offset"],
    ["2999-12-01T00:00Z", "--since is in the future"],
  ])("rejects --since %s", async (since, message) => {
    const { code, stderr } = await verify("--since", since);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  test("a server without an audit trail and without keys in sessions is compared weakly", async () => {
    await startAfterChange();
    const sparse = await startSparseService(world.fleet.service.url, { emptyErrors: true });
    try {
      const env = { ...world.fleet.env, GATEHOUSE_URL: sparse.url };
      const missing = await gatehouse(["verify"], env);
      expect([missing.code, missing.stderr]).toEqual([
        1,
        expect.stringContaining("--since is required, because the last change of the policy is not known"),
      ]);
      const since = new Date(serviceTime() - HOUR / 8).toISOString();
      const run = async () => {
        const { code, stdout } = await gatehouse(["verify", "--since", since, "--json"], env);
        const { compared, notEvaluated, differences } = JSON.parse(stdout);
        return { code, weakly: compared.weakly, differences: differences.length, notEvaluated };
      };
      const before = await run();
      await login("web-1", { login: "root" });
      expect((await run()).weakly).toBe(before.weakly + 1);
      await login("web-1", { login: "nobody-has-this" });
      expect(await run()).toMatchObject({
        code: 2,
        notEvaluated: expect.arrayContaining([expect.stringContaining("no public key admits the login")]),
      });
      await login("db-1", { login: "root", address: "203.0.113.7" });
      expect((await run()).differences).toBe(before.differences + 1);
    } finally {
      await sparse.stop();
    }
  });
});

describe("the devices of sessions that the list of devices does not contain", () => {
  const sessions = Array.from({ length: 100 }, (_, index) => ({ deviceUid: `d${index}` }));

  it("are read once each, at most 16 at the same time", async () => {
    let running = 0;
    let most = 0;
    const find = vi.fn(async (uid: string) => {
      running += 1;
      most = Math.max(most, running);
      await setImmediate();
      running -= 1;
      return { uid } as Device;
    });
    const { devices } = await otherDevices({ find }, [{ uid: "d0" }], [...sessions, ...sessions]);
    expect(devices.map(({ uid }) => uid)).toEqual(sessions.slice(1).map(({ deviceUid }) => deviceUid));
    expect([find.mock.calls.length, most]).toEqual([99, 16]);
  });

  const details = { operation: "getDevice", method: "GET", path: "/api/devices/d1", attempts: 1 };
  const failing = (error: Error) => ({
    find: vi.fn(async (uid: string) => {
      if (uid === "d1") throw error;
      return undefined;
    }),
  });

  it("are reported with the error if they could not be read, and not as deleted", async () => {
    const error = new PermissionError("permission denied", { ...details, outcome: "none", status: 403 });
    const { devices, unread } = await otherDevices(failing(error), [], sessions);
    expect(devices).toEqual([]);
    expect([...unread]).toEqual([["d1", "the device could not be read: permission denied"]]);
  });

  it("end the command if the service does not respond, without further requests", async () => {
    const error = new TransportError(
      "connection refused",
      { ...details, outcome: "none" },
      "unreachable",
      undefined,
    );
    const devices = failing(error);
    await expect(otherDevices(devices, [], sessions)).rejects.toBe(error);
    await setImmediate();
    expect(devices.find.mock.calls.length).toBeLessThan(40);
  });
});

describe("with resources in another namespace", { timeout: 60_000 }, () => {
  const fleet = sharedFleet();
  let other: string;
  let folder: string;
  const without = (owner: string) =>
    `the namespace other-fleet (${other}), in which 1 resource of the ${owner} is, was not compared; set GATEHOUSE_TENANT to compare it`;

  beforeAll(async () => {
    other = (await fleet.client.createNamespace({ body: { name: "other-fleet" } })).tenantId;
    await fleet.client.editNamespace({
      params: { tenant: fleet.tenant },
      body: { settings: { connectionAnnouncement: "hello" } },
    });
    folder = await makeDataDir();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  describe("in a stack", () => {
    let program: PolicyProgram;
    let stack: Stack;

    beforeAll(async () => {
      program = new PolicyProgram();
      stack = program.stack({ env: fleet.env });
      const policy = {
        a: publicKey("a"),
        b: publicKey("b", "^root$", { hostname: ".*" }, { tenant: other }),
      };
      const { code, stderr } = await stack.run(["up", "--yes"], policyEnv(policy));
      expect(code, stderr).toBe(0);
    });
    afterAll(() => program?.remove());

    const verify = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await stack.run(["verify", "--json", ...args]);
      expect(code, stderr).not.toBe(1);
      return { code, notEvaluated: JSON.parse(stdout).notEvaluated };
    };

    it("exits with 2 and reports the namespace, unless --allow-incomplete is set", async () => {
      expect(await verify()).toEqual({ code: 2, notEvaluated: [without("stack")] });
      expect((await verify("--allow-incomplete")).code).toBe(0);
    });

    it("exits with 2 if the resources of the stack cannot be read", async () => {
      const states = join(program.states, ".pulumi", "stacks");
      const file = readdirSync(states, { recursive: true, encoding: "utf8" }).find((name) =>
        name.endsWith(`${stack.name}.json`),
      );
      const proxy = await startLossyProxy(fleet.service.url);
      // The command reads the settings from the state before its first request, and the resources later.
      proxy.before(() => writeFile(join(states, file ?? ""), "{"));
      try {
        const { code, stdout } = await stack.run(["verify", "--json"], { GATEHOUSE_URL: proxy.url });
        expect([code, JSON.parse(stdout).notEvaluated]).toEqual([
          2,
          [expect.stringContaining("the resources of the stack could not be read: ")],
        ]);
      } finally {
        await proxy.stop();
      }
    });
  });

  describe("in a Terraform plan", () => {
    /** Writes a plan that covers only a part of the configuration, with one tag in each namespace. */
    const writePlan = (elsewhere?: string) => {
      const resources = [fleet.tenant, other].map((tenant, index) => ({
        address: `gatehouse_tag.t${index}`,
        type: "gatehouse_tag",
        mode: "managed",
        values: { id: `${tenant}/prod`, name: "prod", tenant },
        key: index === 0 ? "gatehouse" : "b",
      }));
      const source = `registry.terraform.io/${SOURCE}`;
      const expressions = { url: { constant_value: elsewhere ?? fleet.service.url } };
      const plan = {
        format_version: "1.2",
        planned_values: {},
        complete: false,
        resource_changes: resources.map(({ address, type, mode, values }) => ({
          address,
          type,
          mode,
          provider_name: source,
          change: { actions: ["no-op"], before: values, after: values, after_unknown: {} },
        })),
        configuration: {
          provider_config: {
            gatehouse: { full_name: source, expressions: {} },
            b: { full_name: source, alias: "b", expressions },
          },
          root_module: {
            resources: resources.map(({ address, type, key }) => ({
              address,
              type,
              provider_config_key: key,
              expressions: { name: {}, tenant: {} },
            })),
          },
        },
      };
      writeFileSync(join(folder, "plan.json"), JSON.stringify(plan));
    };
    const run = (command: string, ...args: readonly string[]) =>
      gatehouse([command, "--json", ...args, "--terraform", join(folder, "plan.json")], fleet.env);

    it("exits with 2 and reports the namespace", async () => {
      writePlan();
      const { code, stdout, stderr } = await run("verify", folder);
      expect(code, stderr).toBe(2);
      expect(JSON.parse(stdout).notEvaluated).toEqual([without("plan")]);
    });

    it("exits with 0 if the other namespace is on another service", async () => {
      writePlan("https://elsewhere.example.org");
      const { code, stdout, stderr } = await run("verify", folder);
      expect([code, JSON.parse(stdout).notEvaluated], stderr).toEqual([0, []]);
    });

    const PARTIAL = expect.stringContaining("covers only a part of the configuration");

    it("access and test report that the plan covers only a part of the configuration", async () => {
      writePlan();
      const access = await run("access", "--folder", folder);
      expect(JSON.parse(access.stdout).unknown, access.stderr).toContainEqual(PARTIAL);
      writeFileSync(join(folder, "empty.policy.ts"), "export {};\n");
      const test = await run("test", folder);
      expect(JSON.parse(test.stdout).unknown, test.stderr).toContainEqual(PARTIAL);
    });
  });
});

// The recorded responses of a server of version 0.27, with sessions of its users.
describe("on a server of version 0.27", () => {
  const SINCE = ["--since", "2026-11-28T10:40Z"];
  const CREDENTIAL = { GATEHOUSE_USERNAME: "owner", GATEHOUSE_PASSWORD: "secret-Pw1" };
  const TENANT = "7eddd4ed-4d6a-4f75-a1fa-ff9937536358";
  let service: RecordedService | undefined;
  beforeEach(() => {
    vi.useFakeTimers({ now: new Date("2026-11-28T11:00:00Z"), toFake: ["Date"] });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await service?.stop();
  });

  /** @param unread labels of answers that replace recorded ones, by the end of the recorded label */
  async function verify(
    sessions: string,
    args: readonly string[] = SINCE,
    unread: Readonly<Record<string, string>> = {},
  ) {
    const labels = labelsOf("identity user: ").map((label) =>
      label.endsWith("GET /api/sessions") ? sessions : label,
    );
    const replaced = Object.entries(unread);
    service = await startRecordedService(
      labels.map((label) => replaced.find(([end]) => label.endsWith(end))?.[1] ?? label),
    );
    const env = {
      ...CREDENTIAL,
      GATEHOUSE_URL: service.url,
      GATEHOUSE_TENANT: TENANT,
      GATEHOUSE_RETRY_TIMEOUT: "0",
    };
    return gatehouse(["verify", ...args], env);
  }

  it("needs --since, because the server has no audit trail", async () => {
    const { code, stderr } = await verify("sessions of users", []);
    expect([code, stderr]).toEqual([1, expect.stringContaining("the server has no audit trail")]);
  });

  it("compares each session with the access of its user, and a session without a user weakly", async () => {
    const { code, stdout } = await verify("sessions of users");
    expect([code, stdout]).toEqual([0, expect.stringContaining("The policy allows all 3 logins")]);
    expect(stdout).toContain("1 weakly, because the server stores neither the key nor the user");
  });

  it("exits with 2 for a session that no policy allows, and reports the user", async () => {
    const { code, stdout } = await verify("a session that no policy allows");
    expect([code, stdout]).toEqual([
      2,
      expect.stringMatching(
        /deploy on web1 from 127\.0\.0\.1 by alice@example\.com \(870428e2-[^)]*\), .*default \(deny\)/,
      ),
    ]);
  });

  it("compares no session before --since", async () => {
    const { code, stdout } = await verify("a session that no policy allows", [
      "--since",
      "2026-11-28T10:55Z",
    ]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("No login was compared.")]);
  });

  it("exits with 2 if the policies could not be read", async () => {
    const { code, stdout } = await verify("sessions of users", SINCE, {
      "GET /api/access-policies": "access policies are not shown",
    });
    expect([code, stdout]).toEqual([
      2,
      expect.stringMatching(/Not evaluated: 2[\s\S]*3 sessions.*the access policies could not be read/),
    ]);
    expect(stdout).not.toContain("allows");
  });

  it("has a note for each other list that could not be read", async () => {
    const { code, stdout } = await verify("sessions of users", SINCE, {
      "GET /api/namespaces/api-key": "API keys are not shown",
    });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Not known: API keys could not be read: /m)]);
  });

  it("exits with 2 if the server does not list the latest sessions first", async () => {
    const { code, stdout } = await verify("sessions in ascending order");
    expect([code, stdout]).toEqual([
      2,
      expect.stringContaining("the server does not list the sessions in the order"),
    ]);
  });
});
