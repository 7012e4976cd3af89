import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import { blocksIn, pageText } from "../support/pageCommands.ts";
import { hasTerraform } from "../terraform/support/terraform.ts";
import { type PageFleet, setSettings, startPageFleet } from "./PageFleet.ts";
import { type OnEnd, omitted, typed, typedPage } from "./PageTest.ts";
import { githubActions, gitlab } from "./pipelineTutorials.ts";

export const importANamespace = typedPage<PageFleet>({
  path: "docs/tutorials/import-a-namespace.md",
  start: (folder, onEnd) => startPageFleet(folder, onEnd),
  lines: [
    typed("export GATEHOUSE_URL"),
    typed("export GATEHOUSE_USERNAME"),
    typed("export PULUMI_BACKEND_URL"),
    typed("gatehouse import --tenant fleet"),
    typed("gatehouse preview policy", { prints: /^8 unchanged/m }),
    typed("gatehouse coverage policy", { prints: "100 %" }),
    typed("gatehouse review policy", { prints: "No access changes" }),
    typed("gatehouse drift policy", {
      prints: "No drift",
      async after({ client, shell }) {
        const [device] = await client.getDevices({ query: {} });
        await client.updateDeviceTags({ params: { uid: device?.uid ?? "" }, body: { tags: ["web"] } });
        expect(await shell.type("gatehouse drift policy --stack prod")).toMatchObject({ code: 2 });
      },
    }),
  ],
});

/** The program of an API key, as the page describes it. */
async function startKeys(folder: string, onEnd: OnEnd): Promise<PageFleet> {
  const context = await startPageFleet(folder, onEnd);
  await setSettings(context);
  const { shell, path } = context;
  await shell.type("mkdir keys && cd keys");
  writeFileSync(path("keys", "Pulumi.yaml"), "{ name: keys, runtime: nodejs }\n");
  writeFileSync(path("keys", "package.json"), '{ "name": "keys", "private": true, "main": "index.ts" }\n');
  const [program = ""] = blocksIn(pageText(ROTATION), "ts");
  writeFileSync(path("keys", "index.ts"), program);
  return context;
}

const ROTATION = "docs/tutorials/rotate-an-api-key.md";

const keysOf = async ({ client }: PageFleet) => client.listApiKeys({ query: {} });

export const rotateAnApiKey = typedPage<PageFleet>({
  path: ROTATION,
  start: startKeys,
  lines: [
    typed("gatehouse up --stack prod", { adds: "--yes", prints: "1 created" }),
    omitted("pulumi stack output", "needs the Pulumi CLI"),
    typed("gatehouse rotate --stack prod --yes", {
      async after(context) {
        expect(await keysOf(context)).toHaveLength(1);
      },
    }),
    typed("gatehouse rotate nightly", {
      adds: "--yes",
      async before({ path }) {
        const file = path("keys", "index.ts");
        writeFileSync(file, readFileSync(file, "utf8").replace("overlap: 3", "overlap: 0"));
      },
      async after(context) {
        expect(await keysOf(context)).toHaveLength(1);
      },
    }),
  ],
});

export const pulumiAndTerraform = typedPage<PageFleet>({
  path: "docs/tutorials/pulumi-and-terraform.md",
  skip: hasTerraform ? undefined : "terraform is not on the PATH",
  async start(folder, onEnd) {
    const context = await startPageFleet(folder, onEnd);
    await setSettings(context);
    return context;
  },
  lines: [
    typed("gatehouse import --tenant fleet --out access"),
    typed("gatehouse terraform install"),
    typed("cd access && terraform init"),
    typed("terraform plan", { prints: /\d+ to import, 0 to add, 0 to change, 0 to destroy/ }),
    typed("terraform apply", { adds: "-auto-approve", prints: "0 added, 0 changed, 0 destroyed" }),
    omitted("pulumi state delete", "needs the Pulumi CLI"),
    typed("gatehouse import --tenant fleet --out policy", {
      async before({ shell, path }) {
        rmSync(path("access", "imports.tf"));
        expect(await shell.type("terraform plan -detailed-exitcode")).toMatchObject({ code: 0 });
        await shell.type("cd ..");
      },
    }),
    typed("gatehouse preview policy", { prints: "8 unchanged" }),
  ],
  async after({ shell, client }) {
    await shell.type("cd access");
    const states = await shell.type("terraform state rm $(terraform state list)");
    expect(states).toMatchObject({ code: 0 });
    expect(await client.getPublicKeys({ query: {} })).toHaveLength(2);
  },
});

export const tutorials = [importANamespace, githubActions, gitlab, rotateAnApiKey, pulumiAndTerraform];
