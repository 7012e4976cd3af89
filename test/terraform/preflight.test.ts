import { describe, expect, it } from "vitest";
import { startFleet } from "../support/fleet.ts";
import { freePort } from "../support/listening.ts";
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
