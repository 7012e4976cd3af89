import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Child, startChild } from "../../examples/demo/startChild.ts";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import { MINUTE } from "../../sdk/times.ts";
import { type CommandResult, environmentWithout } from "../support/command.ts";
import { pulumiOnPath } from "../support/gatehouse.ts";
import { isRoot } from "../support/nobody.ts";
import { blocksIn, commandsIn, pageText } from "../support/pageCommands.ts";
import { quoted, Shell } from "../support/Shell.ts";
import { withoutSsh } from "../support/sshFleet.ts";
import { saveTranscript } from "../support/transcript.ts";
import { copiesOf, INSTALL_FLAGS, npm, OFFLINE, packAll, ROOT, reachesRegistry } from "./packages.ts";

const readme = pageText("README.md");
const quickStart = pageText("docs/get-started/quick-start.md");
const firstPullRequest = pageText("docs/get-started/first-pull-request.md");

/**
 * The shell of a new user, in which the test types the lines of the quick start, without its section about Terraform,
 * and of the page about the first pull request. It has only Node.js, npm, git and ssh-keygen.
 */
class Terminal extends Shell {
  readonly #left = [quickStart.split("## Terraform and OpenTofu")[0] ?? "", firstPullRequest].flatMap(
    (text) => commandsIn(text).map(({ line }) => line),
  );

  constructor(folder: string) {
    super(folder, [join(folder, "global", "bin")], { npm_config_prefix: join(folder, "global") });
  }

  /** Types the first line that begins with `beginning` and was not typed yet. */
  page(beginning: string): Promise<CommandResult> {
    // Adds `--yes`, since no user can answer the prompt.
    const line = this.substituted(this.next(beginning));
    return this.type(line.replace(/^gatehouse (up(?!.*--plan)|drift.*--repair)[^#]*(?<! )/, "$& --yes"));
  }

  /** Returns the first line that begins with `beginning` and was not typed yet, and marks it as typed. */
  next(beginning: string): string {
    const index = this.#left.findIndex((line) => line.startsWith(beginning));
    if (index < 0) throw new Error(`the pages have no further line that begins with "${beginning}"`);
    return this.#left.splice(index, 1)[0] ?? "";
  }

  /** The lines of the pages that were not typed. */
  remaining(): readonly string[] {
    return this.#left;
  }
}

const ready = ["ssh-keygen", "git"].every((name) => !spawnSync(name, ["--version"]).error);

describe("the README", () => {
  it("has at most 150 lines", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(151);
  });
});

// Packs the packages, and types the commands of the pages. npm installs the dependencies from its registry.
describe.skipIf(!ready)("the quick start and the first pull request", { tags: ["long"] }, () => {
  let folder: string;
  let terminal: Terminal;
  let service: Child<string>;
  let agent: Child<true> | undefined;
  let client: Client;
  let reached: boolean;
  const inFleet = (...path: string[]) => join(folder, "fleet", ...path);
  const program = (name: string) => join(folder, "global", "bin", name);

  beforeAll(async () => {
    reached = await reachesRegistry();
    folder = mkdtempSync(join(tmpdir(), "gatehouse-quick-start-"));
    terminal = new Terminal(folder);
    for (const archive of await packAll(folder)) {
      if (dirname(archive) !== folder) copyFileSync(archive, join(folder, basename(archive)));
    }
    // Uses the npm cache of this machine to save downloads.
    const cache = (await npm(["config", "get", "cache"], folder)).stdout.trim();
    terminal.substitute(/npm install/, `npm install ${INSTALL_FLAGS.join(" ")} --cache=${quoted(cache)}`);
  });
  beforeEach(({ skip }) => {
    if (!reached) skip(OFFLINE);
  });
  afterAll(async () => {
    await client?.close();
    await agent?.stop();
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
    saveTranscript("docs/get-started/quick-start.md", terminal.transcript);
  });

  /** Types a line of the pages and checks its exit code. */
  async function types(beginning: string, expected = 0): Promise<string> {
    const { code, stdout, stderr } = await terminal.page(beginning);
    expect(code, `${beginning}\n${stdout}${stderr}`).toBe(expected);
    return stdout;
  }

  it("install the commands, start the service and create its first user", {
    timeout: 5 * MINUTE,
  }, async () => {
    // `beforeAll` packs the packages in the same way.
    terminal.next("npm run setup");
    terminal.next("npm pack");
    terminal.substitute(/^cd \.\. && npm/, "npm");
    await types("cd .. && npm install --global");
    await types("mkdir -m 700 fleet");
    expect(terminal.next("gatehouse-server serve")).toMatch(/^gatehouse-server serve --ssh-port 2222 /);
    let sshPort = "";
    service = await startChild([program("gatehouse-server"), "serve", "--port", "0", "--ssh-port", "0"], {
      name: "The service",
      env: {
        ...environmentWithout("GATEHOUSE_"),
        GATEHOUSE_DATA_DIR: inFleet("gatehouse-data"),
        // Turns the login rate limits off, since the test types the commands much faster than a user.
        GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
        GATEHOUSE_LOGINS_PER_ADDRESS: "0",
      },
      ready(line) {
        const { msg, address, port } = JSON.parse(line) as Record<string, string>;
        if (msg === "listening for SSH") sshPort = String(port);
        return msg === "listening" ? address : undefined;
      },
    });
    terminal.substitute(/http:\/\/127\.0\.0\.1:8080/, service.ready);
    terminal.substitute(/-p 2222/, `-p ${sshPort}`);
    // Requests web pages from the installed service. It must find the pages' files in its own package.
    for (const path of ["/info", "/", "/setup"])
      expect((await fetch(service.ready + path)).status, path).toBe(200);
    await types("umask");
    await types("node -p");
    expect(await types("gatehouse-server admin user create")).toMatch(/^Created the user ana /);
  });

  it("create the program, install one copy of Pulumi's SDK, and compile no dependency", {
    timeout: 5 * MINUTE,
  }, async () => {
    for (const beginning of ["mkdir -p", "npm init", "npm install", "echo", "ssh-keygen", "cd .."]) {
      await types(beginning);
    }
    expect(copiesOf("@pulumi/pulumi", inFleet("policy"))).toEqual(["@pulumi/pulumi/package.json"]);
    const { version } = JSON.parse(readFileSync(join(ROOT, "provider/package.json"), "utf8"));
    expect((await terminal.type("gatehouse --version")).stdout).toBe(`${version}\n`);
    // No dependency is compiled, so the folder contains no object files. The exception is the SSH library, which
    // compiles optional faster ciphers.
    const compiled = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
      /\/(obj\.target|build\/Release\/\.deps)(\/|$)/.test(file),
    );
    expect(compiled.filter((file) => !/\/node_modules\/(cpu-features|ssh2)\//.test(file))).toEqual([]);
    for (const beginning of ["export GATEHOUSE_URL", "node -p", "export PULUMI_BACKEND_URL"]) {
      await types(beginning);
    }
    if (pulumiOnPath) terminal.next("export GATEHOUSE_ENGINE");
    else await types("export GATEHOUSE_ENGINE");
  });

  it("apply the policy, connect a device, and log in", { timeout: 10 * MINUTE }, async () => {
    const [first = ""] = blocksIn(quickStart, "ts");
    writeFileSync(inFleet("policy", "index.ts"), first);
    expect(await types("gatehouse up policy --stack prod --create-namespace")).toMatch(/^2 created/m);
    const password = readFileSync(inFleet("password"), "utf8").trim();
    const user = createClient({
      url: service.ready,
      credential: passwordCredential({ username: "ana", password }),
    });
    const [namespace] = await user.getNamespaces({ query: {} });
    client = user.forTenant(namespace?.tenantId ?? "");

    // A test of `device enroll` types this line at a terminal.
    terminal.next("gatehouse device enroll");
    const [typed = "", hint = ""] = terminal.next("gatehouse-agent run").split("#");
    expect(hint).toContain("--user nobody");
    const flags = typed
      .replace("http://127.0.0.1:8080", service.ready)
      .replace('"$ID"', namespace?.tenantId ?? "");
    agent = await startChild(
      [
        program("gatehouse-agent"),
        ...flags.replaceAll("'", "").trim().split(" ").slice(1),
        ...(isRoot ? ["--user", "nobody"] : []),
        "--data-dir",
        join(folder, "agent"),
      ],
      {
        name: "The agent",
        env: environmentWithout("GATEHOUSE_"),
        ready: (line) => line.includes("tunnel open") || undefined,
      },
    );
    expect((await terminal.type("gatehouse device accept web-01 --yes")).stdout).toContain(
      "@fleet.web-01@127.0.0.1",
    );
    const options = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null";
    terminal.substitute(/^ssh .*/, `$& ${options} echo logged in`);
    if (withoutSsh) terminal.next("ssh -p 2222");
    else expect(await types("ssh -p 2222")).toBe("logged in\n");
  });

  it("review and apply a change, and list the access", { timeout: 10 * MINUTE }, async () => {
    const [, second = "", tests = ""] = blocksIn(quickStart, "ts");
    writeFileSync(inFleet("policy", "index.ts"), second);
    writeFileSync(inFleet("policy", "access.policy.ts"), tests);
    const review = await types("gatehouse review policy --stack prod --html map.html");
    const [, expected = ""] = blocksIn(quickStart, "console");
    for (const line of expected.trimEnd().split("\n")) expect(review).toContain(line);
    expect(review).toContain("No blocking findings.");
    expect(await types("gatehouse up policy --stack prod")).toMatch(/^1 created, 2 updated/m);
    expect(await types("gatehouse access --device")).toContain("ana, root");
    expect(await types("gatehouse access --explain", 2)).toContain("DENIED");
    await types("gatehouse drift policy");
    const [device] = await client.getDevices({ query: { perPage: 10 } });
    await client.updateDeviceTags({ params: { uid: device?.uid ?? "" }, body: { tags: ["outofband"] } });
    expect((await terminal.type("gatehouse drift policy --stack prod")).code).toBe(2);
    await types("gatehouse drift policy --stack prod --repair");
    expect(await types("gatehouse coverage")).toContain("100 %");
  });

  it("the program in the README declares the same objects as the quick start", {
    timeout: 2 * MINUTE,
  }, async () => {
    const [, second = ""] = blocksIn(quickStart, "ts");
    const [declarations = ""] = blocksIn(readme, "ts");
    const [imports = "", tags = ""] = second.split("\n\n");
    writeFileSync(inFleet("policy", "index.ts"), [imports, tags, declarations].join("\n"));
    const preview = await terminal.type("gatehouse preview policy --stack prod");
    expect(preview.stdout, preview.stderr).toMatch(/^3 unchanged/m);
    writeFileSync(inFleet("policy", "index.ts"), second);
  });

  it("review a branch and apply a saved plan", { timeout: 10 * MINUTE }, async () => {
    await types("cd policy");
    await types("gatehouse up --stack prod");
    await types("git init");
    await types("git switch");
    const [change = ""] = blocksIn(firstPullRequest, "ts");
    const changed = readFileSync(inFleet("policy", "index.ts"), "utf8").replace(
      /username: login.*/,
      change.trim(),
    );
    writeFileSync(inFleet("policy", "index.ts"), changed);
    const review = await types("gatehouse review --stack prod --base main");
    const shown = /^```console\n(Changes .*?)^```$/ms.exec(firstPullRequest)?.[1] ?? "";
    const withoutIds = (text: string) => text.trim().replace(/\([0-9a-f]+\)/, "(…)");
    expect(withoutIds(review)).toBe(withoutIds(shown));
    await types("git commit");
    await terminal.type(
      'git init --quiet --bare "$HOME/origin.git" && git remote add origin "$HOME/origin.git"',
    );
    await types("git push");
    await types("gatehouse review --stack prod --save prod.plan");
    expect(await types("gatehouse up --stack prod --plan prod.plan")).toMatch(/^1 updated/m);
  });

  it("are all typed by these tests", () => {
    expect(terminal.remaining()).toEqual([]);
  });
});
