import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { blocksIn, pageText, ROOT } from "../support/pageCommands.ts";
import { keyData } from "../support/policy.ts";
import { hasTerraform } from "../terraform/support/terraform.ts";
import { type Host, runsService, startHost } from "./Host.ts";
import { enroll, type PageFleet, setSettings, startPageFleet } from "./PageFleet.ts";
import { listedPage, type OnEnd, omitted, pageTypedIn, typed, typedIn, typedPage } from "./PageTest.ts";

export const providerReadme = typedPage<PageFleet>({
  path: "provider/README.md",
  async start(folder, onEnd) {
    const context = await startPageFleet(folder, onEnd, { namespace: "prod", empty: true });
    await setSettings(context);
    const { shell, path } = context;
    await enroll(context.client, context.tenant, "app-1", "prod");
    shell.substitute(/USERNAME=pipeline/, "USERNAME=ana");
    shell.substitute(/secrets\/pipeline/, "secrets/ana");
    const [program = ""] = blocksIn(pageText("provider/README.md"), "ts");
    mkdirSync(path("program", "keys"), { recursive: true });
    writeFileSync(path("program", "Pulumi.yaml"), "{ name: policy, runtime: nodejs }\n");
    writeFileSync(path("program", "package.json"), '{ "name": "policy", "main": "index.ts" }\n');
    writeFileSync(path("program", "index.ts"), program);
    // The tag of the device is unmanaged, and the page declares no tags.
    const ignored = "DeviceTagAttachment * until 2999-12-31: set by an operator\n";
    writeFileSync(path("program", "access.ignore"), ignored);
    writeFileSync(path("program", "keys", "ana.pub"), keyData("ana"));
    await shell.type("cd program");
    return context;
  },
  lines: [
    typed("npm install @gatehouse-access/provider"),
    typed("export GATEHOUSE_URL"),
    typed("npx gatehouse review --stack prod --create", { prints: "No blocking findings" }),
    typed("npx gatehouse up", { adds: "--yes", prints: "2 created" }),
    typed("npx gatehouse drift"),
    typed("npx gatehouse import", { prints: "1 PublicKey" }),
    typed("npx gatehouse --help", { prints: "import" }),
  ],
});

export const serverReadme = typedPage<Host>({
  path: "server/README.md",
  start: startHost,
  lines: [
    typed("npm install @gatehouse-access/server"),
    runsService("npx gatehouse-server serve"),
    typed("npx gatehouse-server admin setup-link", { prints: "/setup" }),
    typed("npx gatehouse-server --help", { prints: "serve" }),
  ],
});

export const agentReadme = typedPage<Host>({
  path: "agent/README.md",
  async start(folder, onEnd) {
    const host = await startHost(folder, onEnd);
    writeFileSync(join(folder, "password.txt"), "correct-horse-battery\n");
    return host;
  },
  lines: [
    typed("npm install @gatehouse-access/agent"),
    omitted(
      "npx gatehouse-agent run --url",
      "docs/get-started/first-device.md runs the command that `device enroll` prints",
    ),
    typed("npx gatehouse-agent run --help", { prints: "--hostname" }),
    typed("export GATEHOUSE_AGENT_PASSWORD_HASH", {
      async after({ shell }) {
        const { stdout } = await shell.type('printf %s "$GATEHOUSE_AGENT_PASSWORD_HASH"');
        expect(stdout).toMatch(/^scrypt\$/);
      },
    }),
  ],
});

/** The lines of a page after the import of a namespace into Terraform. */
async function startTerraform(folder: string, onEnd: OnEnd, namespace: string): Promise<PageFleet> {
  const context = await startPageFleet(folder, onEnd, { namespace });
  await setSettings(context);
  expect(await context.shell.type("gatehouse terraform install")).toMatchObject({ code: 0 });
  return context;
}

const TERRAFORM = hasTerraform ? undefined : "terraform is not on the PATH";

export const existingNamespace = typedPage<PageFleet>({
  path: "docs/reference/terraform/guides/existing-namespace.md",
  skip: TERRAFORM,
  start: (folder, onEnd) => startTerraform(folder, onEnd, "production"),
  lines: [
    typed("gatehouse import --tenant production"),
    typed("cd access"),
    typed("terraform init"),
    typed("terraform plan", { prints: /\d+ to import, 0 to add, 0 to change, 0 to destroy/ }),
    typed("terraform apply", { adds: "-auto-approve", prints: "0 added, 0 changed, 0 destroyed" }),
  ],
});

