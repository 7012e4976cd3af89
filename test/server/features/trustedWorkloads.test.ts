import Provider from "oidc-provider";
import { describe, expect, onTestFinished, test } from "vitest";
import { TokenClaims } from "../../../sdk/policy/index.ts";
import { UnauthenticatedError } from "../../../server/errors.ts";
import { actorOf } from "../../../server/features/trustedWorkloads/actor.ts";
import { renewWorkloadSession } from "../../../server/features/trustedWorkloads/session.ts";
import { forgetTokenUses } from "../../../server/features/trustedWorkloads/tokenUses.ts";
import { authenticate, readCredential } from "../../../server/http/access/authenticate.ts";
import { GITHUB_CLAIMS, GITLAB_CLAIMS, newIssuerKey } from "../../support/issuer.ts";
import { expectError, statusesOf } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { addMember, trailOf } from "../http/fixtures.ts";
import { valuesOf } from "../http/testApp.ts";
import { AUDIENCE, anotherIssuer, exchange, JOB, LOCAL_NETWORKS, trust, withIssuer } from "./workloads.ts";

const shared = withIssuer();
const { app, ana } = withAppAndUser({ workloadIssuerNetworks: LOCAL_NETWORKS });
const NONCE = "0123456789abcdef";

const github = (claims: object = {}) =>
  shared.issuer.github({ aud: AUDIENCE, ...claims }, { now: app.services.now() });
const send = (token: string, nonce?: string) => exchange(app, ana, token, nonce);

test("no caller gives a workload a role above the caller's, or changes such a workload", async () => {
  const id = await trust(ana, shared.issuer.url);
  const ben = await addMember(app, ana, "ben", "operator");
  const body = { ...JOB, name: "second", issuer: shared.issuer.url, role: "observer" };
  const ofOperator = [
    await ben.call("createTrustedWorkload", { body }),
    await ben.call("updateTrustedWorkload", { params: { id }, body }),
    await ben.call("deleteTrustedWorkload", { params: { id } }),
  ];
  expect(ofOperator.map(({ status }) => status)).toEqual([403, 403, 403]);
  const key = await ana.call("createApiKey", { body: { name: "key", expires_at: 30 } });
  expect((await app.call("createTrustedWorkload", { apiKey: key.body.id, body })).status).toBe(403);
  const owner = { ...body, role: "owner" };
  expect((await ana.call("createTrustedWorkload", { body: owner })).status).toBe(400);
  expect((await ana.call("updateTrustedWorkload", { params: { id }, body: owner })).status).toBe(400);
});

