import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { AccessEvidence } from "../../provider/access/evidence.ts";
import { packageVersion } from "../../provider/packageFile.ts";
import { changeKey, createKey } from "../support/fleet.ts";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { gitLabel, gitOnPath, TestRepository } from "../support/git.ts";
import { firewallRule, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";

const END = "2999-12-01T18:00:00.000Z";
const FORMULA = '=cmd(), "x" | [a](http://evil) <b>';

describe.skipIf(!gitOnPath)(`evidence of access, with ${gitLabel}`, { timeout: 120_000 }, () => {
  const fleet = sharedFleet(["carla"]);
  const program = sharedProgram();
  let env: Record<string, string>;
  let commit: string;

  beforeAll(async () => {
    await fleet.enroll("web-01");
    const repository = new TestRepository(program.folder);
    repository.write({ ".gitignore": "node_modules\nPulumi.*.yaml\naccess.*\n" });
    commit = repository.commit("The policy");
    env = { ...fleet.env, ...program.backend };
    await program.stack({ env, name: "prod" }).apply({
      carla: { type: "Member", args: { email: "carla@example.com", role: "operator" } },
      ana: publicKey("ana", "^root$", { hostname: ".*" }, { expiresAt: END, owner: "carla@example.com" }),
      office: firewallRule("allow", 10, { sourceIp: "^203\\.0\\.113\\.7$" }),
    });
    await createKey(fleet.client, FORMULA);
  });

  const file = (name: string) => join(program.folder, name);
  const words = (name: string) => {
    const stack = ["--folder", program.folder, "--stack", "prod", "--engine", "embedded"];
    return ["access", ...stack, "--report", file(name)];
  };
  /** Writes a report. Returns its text. */
  async function written(name: string): Promise<string> {
    expect((await gatehouse(words(name), env)).code).toBe(0);
    return readFileSync(file(name), "utf8");
  }

  it("lists each access with its declaration, owner and end, the commit, and unmanaged objects", async () => {
    const run = await spawnGatehouse(words("access.json"), env);
    expect(run).toMatchObject({ code: 0, stdout: `Wrote ${file("access.json")}.\n` });
    const evidence = JSON.parse(readFileSync(file("access.json"), "utf8")) as AccessEvidence;
    expect(schemaFaults("access-evidence", evidence)).toEqual([]);
    expect(evidence).toMatchObject({
      toolVersion: packageVersion(),
      service: fleet.service.url,
      namespace: { id: fleet.tenant },
      stack: "commonjs-program/prod",
      revision: { commit, hasUncommittedChanges: false },
      notEvaluated: [],
    });
    const object = (name: string) => evidence.objects.find((one) => one.name === name);
    expect(object(FORMULA)).toMatchObject({ kind: "PublicKey", isManaged: false, until: null });
    expect(object("ana")).toMatchObject({ isManaged: true, until: END, ends: "enforced" });
    const ana = evidence.access?.filter(({ subject }) => subject.name === "ana") ?? [];
    expect(ana.map(({ subject }) => [subject.owner, subject.declaredBy])).toEqual(
      ana.map(() => ["carla@example.com", "ana of commonjs-program/prod"]),
    );
    expect(ana).toContainEqual(
      expect.objectContaining({
        logins: ["root"],
        addresses: ["203.0.113.7"],
        devices: evidence.devices.map(({ uid }) => uid),
        until: END,
        by: expect.objectContaining({ kind: "FirewallRule", declaredBy: "office of commonjs-program/prod" }),
      }),
    );
    const unmanaged = evidence.access?.find(({ subject }) => subject.name === FORMULA);
    expect(unmanaged).toMatchObject({ until: null, subject: { declaredBy: null } });
    expect(readdirSync(program.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it("writes CSV without formulas and Markdown without links, and reports uncommitted changes", {
    tags: ["long"],
  }, async () => {
    program.write("new.txt", "");
    const csv = await written("access.csv");
    expect(csv).toContain(`"'=cmd(), ""x"" | [a](http://evil) <b>"`);
    expect(csv).toContain(`about,,,Program,,,,,,,,"commit ${commit} of `);
    expect(csv).toContain("with uncommitted changes");
    expect(csv).toMatch(
      /^access,PublicKey,[0-9a-f:]+,ana,carla@example\.com,ana of commonjs-program\/prod,root,203\.0\.113\.7,web-01,"FirewallRule /m,
    );

    const markdown = await written("access.md");
    expect(markdown).toMatch(/\| PublicKey \| [0-9a-f:]+ \| ana \| carla\\@example\.com \|/);
    expect(markdown).toContain("2999-12-01 18:00 UTC");
    expect(markdown).toContain("\\[a\\](http:\\//evil) \\<b\\>");
  });

  it("does not contain a declared end that the live key no longer has", async () => {
    onTestFinished(() => changeKey(fleet.client, "ana", { expiresAt: END }));
    await changeKey(fleet.client, "ana", { expiresAt: null });
    const evidence = JSON.parse(await written("access.json")) as AccessEvidence;
    expect(evidence.objects.find(({ name }) => name === "ana")).toMatchObject({ until: null });
    const ana = evidence.access?.find(({ subject }) => subject.name === "ana");
    expect(ana).toMatchObject({ until: null });
  });

  it("is incomplete without a stack on a server that does not return declarations", async () => {
    const sparse = await startSparseService(fleet.service.url);
    try {
      const report = ["access", "--report", file("access.md")];
      const run = await gatehouse(report, { ...fleet.env, GATEHOUSE_URL: sparse.url });
      expect(run.code).toBe(2);
      expect(run.stderr).toContain("unmanaged objects are not known");
      expect(readFileSync(file("access.md"), "utf8")).toMatch(
        /## Not evaluated\n\n.*\n.*\n\| unmanaged objects/,
      );
    } finally {
      await sparse.stop();
    }
  });

  it("rejects a file with another extension, and a folder that does not exist", async () => {
    const text = await gatehouse(["access", "--report", "access.txt"], fleet.env);
    expect(text).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("must be one of .json, .csv, .md"),
    });
    const missing = await gatehouse(["access", "--report", "/missing/access.md"], fleet.env);
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("/missing/access.md") });
  });
});
