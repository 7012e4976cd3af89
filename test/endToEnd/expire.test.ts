import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DriftReport } from "../../provider/drift/driftReport.ts";
import type { ExpireReport } from "../../provider/drift/expire.ts";
import { spawnGatehouse } from "../support/gatehouse.ts";
import { firewallRule, policyEnv, publicKey } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { shared, sharedFleet } from "../support/shared.ts";
import { startSparseService } from "../support/sparseService.ts";

const DAY = 24 * 60 * 60_000;
const ENDED = new Date(Date.now() - 3 * DAY - DAY / 2).toISOString();
const LATER = new Date(Date.now() + DAY).toISOString();

const all = { hostname: ".*" };

/** Returns the program, in which four resources have this end. */
const ending = (expiresAt: string) =>
  policyEnv({
    ana: publicKey("ana"),
    later: publicKey("later", "^root$", all, { expiresAt: LATER }),
    temp: publicKey("temp", "^root$", all, { expiresAt }),
    altered: publicKey("altered", "^root$", all, { expiresAt }),
    guests: firewallRule("deny", 10, { sourceIp: "^203\\.", expiresAt }),
    carla: { type: "Member", args: { email: "carla@example.com", role: "operator", expiresAt } },
  });
const POLICY = ending(ENDED);

describe("expired objects on a server that does not end access", { timeout: 120_000 }, () => {
  const fleet = sharedFleet(["carla"]);
  const sparse = shared(() => startSparseService(fleet.service.url));
  let program: PolicyProgram;
  let env: Record<string, string>;

  beforeAll(() => {
    program = new PolicyProgram();
    env = { ...fleet.env, GATEHOUSE_URL: sparse.url };
  });
  afterAll(() => program?.remove());

  /** Applies the program with ends in the future, and then moves these ends in the state, as if time had passed. */
  async function expiredStack(name: string) {
    const stack = program.stack({ env, name });
    const soon = new Date(Date.now() + DAY / 2).toISOString();
    await stack.result(["up", "--yes", "--skip-preview"], ending(soon));
    const path = join(program.states, ".pulumi", "stacks", "commonjs-program", `${name}.json`);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(soon, ENDED));
    return stack;
  }

  const namesOf = async () => {
    const keys = await fleet.client.getPublicKeys({ query: { perPage: 100 } });
    const rules = await fleet.client.getFirewallRules({ query: { perPage: 100 } });
    const { members } = await fleet.client.getNamespace({ params: { tenant: fleet.tenant } });
    return [
      ...keys.map(({ name }) => name),
      ...rules.map(({ action }) => `rule ${action}`),
      ...members.map(({ email }) => email),
    ].sort();
  };

  it("are listed, removed after a confirmation, and are no drift", async () => {
    const stack = await expiredStack("first");
    const keys = await fleet.client.getPublicKeys({ query: { perPage: 100 } });
    const fingerprint = keys.find(({ name }) => name === "altered")?.fingerprint ?? "";
    await fleet.client.updatePublicKey({
      params: { fingerprint },
      body: { name: "altered", username: ".*", filter: { hostname: ".*" } },
    });
    const expire = async (args: readonly string[], code: number) => {
      const report = (await stack.result(["expire", ...args], POLICY, code)) as unknown as ExpireReport;
      expect(schemaFaults("expire", report)).toEqual([]);
      return Object.fromEntries(report.objects.map(({ name, status }) => [name, status]));
    };
    const before = await namesOf();
    const state = stack.stateText("commonjs-program");

    const listed = { temp: "by-run", altered: "changed", guests: "by-run", carla: "by-run" };
    expect(await expire([], 2)).toEqual(listed);
    expect(await namesOf()).toEqual(before);

    const text = await stack.run(["expire"], POLICY);
    expect(text.code).toBe(2);
    expect(text.stdout).toContain(
      "PublicKey temp: expired 3 days ago; delete these lines; the access continues until the next run or gatehouse expire",
    );
    expect(text.stdout).toMatch(/PublicKey altered: .*; username changed out of band/);
    expect(text.stdout).toContain("4 expired objects still give access");

    const drift = (await stack.result(["drift"], POLICY, 2)) as DriftReport;
    expect(schemaFaults("drift", drift)).toEqual([]);
    expect(drift.drifted.map(({ name }) => name)).toEqual(["altered"]);
    expect(drift.expired.map(({ name }) => name).sort()).toEqual(["altered", "carla", "guests", "temp"]);

    expect(await expire(["--yes"], 2)).toEqual({
      temp: "removed",
      altered: "changed",
      guests: "removed",
      carla: "removed",
    });
    const gone = ["temp", "rule deny", "carla@example.com"];
    expect(await namesOf()).toEqual(before.filter((name) => !gone.includes(name)));
    expect(stack.stateText("commonjs-program")).toBe(state);

    await fleet.client.deletePublicKey({ params: { fingerprint } });
    expect(await expire([], 0)).toEqual({});
    const left = await stack.run(["drift", "--markdown", join(program.folder, "drift.md")], POLICY);
    expect(left.stdout).toContain("No drift");
    expect(left.stdout).toContain("PublicKey temp: expired 3 days ago; delete these lines\n");
    expect(left.code).toBe(0);
    expect(readFileSync(join(program.folder, "drift.md"), "utf8")).toContain("Expired: 4");

    const repair = await stack.run(["drift", "--repair", "--yes"], POLICY);
    expect(repair.code).toBe(0);
    expect(await namesOf()).not.toContain("temp");
  });

  it("stay if another resource declares the object without an end, and if the end in the state is not readable", async () => {
    const policy = policyEnv({ renewed: publicKey("renewed") });
    const stack = program.stack({ env, name: "second" });
    await stack.result(["up", "--yes", "--skip-preview"], policy);
    const path = join(program.states, ".pulumi", "stacks", "commonjs-program", "second.json");
    const state = JSON.parse(readFileSync(path, "utf8"));
    const { resources } = state.checkpoint.latest;
    const key = resources.find(({ urn }: { urn: string }) => urn.endsWith("::renewed"));
    const end = { expiresAt: ENDED, expiryStatus: "by-run" };
    const former = { ...key, urn: `${key.urn}-former`, outputs: { ...key.outputs, ...end } };
    const put = (...more: readonly object[]) =>
      writeFileSync(
        path,
        JSON.stringify({
          ...state,
          checkpoint: {
            ...state.checkpoint,
            latest: { ...state.checkpoint.latest, resources: [...resources, ...more] },
          },
        }),
      );
    put(former);
    const report = (await stack.result(["expire", "--yes"], policy)) as unknown as ExpireReport;
    expect(report.objects).toEqual([]);
    expect(await namesOf()).toContain("renewed");

    put({ ...former, outputs: { ...former.outputs, expiresAt: { secret: "…" } } });
    const unreadable = await stack.run(["expire", "--yes"], policy);
    expect(unreadable.code).toBe(2);
    expect(unreadable.stdout).toContain(
      "PublicKey renewed-former: the state does not contain its end in plaintext",
    );
  });

  it("are an error if the stack does not exist", async () => {
    const { code, stderr } = await spawnGatehouse(
      ["expire", program.folder, "--stack", "missing", "--engine", "embedded"],
      { ...env, PULUMI_BACKEND_URL: `file://${program.states}`, PULUMI_CONFIG_PASSPHRASE: "x" },
    );
    expect(code).toBe(1);
    expect(stderr).toContain("The stack missing does not exist or has no resources");
  });
});
