import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import { changeKey, createKey, startFleet } from "../support/fleet.ts";
import { blocksIn, pageText } from "../support/pageCommands.ts";
import { startWebhook, type TestWebhook } from "../support/webhook.ts";
import { hasTerraform } from "../terraform/support/terraform.ts";
import { enroll, type PageFleet, setSettings, startPageFleet } from "./PageFleet.ts";
import { listedPage, type OnEnd, omitted, typed, typedIn, typedPage } from "./PageTest.ts";

const PULUMI = "needs the Pulumi CLI";

/** Starts a service, and sets the settings of `ana`. */
async function startWithSettings(folder: string, onEnd: OnEnd): Promise<PageFleet> {
  const context = await startPageFleet(folder, onEnd);
  await setSettings(context);
  return context;
}

/** Starts a service whose namespace is the program `policy`, applied as the stack `prod`. */
async function startManaged(folder: string, onEnd: OnEnd): Promise<PageFleet> {
  const context = await startWithSettings(folder, onEnd);
  await importPolicy(context);
  return context;
}

/** Writes the namespace to the program `policy`, with a state in the stack `prod`. */
async function importPolicy({ shell }: PageFleet): Promise<void> {
  const imported = await shell.type("gatehouse import --tenant fleet --out policy --stack prod");
  expect(imported).toMatchObject({ code: 0 });
}

export const access = typedPage<PageFleet>({
  path: "docs/guides/access.md",
  async start(folder, onEnd) {
    const context = await startManaged(folder, onEnd);
    await enroll(context.client, context.tenant, "db-2", "prod");
    const filter = { hostname: "^db-2$" };
    const rule = { action: "deny" as const, active: true, priority: 100, sourceIp: ".*", username: "^root$" };
    await context.client.createFirewallRule({ body: { ...rule, filter } });
    return context;
  },
  lines: [
    typed("gatehouse access", { prints: /^ana \(.*\) +root /m }),
    typed("gatehouse access --explain", { code: 2, prints: "DENIED: key ana as root" }),
    typed("echo $?", { prints: "2\n" }),
    omitted(
      "gatehouse access",
      "lists a namespace in identity mode; the first command of the page is the same",
    ),
    typed("gatehouse access --stack prod", {
      after({ path }) {
        expect(readFileSync(path("access-2026-12-01.md"), "utf8")).toContain("ana");
      },
    }),
  ],
});

export const apiKeyRotation = typedPage<PageFleet>({
  path: "docs/guides/api-key-rotation.md",
  async start(folder, onEnd) {
    const context = await startWithSettings(folder, onEnd);
    const { shell, path } = context;
    await shell.type("mkdir keys && cd keys");
    const [declaration = ""] = blocksIn(pageText("docs/guides/api-key-rotation.md"), "ts");
    writeFileSync(path("keys", "Pulumi.yaml"), "{ name: keys, runtime: nodejs }\n");
    writeFileSync(path("keys", "package.json"), '{ "name": "keys", "private": true, "main": "index.ts" }\n');
    writeFileSync(
      path("keys", "index.ts"),
      `import { ApiKey } from "@gatehouse-access/provider";\n${declaration}`,
    );
    expect(await shell.type("gatehouse up --stack prod --yes")).toMatchObject({ code: 0 });
    return context;
  },
  lines: [
    typed("gatehouse rotate --stack prod", { adds: "--yes" }),
    typed("gatehouse rotate ci", {
      adds: "--yes",
      async after({ client }) {
        expect(await client.listApiKeys({ query: {} })).toHaveLength(2);
      },
    }),
    omitted("pulumi stack output", `${PULUMI} and GitHub's command line`),
    omitted(
      "TF_VAR_ci_secret=",
      "a variable of the reader's configuration; secretInputs.test.ts applies one",
    ),
  ],
});

export const configuration = typedPage<PageFleet>({
  path: "docs/guides/configuration.md",
  start: startWithSettings,
  lines: [
    typed("export PULUMI_BACKEND_URL", {
      after: importPolicy,
    }),
  ],
});

/** The changes of the guide that users make outside the program. */
async function changeManually({ client }: PageFleet): Promise<void> {
  await changeKey(client, "bob", { username: "^(bob|root)$" });
  await createKey(client, "backdoor");
}

interface NotifiedFleet extends PageFleet {
  readonly webhook: TestWebhook;
}

