import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { listenOnNewPort } from "../support/listening.ts";
import { policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

// Each row is a mistake of a new user: the settings or the command, and the parts of the output, which contain the
// place, the cause and the remedy. The time limit is below every time after which a request is repeated or ends.

const TIME_LIMIT = 15_000;
const UNKNOWN = "11111111-1111-4111-8111-111111111111";

const fleet = sharedFleet(["bob"]);
const program = sharedProgram();

/** Servers that do not support HTTP, and the text that each sends first. */
const greetings = { ssh: "SSH-2.0-OpenSSH_9.2\r\n", mail: "220 mail.example.org ESMTP\r\n" };
const servers = Object.fromEntries(
  Object.entries(greetings).map(([name, greeting]) => [
    name,
    createTcpServer((socket) => socket.on("error", () => {}).write(greeting)),
  ]),
);
const web = createServer((_, response) =>
  response.setHeader("content-type", "text/html").end("<html>console</html>"),
);
const addresses: Record<string, string> = {};
beforeAll(async () => {
  for (const [name, server] of [...Object.entries(servers), ["web", web] as const])
    addresses[name] = `http://127.0.0.1:${await listenOnNewPort(server)}`;
});
afterAll(() => {
  for (const server of [...Object.values(servers), web]) server.close();
});

/** Settings of a mistake, in addition to the address of the service. */
type Given = (known: {
  readonly url: string;
  readonly login: Record<string, string>;
}) => Record<string, string>;

const withLogin =
  (change: Record<string, string>): Given =>
  ({ login }) => ({ ...login, ...change });

const settings: Record<string, readonly [given: Given, ...parts: readonly (string | RegExp)[]]> = {
  "an address without a scheme": [
    ({ url, login }) => ({ ...login, GATEHOUSE_URL: url.replace("http://", "") }),
    /^error: GATEHOUSE_URL has no scheme\. Set it to https:\/\/127\.0\.0\.1:\d+, or to http:\/\/127\.0\.0\.1:\d+ for a service without TLS\. \[configuration\]\n$/,
  ],
  "the address of an SSH port": [
    ({ login }) => ({ ...login, GATEHOUSE_URL: addresses.ssh ?? "" }),
    "is an SSH port, which does not support HTTP. Set the URL to the HTTP or HTTPS address of the service.",
    "[protocol]",
  ],
  "the address of a mail server": [
    ({ login }) => ({ ...login, GATEHOUSE_URL: addresses.mail ?? "" }),
    "is the port of another service, which does not support HTTP. Set the URL",
  ],
  "the address of another web server": [
    ({ login }) => ({ ...login, GATEHOUSE_URL: addresses.web ?? "" }),
    "The response is not JSON (content type text/html). Check the URL of the service.",
  ],
  "an address with the path of the API": [
    ({ url, login }) => ({ ...login, GATEHOUSE_URL: `${url}/api` }),
    /http:\/\/127\.0\.0\.1:\d+\/api has no login endpoint \(404\)/,
    "Check the URL of the service, and omit API paths such as /api.",
  ],
  "a wrong password": [
    withLogin({ GATEHOUSE_PASSWORD: "wrong-horse" }),
    /^error: Wrong user name or password at http:\/\/127\.0\.0\.1:\d+ for the user "admin" \(401\)\. Check GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD\. \[/,
  ],
  "an API key that is no key": [
    ({ url }) => ({ GATEHOUSE_URL: url, GATEHOUSE_API_KEY: "nonsense" }),
    /^error: The API key is not valid at http:\/\/127\.0\.0\.1:\d+, or has expired \(401\)\. Check GATEHOUSE_API_KEY\. \[/,
  ],
  "a token that is no token": [
    ({ url }) => ({ GATEHOUSE_URL: url, GATEHOUSE_TOKEN: "nonsense" }),
    /The token is not valid at http:\/\/127\.0\.0\.1:\d+, or has expired \(401\)\. Check GATEHOUSE_TOKEN\./,
  ],
  "an API key with a space": [
    ({ url }) => ({ GATEHOUSE_URL: url, GATEHOUSE_API_KEY: "abc def" }),
    "GATEHOUSE_API_KEY is empty, or contains white space or non-ASCII characters. Copy the value again",
  ],
  "the name of a namespace": [
    withLogin({ GATEHOUSE_TENANT: "admin" }),
    'error: GATEHOUSE_TENANT must be the id of a namespace, a lower-case uuid, not "admin". Run gatehouse namespace list, which prints the names and ids of your namespaces. [configuration]',
  ],
  "an unknown namespace": [
    withLogin({ GATEHOUSE_TENANT: UNKNOWN }),
    `No access to the namespace ${UNKNOWN} (404): the namespace does not exist, or the user is not a member`,
    "Check the id of the namespace; `gatehouse namespace list` prints the ids.",
  ],
  "a misspelled variable": [
    ({ url, login }) => ({
      GATEHOUSE_URL: url,
      GATEHOUSE_USERNMAE: login.GATEHOUSE_USERNAME ?? "",
      GATEHOUSE_PASSWORD: login.GATEHOUSE_PASSWORD ?? "",
    }),
    "warning: GATEHOUSE_USERNMAE is not a setting and has no effect. Did you mean GATEHOUSE_USERNAME?\n",
    "error: GATEHOUSE_PASSWORD is set without GATEHOUSE_USERNAME. Also set GATEHOUSE_USERNAME. [configuration]",
  ],
};

describe("a mistake in the settings is reported with its place, cause and remedy", () => {
  test.each(Object.entries(settings))("%s", { timeout: TIME_LIMIT }, async (_, [given, ...parts]) => {
    const login = {
      GATEHOUSE_URL: fleet.service.url,
      GATEHOUSE_USERNAME: fleet.env.GATEHOUSE_USERNAME ?? "",
      GATEHOUSE_PASSWORD: fleet.env.GATEHOUSE_PASSWORD ?? "",
    };
    // No limit of the retries is set, so a mistake that is repeated exceeds the time limit of the test.
    const { code, stdout, stderr } = await gatehouse(
      ["device", "list"],
      given({ url: fleet.service.url, login }),
    );
    expect([code, stdout]).toEqual([1, ""]);
    for (const part of parts) expect(stderr).toMatch(part);
    expect(stderr).not.toMatch(/may have taken effect|jwt|correct-horse|wrong-horse/);
  });

  test("a misspelled variable does not stop a command, and other variables of the project cause no warning", async () => {
    const env = { ...fleet.env, GATEHOUSE_TENNANT: "x", GATEHOUSE_PORT: "8080", GATEHOUSE_DATABASE_URL: "x" };
    const { code, stderr } = await gatehouse(["device", "list"], env);
    expect([code, stderr]).toEqual([
      0,
      "warning: GATEHOUSE_TENNANT is not a setting and has no effect. Did you mean GATEHOUSE_TENANT?\n",
    ]);
  });
});

describe("a mistake in the arguments", () => {
  test.each([
    ["preview", "--stack", "dev"],
    ["drift", "--stack", "dev"],
  ])("a folder without a project: %s %s %s", async (command, ...flags) => {
    const folder = testFolder();
    const missing = join(folder, "none");
    const remedy = "Use the folder of a program, which contains Pulumi.yaml. [project]\n";
    expect((await gatehouse([command, missing, ...flags], fleet.env)).stderr).toBe(
      `error: The folder ${missing} does not exist. ${remedy}`,
    );
    expect((await gatehouse([command, folder, ...flags], fleet.env)).stderr).toBe(
      `error: The folder ${folder} does not contain Pulumi.yaml. ${remedy}`,
    );
  });

  test("an address of the states without a scheme", async () => {
    const env = { ...fleet.env, ...program.backend, PULUMI_BACKEND_URL: program.states };
    const run = await gatehouse(
      ["preview", program.folder, "--stack", "dev", "--create", "--engine", "embedded"],
      env,
    );
    expect(run).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `error: PULUMI_BACKEND_URL: The URL of the state backend has no scheme (PULUMI_BACKEND_URL). Set it to a URL such as file://${program.states}.`,
      ),
    });
  });
});

