import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { backendUrlOf, type Project } from "../../provider/engine/index.ts";
import { backendFolder, pulumiHome } from "../../provider/engine/project.ts";
import { commitOf, openRepository } from "../../provider/revisions/repository.ts";
import { revisionProgram, serviceDifferences } from "../../provider/revisions/revisionProgram.ts";
import { testFolder } from "../support/folder.ts";
import { gitLabel, gitOnPath, TestRepository } from "../support/git.ts";

const PROJECT = "name: p\nruntime: nodejs\n";

/** Creates a repository with a program in the folder `app`. Returns a function that checks out one of its revisions. */
function repositoryWith(files: Readonly<Record<string, string>>) {
  const folder = testFolder();
  mkdirSync(join(folder, "repository"));
  const repository = new TestRepository(join(folder, "repository"));
  repository.write({ ".gitignore": "node_modules\n", "app/Pulumi.yaml": PROJECT, ...files });
  const root = join(folder, "checkout");
  const ready = (commit = repository.commit("A program")) =>
    revisionProgram(
      openRepository(join(repository.root, "app")),
      { name: "main", commit },
      { root, stack: "test" },
    );
  return { repository, root, ready };
}

describe.skipIf(!gitOnPath)(`a revision's program, with ${gitLabel}`, () => {
  test("contains exactly the files of the commit, with any settings of the user", async () => {
    const { repository, root, ready } = repositoryWith({ "app/one": "1", "shared/two": "2" });
    const commit = repository.commit("One");
    repository.write({ "app/one": "changed", "app/untracked": "3" });
    for (const setting of ["core.sparseCheckout", "core.splitIndex"])
      repository.git("config", setting, "true");
    repository.write({
      ".git/info/sparse-checkout": "/app/\n",
      ".git/hooks/post-index-change": `#!/bin/sh\ntouch '${repository.root}/hooked'\n`,
    });
    chmodSync(join(repository.root, ".git/hooks/post-index-change"), 0o755);
    const before = repository.files();
    const { folder, unknown } = await ready(commit);
    expect(readFileSync(join(folder, "one"), "utf8")).toBe("1");
    expect(readdirSync(root).sort()).toEqual([".gitignore", "app", "shared"]);
    expect(existsSync(join(folder, "untracked"))).toBe(false);
    expect([repository.files(), existsSync(join(repository.root, "hooked")), unknown]).toEqual([
      before,
      false,
      [],
    ]);
  });

  test("uses the stack settings of the working folder if the revision has none", async () => {
    const { repository, ready } = repositoryWith({ "app/Pulumi.other.yaml": "own" });
    const commit = repository.commit("One");
    repository.write({ "app/Pulumi.test.yaml": "config: {}\n", "app/Pulumi.other.yaml": "changed" });
    const { folder } = await ready(commit);
    expect(readFileSync(join(folder, "Pulumi.test.yaml"), "utf8")).toBe("config: {}\n");
    expect(readFileSync(join(folder, "Pulumi.other.yaml"), "utf8")).toBe("own");
  });

  test("uses the installed packages, and the revision's version of the repository's own packages", async () => {
    const { repository, ready } = repositoryWith({ "packages/own/index.js": "old" });
    const commit = repository.commit("One");
    repository.write({
      "packages/own/index.js": "new",
      "packages/own/node_modules/inner/index.js": "inner",
      "packages/later/index.js": "later",
      "node_modules/other/index.js": "other",
      "node_modules/@scope/scoped/index.js": "scoped",
      "app/node_modules/nearer/index.js": "nearer",
    });
    symlinkSync("../../packages/own", join(repository.root, "node_modules/@scope/own"));
    symlinkSync("../packages/later", join(repository.root, "node_modules/later"));
    symlinkSync("nowhere", join(repository.root, "node_modules/broken"));
    const { folder } = await ready(commit);
    const read = (path: string) => readFileSync(join(folder, path, "index.js"), "utf8");
    expect(read("node_modules/nearer")).toBe("nearer");
    expect(read("../node_modules/other")).toBe("other");
    expect(read("../node_modules/@scope/scoped")).toBe("scoped");
    expect(read("../node_modules/@scope/own")).toBe("old");
    expect(read("../packages/own/node_modules/inner")).toBe("inner");
    expect(readdirSync(join(folder, "../node_modules")).sort()).toEqual(["@scope", "other"]);
  });

  test("reports different package requirements and omitted submodules", async () => {
    const { repository, ready } = repositoryWith({
      "package.json": JSON.stringify({ name: "a", dependencies: { a: "1" } }),
      "app/package.json": JSON.stringify({ name: "app", version: "1.0.0" }),
      ".gitmodules": "",
    });
    const commit = repository.commit("One");
    repository.write({
      "package.json": JSON.stringify({ name: "a", dependencies: { a: "2" } }),
      "app/package.json": JSON.stringify({ name: "app", version: "2.0.0" }),
      "yarn.lock": "",
    });
    expect((await ready(commit)).unknown).toEqual([
      "yarn.lock, package.json: main requires other packages than the working directory; the preview of main uses the installed packages",
      "the submodules of main are not checked out; a program that reads the submodules may behave differently",
    ]);
  });

  test("is rejected if its links point outside the repository", async () => {
    const outside = testFolder();
    writeFileSync(join(outside, "Pulumi.yaml"), PROJECT);
    const { repository, ready } = repositoryWith({});
    const whole = repository.commit("One");
    repository.git("rm", "-r", "--quiet", "app");
    symlinkSync(outside, join(repository.root, "app"));
    const linked = repository.commit("A link");
    repository.git("checkout", "--quiet", whole);
    await expect(ready(linked)).rejects.toThrow("The folder app points outside of the revision's files.");
    expect(readdirSync(outside)).toEqual(["Pulumi.yaml"]);
  });

  test("requires a folder in a repository, and a name that refers to a commit", () => {
    expect(() => openRepository(testFolder())).toThrow(/is not in a git repository: \S/);
    const { repository } = repositoryWith({});
    const commit = repository.commit("One");
    repository.git("tag", "--annotate", "--message", "v1", "v1");
    const opened = openRepository(repository.root);
    expect(["v1", "HEAD", commit.slice(0, 8)].map((name) => commitOf(opened, name, "--base"))).toEqual(
      Array(3).fill(commit),
    );
    for (const name of ["-1", "--all", "", "HEAD^{tree}", "v1..HEAD", "v1 HEAD", "$(touch x)"])
      expect(() => commitOf(opened, name, "--base")).toThrow(/^--base/);
  });
});