describe("an exchange", () => {
  test("returns a session with the role and the name of the workload", async () => {
    const id = await trust(ana, shared.issuer.url);
    app.stopClock();
    const { status, text, body } = await send(await github());
    expect(status, text).toBe(200);
    const now = app.services.now().getTime();
    expect(body).toMatchObject({
      tenant: ana.tenant,
      role: "administrator",
      workload: { id, name: "deploy" },
      actor: `deploy: ${shared.issuer.url} "${GITHUB_CLAIMS.sub}"`,
    });
    expect(Date.parse(body.expires_at) - now).toBe(15 * 60_000);
    expect(Date.parse(body.renewable_until) - now).toBe(60 * 60_000);
    const { token } = body;
    const key = await app.call("createApiKey", { token, body: { name: "pipeline", expires_at: 30 } });
    expect(key.status).toBe(200);
    expect((await trailOf(ana))[0].actor).toEqual({ kind: "workload", id, name: body.actor });
    const namespaces = await app.call("getNamespaces", { token });
    expect(valuesOf(namespaces.body, "tenant_id")).toEqual([ana.tenant]);
  });

  test("accepts a token that oidc-provider issues and signs by itself", async () => {
    const { issuer } = shared;
    const { kid, privateKey } = issuer.key;
    const provider = new Provider(issuer.url, {
      jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" } as never] },
      clients: [
        {
          client_id: AUDIENCE,
          redirect_uris: ["https://gate.example.org/callback"],
          response_types: ["id_token"],
          grant_types: ["implicit"],
          token_endpoint_auth_method: "none",
        },
      ],
      features: { devInteractions: { enabled: false } },
      adapter: () => ({}) as never,
      ttl: { IdToken: 300 },
      cookies: { keys: ["a key of a cookie"] },
    });
    const client = await provider.Client.find(AUDIENCE);
    const idToken = new provider.IdToken({ sub: "job-7" }, { client } as never);
    idToken.set("repository", "octo-org/octo-repo");
    Object.assign(idToken, { scope: "openid" });
    await trust(ana, issuer.url, { claims: { repository: "octo-org/*" } });
    const { status, text, body } = await send(await idToken.issue({ use: "idtoken" }));
    expect(status, text).toBe(200);
    expect(body.actor).toBe(`deploy: ${issuer.url} "job-7"`);
  });

  test("accepts every asymmetric algorithm", async () => {
    await trust(ana, shared.issuer.url);
    const { issuer } = shared;
    const before = issuer.key;
    onTestFinished(() => issuer.setKeys(before));
    const algorithms = [
      "RS256",
      "RS384",
      "RS512",
      "PS256",
      "PS384",
      "PS512",
      "ES256",
      "ES384",
      "ES512",
      "EdDSA",
    ];
    for (const alg of algorithms) {
      const key = newIssuerKey(alg);
      issuer.setKeys(key);
      app.pass(601);
      const token = await issuer.github({ aud: AUDIENCE }, { key, now: app.services.now() });
      const { status, text } = await send(token);
      expect([alg, status], text).toEqual([alg, 200]);
    }
  });

  test("selects the workload with the highest role, and among equal roles the first name", async () => {
    const { url } = shared.issuer;
    await trust(ana, url, { name: "any", claims: { repository: "octo-org/*" }, role: "observer" });
    await trust(ana, url, { name: "second", claims: { repository: "octo-org/octo-repo" }, role: "operator" });
    await trust(ana, url, { name: "first", claims: { ref: "refs/heads/**" }, role: "operator" });
    await trust(ana, url, { name: "other", claims: { repository: "octo-org/another" } });
    await trust(ana, url, { name: "elsewhere", audience: "https://elsewhere.example.org" });
    const { body } = await send(await github());
    expect([body.workload.name, body.role]).toEqual(["first", "operator"]);
  });

  test("lists the token's values of required claims, if no workload matches", async () => {
    await trust(ana, shared.issuer.url, {
      claims: { repository: "octo-org/octo-repo", environment: "live" },
    });
    await trust(ana, shared.issuer.url, {
      name: "other",
      claims: { ref: "refs/tags/*", job_workflow_ref: "x", constructor: "x" },
    });
    const values = { ref: "refs/heads/\u001b[31mred\u202e", job_workflow_ref: ["a", "b".repeat(1000)] };
    const { status, body } = await send(await github(values));
    expect(status).toBe(401);
    expect(body.message).toBe(
      "the claims of the token match no trusted workload of the namespace. The token has these values of the required " +
        `claims: constructor: absent, environment: "prod", job_workflow_ref: "a" and "${"b".repeat(199)}…", ` +
        'ref: "refs/heads/ [31mred ", repository: "octo-org/octo-repo". Change the claims of the workload, or run a job ' +
        "whose token has the required claims",
    );
  });

  test("returns the same error for an unknown namespace, an unknown issuer and an invalid signature", async () => {
    const token = await github();
    const stranger = await send(token);
    const unknown = await exchange(app, { ...ana, tenant: "00000000-0000-4000-8000-000000000000" }, token);
    await trust(ana, shared.issuer.url);
    const forged = await send(await shared.issuer.github({ aud: AUDIENCE }, { key: newIssuerKey() }));
    const answers = [stranger, unknown, forged].map(({ status, body }) => [status, body]);
    expect(answers).toEqual(Array(3).fill([401, stranger.body]));
    expect(stranger.body.message).toMatch(/issuer.*audience.*signature.*expired/);
  });
});