const PRIVATE_KEY =
  "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n-----END OPENSSH PRIVATE KEY-----\n";

const inputs: Record<string, readonly [policy: object, part: string]> = {
  "a private key as the data of a key": [
    { key: publicKey("ana", "^ana$", undefined, { data: PRIVATE_KEY }) },
    "PublicKey key: data must be a public key, not a private key. Set it to the content of the file that ends in .pub. If others can read the program, replace the key pair. [private_key]",
  ],
  "the path of a key file": [
    { key: publicKey("ana", "^ana$", undefined, { data: "~/.ssh/id_ed25519.pub" }) },
    "PublicKey key: data must be the content of a public key file, not the path of the file. [invalid_input]",
  ],
  "three invalid tags": [
    { tags: { type: "DeviceTags", args: { device: "web-01", tags: ["a b", "prod", "x!yz", "ü12"] } } },
    'DeviceTags tags: tags has invalid items: "a b" may contain only ASCII letters and digits; "x!yz" may contain only ASCII letters and digits; "ü12" may contain only ASCII letters and digits. [invalid_input]',
  ],
  "an e-mail address without @": [
    { bob: { type: "Member", args: { email: "bob", role: "observer" } } },
    "Member bob: email must be an e-mail address such as ana@example.com. [invalid_input]\n",
  ],
};

