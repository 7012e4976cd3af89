import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import { type CommandResult, environmentWithout } from "../support/command.ts";
import { agentCall } from "../support/fleet.ts";
import { pulumiOnPath } from "../support/gatehouse.ts";
import {
  copiesOf,
  INSTALL_FLAGS,
  npm,
  OFFLINE,
  PACKAGES,
  packAll,
  ROOT,
  reachesRegistry,
  run,
} from "./packages.ts";

const MINUTE = 60_000;
const readme = readFileSync(join(ROOT, "README.md"), "utf8");

/** Returns the code blocks of a README section that are in one language. */
function blocksOf(section: string, language: string): string[] {
  const text = readme.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? "";
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , code = ""]) => code);
}

const linesOf = (section: string): string[] =>
  blocksOf(section, "sh").flatMap((block) => block.split("\n").filter((line) => line !== ""));

const readmeLines = [
  ...linesOf("The service"),
  ...["A policy", "Import an existing namespace", "Who can reach what"].flatMap(linesOf),
];

/**
 * A terminal in which the test types the README's commands. Like a new user's machine, it has only Node.js, npm and
 * ssh-keygen.
 */
class Terminal {
  readonly #folder: string;
  readonly #substitutes: [RegExp, string][] = [];
  readonly #done = new Set<string>();
  /** The typed lines, each with its output. */
  transcript = "";