test("different services or namespaces of two revisions are detected in their configurations", () => {
  const of = (url: string, more: [string, string][] = []) => new Map([["gatehouse:url", url], ...more]);
  expect(
    serviceDifferences(of("https://a.example"), of("https://a.example", [["gatehouse:token", "t"]])),
  ).toEqual([]);
  expect(
    serviceDifferences(of("https://a.example"), of("https://b.example", [["gatehouse:tenant", "t"]])),
  ).toEqual(["gatehouse:url", "gatehouse:tenant"]);
});

/**
 * The home folder of this process's user in the user database. Undefined if the user has no entry, or no database file
 * exists.
 */
const homeInDatabase = existsSync("/etc/passwd")
  ? readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .find(([, , uid]) => uid === String(process.getuid?.()))?.[5]
  : undefined;

describe("a backend's URL", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test.each([
    ["file://./state", "/state"],
    ["file://../a%20b?no_tmp_dir=true", "/../a%20b?no_tmp_dir=true"],
    ["file://", ""],
  ])("%s becomes a URL that is independent of the current folder", async (url, path) => {
    const folder = testFolder();
    writeFileSync(join(folder, "Pulumi.yaml"), PROJECT);
    const [subpath = "", query] = path.split("?");
    const expected = `file://${join(folder, subpath)}${query ? `?${query}` : ""}`;
    expect(await backendUrlOf(folder, { PULUMI_BACKEND_URL: url })).toBe(expected);
    writeFileSync(join(folder, "Pulumi.yaml"), `${PROJECT}backend: { url: "${url}" }\n`);
    expect(await backendUrlOf(folder, {})).toBe(expected);
  });

  test.each(["file:///srv/state", "file://~", "file://~/state", "s3://bucket/x"])(
    "%s is already independent of the current folder",
    async (url) => {
      const folder = testFolder();
      writeFileSync(join(folder, "Pulumi.yaml"), PROJECT);
      expect(await backendUrlOf(folder, { PULUMI_BACKEND_URL: url })).toBe(url);
    },
  );

  // The Pulumi CLI reads the user database too. If the embedded engine used HOME, the two engines would use different
  // states.
  test.skipIf(homeInDatabase === undefined)(
    "starts at the home folder of the user database, not at HOME",
    () => {
      vi.stubEnv("HOME", testFolder());
      const choice = { url: "file://~/states", source: "PULUMI_BACKEND_URL" };
      expect(backendFolder(choice, { root: "/" } as Project)).toBe(join(homeInDatabase ?? "", "states"));
      expect(pulumiHome(process.env)).toBe(join(homeInDatabase ?? "", ".pulumi"));
      expect(pulumiHome({ PULUMI_HOME: "/srv/pulumi" })).toBe("/srv/pulumi");
    },
  );
});