describe("a session", () => {
  const update = async (id: string, more: object) => {
    const body = { ...JOB, issuer: shared.issuer.url, ...more };
    return (await ana.call("updateTrustedWorkload", { params: { id }, body })).status;
  };

  test("is renewed until the longest session ends", async () => {
    await trust(ana, shared.issuer.url, { max_session_minutes: 20 });
    let { token } = (await send(await github())).body;
    app.pass(14 * 60);
    const renewed = await app.call("renewWorkloadSession", { token });
    expect(renewed.status, renewed.text).toBe(200);
    const left = Date.parse(renewed.body.expires_at) - app.services.now().getTime();
    expect(left).toBeLessThanOrEqual(6 * 60_000);
    expect((await app.call("getDevices", { token })).status).toBe(200);
    ({ token } = renewed.body);
    app.pass(7 * 60);
    expect((await app.call("renewWorkloadSession", { token })).status).toBe(401);
  });

  test("is refused for a token that is older than the longest session", async () => {
    await trust(ana, shared.issuer.url, { max_session_minutes: 5 });
    const second = Math.floor(app.services.now().getTime() / 1000);
    expectError(
      await send(await github({ iat: second - 301, nbf: second - 301 })),
      401,
      /longest session.*max_session_minutes/,
    );
  });

  test("ends when the workload is deleted or its claims change, and follows changes of the role", async () => {
    const id = await trust(ana, shared.issuer.url);
    const { token } = (await send(await github())).body;
    const rename = () =>
      app.call("createApiKey", { token, body: { name: "k", expires_at: 30, role: "observer" } });
    expect(await update(id, { role: "observer" })).toBe(200);
    expect((await rename()).status).toBe(403);
    expect((await app.call("getDevices", { token })).status).toBe(200);
    expect(await update(id, { claims: { repository: "octo-org/octo-repo" } })).toBe(200);
    expect((await app.call("getDevices", { token })).status).toBe(401);
    const again = (await send(await github())).body;
    expect((await app.call("getDevices", { token: again.token })).status).toBe(200);
    await ana.call("deleteTrustedWorkload", { params: { id } });
    expect((await app.call("getDevices", { token: again.token })).status).toBe(401);
  });

  test("ends when an administrator shortens the longest session", async () => {
    const id = await trust(ana, shared.issuer.url);
    const { token } = (await send(await github())).body;
    app.pass(6 * 60);
    expect(await update(id, { max_session_minutes: 7 })).toBe(200);
    expect((await app.call("getDevices", { token })).status).toBe(200);
    expect(await update(id, { max_session_minutes: 5 })).toBe(200);
    expect((await app.call("getDevices", { token })).status).toBe(401);
  });

  test("is not renewed if the claims change after the authentication of the request", async () => {
    const id = await trust(ana, shared.issuer.url);
    const { token } = (await send(await github())).body;
    const credential = await readCredential(app.services, { authorization: `Bearer ${token}` });
    const caller = await authenticate(app.services, credential);
    const identity = { caller, tenant: ana.tenant, role: "administrator" };
    const renew = () => renewWorkloadSession({ services: app.services, identity } as never);
    expect(await renew()).toMatchObject({ workload: { id } });
    expect(await update(id, { claims: { repository: "octo-org/other-repo" } })).toBe(200);
    await expect(renew()).rejects.toThrow(UnauthenticatedError);
  });

  test("does not make its workload the user of a web terminal", async () => {
    await trust(ana, shared.issuer.url);
    const { token } = (await send(await github())).body;
    const body = { device: "0".repeat(64), username: "root", password: "secret" };
    const { status } = await app.call("openWebTerminal", { token, body });
    expect(status).toBe(200);
    const [ticket] = await app.services.db.terminalTicket.findMany();
    const content = app.services.sealer.open(ticket?.sealed ?? "", `web terminal ${ticket?.digest}`);
    expect(JSON.parse(content.toString())).toEqual(body);
  });
});