export const drift = typedPage<NotifiedFleet>({
  path: "docs/guides/drift.md",
  skip: hasTerraform ? undefined : "terraform is not on the PATH",
  async start(folder, onEnd) {
    const context = await startManaged(folder, onEnd);
    const webhook = await startWebhook();
    onEnd(webhook.stop);
    await changeManually(context);
    await context.shell.type("gatehouse terraform install");
    context.shell.substitute(/2026-12-01T18:00Z/, new Date(Date.now() - 86_400_000).toISOString());
    return { ...context, webhook };
  },
  lines: [
    typed("gatehouse drift policy --stack prod", { code: 2, prints: "backdoor" }),
    typed("gatehouse drift policy --stack prod --markdown", {
      code: 2,
      after({ path }) {
        for (const name of ["issue.md", "drift.xml", "access-map.html"]) {
          expect(readFileSync(path(name), "utf8")).toContain("backdoor");
        }
      },
    }),
    typed("gatehouse drift policy --stack prod --repair", { adds: "--yes" }),
    typed("gatehouse drift policy --stack prod", { prints: "No drift" }),
    typed("terraform plan", {
      async before({ shell }) {
        await shell.type("gatehouse import --tenant fleet --out access --format terraform");
        await shell.type("cd access");
        for (const line of ["terraform init", "terraform apply -auto-approve"]) {
          expect(await shell.type(line)).toMatchObject({ code: 0 });
        }
      },
    }),
    typed("gatehouse drift --terraform plan.json", { prints: "No drift" }),
    typed("gatehouse drift policy --stack prod", {
      prints: "No drift",
      before: ({ shell }) => shell.type("cd"),
    }),
    typed("gatehouse expire policy --stack prod", { adds: "--yes" }),
    typed("gatehouse expire policy --stack prod --yes"),
    typed("gatehouse verify policy --stack prod"),
    typed("gatehouse verify --since"),
    typed("gatehouse verify policy --stack prod"),
    typed("export GATEHOUSE_NOTIFY_URL_FILE", {
      before({ path, webhook }) {
        writeFileSync(path("secrets", "drift-webhook"), webhook.url, { mode: 0o600 });
      },
    }),
    typed<NotifiedFleet>("gatehouse drift policy --stack prod --notify slack", {
      code: 2,
      before: changeManually,
      after: ({ webhook }) => expect(webhook.messages).toHaveLength(1),
    }),
    typed("gatehouse drift policy --stack prod --notify json", { code: 2 }),
  ],
});

export const importGuide = typedPage<PageFleet>({
  path: "docs/guides/import.md",
  skip: hasTerraform ? undefined : "terraform is not on the PATH",
  async start(folder, onEnd) {
    const context = await startPageFleet(folder, onEnd, { namespace: "prod" });
    await setSettings(context);
    return context;
  },
  lines: [
    typed("gatehouse import --tenant prod --out policy"),
    typed("gatehouse preview policy", { prints: "8 unchanged" }),
    typed("gatehouse import --tenant prod --out policy --format terraform", {
      async before(context) {
        rmSync(context.path("policy"), { recursive: true });
        await context.shell.type("gatehouse terraform install");
      },
    }),
    typed("cd policy"),
    typed("terraform init"),
    typed("terraform plan", { prints: /\d+ to import, 0 to add, 0 to change, 0 to destroy/ }),
    typed("terraform apply", { adds: "-auto-approve", prints: "0 added, 0 changed, 0 destroyed" }),
  ],
});

export const policyTests = typedPage<PageFleet>({
  path: "docs/guides/policy-tests.md",
  async start(folder, onEnd) {
    const context = await startManaged(folder, onEnd);
    await createKey(context.client, "Contractor", "^support$", { hostname: "^db-" });
    const [tests = ""] = blocksIn(pageText("docs/guides/policy-tests.md"), "ts");
    writeFileSync(context.path("policy", "access.policy.ts"), tests);
    await context.shell.type("cd policy");
    return context;
  },
  lines: [
    typed("gatehouse test", {
      code: 2,
      prints: /FAIL +contractors stay out of production[\s\S]*ok +the basics/,
    }),
  ],
});

