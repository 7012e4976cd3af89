import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { Configuration } from "../../provider/providers/terraform/configuration.ts";
import { startFleet } from "../support/fleet.ts";
import { freePort, listening } from "../support/listening.ts";
import {
  hasTerraform,
  installedProvider,
  keyArguments,
  LABEL,
  RootModule,
  ref,
  resources,
  sharedTerraform,
} from "./support/terraform.ts";

describe.runIf(hasTerraform)(`the plan of new objects with a wrong configuration, by ${LABEL}`, () => {
  const fleet = sharedTerraform(() => startFleet([]));

  /** Returns a root module with one new key and this provider block. The environment sets no service. */
  function moduleWith(block: object, more: object = {}): RootModule {
    const root = new RootModule(fleet.newModule().folder, installedProvider());
    const { resource } = resources({ public_key: { one: keyArguments() } });
    root.write({ provider: { gatehouse: block }, resource: { ...resource, ...more } });
    return root;
  }

  /** The service with a user and a password, as arguments of the provider block. */
  const given = () => ({
    url: fleet.service.url,
    username: fleet.env.GATEHOUSE_USERNAME,
    password: fleet.env.GATEHOUSE_PASSWORD,
  });

  it.each([
    ["a wrong password", () => ({ ...given(), password: "wrong" }), "401"],
    ["a wrong token", () => ({ url: fleet.service.url, token: "a.b.c" }), "token"],
    [
      "a wrong API key",
      () => ({ url: fleet.service.url, api_key: "3dd0d1f8-8246-4519-b11a-a3dd33717f65" }),
      "401",
    ],
    ["no URL", () => ({ username: "ana", password: "secret-word" }), "GATEHOUSE_URL"],
  ])("fails with %s", async (_, block, words) => {
    const output = await moduleWith(block()).rejected("plan");
    expect(output).toContain(words);
    expect(output).not.toContain("secret-word");
  });

  it("fails if nothing listens at the address, unless skip_preflight is true", async () => {
    const block = { ...given(), url: `http://127.0.0.1:${await freePort()}`, retry_timeout: "0" };
    expect(await moduleWith(block).rejected("plan")).toContain("Cannot connect to http://127.0.0.1:");
    expect(await moduleWith({ ...block, skip_preflight: "true" }).changes()).toEqual([
      "gatehouse_public_key.one: create",
    ]);
    expect(await moduleWith({ ...block, skip_preflight: "yes" }).rejected("validate")).toContain(
      "skip_preflight must be true or false",
    );
  });

  it("succeeds if the address is known only after the apply", async () => {
    const url = ref("terraform_data.url.output");
    const root = moduleWith({ ...given(), url }, { terraform_data: { url: { input: fleet.service.url } } });
    expect(await root.changes()).toContain("gatehouse_public_key.one: create");
  });
});

describe("the check of the connection", () => {
  const configuration = (env: Readonly<Record<string, string>>) =>
    new Configuration({ GATEHOUSE_RETRY_TIMEOUT: "0", ...env }, {});

  it("rejects a token that the service rejects, although the token is valid by itself", async () => {
    const refused = await listening(
      createServer((_, response) => {
        response.writeHead(401, { "content-type": "application/json" }).end("{}");
      }),
    );
    onTestFinished(() => refused.stop());
    const claims = Buffer.from(JSON.stringify({ exp: 4_000_000_000, tenant: "", id: "1" })).toString(
      "base64url",
    );
    const token = `e30.${claims}.c2ln`;
    const env = { GATEHOUSE_URL: refused.url, GATEHOUSE_TOKEN: token };
    await expect(configuration(env).preflight()).rejects.toThrow("401");
    await configuration({ ...env, GATEHOUSE_SKIP_PREFLIGHT: "true" }).preflight();
  });

  it("rejects a missing credential", async () => {
    await expect(configuration({ GATEHOUSE_URL: "http://127.0.0.1:9" }).preflight()).rejects.toThrow();
  });
});
