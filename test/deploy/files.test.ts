import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { validate } from "dockerfile-utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../../server/settings/readConfig.ts";
import { settings } from "../../server/settings/settings.ts";
import { RELEASE } from "../packaging/packages.ts";
import { testFolder } from "../support/folder.ts";
import { expectHardened, expectUnderstood, withoutSystemd } from "../support/systemd.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "examples", "deploy");
const read = (file: string) => readFileSync(join(DEPLOY, file), "utf8");

const UNIT = "systemd/gatehouse-server@.service";
const why = withoutSystemd && ` (${withoutSystemd})`;

describe.skipIf(why)(`the service's unit, checked by systemd${why ?? ""}`, () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-unit-"));
    // systemd requires that the executable of the unit exists, at a path that needs no quotes.
    const program = join(folder, "gatehouse-server");
    symlinkSync(process.execPath, program);
    const text = read(UNIT).replace("/usr/local/bin/gatehouse-server", program);
    writeFileSync(join(folder, "gatehouse-server@.service"), `${text}\n${read("systemd/postgresql.conf")}`);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("is valid and hardened", () => {
    expectUnderstood(join(folder, "gatehouse-server@1.service"));
    expectHardened(join(folder, "gatehouse-server@.service"), 15);
  });
});

describe("the settings of the units", () => {
  /** Returns the environment variables that systemd passes to the service instance with this number. */
  const environmentOf = (index: number, credentials: string): Record<string, string> => {
    const lines = [UNIT, "systemd/postgresql.conf"].map(read).join("\n");
    const assignments = [...lines.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = ""]) =>
      line.split(" "),
    );
    const common = [...read("systemd/gatehouse.env").matchAll(/^\w+=.*$/gm)].map(([line]) => line);
    return Object.fromEntries(
      [...assignments, ...common].map((assignment) => {
        const [, name = "", value = ""] = /^(\w+)=(.*)$/.exec(assignment) ?? [];
        const here = { i: String(index), d: credentials, S: "/var/lib" };
        return [name, value.replaceAll(/%(\w)/g, (_, letter) => here[letter as keyof typeof here])];
      }),
    );
  };

  it("are settings of the service, and differ between instances", () => {
    const credentials = testFolder();
    const written = {
      "database-url": "postgresql://gatehouse@127.0.0.1/gatehouse",
      secret: "a secret of the instances of a test, which is long enough",
      "internal-token": "a-token-of-the-instances-of-a-test-1234",
      "ssh-host-key": "",
    };
    const loaded = [...read("systemd/postgresql.conf").matchAll(/^LoadCredential=([\w-]+):/gm)];
    expect(loaded.map(([, name]) => name)).toEqual(Object.keys(written));
    for (const [name, text] of Object.entries(written))
      writeFileSync(join(credentials, name), text, { mode: 0o600 });

    const known = new Set(Object.values(settings).map(({ variable }) => variable as string));
    const configs = [1, 2].map((index) => {
      const environment = environmentOf(index, credentials);
      expect(
        Object.keys(environment).filter((name) => !known.has(name.replace(/(?<!KEY)_FILE$/, ""))),
      ).toEqual([]);
      return readConfig(environment, {});
    });
    expect(configs).toMatchObject(
      [1, 2].map((index) => ({
        settings: {
          dataDir: `/var/lib/gatehouse/${index}`,
          port: 8080 + index,
          sshPort: 2220 + index,
          sshHostKeyFile: join(credentials, "ssh-host-key"),
        },
        secret: written.secret,
        internal: {
          port: 9090 + index,
          token: written["internal-token"],
          peerUrl: `http://127.0.0.1:909${index}`,
        },
      })),
    );
  });
});

describe("the manifest of docs/operate/kubernetes.md", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/operate/kubernetes.md"), "utf8");
  const [, text = ""] = /^```yaml\n(.*?)^```$/ms.exec(page) ?? [];
  const { spec } = parse(text).spec.template;
  const [container] = spec.containers;

  it("has settings and probes of the service, and an unprivileged container", () => {
    const secret = join(testFolder(), "secret");
    writeFileSync(secret, "a secret of the manifest of a test, which is long enough", { mode: 0o600 });
    const environment = Object.fromEntries(
      container.env.map(({ name, value }: Record<"name" | "value", string>) => [
        name,
        value.startsWith("/run/secrets/") ? secret : value,
      ]),
    );
    const [command, ...args] = container.args;
    expect(command).toBe("serve");
    const flags = Object.fromEntries(
      Object.entries(settings).flatMap(([name, { flag }]) => {
        const index = flag === undefined ? -1 : args.indexOf(flag);
        return index < 0 ? [] : [[name, args[index + 1]]];
      }),
    );
    expect(Object.keys(flags)).toHaveLength(args.length / 2);
    expect(readConfig(environment, flags)).toMatchObject({
      settings: { sshPort: 2222, lameDuck: 15, publicUrl: "https://gate.example.org" },
    });
    expect([container.readinessProbe.httpGet.path, container.livenessProbe.httpGet.path]).toEqual([
      "/readyz",
      "/healthz",
    ]);
    const user = /^USER (\d+):/m.exec(read("container/Containerfile"))?.[1];
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) });
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(15 + 15);
  });
});

/** The program that builds images; undefined if the base image is missing. The tests download nothing. */
const builder = (() => {
  const [, base = ""] = /^ARG BASE=(.*)$/m.exec(read("container/Containerfile")) ?? [];
  return ["podman", "buildah"].find(
    (name) => spawnSync(name, ["inspect", "--type", "image", base]).status === 0,
  );
})();
const UNBUILT =
  builder === undefined
    ? "podman or buildah with the base image is missing; the file is linted"
    : RELEASE === undefined && "npm run release builds it";
const BUILT = `is built${UNBUILT ? ` (skipped: ${UNBUILT})` : ` by ${builder}`}`;

describe("the container", () => {
  it("has a valid file, a user other than root, and no secret", () => {
    const text = read("container/Containerfile");
    const faults = validate(text);
    expect(faults.map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
    expect(/^USER (\d+):\d+$/m.exec(text)?.[1]).toMatch(/^[1-9]\d*$/);
    expect(text).not.toMatch(/^(ENV|ARG) .*(SECRET|PASSWORD|TOKEN|DATABASE_URL)/m);
  });

  it.skipIf(UNBUILT !== false)(BUILT, { tags: ["long"], timeout: 600_000 }, () => {
    const file = join(DEPLOY, "container", "Containerfile");
    const image = `gatehouse-server-test-${process.pid}`;
    const flags = ["--format", "docker", "--pull-never", "--tag", image, "--file", file];
    const outputOf = (...args: string[]) =>
      execFileSync(builder ?? "", args, { encoding: "utf8", stdio: "pipe" });
    outputOf("build", ...flags, RELEASE ?? "");
    try {
      // The configuration of the image has the key `Config` or `config`, depending on the program. buildah nests this
      // key in its description of the image.
      const described = outputOf("inspect", "--type", "image", image);
      expect(described).toMatch(/"User": "10001:10001"/);
      expect(described).toMatch(/"Healthcheck": \{\s*"Test"/);
    } finally {
      outputOf("rmi", image);
    }
  });
});