export const review = typedPage<PageFleet>({
  path: "docs/guides/review.md",
  async start(folder, onEnd) {
    const context = await startWithSettings(folder, onEnd);
    const { shell, path } = context;
    await shell.type("git init --quiet --initial-branch main repository && cd repository");
    await importPolicy(context);
    const keys = path("repository", "policy", "keys.ts");
    const commit = (message: string) => `git add . && git commit --quiet --message '${message}'`;
    await shell.type(`${commit("v1.4")} && git tag v1.4`);
    writeFileSync(keys, readFileSync(keys, "utf8").replace('login("bob")', 'login("bob", "deploy")'));
    await shell.type(`git switch --quiet --create change && ${commit("v1.5")} && git tag v1.5`);
    await shell.type("git update-ref refs/remotes/origin/main main");
    return context;
  },
  lines: [
    typed("gatehouse review policy --stack prod", { prints: "gains login deploy" }),
    typed("gatehouse review policy --stack prod --markdown", {
      after({ path }) {
        for (const name of ["comment.md", "access-map.html"])
          expect(existsSync(path("repository", name))).toBe(true);
      },
    }),
    // No key gives the protected login, so nothing can end it.
    typed("gatehouse review policy --stack prod --protect"),
    typed("gatehouse review policy --stack prod --html"),
    typed("gatehouse review policy --stack prod --save"),
    typed("gatehouse up policy --stack prod --plan", { prints: "1 updated" }),
    typed("gatehouse review policy --stack prod --base main", { prints: "gains login deploy" }),
    typed("gatehouse review policy --stack prod --base v1.4 --head v1.5", { prints: "gains login deploy" }),
    typed('gatehouse review policy --stack prod --base "$(git merge-base', {
      prints: "gains login deploy",
    }),
  ],
});

const AGENT = "needs an agent; test/gateway/sshConfig.test.ts logs in with the printed configuration";

export const sshClients = typedPage<PageFleet>({
  path: "docs/guides/ssh-clients.md",
  async start(folder, onEnd) {
    const fleet = await startFleet([], { flags: ["--ssh-port", "0"] });
    onEnd(fleet.stop);
    const context = await startPageFleet(folder, onEnd, { fleet });
    await setSettings(context);
    await context.shell.type("mkdir -m 700 .ssh");
    return { ...context };
  },
  lines: [
    typed("gatehouse ssh-config --tag prod"),
    omitted("ssh web-01", AGENT),
    omitted("scp backup.tar", AGENT),
    typed("gatehouse ssh-config --tag prod"),
    typed("awk", {
      after({ path }) {
        expect(readFileSync(path("inventory"), "utf8")).toBe("db-1\nweb-01\nweb-02\n");
      },
    }),
    omitted("ansible", "needs Ansible"),
    omitted("dbclient", "needs Dropbear; `npm run test:clients` uses it"),
    omitted("plink", "needs PuTTY; `npm run test:clients` uses it"),
    omitted("pscp", "needs PuTTY"),
    omitted("rsync", "needs Dropbear and rsync; `npm run test:clients` uses them"),
  ],
});

export const troubleshooting = typedPage<PageFleet>({
  path: "docs/guides/troubleshooting.md",
  start: startManaged,
  lines: [
    typed("gatehouse doctor policy --stack prod", { prints: /^ok +address/m }),
    typed("gatehouse access --explain", { code: 2, prints: "DENIED" }),
  ],
});

export const proxies = typedPage<PageFleet>({
  path: "docs/guides/proxies.md",
  start: startWithSettings,
  lines: [
    typed("export HTTPS_PROXY"),
    typed("export NO_PROXY", {
      async after({ shell }) {
        // The proxy does not exist, and the service has a loopback address.
        expect(await shell.type("gatehouse access")).toMatchObject({ code: 0 });
      },
    }),
    typed("GATEHOUSE_WORKLOAD_ISSUER_PROXY", {
      async by({ shell }, line) {
        const { code, stdout } = await shell.type(
          `${line} gatehouse-server serve --check --data-dir checked`,
        );
        expect([code, stdout]).toEqual([0, expect.stringContaining("settings OK")]);
      },
    }),
  ],
});

export const guides = [
  proxies,
  access,
  apiKeyRotation,
  configuration,
  drift,
  importGuide,
  policyTests,
  review,
  sshClients,
  troubleshooting,
  listedPage(
    "docs/guides/other-servers.md",
    omitted("gatehouse doctor", "needs a server of another product; troubleshooting.md has the same command"),
  ),
  listedPage(
    "docs/guides/identity-mode.md",
    ...["gatehouse import --tenant prod", "gatehouse review policy", "gatehouse up policy"].map((line) =>
      omitted(line, "needs a server of version 0.27; identityModeMove.test.ts moves a recorded namespace"),
    ),
  ),
  listedPage(
    "docs/guides/plugin.md",
    ...[
      "npm install",
      "gatehouse pulumi install",
      "mkdir fleet",
      "echo",
      "pulumi package add",
      "gatehouse up",
    ].map((line) => typedIn(line, "test/plugin/cli.test.ts")),
    omitted("pulumi import", `${PULUMI}; test/plugin/cli.test.ts imports other objects`),
  ),
];
