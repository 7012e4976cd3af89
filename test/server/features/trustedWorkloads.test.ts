import { afterAll, beforeAll, expect, test } from "vitest";
import { startIssuer, type TestIssuer } from "../../support/issuer.ts";
import { withLab } from "../http/lab.ts";
import type { TestUser } from "../http/testApp.ts";

const AUDIENCE = "https://gate.example.org";

const { app, ana } = withLab({ workloadIssuerNetworks: ["127.0.0.0/8"] });
let issuer: TestIssuer;
let distrust: () => void;
beforeAll(async () => {
  issuer = await startIssuer();
  distrust = issuer.trust();
});
afterAll(async () => {
  distrust();
  await issuer.stop();
});

const workloadOf = (more: object = {}) => ({
  ...{ name: "deploy", issuer: issuer.url, audience: AUDIENCE, role: "administrator" },
  claims: { repository: "octo-org/octo-repo", environment: "prod" },
  ...more,
});

/** Creates a trusted workload, and returns its id. */
async function trust(user: TestUser, more: object = {}): Promise<string> {
  const { status, text, body } = await user.call("createTrustedWorkload", { body: workloadOf(more) });
  expect(status, text).toBe(200);
  return body.id;
}

const exchange = (token: string, more: object = {}) =>
  app.call("exchangeWorkloadToken", { body: { tenant: ana.tenant, token, ...more } });

test("exchanges a token of GitHub for a session of the workload", async () => {
  const id = await trust(ana);
  const { status, text, body } = await exchange(await issuer.github({ aud: AUDIENCE }));
  expect(status, text).toBe(200);
  expect(body).toMatchObject({
    ...{ tenant: ana.tenant, role: "administrator", workload: { id, name: "deploy" } },
    actor: "GitHub octo-org/octo-repo@main, run example-run-id",
  });
  const devices = await app.call("getDevices", { token: body.token });
  expect(devices.status, devices.text).toBe(200);
});