describe("a token of a workload with single use", () => {
  test("is exchanged once, and again only with the same nonce", async () => {
    await trust(ana, shared.issuer.url, { single_use: true });
    const token = await github();
    const statuses = [];
    for (const nonce of [NONCE, NONCE, undefined, `${NONCE}0`])
      statuses.push((await send(token, nonce)).status);
    expect(statuses).toEqual([200, 200, 401, 401]);
    expect((await send(token)).body.message).toMatch(/already exchanged.*Request a new token/);
    const other = await github();
    expect((await send(other)).status).toBe(200);
    expect((await send(other, NONCE)).status).toBe(401);
  });

  test("is exchanged once by concurrent requests", async () => {
    await trust(ana, shared.issuer.url, { single_use: true });
    const token = await github();
    expect(await statusesOf(Array.from({ length: 8 }, () => send(token)))).toEqual([
      200,
      ...Array(7).fill(401),
    ]);
  });

  test("is exchanged by one namespace only, also after its workload was deleted", async () => {
    const ben = await app.user("ben", "other-lab");
    const id = await trust(ana, shared.issuer.url, { single_use: true });
    await trust(ben, shared.issuer.url, { single_use: true });
    const token = await github();
    const first = await send(token, NONCE);
    const elsewhere = await exchange(app, ben, token, NONCE);
    expect([first.status, elsewhere.status]).toEqual([200, 401]);
    expect(elsewhere.body.message).toMatch(/already exchanged/);
    await ana.call("deleteTrustedWorkload", { params: { id } });
    expect((await exchange(app, ben, token)).status).toBe(401);
    await trust(ana, shared.issuer.url, { single_use: true });
    expect((await send(token)).status).toBe(401);
    expect((await send(token, NONCE)).status).toBe(401);
  });

  test("is not used up by a workload without single use", async () => {
    const ben = await app.user("ben", "other-lab");
    await trust(ana, shared.issuer.url, { single_use: true });
    await trust(ben, shared.issuer.url);
    const token = await github();
    const statuses = [];
    for (const user of [ben, ben, ana, ana, ben]) statuses.push((await exchange(app, user, token)).status);
    expect(statuses).toEqual([200, 200, 200, 401, 200]);
  });

  test("is not used up by another issuer's token with the same jti", async () => {
    const other = await anotherIssuer();
    const ben = await app.user("ben", "other-lab");
    await trust(ben, other.url, { single_use: true });
    await trust(ana, shared.issuer.url, { single_use: true });
    const claims = { aud: AUDIENCE, jti: "the-same-id" };
    const now = app.services.now();
    expect((await exchange(app, ben, await other.github(claims, { now }))).status).toBe(200);
    expect((await send(await github(claims))).status).toBe(200);
  });

  test("needs the claim jti", async () => {
    await trust(ana, shared.issuer.url, { single_use: true });
    for (const jti of [undefined, "", 7]) {
      expectError(await send(await github({ jti })), 401, /no claim jti/);
    }
  });

  test("is forgotten an hour after it expired, and no earlier", async () => {
    await trust(ana, shared.issuer.url, { single_use: true });
    const token = await github();
    expect((await send(token)).status).toBe(200);
    const stored = () => app.services.db.tokenUse.findMany();
    expect(JSON.stringify(await stored())).not.toContain(String(GITHUB_CLAIMS.sub));
    app.pass(300 + 3500);
    await forgetTokenUses(app.services);
    expect(await stored()).toHaveLength(1);
    app.pass(200);
    await forgetTokenUses(app.services);
    expect(await stored()).toEqual([]);
  });
});

test("a token without single use is exchanged until it expires", async () => {
  await trust(ana, shared.issuer.url, { claims: { project_path: "my-group/*", ref_protected: "false" } });
  const token = await shared.issuer.gitlab({ aud: AUDIENCE }, { now: app.services.now() });
  for (const _ of [1, 2]) {
    const { status, body } = await send(token);
    expect([status, body.actor]).toEqual([200, `deploy: ${shared.issuer.url} "${GITLAB_CLAIMS.sub}"`]);
  }
  app.pass(301);
  expect((await send(token)).status).toBe(401);
});

