import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Review } from "../../provider/review/report/review.ts";
import { createKey } from "../support/fleet.ts";
import { describeEngines, gatehouseBy, spawnGatehouse } from "../support/gatehouse.ts";
import { gitLabel, gitOnPath, TestRepository } from "../support/git.ts";
import { type Policy, publicKey } from "../support/policy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const COMMAND = fileURLToPath(new URL("../../provider/bin/gatehouse.js", import.meta.url));

const key = (name: string, username: string, hostname: string) => publicKey(name, username, { hostname });
const member = (role: string) => ({ type: "Member", args: { email: "bob@example.com", role } });

const [ana, carl, dora] = [
  key("ana", "^root$", "^web-01$"),
  key("carl", "^deploy$", "^web-"),
  key("dora", "^backup$", "^db-01$"),
];
/** The policy that the service has. */
const first: Policy = { ana, bob: member("administrator") };
/** The policy on the main branch, which is not yet applied. */
const merged: Policy = { ...first, carl };
/** The policy on the branch to review. */
const changed: Policy = {
  ...merged,
  carl: { ...carl, args: { ...carl.args, filter: { hostname: "^web-01$" } } },
  dora,
};

/**
 * The program. It declares the resources of the policy file, and the members that another package of the repository
 * lists.
 */
const PROGRAM = `
const { existsSync, writeFileSync } = require("node:fs");
const gatehouse = require("@gatehouse-access/provider");
const { owners } = require("@team/people");
const policy = require("./policy.json");
if (process.env.STARTED && policy.hang) {
  writeFileSync(process.env.STARTED, "");
  setInterval(() => {}, 1000);
}
for (const [name, { type, args }] of Object.entries(policy)) {
  if (type) new gatehouse[type](name, args);
}
for (const [name, role] of Object.entries(owners)) {
  new gatehouse.Member(name, { email: name + "@example.com", role });
}
`;

/** Flag that skips the refresh, which would double the test's time. */
const UNREAD = ["--no-refresh"];

const program = (policy: unknown) => ({ "infra/policy/policy.json": JSON.stringify(policy) });
const people = (owners: Record<string, string>) => ({
  "packages/people/index.js": `exports.owners = ${JSON.stringify(owners)};`,
});