  constructor(folder: string) {
    this.#folder = folder;
    const path = [dirname(process.execPath), process.env.PATH, join(folder, "global", "bin")].join(delimiter);
    const env = {
      ...environmentWithout("GATEHOUSE_", "PULUMI_", "npm_"),
      HOME: folder,
      PATH: path,
      npm_config_prefix: join(folder, "global"),
    };
    this.#write(
      "env",
      Object.entries(env)
        .map(([name, value]) => `export ${name}=${quoted(value)}`)
        .join("\n"),
    );
    this.#write("cwd", folder);
  }

  /** Sets a text replacement for all further README lines, applied before a line is typed. */
  substitute(text: RegExp, by: string): void {
    this.#substitutes.push([text, by]);
  }

  /** Types the line of the README that begins with `beginning`. */
  async readme(beginning: string): Promise<CommandResult> {
    const line = readmeLines.find((candidate) => candidate.startsWith(beginning));
    if (line === undefined) throw new Error(`README.md has no line that begins with "${beginning}"`);
    this.#done.add(line);
    const typed = this.#substitutes.reduce((text, [pattern, by]) => text.replace(pattern, by), line);
    // Adds `--yes` to `gatehouse up`, since no user can answer the prompt.
    return this.type(typed.replace(/^gatehouse up +policy(?! .*--plan)/, "$& --yes"));
  }

  /** The lines of the README that were not typed. */
  remaining(): string[] {
    return readmeLines.filter((line) => !this.#done.has(line));
  }

  /** Types a line and waits until its command ends, with any exit code. */
  async type(line: string): Promise<CommandResult> {
    const script = `. ./env; cd "$(cat cwd)"; eval ${quoted(line)}; code=$?; export -p > ${this.#path("env")}; pwd > ${this.#path("cwd")}; exit $code`;
    const { code, stdout, stderr } = await run("/bin/sh", ["-c", script], {
      cwd: this.#folder,
      env: {},
    }).then(
      (output) => ({ code: 0, ...output }),
      (error: CommandResult) => error,
    );
    this.transcript += `$ ${line}\n${stdout}${stderr}${code === 0 ? "" : `[exit code ${code}]\n`}\n`;
    return { code, stdout, stderr };
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #write(name: string, text: string): void {
    writeFileSync(this.#path(name), `${text}\n`);
  }
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

const ready = ["ssh-keygen", "git"].every((name) => !spawnSync(name, ["--version"]).error);

// Packs the packages, installs them from a registry, and types the README's commands.
describe.skipIf(!ready)("the README's commands, with packed packages", { tags: ["long"] }, () => {
  let folder: string;
  let terminal: Terminal;
  let service: ChildProcess;
  let client: Client;
  let reached: boolean;

  beforeAll(async () => {
    reached = await reachesRegistry();
    folder = mkdtempSync(join(tmpdir(), "gatehouse-readme-"));
    mkdirSync(join(folder, "secrets"));
    writeFileSync(join(folder, "secrets", "passphrase"), "correct horse battery staple");
    terminal = new Terminal(folder);
    const archives = await packAll(folder);
    const sdk = archives[PACKAGES.indexOf("sdk")];
    PACKAGES.forEach((name, index) => {
      terminal.substitute(new RegExp(`@gatehouse-access/${name}(?= |$)`), `${archives[index]} ${sdk}`);
    });
    // Uses the npm cache of this machine to save downloads.
    const cache = (await npm(["config", "get", "cache"], folder)).stdout.trim();
    terminal.substitute(/^npm install/, `npm install ${INSTALL_FLAGS.join(" ")} --cache=${quoted(cache)}`);
    terminal.substitute(/\/run\/secrets/g, join(folder, "secrets"));
    // Programs and the Pulumi CLI read the home folder from the user database, not from HOME.
    terminal.substitute(/file:\/\/~/, `file://${folder}`);
    if (!pulumiOnPath) terminal.substitute(/(--stack prod)/, "$1 --engine embedded");
  });
  beforeEach(({ skip }) => {
    if (!reached) skip(OFFLINE);
  });
  afterAll(async () => {
    await client?.close();
    service?.kill("SIGTERM");
    if (service) await once(service, "close");
    rmSync(folder, { recursive: true, force: true });
    const { GATEHOUSE_TRANSCRIPT: file } = process.env;
    if (file !== undefined) writeFileSync(file, terminal.transcript);
  });

  /** Types a line of the README and checks its exit code. */
  async function types(beginning: string, expected = 0): Promise<string> {
    const { code, stdout, stderr } = await terminal.readme(beginning);
    expect(code, `${beginning}\n${stdout}${stderr}`).toBe(expected);
    return stdout;
  }

  it("start the service and create its first user", { timeout: 5 * MINUTE }, async () => {
    await types("npm install --global");
    service = spawn(join(folder, "global/bin/gatehouse-server"), ["serve", "--port", "0"], {
      cwd: folder,
      // Turns the login rate limits off, since the test types the commands much faster than a user.
      env: {
        ...environmentWithout("GATEHOUSE_"),
        GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
        GATEHOUSE_LOGINS_PER_ADDRESS: "0",
      },
    });
    let url = "";
    for await (const line of createInterface({ input: service.stdout as NodeJS.ReadableStream })) {
      url =
        /"listening".*"address":"([^"]+)"|"address":"([^"]+)".*"listening"/
          .exec(line)
          ?.slice(1)
          .find(Boolean) ?? "";
      if (url !== "") break;
    }
    service.stdout?.resume();
    terminal.substitute(/https:\/\/access\.example\.org/, url);
    // Requests web pages from the installed service. It must find the pages' files in its own package.
    for (const path of ["/info", "/", "/setup"]) expect((await fetch(url + path)).status, path).toBe(200);

    expect(await types("gatehouse-server admin setup-link")).toContain(`${url}/`);
    const created = await types("gatehouse-server admin user create");
    const [, username = ""] = /^Created the user (\S+) /m.exec(created) ?? [];
    const [, password = ""] = /^Password: (\S+)$/m.exec(created) ?? [];
    writeFileSync(join(folder, "secrets", username), `${password}\n`);
    await terminal.type(
      "gatehouse-server admin user create --username carla --email carla@example.org --name Carla --generate-password",
    );
    const user = createClient({ url, credential: passwordCredential({ username, password }) });
    const { tenantId } = await user.createNamespace({ body: { name: "fleet" } });
    terminal.substitute(/(GATEHOUSE_TENANT=)\S+/, `$1${tenantId}`);
    client = user.forTenant(tenantId);
    for (const [index, hostname] of ["web-01", "db-02"].entries()) {
      const { uid } = await agentCall(client, hostname, `02:00:00:00:00:0${index}`, tenantId);
      await client.acceptDevice({ params: { uid } });
    }
  });

  it("create the program, install one copy of Pulumi's SDK, and compile no dependency", {
    timeout: 5 * MINUTE,
  }, async () => {
    for (const line of linesOf("A policy").slice(
      0,
      linesOf("A policy").findIndex((text) => text.startsWith("export")),
    )) {
      await types(line);
    }
    const [program = "", tests = ""] = blocksOf("A policy", "ts");
    writeFileSync(join(folder, "policy", "index.ts"), program);
    writeFileSync(join(folder, "policy", "access.policy.ts"), tests);
    expect(copiesOf("@pulumi/pulumi", join(folder, "policy"))).toEqual(["@pulumi/pulumi/package.json"]);
    const { version } = JSON.parse(readFileSync(join(ROOT, "provider/package.json"), "utf8"));
    expect((await terminal.type("gatehouse --version")).stdout).toBe(`${version}\n`);
    // No dependency is compiled, so the folder contains no object files. The exception is the SSH library, which
    // compiles optional faster ciphers.
    const compiled = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
      /\/(obj\.target|build\/Release\/\.deps)(\/|$)/.test(file),
    );
    expect(compiled.filter((file) => !/\/node_modules\/(cpu-features|ssh2)\//.test(file))).toEqual([]);
    await types("export GATEHOUSE_URL");
    await types("export PULUMI_BACKEND_URL");
  });

  it("run preview, up, review, drift and test", { timeout: 10 * MINUTE }, async () => {
    expect(await types("gatehouse preview policy")).toMatch(/^\d+ to create/m);
    expect(await types("gatehouse up      policy --stack prod")).toMatch(/^6 created/m);
    expect(await types("gatehouse review  policy --stack prod")).toContain("No access changes");
    await terminal.type("git init -q -b main policy && printf 'node_modules\\n' > policy/.gitignore");
    await terminal.type(
      "cd policy && git add . && git -c user.name=Ana -c user.email=ana@example.org commit -qm Policy && cd ..",
    );
    await types("gatehouse review  policy --stack prod --base main");
    await types("gatehouse review  policy --stack prod --save prod.plan");
    await types("gatehouse up      policy --stack prod --plan prod.plan");
    await types("gatehouse drift");
    await types("gatehouse test");
    const web = (await client.getDevices({ query: { perPage: 10 } })).find(({ name }) => name === "web-01");
    await client.updateDeviceTags({ params: { uid: web?.uid ?? "" }, body: { tags: ["outofband"] } });
    await types("gatehouse drift", 2);
    await types("gatehouse drift   policy --stack prod --repair");
    await types("gatehouse drift");
    expect(await types("gatehouse coverage")).toContain("100 %");
    await types("gatehouse up      policy --stack prod --refresh");
    await types("gatehouse up      policy --stack prod --target");
    await types("gatehouse up      policy --stack prod --skip-preview");
  });

  it("import an existing namespace", { timeout: 5 * MINUTE }, async () => {
    expect(await types("gatehouse import")).toContain("Its preview is empty");
  });

  it("list the access to devices", { timeout: 2 * MINUTE }, async () => {
    await types("export GATEHOUSE_TENANT");
    expect(await types("gatehouse access --device tag:prod")).toContain("web-01");
    expect(await types("gatehouse access --key ana")).toContain("web-01");
    expect(await types("gatehouse access --explain", 2)).toContain("db-02");
  });

  it("are all typed by these tests", () => {
    expect(terminal.remaining()).toEqual([expect.stringMatching(/^gatehouse-server serve /)]);
  });
});