export const reviewAndDrift = typedPage<PageFleet>({
  path: "docs/reference/terraform/guides/review-and-drift.md",
  skip: TERRAFORM,
  async start(folder, onEnd) {
    const context = await startTerraform(folder, onEnd, "fleet");
    const { shell, path } = context;
    await shell.type("gatehouse import --tenant fleet --out access --format terraform");
    await shell.type("cd access");
    writeFileSync(
      path("access", "access.policy.mjs"),
      `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("no guests", ({ access }) => expect(access).not.toAllow({ login: "guest" }));
`,
    );
    expect(await shell.type("terraform init")).toMatchObject({ code: 0 });
    return context;
  },
  lines: [
    typed("terraform plan -out=plan"),
    typed("terraform show -json plan"),
    typed("gatehouse review --terraform plan.json", { prints: "No access changes" }),
    typed("gatehouse access --terraform plan.json", { prints: '"ana"' }),
    typed("gatehouse test --terraform plan.json", { prints: "no guests" }),
    typed("terraform apply plan"),
    typed("gatehouse review --terraform plan.json --save reviewed", {
      before: ({ shell }) => shell.type("terraform plan -out=plan && terraform show -json plan > plan.json"),
    }),
    typed("gatehouse review --terraform plan.json --same-as reviewed"),
    typed("terraform plan -refresh-only -detailed-exitcode"),
    typed("terraform plan -out=plan"),
    typed("gatehouse drift --terraform plan.json", { prints: "No drift" }),
  ],
});

const INSTALLED = "test/terraform/installed.test.ts";
const DEMO = "test/endToEnd/demo.test.ts";
const RELEASED = "the packages are not published yet; the quick start installs them from a clone";
const SYSTEMD = "needs systemd and root; test/deploy checks the files";
const PODMAN = "needs Podman; test/deploy checks the file";
const TIMER = "needs systemd or cron, and root; test/pipelines/timer.test.ts runs the script as both do";
const RELEASE = "publishes a release; test/packaging/release.test.ts builds it";

const fleetReadme = pageTypedIn("examples/terraform/fleet/README.md", INSTALLED);

export const readmes = [
  providerReadme,
  serverReadme,
  agentReadme,
  existingNamespace,
  reviewAndDrift,
  fleetReadme,
  listedPage(
    "README.md",
    typedIn("npm run demo", DEMO),
    omitted("npm test", "runs all tests, this one included"),
    typedIn("npm run demo -- --keep", DEMO),
    ...[". ../gatehouse-demo", "sed", "gatehouse review", "gatehouse up"].map((line) => typedIn(line, DEMO)),
    ...["gatehouse review", "gatehouse up", "gatehouse drift", "gatehouse access"].map((line) =>
      typedIn(line, DEMO),
    ),
    omitted("npm install --global @gatehouse-access/provider", RELEASED),
    omitted("gatehouse terraform install", RELEASED),
    omitted("gatehouse pulumi install", RELEASED),
    omitted("npm install --global @gatehouse-access/server", RELEASED),
  ),
  listedPage(
    "docs/site/start.md",
    omitted("npm install --global @gatehouse-access/provider", RELEASED),
    omitted("npm install --global @gatehouse-access/server", RELEASED),
  ),
  listedPage(
    "docs/architecture/releasing.md",
    ...["npm run release -- --dry-run", "npm run release", "for name in", "gpg", "gpg", "git push"].map(
      (line) => omitted(line, RELEASE),
    ),
    ...["provider=", "rm -rf", "git -C", "git -C"].map((line) => omitted(line, RELEASE)),
  ),
  listedPage(
    "examples/deploy/README.md",
    ...["npm install", "useradd", "install", "install", "systemctl", "sudo"].map((line) =>
      omitted(line, SYSTEMD),
    ),
    ...["install", "echo", "openssl", "openssl", "ssh-keygen"].map((line) => omitted(line, SYSTEMD)),
    ...["install", "systemctl"].map((line) => omitted(line, SYSTEMD)),
    omitted("npm run release", "test/packaging/release.test.ts builds a release"),
    omitted("podman build", PODMAN),
    omitted("podman run", PODMAN),
  ),
  listedPage(
    "examples/pipelines/README.md",
    omitted("pulumi stack init", "needs the Pulumi CLI and a KMS key"),
  ),
  listedPage(
    "examples/pipelines/timer/README.md",
    ...["useradd", "install", "install", "sudo", "install", "systemctl", "systemctl"].map((line) =>
      omitted(line, TIMER),
    ),
    ...["install", "install", "install", "systemctl"].map((line) => omitted(line, TIMER)),
    ...["sudo", "install", "install", "install", "install", "systemctl"].map((line) => omitted(line, TIMER)),
  ),
  listedPage(
    "examples/terraform/identity-mode/README.md",
    ...["export TF_VAR_monitoring_secret", "terraform state rm", "terraform destroy"].map((line) =>
      omitted(line, "needs a server of version 0.27"),
    ),
  ),
  ...globSync("docs/reference/terraform/resources/*.md", { cwd: ROOT }).map((path) =>
    listedPage(
      path,
      omitted(
        "terraform import",
        "generated with the id of an example; imported.test.ts imports real objects",
      ),
    ),
  ),
];
