import { expect, onTestFinished, test } from "vitest";
import { operations } from "../../../sdk/contract/index.ts";
import { startIssuer } from "../../support/issuer.ts";
import { testService } from "../../support/service.ts";
import { type CallOptions, callBy, sendTo } from "../http/testApp.ts";

test("a service process trusts a private issuer by its settings, and logs rejections without tokens", async () => {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.stop());
  const service = await testService({
    env: { NODE_EXTRA_CA_CERTS: issuer.caFile, GATEHOUSE_WORKLOAD_ISSUER_NETWORKS: "127.0.0.0/8" },
  });
  const call = (id: keyof typeof operations, options: CallOptions) =>
    callBy((method, path, sent) => sendTo(service.url + path, { method, ...sent }), operations[id], options);

  const { username, password } = await service.setup();
  const login = await call("login", { body: { username, password } });
  const namespace = await call("createNamespace", { token: login.body.token, body: { name: "lab" } });
  const tenant: string = namespace.body.tenant_id;
  const { token } = (await call("getToken", { token: login.body.token, params: { tenant } })).body;
  const aud = service.url;
  const created = await call("createTrustedWorkload", {
    token,
    body: {
      name: "deploy",
      issuer: issuer.url,
      audience: aud,
      role: "administrator",
      single_use: true,
      claims: { repository: "octo-org/octo-repo", environment: "prod" },
    },
  });
  expect(created.status, created.text).toBe(200);

  // The requests for tokens of a job of GitHub Actions.
  onTestFinished(issuer.trust());
  const tokenFor = async (claims: object): Promise<string> => {
    const { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret } = issuer.githubJob({
      ...claims,
    });
    const headers = { authorization: `bearer ${secret}` };
    const answer = await sendTo(`${url}&audience=${encodeURIComponent(aud)}`, { headers });
    expect(answer.status).toBe(200);
    return answer.body.value;
  };
  const tokens = [await tokenFor({ run_id: "123" }), await tokenFor({ environment: "dev" })];
  const exchange = (oidcToken: string | undefined) =>
    call("exchangeWorkloadToken", { body: { tenant, token: oidcToken } });
  const session = await exchange(tokens[0]);
  expect(session.status, session.text).toBe(200);
  const actor = `deploy: ${issuer.url} "repo:octo-org/octo-repo:environment:prod"`;
  expect(session.body.actor).toBe(actor);
  expect((await exchange(tokens[0])).status).toBe(401);
  expect((await exchange(tokens[1])).status).toBe(401);

  const logged = (field: string) => service.logs().flatMap((line) => line[field] ?? []);
  await expect
    .poll(() => logged("reason"))
    .toEqual(["the token was already exchanged", "the claims match no workload"]);
  expect(logged("actor")).toEqual([actor]);
  for (const secret of [...tokens, session.body.token]) {
    expect(service.output()).not.toContain(secret.split(".")[1]);
    expect(service.output()).not.toContain(secret.split(".")[2]);
  }
});
