import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { makeCertificate } from "../support/certificate.ts";
import { agentCall, startFleet } from "../support/fleet.ts";
import { quoted } from "../support/Shell.ts";
import {
  newKey,
  publicHalf,
  ssh,
  sshPortOf,
  startAgent,
  UNLIMITED,
  withoutSsh,
} from "../support/sshFleet.ts";
import { type Host, runsService, serve, startHost, stopServices } from "./Host.ts";
import { type PageFleet, setSettings, startPageFleet } from "./PageFleet.ts";
import { listedPage, omitted, typed, typedPage, withoutComment } from "./PageTest.ts";

/** Types an assignment of a settings file, as an exported variable. */
const setting = (beginning: string, options: { readonly before?: (context: Host) => unknown } = {}) =>
  typed<Host>(beginning, {
    ...options,
    by: ({ shell }, line) => shell.type(`export ${withoutComment(line)}`),
  });

/** Checks the settings that the page has set so far. */
const settingsAreValid = async ({ shell }: Host) => {
  const { code, stderr } = await shell.type("gatehouse-server serve --check --data-dir checked");
  expect([code, stderr]).toEqual([0, expect.anything()]);
};

export const install = typedPage<Host>({
  path: "docs/operate/install.md",
  start: startHost,
  lines: [
    typed("npm install --global @gatehouse-access/server"),
    runsService("gatehouse-server serve --port 8080"),
    typed("gatehouse-server serve --check", { prints: "settings OK" }),
    runsService("gatehouse-server serve --data-dir"),
    typed("gatehouse-server admin setup-link", { prints: /^https?:\/\/\S+\/setup\S*$/m }),
    typed("gatehouse-server admin user create", { prints: "pipeline" }),
  ],
});

const POSTGRESQL = "needs a PostgreSQL server; test/server/postgresql tests the commands";