// Long tests preview two revisions, each in a process.
describeEngines(`a review of two revisions of ${gitLabel}`, { timeout: 120_000 }, (engine) => {
  const fleet = sharedFleet(["bob", "eve"]);
  let folder: string;
  let repository: TestRepository;

  const env = () => ({
    ...fleet.env,
    PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
    XDG_CACHE_HOME: join(folder, "tmp"),
  });
  const command = (name: string, args: readonly string[]) => [
    name,
    join(repository.root, "infra/policy"),
    "--engine",
    engine,
    ...(args.includes("--stack") ? args : ["--stack", "test", ...args]),
  ];
  /** @param tests whether the repository contains policy tests */
  const run = async (args: readonly string[], code: number, tests = false) => {
    const ended = await (tests ? spawnGatehouse : gatehouseBy(engine))(command("review", args), env());
    expect([ended.code, ended.stderr]).toEqual([code, expect.any(String)]);
    expect(leftOver()).toEqual([]);
    return ended;
  };
  const leftOver = () => readdirSync(join(folder, "tmp/gatehouse"));
  const reviewed = async (args: readonly string[], code = 0, tests = false) => {
    const ended = await run(["--json", ...args], code, tests);
    const review = JSON.parse(ended.stdout) as Review;
    const [namespace] = review.namespaces;
    if (!namespace) throw new Error("no namespace was reviewed");
    const access = (namespace.access ?? []).map(
      ({ change, keys, logins, where }) =>
        `${keys.map(({ name }) => name).join()} ${change} ${logins.join()} on ${where}`,
    );
    const changes = review.changes.map(({ op, name, fields }) =>
      [op, name, ...(op === "update" ? fields.map(({ path }) => path) : [])].join(" "),
    );
    return { review, namespace, access, changes: changes.sort() };
  };
  /** Returns everything that a review must leave unchanged: the live objects, the state and the repository. */
  const everything = async () => ({
    keys: await fleet.client.getPublicKeys(),
    state: readFileSync(join(folder, "state/.pulumi/stacks/revisions/test.json"), "utf8"),
    stacks: readdirSync(join(folder, "state/.pulumi/stacks/revisions")).sort(),
    git: repository.files(),
    // With this flag, git status does not rewrite the index file of the repository.
    worktree: repository.git("--no-optional-locks", "status", "--porcelain", "--ignored"),
  });
  const restore = () => repository.git("checkout", "--quiet", "--force", "main");

  beforeAll(async () => {
    for (const name of ["web-01", "web-02", "db-01"]) await fleet.enroll(name);
    folder = mkdtempSync(join(tmpdir(), "gatehouse-revisions-"));
    mkdirSync(join(folder, "tmp/gatehouse"), { recursive: true });
    mkdirSync(join(folder, "state"));
    mkdirSync(join(folder, "repository"));
    repository = new TestRepository(join(folder, "repository"));
    repository.write({ ".gitignore": "node_modules\nPulumi.*.yaml\n", "readme.txt": "nothing yet\n" });
    repository.commit("No program");
    repository.git("tag", "nothing");
    repository.write({
      "infra/policy/Pulumi.yaml": [
        "name: revisions",
        "runtime: { name: nodejs, options: { typescript: false } }",
        "backend: { url: file://../../../state }",
        "",
      ].join("\n"),
      "infra/policy/package.json": JSON.stringify({ private: true, main: "index.js" }),
      "infra/policy/index.js": "throw new Error('the first try does not run');",
      "packages/people/package.json": JSON.stringify({ name: "@team/people", main: "index.js" }),
      ...people({}),
      ...program(first),
    });
    repository.commit("A program that does not run");
    repository.git("tag", "broken");
    repository.write({ "infra/policy/index.js": PROGRAM });
    repository.commit("The applied policy");
    repository.git("tag", "applied");
    for (const scope of ["@pulumi", "@gatehouse-access", "@team"]) {
      mkdirSync(join(repository.root, "node_modules", scope), { recursive: true });
    }
    for (const name of ["@pulumi/pulumi", "@gatehouse-access/provider"]) {
      symlinkSync(join(MODULES, name), join(repository.root, "node_modules", name));
    }
    symlinkSync("../../packages/people", join(repository.root, "node_modules/@team/people"));
    const up = await gatehouseBy(engine)(command("up", ["--yes", "--skip-preview"]), env());
    expect([up.code, up.stderr]).toEqual([0, expect.any(String)]);

    // Creates drift: ana has more access, bob has a lower role, and there is an unmanaged key.
    const [live] = await fleet.client.getPublicKeys();
    if (!live) throw new Error("there is no key");
    const { fingerprint } = live;
    await fleet.client.updatePublicKey({
      params: { fingerprint },
      body: { name: "ana", username: ".*", filter: { hostname: ".*" } },
    });
    const { members } = await fleet.client.getNamespace({ params: { tenant: fleet.tenant } });
    const bob = members.find(({ email }) => email === "bob@example.com")?.id ?? "";
    await fleet.client.updateMember({
      params: { tenant: fleet.tenant, uid: bob },
      body: { role: "observer" },
    });
    await createKey(fleet.client, "unmanaged", "^backup$", { hostname: "^db-01$" });
    repository.write(program(merged));
    repository.commit("The merged policy");
  });
  afterAll(() => folder && rmSync(folder, { recursive: true, force: true }));

  it.skipIf(!gitOnPath)(
    "covers only the committed or uncommitted change, and modifies nothing",
    { tags: ["long"] },
    async () => {
      restore();
      repository.write(program(changed));
      const before = await everything();
      const { review, access, changes, namespace } = await reviewed(["--base", "main"]);
      expect(access).toEqual(["carl lost deploy on web-02", "dora gained backup on db-01"]);
      expect(changes).toEqual(["create dora", "update carl filter.hostname"]);
      expect(review.summary).toMatchObject({ create: 1, update: 1, delete: 0 });
      expect([namespace.members, namespace.unknown, review.unknown]).toEqual([[], [], []]);
      expect(review.revisions).toEqual({
        base: { name: "main", commit: repository.git("rev-parse", "main") },
        head: { name: "the working folder", commit: null },
      });
      expect(await everything()).toEqual(before);
    },
  );

  it.skipIf(!gitOnPath)(
    "reports in every format that it compares two revisions",
    { tags: ["long"] },
    async () => {
      restore();
      repository.write(program(changed));
      const [comment, map] = [join(folder, "comment.md"), join(folder, "map.html")];
      const ended = await run(
        [...UNREAD, "--base", "main~1", "--head", "main", "--markdown", comment, "--html", map],
        0,
      );
      const [base, head] = ["main~1", "main"].map((name) => repository.git("rev-parse", name).slice(0, 10));
      expect(ended.stdout).toContain(`Changes from main~1 (${base}) to main (${head}). `);
      expect(ended.stdout).toContain("key carl gains login deploy on ");
      expect(ended.stdout).not.toMatch(/dora|ana /);
      expect(ended.stderr).toContain(`Previewing the base revision main~1 (${base})`);
      expect(ended.stderr).toContain(`Previewing the head revision main (${head})`);
      const text = readFileSync(comment, "utf8");
      expect(text.split("\n", 1)).toEqual(["<!-- gatehouse review revisions/test -->"]);
      expect(text).toContain(`Changes from \`main~1\` (\`${base}\`) to \`main\` (\`${head}\`). `);
      expect(readFileSync(map, "utf8")).toContain(`main~1 (${base}) to main (${head})`);
    },
  );

  it.skipIf(!gitOnPath)(
    "uses the revision's version of packages in the repository",
    { tags: ["long"] },
    async () => {
      restore();
      repository.write({ ...people({ eve: "observer" }), "package-lock.json": "{}" });
      const { namespace, changes, review } = await reviewed(["--base", "main", ...UNREAD]);
      rmSync(join(repository.root, "package-lock.json"));
      expect(changes).toEqual(["create eve"]);
      expect(namespace.members).toEqual([{ change: "added", email: "eve@example.com", to: "observer" }]);
      expect(review.unknown).toEqual([
        "package-lock.json: main requires other packages than the working directory; the preview of main uses the installed packages",
      ]);
    },
  );

  it.skipIf(!gitOnPath)("runs the policy tests of the head", { tags: ["long"] }, async () => {
    restore();
    repository.git("checkout", "--quiet", "-b", "tested");
    repository.write({
      "infra/policy/carl.policy.js":
        'import { expect, policyTest } from "@gatehouse-access/provider/policy";\n' +
        'policyTest("carl", ({ access }) => expect(access).not.toAllow({ key: "carl" }));\n',
    });
    repository.commit("A policy test");
    restore();
    const id = repository.git("rev-parse", "main");
    const { namespace } = await reviewed(["--base", id, "--head", "tested", ...UNREAD], 2, true);
    expect(namespace.tests.map(({ file, ok }) => [file, ok])).toEqual([["carl.policy.js", false]]);
  });

  it.skipIf(!gitOnPath).each([
    ["an unknown commit", ["--base", "mian"], '--base: git cannot find the commit "mian"'],
    ["a file", ["--base", "main:readme.txt"], '--base: git cannot find the commit "main:readme.txt"'],
    ["an option of git", ["--base=--output=x"], '--base must be a commit, branch or tag, not "--output=x"'],
    ["an empty head", ["--base", "main", "--head", ""], "--head must be a commit, branch or tag"],
    ["a head without a base", ["--head", "main"], "--head needs --base. Add --base <revision>."],
    ["a base that fails", ["--base", "broken"], "In the base revision broken ("],
    ["a base without the program", ["--base", "nothing"], "infra/policy does not exist in this revision"],
    ["a stack that does not exist", ["--base", "main", "--stack", "other"], "no stack other"],
  ])("is rejected for %s", async (_case, args, reason) => {
    restore();
    const before = await everything();
    const ended = await run(args, 1);
    expect(ended.stderr).toContain(reason);
    expect(await everything()).toEqual(before);
  });

  it.skipIf(!gitOnPath)("leaves no files behind when a signal ends it", { tags: ["long"] }, async () => {
    restore();
    repository.git("checkout", "--quiet", "-b", "hanging");
    repository.write(program({ ...first, hang: true }));
    repository.commit("A program that does not end");
    restore();
    const started = join(folder, "started");
    const child = spawn(process.execPath, [COMMAND, ...command("review", ["--base", "hanging", ...UNREAD])], {
      env: { ...process.env, ...env(), STARTED: started },
      stdio: "ignore",
    });
    const exited = once(child, "exit");
    await expect.poll(() => existsSync(started), { timeout: 60_000, interval: 100 }).toBe(true);
    expect(leftOver()).toHaveLength(1);
    child.kill("SIGTERM");
    expect(await exited).toEqual([143, null]);
    expect(leftOver()).toEqual([]);
  });
});