describe("a mistake in an input", () => {
  test.each(Object.entries(inputs))(
    "%s is one error",
    { tags: ["long"], timeout: 60_000 },
    async (_, [policy, part]) => {
      const stack = program.stack({ env: fleet.env });
      const run = await stack.run(["preview", "--create", "--offline"], policyEnv(policy as never));
      expect(run.code).toBe(1);
      expect(run.stdout + run.stderr).toContain(part);
      expect(run.stdout + run.stderr).not.toContain("b3BlbnNzaC1rZXktdjE");
    },
  );

  test("a member without an account is reported with the address, the service and the remedy", {
    tags: ["long"],
    timeout: 60_000,
  }, async () => {
    const policy = { eve: { type: "Member", args: { email: "eve@example.com", role: "observer" } } };
    const run = await program
      .stack({ env: fleet.env })
      .run(["up", "--yes", "--skip-preview"], policyEnv(policy as never));
    expect(run.code).toBe(1);
    expect(run.stdout + run.stderr).toContain(
      `Member eve: email: No account on ${fleet.env.GATEHOUSE_URL} has the address eve@example.com. Check the address, or ask the operator of the service to create the account; then run again. [object_not_found]`,
    );
  });
});

describe("gatehouse namespace list", () => {
  test("prints names, ids and roles, also with a wrong GATEHOUSE_TENANT", async () => {
    const env = { ...fleet.env, GATEHOUSE_TENANT: "admin" };
    const { code, stdout } = await gatehouse(["namespace", "list"], env);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(new RegExp(`^NAME +ID +ROLE\\nadmin +${fleet.tenant} +owner\\n$`)),
    ]);
  });

  test("prints JSON", async () => {
    const { stdout } = await gatehouse(["namespace", "list", "--json"], fleet.env);
    expect(JSON.parse(stdout)).toEqual({ namespaces: [{ id: fleet.tenant, name: "admin", role: "owner" }] });
  });

  test("prints how to create a namespace to a user without one", async () => {
    const { GATEHOUSE_TENANT: _, ...env } = fleet.env;
    const { code, stdout } = await gatehouse(["namespace", "list"], { ...env, GATEHOUSE_USERNAME: "bob" });
    expect([code, stdout]).toEqual([
      0,
      "The user is not a member of any namespace. To create one, run: gatehouse up --create-namespace <name>\n",
    ]);
  });
});