describe("the name of an actor", () => {
  const nameOf = (issuer: string, claims: Record<string, unknown>, name = "deploy") =>
    actorOf({ name, issuer }, new TokenClaims(claims));
  const GITHUB = "https://token.actions.githubusercontent.com";
  const kubernetes = { sub: "system:serviceaccount:ci:deployer", aud: ["https://kubernetes.default.svc"] };

  test.each([
    ['deploy: GitHub "octo-org/octo-repo@main", run "example-run-id"', GITHUB, GITHUB_CLAIMS],
    [
      'deploy: GitHub "octo-org/octo-repo@refs/tags/v1", run "7"',
      GITHUB,
      { ...GITHUB_CLAIMS, ref: "refs/tags/v1", run_id: 7 },
    ],
    ['deploy: GitLab "my-group/my-project@feature-branch-1", job "302"', "https://gitlab.com", GITLAB_CLAIMS],
    [
      'deploy: https://cluster.example.org "system:serviceaccount:ci:deployer"',
      "https://cluster.example.org",
      kubernetes,
    ],
    ['deploy: https://id.example.org/realm "robot"', "https://id.example.org/realm", { sub: "robot" }],
    ['deploy: https://id.example.org/realm ""', "https://id.example.org/realm", {}],
    ['deploy: https://id.example.org "a b"', "https://id.example.org", { sub: "a\u0000\u202e\u200bb" }],
    [`deploy: ${GITHUB} "robot"`, GITHUB, { sub: "robot" }],
  ])("%s", (name, issuer, claims) => {
    expect(nameOf(issuer, claims)).toBe(name);
  });

  test.each([
    ["GitHub", GITHUB_CLAIMS],
    ["GitLab", GITLAB_CLAIMS],
  ])("is not the name of a job of %s for the same claims of another issuer", (_, claims) => {
    const others = [
      "https://id.example.org",
      `${GITHUB}.example.org`,
      "https://gitlab.com.example.org",
      `${GITHUB}/`,
    ];
    for (const issuer of others) expect(nameOf(issuer, claims)).toBe(`deploy: ${issuer} "${claims.sub}"`);
  });

  test("quotes the texts of the token, and no text can end its quotation", () => {
    const run_id = '1" (approved by alice) \\"';
    expect(nameOf(GITHUB, { ...GITHUB_CLAIMS, run_id })).toBe(
      `deploy: GitHub "octo-org/octo-repo@main", run "1' (approved by alice) ''"`,
    );
    expect(nameOf("https://id.example.org", { sub: 'x"; GitHub acme/access@main' })).toBe(
      `deploy: https://id.example.org "x'; GitHub acme/access@main"`,
    );
  });

  test("is shortened", () => {
    const name = nameOf(`https://${"a".repeat(200)}.example.org`, { sub: "é".repeat(1000) }, "n".repeat(64));
    expect(name).toMatch(/^n{64}: https:\/\/a{71}… "é{79}…"$/);
  });
});

describe("the issuer of a workload", () => {
  const write = (issuer: string) =>
    ana.call("createTrustedWorkload", {
      body: { name: "other", issuer, audience: AUDIENCE, claims: { sub: "x" }, role: "observer" },
    });

  test.each([
    ["https:h", "https://h"],
    ["https://h\\@x", "https://h/@x"],
    ["https://h\n", "https://h"],
    [" https://h/", "https://h/"],
    ["https://gitl\u0430b.com", "https://xn--gitlb-7ve.com"],
    ["https://GitLab.com", "https://gitlab.com"],
    ["https://gitlab.com:443/", "https://gitlab.com/"],
    ["https://gitlab.com./", "https://gitlab.com/"],
    ["https://gitlab.com/a/../b", "https://gitlab.com/b"],
    ["https://0x7f.1", "https://127.0.0.1"],
  ])("is rejected as %j, with the normalized form", async (issuer, normalized) => {
    expectError(await write(issuer), 400, `issuer must be in the normalized form ${normalized}`);
    expect((await write(normalized)).body.issuer).toBe(normalized);
  });

  test("is listed, and its workload can be deleted, if an earlier version stored another form", async () => {
    const issuer = "https://gitl\u0430b.com";
    const { id } = (await write("https://gitlab.com")).body;
    await app.services.db.trustedWorkload.updateMany({ data: { issuer } });
    const { status, body } = await ana.call("listTrustedWorkloads");
    expect([status, body]).toMatchObject([200, [{ id, issuer }]]);
    expect((await ana.call("getTrustedWorkload", { params: { id } })).body.issuer).toBe(issuer);
    const { name, audience, claims, role } = body[0];
    const change = { params: { id }, body: { name, issuer, audience, claims, role } };
    expect((await ana.call("updateTrustedWorkload", change)).status).toBe(400);
    expect((await ana.call("deleteTrustedWorkload", { params: { id } })).status).toBe(200);
  });
});
