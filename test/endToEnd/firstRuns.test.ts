import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { openStack, type UpdateFailedError } from "../../provider/engine/index.ts";
import { UNKNOWN } from "../../provider/engineMarks.ts";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { environmentWithout } from "../support/command.ts";
import { createKey, memberId } from "../support/fleet.ts";
import { COMMAND, describeEngines, gatehouseBy } from "../support/gatehouse.ts";
import { freePort } from "../support/listening.ts";
import { firewallRule, publicKey } from "../support/policy.ts";
import { type PolicyProgram, testProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { openTerminal } from "../support/terminal.ts";

// Each test runs several commands.
vi.setConfig({ testTimeout: 180_000 });

const PASSWORD = "correct-horse";
const rule = (priority: number, more: Record<string, unknown> = {}) =>
  firewallRule("deny", priority, { username: "y", filter: { hostname: "z" }, ...more });
const staging = { type: "Namespace", args: { name: "staging" } };
/** A program with a namespace as its first resource. The other resources do not set `tenant`. */
const policy = { staging, rule: rule(1) };

const fleet = sharedFleet(["newcomer", "citizen"]);
let program: PolicyProgram;
beforeAll(async () => {
  await fleet.service.createUser({ username: "limited", password: PASSWORD, maxNamespaces: 1 });
});
beforeEach(() => {
  program = testProgram();
});

/** Calls `work` with a user's client, and closes the client afterwards. */
async function as<T>(
  username: string,
  work: (client: ReturnType<typeof createClient>) => Promise<T>,
): Promise<T> {
  const credential = passwordCredential({ username, password: PASSWORD });
  const client = createClient({ url: fleet.service.url, credential });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Arguments of an up without a preview. The preview would double the test's time. */
const UP = ["up", "--yes", "--skip-preview"];

const settingsFile = () => `${program.folder}/Pulumi.prod.yaml`;

// Long tests run more than three commands.
describeEngines("a stack's first runs", {}, (engine) => {
  const commonEnv = () => ({
    ...program.backend,
    GATEHOUSE_URL: fleet.service.url,
    GATEHOUSE_USERNAME: "citizen",
    GATEHOUSE_PASSWORD: PASSWORD,
  });
  const gate = (args: readonly string[], declared: object, env: Record<string, string> = {}) => {
    const [command = "", ...more] = args;
    return gatehouseBy(engine)([command, program.folder, "--stack", "prod", "--engine", engine, ...more], {
      ...commonEnv(),
      POLICY: JSON.stringify(declared),
      ...env,
    });
  };
  /** Opens the stack with the automation API, as a user's own code does. */
  const opened = (declared: object) =>
    openStack({
      folder: program.folder,
      stack: "prod",
      engine,
      env: {
        ...environmentWithout("GATEHOUSE_", "PULUMI_"),
        ...commonEnv(),
        POLICY: JSON.stringify(declared),
      },
    });
  /** Creates a namespace of the user `citizen`. */
  const newNamespace = (name: string) =>
    as("citizen", (client) => client.createNamespace({ body: { name } }));
  const rulesOf = (tenant: string) =>
    as("citizen", (client) => client.forTenant(tenant).getFirewallRules({ query: { perPage: 100 } }));
  const namespaces = (username: string) =>
    as(username, async (client) => {
      const all = await client.getNamespaces({ query: { perPage: 100 } });
      return new Map(all.map(({ name, tenantId }) => [name, tenantId]));
    });
  afterEach(async () => {
    for (const user of ["citizen", "newcomer"]) {
      await as(user, async (client) => {
        for (const tenant of (await namespaces(user)).values()) {
          await client.forTenant(tenant).deleteNamespace({ params: { tenant } });
        }
      });
    }
  });

  it("stay in the namespace of the first run, whatever namespace the user selects later", {
    tags: ["long"],
  }, async () => {
    const home = await newNamespace("home");
    const previewed = await gate(["preview", "--create"], policy);
    expect(previewed).toMatchObject({ code: 0 });
    expect(readFileSync(settingsFile(), "utf8")).not.toContain("gatehouse:tenant");
    const first = await gate(UP, policy);
    expect(first).toMatchObject({ code: 0 });
    expect(first.stdout).toContain(`Namespace: home (${home.tenantId}) on ${fleet.service.url}`);
    const setting = `gatehouse:tenant: ${home.tenantId}`;
    expect(readFileSync(settingsFile(), "utf8")).toContain(setting);
    // The user now has two namespaces, and last selected the namespace that the stack does not use.
    const other = (await namespaces("citizen")).get("staging") ?? "";
    const { token } = await as("citizen", (client) =>
      client.getNamespaceToken({ params: { tenant: other } }),
    );
    const second = await gate(UP, { ...policy, another: rule(2) });
    expect(second).toMatchObject({ code: 0 });
    expect(second.stdout).toContain("by the stack's configuration");
    expect((await rulesOf(home.tenantId)).map(({ priority }) => priority).sort()).toEqual([1, 2]);
    expect(await rulesOf(other)).toEqual([]);

    // The stack stays in its namespace even if the settings file no longer contains the namespace, and the credential
    // is for the other namespace.
    writeFileSync(settingsFile(), readFileSync(settingsFile(), "utf8").replace(/.*gatehouse:tenant.*/, ""));
    const env = { GATEHOUSE_USERNAME: "", GATEHOUSE_PASSWORD: "", GATEHOUSE_TOKEN: token };
    const third = await gate(UP, { ...policy, another: rule(3) }, env);
    expect(third).toMatchObject({ code: 0 });
    expect(third.stdout).toContain(`Namespace: home (${home.tenantId})`);
    expect((await rulesOf(home.tenantId)).map(({ priority }) => priority).sort()).toEqual([1, 3]);
    expect(await rulesOf(other)).toEqual([]);
  });

  it("use the namespace of GATEHOUSE_TENANT_FILE", async () => {
    const ids = [];
    for (const name of ["one", "two"]) {
      ids.push((await newNamespace(name)).tenantId);
    }
    const file = `${program.states}/tenant`;
    writeFileSync(file, `${ids[1]}\n`);
    const env = { GATEHOUSE_TENANT_FILE: file };
    expect(await gate(UP, { rule: rule(1) }, env)).toMatchObject({ code: 0 });
    expect(await Promise.all(ids.map(rulesOf))).toMatchObject([[], [{ priority: 1 }]]);
  });

  it("select no namespace if the user has several, and list them", { tags: ["long"] }, async () => {
    await newNamespace("one");
    await newNamespace("two");
    const { code, stderr } = await gate(["up", "--yes"], policy);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /FirewallRule "rule": tenant: The user is a member of 2 namespaces\..*GATEHOUSE_TENANT.*one \(.*two \(/,
    );
    expect([...(await namespaces("citizen")).keys()].sort()).toEqual(["one", "two"]);
    // A program needs no default namespace if each resource sets its own.
    const named = { rule: rule(1, { tenant: (await namespaces("citizen")).get("two") }) };
    expect(await gate(UP, named)).toMatchObject({ code: 0 });
  });

  it("need no default namespace if each resource sets its namespace", { tags: ["long"] }, async () => {
    const [one, two] = await Promise.all(["one", "two"].map(newNamespace));
    const fresh = { staging, begun: rule(1, { tenant: { $ref: "staging.tenant" } }) };
    const named = { first: rule(1, { tenant: one?.tenantId }), second: rule(2, { tenant: two?.tenantId }) };
    const review = async (declared: object) => {
      const { code, stdout } = await gate(["review", "--create", "--json"], declared);
      return { code, review: JSON.parse(stdout) };
    };

    const begun = await review(fresh);
    expect(begun).toMatchObject({ code: 0, review: { namespaces: [], notEvaluated: [] } });
    expect(begun.review.unknown).toEqual([
      expect.stringContaining('FirewallRule "begun" is in a namespace that this plan creates'),
      expect.stringContaining('Namespace "staging" creates a namespace'),
    ]);
    const all = { ...fresh, ...named };
    const plan = `${program.states}/plan`;
    const saved = await gate(["review", "--create", "--json", "--save", plan], all);
    expect(saved.code).toBe(0);
    const names = JSON.parse(saved.stdout).namespaces.map(({ name }: { name: string }) => name);
    expect(names.sort()).toEqual(["one", "two"]);
    expect(await gate(["up", "--plan", plan], all)).toMatchObject({ code: 0 });

    // There is no main namespace. A file that cannot be loaded is reported with the first namespace.
    program.write("all.policy.ts", "");
    const unloaded = await review(all);
    const tests = unloaded.review.namespaces.map((namespace: { tests: unknown[] }) => namespace.tests);
    expect([unloaded.code, tests]).toMatchObject([2, [[{ name: "all.policy.ts", ok: false }], [], []]]);
    rmSync(`${program.folder}/all.policy.ts`);

    await as("citizen", (client) => createKey(client.forTenant(two?.tenantId ?? ""), "extra"));
    const found = await gate(["drift", "--json"], all);
    expect(found.code).toBe(2);
    expect(JSON.parse(found.stdout).unmanaged).toMatchObject([{ name: "extra", tenant: two?.tenantId }]);
    const covered = await gate(["coverage"], all);
    expect([covered.code, covered.stderr]).toEqual([1, expect.stringContaining("Set GATEHOUSE_TENANT")]);
    expect(covered.stderr).toContain(two?.tenantId);
    const missing = { GATEHOUSE_TENANT: "00000000-0000-4000-8000-000000000000" };
    const uncovered = await gate(["coverage"], all, missing);
    expect([uncovered.code, uncovered.stdout, uncovered.stderr]).toEqual([
      1,
      "",
      expect.stringMatching(/error: The namespace 00000000\S+ does not exist on http/),
    ]);
  });

  it("create nothing if the user has no namespace, and print a remedy", { tags: ["long"] }, async () => {
    const env = { GATEHOUSE_USERNAME: "newcomer" };
    const { code, stderr } = await gate(["up", "--yes"], policy, env);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /FirewallRule "rule": tenant: The user is not a member of any namespace\. Create a namespace with gatehouse up --create-namespace/,
    );
    expect((await namespaces("newcomer")).size).toBe(0);
    const created = await gate([...UP, "--create-namespace", "fleet"], policy, env);
    expect(created).toMatchObject({ code: 0 });
    expect([...(await namespaces("newcomer")).keys()].sort()).toEqual(["fleet", "staging"]);
    expect(await gate(UP, { ...policy, another: rule(2) }, env)).toMatchObject({ code: 0 });
    const inFleet = await as("newcomer", async (client) =>
      client.forTenant((await namespaces("newcomer")).get("fleet") ?? "").getFirewallRules(),
    );
    expect(inFleet).toHaveLength(2);
  });

  describe("with --create-namespace at a terminal", () => {
    const started = (declared: object, more: Record<string, string> = {}) => {
      const stack = ["--stack", "prod", "--engine", engine];
      const args = ["up", program.folder, ...stack, "--create-namespace", "Fleet"];
      return openTerminal(process.execPath, [COMMAND, ...args], {
        env: {
          ...environmentWithout("GATEHOUSE_", "PULUMI_"),
          ...commonEnv(),
          GATEHOUSE_USERNAME: "newcomer",
          POLICY: JSON.stringify(declared),
          ...more,
        },
      });
    };
    /** Starts an up in a terminal, and waits for its question. */
    const asking = async (declared: object, more: Record<string, string> = {}) => {
      const terminal = started(declared, more);
      await terminal.untilShown("Apply these changes? [y/N] ");
      return terminal;
    };
    const written = () => [...readdirSync(program.states), ...readdirSync(program.folder)];

    it("write nothing before the answer, and count the namespace in the plan", {
      tags: ["long"],
    }, async () => {
      const before = written();
      const declined = await asking(policy);
      if (engine === "embedded") expect(written()).toEqual(before);
      expect(declined.shown()).toContain(
        `Namespace: Fleet on ${fleet.service.url}, which this run creates after the confirmation`,
      );
      expect(declined.shown()).toContain("+  Namespace Fleet");
      expect(declined.shown()).toContain("3 to create");
      declined.type("n");
      expect(await declined.code).toBe(1);
      expect(declined.shown()).toContain("Nothing was changed. [declined]");
      if (engine === "embedded") expect(written()).toEqual(before);
      expect(existsSync(settingsFile())).toBe(false);
      expect((await namespaces("newcomer")).size).toBe(0);

      const accepted = await asking(policy);
      accepted.type("y");
      expect([await accepted.code, accepted.shown()]).toEqual([0, expect.stringContaining("3 created")]);
      const ids = await namespaces("newcomer");
      expect([...ids.keys()].sort()).toEqual(["fleet", "staging"]);
      expect(accepted.shown()).toContain(`Created the namespace Fleet (${ids.get("fleet")})`);
      expect(readFileSync(settingsFile(), "utf8")).toContain(`gatehouse:tenant: ${ids.get("fleet")}`);
      const rules = await as("newcomer", (client) =>
        client.forTenant(ids.get("fleet") ?? "").getFirewallRules({ query: { perPage: 100 } }),
      );
      expect(rules).toHaveLength(1);
      expect(await gate(["preview"], policy, { GATEHOUSE_USERNAME: "newcomer" })).toMatchObject({
        code: 0,
        stdout: expect.not.stringContaining("to create"),
      });
    });

    it("use an existing namespace of this name, whatever other namespaces exist", {
      tags: ["long"],
    }, async () => {
      const [, , home] = await Promise.all(["one", "two", "fleet"].map(newNamespace));
      const terminal = await asking({ rule: rule(1) }, { GATEHOUSE_USERNAME: "citizen" });
      expect(terminal.shown()).toContain(
        `Namespace: fleet (${home?.tenantId}) on ${fleet.service.url}, by --create-namespace, which found this namespace`,
      );
      expect(terminal.shown()).not.toContain("the only namespace");
      terminal.type("n");
      expect([await terminal.code, existsSync(settingsFile())]).toEqual([1, false]);
    });
  });

  it("report that the program reads a namespace that does not exist yet", async () => {
    const env = { GATEHOUSE_TENANT: UNKNOWN, LOOKUPS: "1" };
    const { code, stdout, stderr } = await gate(["preview", "--create", "--no-tests"], {}, env);
    expect([code, stdout + stderr]).toEqual([
      1,
      expect.stringMatching(/The default namespace does not exist yet.*Create the namespace first/),
    ]);
  });

  it("with --create-namespace and --yes, name the namespace that they created", async () => {
    await newNamespace("one");
    const run = await gate([...UP, "--create-namespace", "fresh"], { rule: rule(1) });
    const id = (await namespaces("citizen")).get("fresh") ?? "";
    expect(run).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        `Namespace: fresh (${id}) on ${fleet.service.url}, created by --create-namespace`,
      ),
    });
    expect(await rulesOf(id)).toHaveLength(1);
  });

  it("without a setting, use the namespace of the resources in the state", { tags: ["long"] }, async () => {
    const home = await newNamespace("home");
    // Applies the program with the automation API, which does not write the namespace to the settings file. `pulumi up`
    // and older releases of gatehouse do not write it either.
    const direct = async (declared: object) => (await opened(declared)).up({ skipPreview: true });
    // Returns the state id that a preview plans for the rule: "[unknown]" until the state exists. An omitted input
    // would not work: an update plan of the Pulumi CLI accepts any value for an unknown input, but rejects a value for
    // an omitted input.
    const stateId = async () => {
      const { steps } = await (await opened({ rule: rule(1) })).preview({ values: true });
      return steps.find(({ name }) => name === "rule")?.after?.inputs.__stateId;
    };
    expect(await stateId()).toBe("[unknown]");
    await direct({ rule: rule(1) });
    await newNamespace("later");
    // A preview without changes succeeds without a namespace.
    expect(await stateId()).toMatch(/^[0-9a-f-]{36}$/);
    const refused: unknown = await direct({ rule: rule(1), another: rule(2) }).catch(
      (error: unknown) => error,
    );
    expect(JSON.stringify((refused as UpdateFailedError).result.diagnostics)).toMatch(
      /The user is a member of 2 namespaces.*GATEHOUSE_TENANT.*gatehouse:tenant.*home \(.*later \(/,
    );
    const { code, stdout } = await gate(UP, { rule: rule(1), another: rule(2) });
    expect(code).toBe(0);
    expect(stdout).toContain(
      `Namespace: home (${home.tenantId}) on ${fleet.service.url}, by the stack's resources`,
    );
    expect(readFileSync(settingsFile(), "utf8")).toContain(`gatehouse:tenant: ${home.tenantId}`);
    expect(await rulesOf(home.tenantId)).toHaveLength(2);
  });

  describe("a preview that queries the service", () => {
    const preview = (declared: object, env: Record<string, string> = {}) =>
      gate(["preview", "--create"], declared, env);
    let tenant: string;
    beforeEach(async () => {
      ({ tenantId: tenant } = await newNamespace("previewed"));
    });

    it("reports the address of a service that is not running", async () => {
      const url = `http://127.0.0.1:${await freePort()}`;
      const absent = { GATEHOUSE_URL: url, GATEHOUSE_RETRY_TIMEOUT: "0" };
      expect(await preview(policy, absent)).toMatchObject({ code: 1, stderr: expect.stringContaining(url) });
      expect(await preview(policy, { ...absent, GATEHOUSE_TENANT: tenant })).toMatchObject({ code: 1 });
      expect(await gate(["preview", "--create", "--offline"], policy, absent)).toMatchObject({ code: 0 });
    });

    it.each([
      ["a wrong password", { GATEHOUSE_PASSWORD: "wrong-password" }, /Wrong user name or password/],
      ["a missing address", { GATEHOUSE_URL: "" }, /GATEHOUSE_URL is not set\. Set GATEHOUSE_URL, or/],
    ] as [string, Record<string, string>, RegExp][])("reports %s", async (_what, env, error) => {
      expect(await preview(policy, env)).toMatchObject({ code: 1, stderr: expect.stringMatching(error) });
    });

    it("reports missing namespaces, devices and tags before an up, which then creates nothing", async () => {
      const { code, stdout, stderr } = await gate(["up", "--yes"], {
        rule: rule(1, { tenant: "00000000-0000-4000-8000-000000000000" }),
        tags: { type: "DeviceTags", args: { device: "no-such", tags: ["edge"] } },
        key: publicKey("k", "^r$", { tags: ["edge", "nowhere"] }),
      });
      expect(code).toBe(1);
      expect(stdout).toContain("3 to create");
      expect(stderr).toMatch(/FirewallRule "rule": .*namespace 00000000-0000-4000-8000-000000000000/);
      expect(stderr).toMatch(/DeviceTags "tags": .*no device "no-such"/);
      expect(stderr).toMatch(/PublicKey "key": .*has no tag "nowhere"/);
      expect(stderr).not.toContain('"edge"');
      const text = existsSync(settingsFile()) ? readFileSync(settingsFile(), "utf8") : "";
      expect(text).not.toContain("gatehouse:tenant");
    });

    it("reports the limit of namespaces that a user may own", async () => {
      const env = { GATEHOUSE_USERNAME: "limited" };
      const one = { type: "Namespace", args: { name: "one" } };
      const two = { type: "Namespace", args: { name: "two" } };
      const { code, stderr } = await gate(["up", "--yes"], { one, two }, env);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /Namespace "one", Namespace "two": the quota of the user is 1 namespaces, and the user owns 0/,
      );
      expect((await namespaces("limited")).size).toBe(0);
      // A program may adopt an existing namespace even if the user has reached the namespace limit.
      const { tenantId } = await as("limited", (client) => client.createNamespace({ body: { name: "one" } }));
      const adopting = { one: { type: "Namespace", args: { name: "one", adopt: true } } };
      expect(await gate(["preview", "--create"], adopting, env)).toMatchObject({ code: 0 });
      await as("limited", (client) =>
        client.forTenant(tenantId).deleteNamespace({ params: { tenant: tenantId } }),
      );
    });

    it("releases a device without the permission to delete it", { tags: ["long"] }, async () => {
      await fleet.enroll("kept", undefined, tenant).catch(() => undefined);
      const owner = (work: Parameters<typeof as>[1]) =>
        as("citizen", (client) => work(client.forTenant(tenant)));
      const body = { email: "newcomer@example.com", role: "operator" } as const;
      await owner((client) => client.inviteMember({ params: { tenant }, body }));
      const device = { device: { type: "Device", args: { tenant, device: "kept" } } };
      const env = { GATEHOUSE_USERNAME: "newcomer" };
      expect(await gate(UP, device)).toMatchObject({ code: 0 });
      expect(await gate(["up", "--yes"], {}, env)).toMatchObject({ code: 0 });
      await owner(async (client) => {
        const uid = await memberId({ client, tenant }, body.email);
        await client.removeMember({ params: { tenant, uid } });
        for (const { uid } of await client.getDevices()) await client.deleteDevice({ params: { uid } });
      });
    });

    it("reports missing permissions before an up creates anything", async () => {
      const observer = await as("citizen", (client) =>
        client
          .forTenant(tenant)
          .createApiKey({ body: { name: "robot", expiresAt: 30, role: "administrator" } }),
      );
      const declared = { rule: rule(1), robot: { type: "ApiKey", args: { validDays: 30 } } };
      const env = { GATEHOUSE_USERNAME: "", GATEHOUSE_PASSWORD: "", GATEHOUSE_API_KEY: observer.id };
      const { code, stderr } = await gate(["up", "--yes"], declared, env);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /"robot": permission denied: API keys cannot call this operation.*\(createApiKey\)/,
      );
      expect(await rulesOf(tenant)).toEqual([]);
    });
  });
});
