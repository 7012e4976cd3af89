import { expect, it } from "vitest";
import { ResourceLifecycle } from "../../provider/lifecycle/lifecycle.ts";
import { RunRecord } from "../../provider/lifecycle/runRecord.ts";
import { TerraformResource } from "../../provider/providers/terraform/resource.ts";
import { definitions } from "../../provider/resources/index.ts";
import { type Row, valuesOf } from "../../provider/terraform/types.ts";

const definition = definitions.find(({ name }) => name === "InstallKey");
if (!definition) throw new Error("no InstallKey");
const resource = new TerraformResource(definition);
const lifecycle = new ResourceLifecycle(definition, {
  run: new RunRecord(),
  defaultTenant: () => undefined,
  declaration: () => undefined,
  isReplacementRequested: () => false,
  connection: () => {
    throw new Error("a plan of an update sends no request");
  },
  tell: () => {},
});

const empty: Row = Object.fromEntries(resource.attributes.map(({ name }) => [name, null]));
const config = (secret: unknown, version: unknown): Row => ({
  ...empty,
  name: "warehouse",
  mode: "webhook",
  webhook_url: "https://hooks.example.com",
  webhook_secret_wo: secret,
  webhook_secret_wo_version: version,
});
const ID = "3dd0d1f8-8246-4519-b11a-a3dd33717f65/05c5f511";
const prior: Row = {
  ...empty,
  id: ID,
  tenant: "3dd0d1f8-8246-4519-b11a-a3dd33717f65",
  name: "warehouse",
  mode: "webhook",
  webhook_url: "https://hooks.example.com",
  webhook_timeout: 5,
  webhook_callback_ttl: 3600,
  allowed_macs: [],
  tags: [],
  valid_days: -1,
  usage_limit: 0,
  ephemeral: false,
  ephemeral_timeout: 10,
  disabled: false,
  adopt: "false",
  key_hint: "05c5",
  install_key_id: "05c5f511",
  expires_at: "",
  used_times: 0,
  created_at: "2026-11-28T00:00:00Z",
  webhook_secret_wo_version: 1,
};

it("a changed secret with the same version is no change, since the state contains no secret", async () => {
  expect(await resource.plan(lifecycle, "it", config("another", 1), prior)).toEqual({
    planned: prior,
    replaces: [],
    errors: [],
  });
});

it("a new version plans an update, and neither plan nor state contains the secret", async () => {
  const { planned, replaces, errors } = await resource.plan(lifecycle, "it", config("another", 2), prior);
  expect([replaces, errors]).toEqual([[], []]);
  expect(planned).toMatchObject({ webhook_secret_wo: null, webhook_secret_wo_version: 2, id: ID });
  expect(JSON.stringify(planned)).not.toContain("another");
  const state = { ...valuesOf(resource.attributes, prior), webhookSecret: "another" };
  expect(resource.row({ id: ID, state }, planned)).toMatchObject({ webhook_secret_wo: null });
});

it("a webhook without its secret is rejected", async () => {
  const { errors } = await resource.plan(lifecycle, "it", config(null, 1), prior);
  expect(errors.map(({ detail }) => detail).join()).toContain("webhook_secret_wo is required with mode");
  // With the path of the attribute, Terraform would print the source line.
  expect(errors.map(({ attribute }) => attribute)).toEqual([undefined]);
});