export const backup = typedPage<Host>({
  path: "docs/operate/backup.md",
  async start(folder, onEnd) {
    const host = await startHost(folder, onEnd);
    host.running.push(await serve(host.shell, "gatehouse-server serve --data-dir data"));
    return host;
  },
  lines: [
    typed("gatehouse-server backup", { prints: "Wrote the backup" }),
    typed("gatehouse-server restore", { before: stopServices }),
    typed("head -n 2", { before: ({ shell }) => shell.type("cd backup"), prints: /^\{/m }),
    typed("tail -n +3", {
      after({ shell }) {
        expect(readFileSync(join(shell.folder, "backup", "extracted.db"), "latin1")).toMatch(
          /^SQLite format 3/,
        );
      },
    }),
    typed("head -c -65", { prints: /^([0-9a-f]{64}) .*\n.*\1/ }),
    omitted("pg_dump", POSTGRESQL),
    omitted("createdb", POSTGRESQL),
    omitted("pg_restore", POSTGRESQL),
  ],
});

export const accounts = typedPage<Host>({
  path: "docs/operate/accounts.md",
  async start(folder, onEnd) {
    const host = await startHost(folder, onEnd);
    const { shell } = host;
    mkdirSync(join(folder, "secrets"), { mode: 0o700 });
    const url = "smtps://user:password@mail.example.org";
    writeFileSync(join(folder, "secrets", "smtp-url"), `${url}\n`, { mode: 0o600 });
    copyFileSync(makeCertificate(folder, "idp", "rsa:2048").cert, join(folder, "etc", "idp.pem"));
    shell.substitute(/\/run\/secrets\//, `${join(folder, "secrets")}/`);
    shell.substitute(/<id>/, "00000000-0000-4000-8000-000000000000");
    return host;
  },
  lines: [
    setting("GATEHOUSE_SMTP_URL_FILE"),
    setting("GATEHOUSE_MAIL_FROM"),
    setting("GATEHOUSE_PUBLIC_URL"),
    typed("gatehouse-server admin user reset-password ana", {
      async before(host) {
        const { shell, running } = host;
        await settingsAreValid(host);
        await shell.type("unset GATEHOUSE_SMTP_URL_FILE && export GATEHOUSE_DATA_DIR=$PWD/data");
        running.push(await serve(shell, "gatehouse-server serve"));
        const user = "--username ana --email ana@example.org --name Ana --generate-password";
        expect(await shell.type(`gatehouse-server admin user create ${user}`)).toMatchObject({ code: 0 });
      },
      async by({ shell }, line) {
        const terminal = shell.open(withoutComment(line));
        await terminal.untilShown(/password/i);
        terminal.type("correct-horse-battery");
        await terminal.untilShown(/again|repeat|confirm/i).catch(() => {});
        terminal.type("correct-horse-battery");
        expect([await terminal.code, terminal.shown()]).toEqual([0, expect.anything()]);
      },
    }),
    typed("gatehouse-server admin user disable-mfa ana"),
    omitted(
      "gatehouse-server admin user confirm-address",
      "needs a user who waits for a mail; see test/server/process",
    ),
    typed("gatehouse-server admin user sign-out ana"),
    typed("gatehouse-server admin rotate-signing-key "),
    typed("gatehouse-server admin rotate-signing-key --revoke"),
    typed("export GATEHOUSE_PUBLIC_URL"),
    typed("export GATEHOUSE_SAML_IDP_ENTITY_ID"),
    typed("export GATEHOUSE_SAML_SSO_URL"),
    typed("export GATEHOUSE_SAML_CERTIFICATE_FILE", { after: settingsAreValid }),
    typed("gatehouse-server admin audit ", { prints: "ana" }),
    typed("gatehouse-server admin audit --tenant"),
  ],
});

/** A shell of an administrator, with an old and a new service. */
interface Move extends PageFleet {
  readonly target: PageFleet;
}

export const upgrade = typedPage<Move>({
  path: "docs/operate/upgrade.md",
  async start(folder, onEnd) {
    const context = await startPageFleet(folder, onEnd, { namespace: "prod" });
    const other = join(folder, "other");
    mkdirSync(other);
    const target = await startPageFleet(other, onEnd, { namespace: "prod", empty: true });
    const { shell, path } = context;
    shell.substitute(/https:\/\/old\.example\.org/, context.fleet.service.url);
    shell.substitute(/https:\/\/new\.example\.org/, target.fleet.service.url);
    writeFileSync(path("password"), "correct-horse\n");
    await shell.type(
      `export PULUMI_BACKEND_URL=file://${folder} PULUMI_CONFIG_PASSPHRASE_FILE=${path("secrets", "passphrase")}`,
    );
    return { ...context, target };
  },
  lines: [
    typed("export GATEHOUSE_URL=https://old.example.org"),
    typed("gatehouse import --tenant prod --stack prod --state none --out policy"),
    typed("gatehouse import --tenant prod --stack prod --state none --out tags"),
    typed("export GATEHOUSE_URL=https://new.example.org", {
      before({ path }) {
        for (const folder of ["policy", "tags"]) rmSync(path(folder, "Pulumi.prod.yaml"));
        const file = path("policy", "namespace.ts");
        const program = readFileSync(file, "utf8");
        expect(program).toContain('{ name: "prod" }');
        writeFileSync(file, program.replace('{ name: "prod" }', '{ name: "prod", adopt: "overwrite" }'));
      },
    }),
    typed("gatehouse up tags", { adds: "--yes" }),
    typed("gatehouse up policy", {
      adds: "--yes",
      async after({ target }) {
        const keys = await target.client.getPublicKeys({ query: {} });
        expect(keys.map(({ name }) => name).toSorted()).toEqual(["ana", "bob"]);
      },
    }),
  ],
});

export const workloadIdentity = typedPage<Host>({
  path: "docs/operate/workload-identity.md",
  async start(folder, onEnd) {
    const host = await startHost(folder, onEnd);
    copyFileSync(makeCertificate(folder, "ca").cert, join(folder, "etc", "ca.pem"));
    return host;
  },
  lines: [setting("GATEHOUSE_WORKLOAD_ISSUER_NETWORKS"), setting("NODE_EXTRA_CA_CERTS")],
  after: settingsAreValid,
});

export const billing = typedPage<Host>({
  path: "docs/operate/billing.md",
  async start(folder, onEnd) {
    const host = await startHost(folder, onEnd);
    const { shell, running } = host;
    await shell.type("export GATEHOUSE_EDITION=cloud GATEHOUSE_PUBLIC_URL=https://gate.example.org");
    running.push(await serve(shell, "gatehouse-server serve --data-dir data"));
    return host;
  },
  lines: [
    typed("gatehouse-server admin invoices"),
    omitted(
      "gatehouse-server admin settle-invoice",
      "needs an open invoice; test/server/process tests the command",
    ),
  ],
});

export const rollout = typedPage<PageFleet>({
  path: "docs/operate/rollout.md",
  async start(folder, onEnd) {
    const context = await startPageFleet(folder, onEnd);
    await setSettings(context);
    const { uid } = await agentCall(context.client, "new-1", "02:00:00:00:00:99", context.tenant);
    context.shell.substitute(/<uid>/, uid);
    return context;
  },
  lines: [
    typed("gatehouse device list", { prints: '"new-1"' }),
    typed("gatehouse device accept", { prints: "Accepted new-1" }),
  ],
});

export const recordings = typedPage<PageFleet>({
  path: "docs/operate/recordings.md",
  skip: withoutSsh,
  async start(folder, onEnd) {
    const fleet = await startFleet([], { flags: ["--ssh-port", "0", ...UNLIMITED] });
    onEnd(fleet.stop);
    const context = await startPageFleet(folder, onEnd, { fleet, empty: true });
    const { client, tenant, shell } = context;
    const agent = await startAgent({ url: fleet.service.url, tenant, hostname: "edge-01", folder });
    onEnd(agent.stop);
    await client.acceptDevice({ params: { uid: agent.uid } });
    const key = newKey(folder, "key");
    const everything = { username: ".*", filter: { hostname: ".*" } };
    await client.createPublicKey({ body: { name: "key", data: publicHalf(key), ...everything } });
    const port = sshPortOf(fleet.service);
    const login = await ssh({ to: "root@fleet.edge-01", port, key, command: "echo recorded" });
    expect(login).toMatchObject({ code: 0 });
    const [session] = await client.getSessions({ query: {} });
    shell.substitute(/https:\/\/gate\.example\.org/, fleet.service.url);
    shell.substitute(/<uid>/, session?.uid ?? "");
    return { ...context };
  },
  lines: [
    typed("umask"),
    typed("read -rs API_KEY", {
      // Without a terminal, the key comes through a pipe. Not every /bin/sh has the flag -s, but bash and zsh have.
      async by({ client, shell }, line) {
        const body = { name: "recordings", expiresAt: 30 as const, role: "administrator" as const };
        const { id } = await client.createApiKey({ body });
        const { code } = await shell.type(`echo ${id} | bash -c ${quoted(line)}`);
        expect(code).toBe(0);
      },
    }),
    typed("curl -fsS -H @header 'https://gate.example.org/api/sessions", { prints: "edge-01" }),
    typed("curl -fsS -H @header -H 'Accept: application/x-asciicast'", {
      after({ path }) {
        expect(readFileSync(path("session.cast"), "utf8")).toContain("recorded");
      },
    }),
    omitted("asciinema", "needs asciinema"),
  ],
});

export const operate = [
  rollout,
  recordings,
  install,
  backup,
  accounts,
  upgrade,
  workloadIdentity,
  billing,
  listedPage(
    "docs/operate/air-gapped.md",
    omitted("npm install", "the test of the quick start installs the same archives"),
    omitted("tar", "copies the installed packages"),
  ),
  listedPage(
    "docs/operate/uninstall.md",
    omitted("npm uninstall", "removes the packages from the machine of the test"),
  ),
  listedPage(
    "docs/operate/gateway.md",
    omitted("gatehouse-server serve", "the command of the quick start, whose test types it"),
    omitted("ssh -p 2222", "the quick start's test logs in through the gateway"),
    omitted("npm install", "docs/get-started/quick-start.md installs the packages"),
    omitted("gatehouse-agent run", "docs/get-started/first-device.md starts the agent"),
  ),
  listedPage(
    "docs/operate/postgresql.md",
    ...[
      "export GATEHOUSE_DATABASE_URL_FILE",
      "gatehouse-server serve",
      "export GATEHOUSE_TARGET_DATABASE_URL_FILE",
      "gatehouse-server migrate-to-postgresql",
    ].map((line) => omitted(line, POSTGRESQL)),
  ),
  listedPage(
    "docs/operate/benchmarks.md",
    omitted("npm install", "measures for hours"),
    omitted("GATEHOUSE_SEED", "measures for hours"),
  ),
];
