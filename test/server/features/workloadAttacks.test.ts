import { generateKeyPairSync, sign } from "node:crypto";
import type { RequestListener } from "node:http";
import { HttpProxy, PROXY_VARIABLES } from "@gatehouse-access/sdk/proxies";
import { CompactSign, EncryptJWT } from "jose";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { TokenClaims } from "../../../sdk/policy/index.ts";
import { matchingWorkloads } from "../../../server/features/trustedWorkloads/exchange.ts";
import type { LookupAll } from "../../../server/features/trustedWorkloads/issuerDocuments.ts";
import { proxied, startForwardProxy } from "../../support/forwardProxy.ts";
import { type IssuerKey, type MintOptions, newIssuerKey, startIssuer } from "../../support/issuer.ts";
import { expectError } from "../http/answers.ts";
import { testApp, withAppAndUser } from "../http/appOfTest.ts";
import type { Answer, TestApp } from "../http/testApp.ts";
import { AUDIENCE, anotherIssuer, exchange, LOCAL_NETWORKS, trust, withIssuer } from "./workloads.ts";

// The attacks of RFC 8725 (JSON Web Token Best Current Practices), and attacks through an issuer that a tenant declares.

const shared = withIssuer();
const { app, ana } = withAppAndUser({ workloadIssuerNetworks: LOCAL_NETWORKS });

const DISCOVERY = "/.well-known/openid-configuration";
const KEYS = "/jwks";
const GENERAL = /^no trusted workload of the namespace matches the token\. Check the tenant/;

const second = () => Math.floor(app.services.now().getTime() / 1000);
const mint = (claims: object = {}, options: MintOptions = {}) =>
  shared.issuer.github({ aud: AUDIENCE, ...claims }, { now: app.services.now(), ...options });
const send = (token: string, nonce?: string) => exchange(app, ana, token, nonce);
/** Returns the logged reason why the service could not read keys; an empty text if it could. */
const lastCause = ({ issuerFailures }: Pick<TestApp, "issuerFailures">): string => {
  const { error } = issuerFailures.at(-1) ?? {};
  return error instanceof Error ? error.message : "";
};
const encode = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

/** Returns the claims of a valid token as JSON text. */
async function validClaims(): Promise<string> {
  const [, payload = ""] = (await mint()).split(".");
  return Buffer.from(payload, "base64url").toString();
}

/** Signs any text as the claims of a token, with a valid signature of the issuer. */
function signText(claims: string, header: object = {}): string {
  const { kid, privateKey } = shared.issuer.key;
  const data = `${encode({ alg: "RS256", typ: "JWT", kid, ...header })}.${encode(claims)}`;
  return `${data}.${sign("sha256", Buffer.from(data), privateKey).toString("base64url")}`;
}

const attacker = newIssuerKey();
const jwkOf = ({ publicKey, kid }: IssuerKey) => ({ ...publicKey.export({ format: "jwk" }), kid });

/** Signs valid claims with HMAC, and uses a text as the key. */
const withHmac = async (secret: string | Uint8Array, header: object = {}) =>
  new CompactSign(Buffer.from(await validClaims()))
    .setProtectedHeader({ alg: "HS256", typ: "JWT", kid: shared.issuer.key.kid, ...header })
    .sign(typeof secret === "string" ? Buffer.from(secret) : secret);

/** Invalid tokens, by attack. Each token differs from a valid token in one respect. */
const TOKENS: Readonly<Record<string, () => Promise<string>>> = {
  // RFC 8725, 2.1 and 3.1: weak signatures and insufficient validation of algorithms.
  "alg none, without a signature": async () => `${encode({ alg: "none" })}.${encode(await validClaims())}.`,
  "alg None, without a signature": async () => `${encode({ alg: "None" })}.${encode(await validClaims())}.`,
  "alg none, with the signature of another token": async () => {
    const [, , signature] = (await mint()).split(".");
    return `${encode({ alg: "none" })}.${encode(await validClaims())}.${signature}`;
  },
  "no alg": async () => signText(await validClaims(), { alg: undefined }),
  "HS256 with the public key as PEM": async () =>
    withHmac(String(shared.issuer.key.publicKey.export({ type: "spki", format: "pem" }))),
  "HS256 with the public key as DER": async () =>
    withHmac(shared.issuer.key.publicKey.export({ type: "spki", format: "der" })),
  "HS256 with the public key as JWK": async () => withHmac(JSON.stringify(jwkOf(shared.issuer.key))),
  "HS256 with an empty kid": async () => withHmac("secret-of-the-attacker", { kid: "" }),
  "ES256 in the header of an RSA signature": async () => signText(await validClaims(), { alg: "ES256" }),
  "PS256 in the header of an RS256 signature": async () => signText(await validClaims(), { alg: "PS256" }),
  "RS512 in the header of an RS256 signature": async () => signText(await validClaims(), { alg: "RS512" }),
  "a removed signature": async () => `${(await mint()).split(".").slice(0, 2).join(".")}.`,
  "claims changed after the signature": async () => {
    const [header, , signature] = (await mint()).split(".");
    const claims = { ...JSON.parse(await validClaims()), ref: "refs/heads/evil" };
    return `${header}.${encode(claims)}.${signature}`;
  },
  // 2.2 and 3.5: keys of an attacker.
  "another key with the kid of the issuer's key": () =>
    mint({}, { key: { ...attacker, kid: shared.issuer.key.kid } }),
  "another key with an unknown kid": () => mint({}, { key: attacker }),
  "another key without a kid": () => mint({}, { key: attacker, header: { kid: undefined } }),
  "a weak RSA key of 1024 bits": async () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
    const { kid } = shared.issuer.key;
    const data = `${encode({ alg: "RS256", kid })}.${encode(await validClaims())}`;
    return `${data}.${sign("sha256", Buffer.from(data), privateKey).toString("base64url")}`;
  },
  "an embedded jwk": () => mint({}, { key: attacker, header: { jwk: jwkOf(attacker) } }),
  "a jku of the attacker": () =>
    mint({}, { key: attacker, header: { jku: `${shared.issuer.url}/attacker/jwks` } }),
  "an x5u of the attacker": () =>
    mint({}, { key: attacker, header: { x5u: `${shared.issuer.url}/attacker/cert` } }),
  "an x5c of the attacker": () => mint({}, { key: attacker, header: { x5c: ["MIIB"] } }),
  "a kid that is a path": () => mint({}, { key: attacker, header: { kid: "../../../dev/null" } }),
  "a kid that is SQL": () => mint({}, { key: attacker, header: { kid: "' OR 1=1 --" } }),
  "a kid that is a property of objects": () => mint({}, { key: attacker, header: { kid: "__proto__" } }),
  "a critical extension that the service does not support": async () =>
    signText(await validClaims(), { crit: ["exp"], exp: 1 }),
  "an unencoded payload (b64)": async () => signText(await validClaims(), { crit: ["b64"], b64: false }),
  // 2.5 and 3.11: cross-JWT confusion.
  "typ of an access token": () => mint({}, { header: { typ: "at+jwt" } }),
  "typ of a logout token": () => mint({}, { header: { typ: "logout+jwt" } }),
  "typ that is no text": () => mint({}, { header: { typ: ["JWT"] } }),
  "an encrypted token": async () =>
    new EncryptJWT(JSON.parse(await validClaims()))
      .setProtectedHeader({ alg: "RSA-OAEP-256", enc: "A256GCM" })
      .encrypt(
        await crypto.subtle.importKey(
          "jwk",
          jwkOf(shared.issuer.key) as never,
          { name: "RSA-OAEP", hash: "SHA-256" },
          true,
          ["encrypt"],
        ),
      ),
  "a nested token": async () => signText(await mint(), { cty: "JWT" }),
  "a token of this service": () => app.tokenOf(ana),
  // 2.7 and 3.9: confused audience.
  "no audience": () => mint({ aud: undefined }),
  "the audience of another service": () => mint({ aud: "https://elsewhere.example.org" }),
  "the audience with a slash": () => mint({ aud: `${AUDIENCE}/` }),
  "the audience in upper case": () => mint({ aud: AUDIENCE.toUpperCase() }),
  "an audience that begins with the required audience": () => mint({ aud: `${AUDIENCE}.evil.example` }),
  "a list without the audience": () => mint({ aud: ["https://elsewhere.example.org", `${AUDIENCE}/`] }),
  "an empty list of audiences": () => mint({ aud: [] }),
  "a nested list of audiences": () => mint({ aud: [[AUDIENCE]] }),
  "an audience that is an object": () => mint({ aud: { [AUDIENCE]: true } }),
  // 3.8: issuer.
  "no issuer": () => mint({ iss: undefined }),
  "an undeclared issuer": () => mint({ iss: "https://id.example.org" }),
  "the issuer with a slash": () => mint({ iss: `${shared.issuer.url}/` }),
  "the issuer in a list": () => mint({ iss: [shared.issuer.url] }),
  "the issuer in another notation": () => mint({ iss: shared.issuer.url.replace("127.0.0.1", "127.1") }),
  // 3.10 and RFC 7519: times.
  expired: () => mint({ exp: second() - 1, iat: second() - 100 }),
  "expired this second": () => mint({ exp: second(), iat: second() - 100 }),
  "no exp": () => mint({ exp: undefined }),
  "exp as text": () => mint({ exp: String(second() + 300) }),
  "exp of null": () => mint({ exp: null }),
  "infinite exp": async () => signText((await validClaims()).replace(/"exp":\d+/, '"exp":1e999')),
  "exp after the year 9999": () => mint({ exp: 1e15 }),
  "no iat": () => mint({ iat: undefined }),
  "iat as text": () => mint({ iat: String(second()) }),
  "future iat": () => mint({ iat: second() + 90, exp: second() + 400 }),
  "infinite iat": async () => signText((await validClaims()).replace(/"iat":\d+/, '"iat":1e999')),
  "negative iat": () => mint({ iat: -1 }),
  "future nbf": () => mint({ nbf: second() + 90 }),
  "nbf as text": () => mint({ nbf: "0" }),
  // 2.4, 3.4 and 3.7: encodings and sizes.
  "not a token": async () => "garbage",
  "three empty parts": async () => "..",
  "four parts": async () => `${await mint()}.x`,
  "claims that are no JSON": async () => signText("no JSON"),
  "claims that are a list": async () => signText(`[${await validClaims()}]`),
  "claims in UTF-16": async () => {
    const text = Buffer.from(await validClaims(), "utf16le").toString("latin1");
    return signText(text);
  },
  "a duplicate iss, the last of an undeclared issuer": async () =>
    signText((await validClaims()).replace(/}$/, ',"iss":"https://id.example.org"}')),
  "a duplicate aud, the last of another service": async () =>
    signText((await validClaims()).replace(/}$/, ',"aud":"https://elsewhere.example.org"}')),
  "a duplicate exp, the last expired": async () => signText((await validClaims()).replace(/}$/, ',"exp":1}')),
};

test("rejects each token of the table, and reads no address of a token", async () => {
  await trust(ana, shared.issuer.url);
  const accepted: string[] = [];
  for (const [name, token] of Object.entries(TOKENS)) {
    // The service may read the keys again for a token with an unknown key.
    app.pass(6);
    const { status, text, body } = await send(await token());
    if (status !== 401 || !GENERAL.test(body.message)) accepted.push(`${name}: ${status} ${text}`);
    // The valid token shows that the service and the workload are not the reason.
    expect((await send(await mint())).status, name).toBe(200);
  }
  expect(accepted).toEqual([]);
  expect(shared.issuer.requests.filter((path) => ![DISCOVERY, KEYS].includes(path))).toEqual([]);
});

test("rejects a token of another trusted issuer for this issuer's workload", { tags: ["long"] }, async () => {
  const other = await anotherIssuer();
  await trust(ana, shared.issuer.url);
  await trust(ana, other.url, { name: "other", claims: { repository: "another/repository" } });
  // The other issuer signs the claims of this issuer's job, with its own issuer and with this issuer.
  const own = await send(await other.github({ aud: AUDIENCE }));
  expect([own.status, own.body.message]).toEqual([
    401,
    expect.stringContaining("claims of the token match no"),
  ]);
  expectError(await send(await other.github({ aud: AUDIENCE, iss: shared.issuer.url })), 401, GENERAL);
});

test("rejects a token that is longer than 16 KiB, before it reads the token", async () => {
  await trust(ana, shared.issuer.url);
  const { length } = shared.issuer.requests;
  expectError(await send(await mint({ padding: "x".repeat(16_384) })), 400, /token/);
  expect(shared.issuer.requests).toHaveLength(length);
});

describe("the claims of a genuine token", () => {
  test("may be nested deeply, and such a claim matches no required value", async () => {
    await trust(ana, shared.issuer.url, { claims: { deep: "**" } });
    for (const [open, close] of [
      ["[", "]"],
      ['{"a":', "}"],
    ] as const) {
      const depth = Math.floor(10_000 / (open.length + close.length));
      const deep = `${open.repeat(depth)}1${close.repeat(depth)}`;
      const token = signText((await validClaims()).replace(/}$/, `,"deep":${deep}}`));
      expect(token.length).toBeLessThan(16_384);
      expectError(await send(token), 401, /deep: absent/);
    }
  });

  test("are not read from the prototype of objects", async () => {
    const names = ["constructor", "toString", "hasOwnProperty"];
    for (const name of names) {
      await trust(ana, shared.issuer.url, { name, claims: { [name]: "**" } });
    }
    expectError(await send(await mint()), 401, /constructor: absent/);
    const claims = (await validClaims()).replace(/}$/, ',"__proto__":{"constructor":"x"}}');
    expect((await send(signText(claims))).status).toBe(401);
    expect((await send(await mint({ toString: "x" }))).status).toBe(200);
  });

  test("cannot be required by the name __proto__", async () => {
    const claims = '{"repository":"octo-org/octo-repo","__proto__":"x"}';
    const body = `{"name":"p","issuer":"${shared.issuer.url}","audience":"a","role":"observer","claims":${claims}}`;
    const { status } = await app.send("POST", "/api/trusted-workloads", {
      headers: { authorization: `Bearer ${ana.token}`, "content-type": "application/json" },
      body,
    });
    expect(status).toBe(400);
  });

  test("are not compared with values of more than 8 wildcards, which take too long", async () => {
    await trust(ana, shared.issuer.url, { name: "wild", claims: { sub: "**a*".repeat(4) } });
    const rules = { issuer: shared.issuer.url, audience: AUDIENCE, claims: { sub: "*a".repeat(9) } };
    expectError(
      await ana.call("createTrustedWorkload", {
        body: { name: "wilder", role: "observer", ...rules },
      }),
      400,
      /at most 8 wildcards/,
    );
  });

  test("are compared in turns with other work, one workload in a step", async () => {
    const run = vi.spyOn(app.services.decisions, "run");
    for (let index = 0; index < 20; index += 1) {
      await trust(ana, shared.issuer.url, {
        name: `w${index}`,
        claims: { sub: `${"**a*".repeat(4)}${index}` },
      });
    }
    const { status } = await send(await mint({ sub: "a".repeat(8000) }));
    expect(status).toBe(401);
    expect(run.mock.calls.map(([owner]) => owner)).toEqual([ana.tenant]);
    // The decision has run to its end, so a second decision counts its steps.
    const workloads = await app.services.db.trustedWorkload.findMany();
    const steps = [...matchingWorkloads(workloads, new TokenClaims({ sub: "a" }))];
    expect(steps).toHaveLength(20);
  });

  test.each([
    ["a list that has the value among others", { repository: ["octo-org/octo-repo"] }, 200],
    ["a nested list", { repository: [["octo-org/octo-repo"]] }, 401],
    ["an object", { repository: { "octo-org/octo-repo": true } }, 401],
    ["another case", { repository: "Octo-Org/octo-repo" }, 401],
    ["a prefix", { repository: "octo-org/octo-repo-evil" }, 401],
    ["a line break after the value", { repository: "octo-org/octo-repo\n" }, 401],
    ["a null character after the value", { repository: "octo-org/octo-repo\0" }, 401],
    ["another Unicode form", { repository: "octo‐org/octo-repo" }, 401],
  ])("match only exactly: %s", async (_, claims, expected) => {
    await trust(ana, shared.issuer.url);
    expect((await send(await mint(claims))).status).toBe(expected);
  });
});

test("rejects a replay of a token with single use, with and without a nonce", async () => {
  await trust(ana, shared.issuer.url, { single_use: true });
  const token = await mint();
  expect((await send(token, "nonce-of-the-client")).status).toBe(200);
  for (const nonce of [undefined, "nonce-of-attackers"]) {
    expect((await send(token, nonce)).status).toBe(401);
  }
  // A token with a malleable signature or other unsigned parts has the same jti.
  const [header, payload, signature] = token.split(".");
  expect((await send(`${header}.${payload}.${signature}=`)).status).toBe(401);
});

test("accepts small differences of the clocks", async () => {
  await trust(ana, shared.issuer.url);
  const ahead = second() + 55;
  expect((await send(await mint({ iat: ahead, nbf: ahead, exp: ahead + 300 }))).status).toBe(200);
});

/** Responses of an issuer that is broken or hostile. */
describe("an issuer", () => {
  const json =
    (value: unknown): RequestListener =>
    (_, response) =>
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
  const redirect: RequestListener = (request, response) =>
    response.writeHead(302, { location: `https://localhost:1${request.url}` }).end();
  const nested: RequestListener = (_, response) =>
    response.end(`{"keys":[${"[".repeat(5e4)}${"]".repeat(5e4)}]}`);
  const silent: RequestListener = () => undefined;
  const slow: RequestListener = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 100);
    response.on("close", () => clearInterval(timer));
  };
  const endless: RequestListener = (_, response) => {
    response.writeHead(200);
    const more = () => {
      while (response.write(" ".repeat(16_384)));
    };
    response.on("drain", more);
    more();
  };
  const keySet = (...keys: object[]) => json({ keys });

  const answer = (path: string, listener: RequestListener) => {
    shared.issuer.answer(path, listener);
    onTestFinished(() => shared.issuer.answer(path, undefined));
  };

  /** Expects that the service cannot read the keys, and that the response has no cause. Returns the logged cause. */
  function expectUnavailable({ status, body, headers }: Answer): string {
    const text =
      "the keys of the token's issuer cannot be read. Check that the service can reach the issuer, or try again later";
    expect([status, body]).toEqual([503, { message: text }]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(app.issuerFailures.at(-1)?.issuer).toBe(shared.issuer.url);
    return lastCause(app);
  }

  /** Discovery documents with a wrong field, by the reason why the service does not read the keys. */
  const DISCOVERIES: readonly (readonly [string, () => object, RegExp])[] = [
    ["another issuer", () => ({ issuer: "https://id.example.org" }), /a different issuer/],
    ["its issuer with a slash", () => ({ issuer: `${shared.issuer.url}/` }), /a different issuer/],
    ["no jwks_uri", () => ({ jwks_uri: undefined }), /no jwks_uri/],
    ["a jwks_uri over HTTP", () => ({ jwks_uri: "http://127.0.0.1/jwks" }), /must be an https URL/],
    ["a jwks_uri of a file", () => ({ jwks_uri: "file:///etc/passwd" }), /must be an https URL/],
    ["a jwks_uri with a password", () => ({ jwks_uri: "https://a:b@127.0.0.1/" }), /must be an https URL/],
    ["a jwks_uri in a private network", () => ({ jwks_uri: "https://10.0.0.1/jwks" }), /neither public nor/],
    [
      "a jwks_uri of a metadata service",
      () => ({ jwks_uri: "https://169.254.169.254/" }),
      /neither public nor/,
    ],
    [
      "a jwks_uri of a mapped IPv6 address",
      () => ({ jwks_uri: "https://[::ffff:10.0.0.1]/" }),
      /neither public nor/,
    ],
    ["a jwks_uri of a numeric host", () => ({ jwks_uri: "https://0x0a000001/" }), /neither public nor/],
  ];

  test.each(DISCOVERIES)("has %s in its discovery", async (_, fields, cause) => {
    await trust(ana, shared.issuer.url);
    const document = { issuer: shared.issuer.url, jwks_uri: `${shared.issuer.url}${KEYS}` };
    answer(DISCOVERY, json({ ...document, ...fields() }));
    expect(expectUnavailable(await send(await mint()))).toMatch(cause);
  });

  test.each<[string, string, RequestListener, RegExp]>([
    ["redirects the discovery", DISCOVERY, redirect, /status 302/],
    ["redirects the keys", KEYS, redirect, /status 302/],
    ["sends a discovery that is too long", DISCOVERY, endless, /longer than 65536 bytes/],
    ["sends keys that are too long", KEYS, endless, /longer than 131072 bytes/],
    ["sends too many keys", KEYS, keySet(...Array(101).fill({ kty: "RSA" })), /at most 100 keys/],
    ["sends no JSON", DISCOVERY, (_, response) => response.end("<html>"), /is not JSON/],
    ["sends null", DISCOVERY, json(null), /a different issuer/],
    ["sends a list of keys that is no list", KEYS, json({ keys: { 0: {} } }), /not a list/],
    ["sends keys that are no objects", KEYS, json({ keys: [1, null] }), /malformed/],
    ["sends deeply nested keys", KEYS, nested, /malformed|nested|call stack/],
    ["closes the connection", DISCOVERY, (request) => request.destroy(), /other side closed|ECONNRESET/],
    ["fails", KEYS, (_, response) => response.writeHead(500).end(), /status 500/],
  ])("%s", async (_, path, listener, cause) => {
    await trust(ana, shared.issuer.url);
    answer(path, listener);
    expect(expectUnavailable(await send(await mint()))).toMatch(cause);
  });

  test.each([
    ["does not respond", silent],
    ["sends its response slowly", slow],
  ])("%s", async (_, listener) => {
    await trust(ana, shared.issuer.url);
    answer(DISCOVERY, listener);
    // Without a time-out, the response would never arrive.
    expect(expectUnavailable(await send(await mint()))).toMatch(/timeout/);
  });

  test("sends private and symmetric keys, which verify no token", async () => {
    await trust(ana, shared.issuer.url);
    const { kid, privateKey } = shared.issuer.key;
    answer(KEYS, keySet({ ...privateKey.export({ format: "jwk" }), kid }));
    expect((await send(await mint())).status).toBe(401);
    app.pass(601);
    answer(KEYS, keySet({ kty: "oct", k: encode("secret"), kid, alg: "HS256" }));
    expect((await send(await withHmac("secret"))).status).toBe(401);
    app.pass(601);
    const weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
    answer(KEYS, keySet({ ...weak.publicKey.export({ format: "jwk" }), kid }));
    expect(
      (await send(await mint({}, { key: { ...weak, kid, alg: "RS256" } }).catch(() => withHmac("x")))).status,
    ).toBe(401);
  });

  test("has a certificate that the service does not trust", async () => {
    const other = await startIssuer();
    onTestFinished(() => other.stop());
    await trust(ana, other.url);
    expect((await send(await other.github({ aud: AUDIENCE }))).status).toBe(503);
    expect(lastCause(app)).toMatch(/self-signed certificate/);
  });

  test("rotates its keys: a token of the new key is exchanged at once, or after the time of Retry-After", async () => {
    app.stopClock();
    await trust(ana, shared.issuer.url);
    const old = shared.issuer.key;
    onTestFinished(() => shared.issuer.setKeys(old));
    expect((await send(await mint())).status).toBe(200);
    const next = newIssuerKey();
    shared.issuer.setKeys(next, old);
    // The keys were read a moment ago, for another token.
    const { status, body, headers } = await send(await mint());
    expect([status, body.message]).toEqual([503, expect.stringMatching(/may have a new key/)]);
    app.pass(Number(headers.get("retry-after")));
    expect((await send(await mint())).status).toBe(200);
    expect((await send(await mint({}, { key: old }))).status).toBe(200);
    const third = newIssuerKey();
    shared.issuer.setKeys(third, next);
    app.pass(5);
    expect((await send(await mint())).status).toBe(200);
  });

  test("removes a key: the service accepts the key for at most ten minutes", async () => {
    app.stopClock();
    await trust(ana, shared.issuer.url);
    const old = shared.issuer.key;
    onTestFinished(() => shared.issuer.setKeys(old));
    expect((await send(await mint())).status).toBe(200);
    shared.issuer.setKeys(newIssuerKey());
    app.pass(599);
    expect((await send(await mint({}, { key: old }))).status).toBe(200);
    app.pass(1);
    expect((await send(await mint({}, { key: old }))).status).toBe(401);
  });

  test("is read at most every 5 seconds for tokens with unknown keys, and keeps its known keys", async () => {
    app.stopClock();
    await trust(ana, shared.issuer.url);
    expect((await send(await mint())).status).toBe(200);
    const reads = () => shared.issuer.requests.filter((path) => path === DISCOVERY).length;
    const before = reads();
    const flood = async (...statuses: number[]) => {
      const tokens = await Promise.all(
        Array.from({ length: 20 }, () => mint({}, { key: newIssuerKey("ES256") })),
      );
      const answers = await Promise.all(tokens.map((token) => send(token)));
      expect([...new Set(answers.map(({ status }) => status))].sort()).toEqual(statuses);
    };
    await flood(503);
    expect(reads() - before).toBe(0);
    app.pass(5);
    await flood(401);
    expect(reads() - before).toBe(1);
    expect((await send(await mint())).status).toBe(200);
    app.pass(5);
    answer(DISCOVERY, (_, response) => response.writeHead(500).end());
    expect((await send(await mint({}, { key: attacker }))).status).toBe(503);
    expect((await send(await mint())).status).toBe(200);
    expect(reads() - before).toBe(2);
  });

  test("is read once for concurrent requests, and again 10 seconds after a failure", async () => {
    await trust(ana, shared.issuer.url);
    app.stopClock();
    answer(DISCOVERY, (_, response) => response.writeHead(500).end());
    const before = shared.issuer.requests.length;
    const tokens = await Promise.all(Array.from({ length: 10 }, () => mint()));
    const answers = await Promise.all(tokens.map((token) => send(token)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(503));
    expect(shared.issuer.requests.length - before).toBe(1);
    app.pass(9);
    expect((await send(await mint())).status).toBe(503);
    expect(shared.issuer.requests.length - before).toBe(1);
    shared.issuer.answer(DISCOVERY, undefined);
    app.pass(1);
    expect((await send(await mint())).status).toBe(200);
  });

  test("that does not respond uses at most four concurrent reads of the namespaces of its user", async () => {
    const silentIssuers = Array.from({ length: 6 }, (_, number) => `${shared.issuer.url}/silent${number}`);
    const opened = new Set<() => void>();
    const { body } = await ana.call("createNamespace", { body: { name: "second" } });
    const { tenant_id: tenant } = body;
    const second = { ...ana, tenant, token: await app.tokenOf({ ...ana, tenant }) };
    const sendTo = (number: number, token: string) => exchange(app, number % 2 === 0 ? ana : second, token);
    for (const [number, url] of silentIssuers.entries()) {
      answer(`/silent${number}${DISCOVERY}`, (_, response) => void opened.add(() => response.destroy()));
      await trust(number % 2 === 0 ? ana : second, url, { name: `w${number}` });
    }
    const tokens = await Promise.all(silentIssuers.map((iss) => mint({ iss })));
    const waiting = tokens.slice(0, 4).map((token, number) => sendTo(number, token));
    await expect.poll(() => opened.size).toBe(4);
    for (const number of [4, 5]) {
      const { status, headers } = await sendTo(number, tokens[number] ?? "");
      expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
    }
    const bob = await app.user("bob", "bobs");
    await trust(bob, shared.issuer.url);
    expect((await exchange(app, bob, await mint())).status).toBe(200);
    for (const close of opened) close();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(4).fill(503));
  });
});

describe("the address of an issuer", () => {
  /**
   * Starts a service whose look-ups of names return these addresses.
   * @param addressesOf receives the name, and the number of look-ups before
   */
  async function labWith(
    networks: string[],
    addressesOf: (hostname: string, before: number) => string[],
    settings: Parameters<typeof testApp>[0] = {},
  ) {
    const names: string[] = [];
    const lookupAll: LookupAll = async (hostname) => {
      names.push(hostname);
      const addresses = addressesOf(hostname, names.length - 1);
      return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    };
    const service = await testApp({ workloadIssuerNetworks: networks, ...settings }, undefined, {
      lookupAll,
    });
    const user = await service.user("ana", "lab");
    let attempts = 0;
    const attempt = async (url: string) => {
      const [{ length: requested }, { length: looked }] = [shared.issuer.requests, names];
      attempts += 1;
      await trust(user, url, { name: `w${attempts}` });
      const { status } = await exchange(
        service,
        user,
        await shared.issuer.github({ aud: AUDIENCE, iss: url }),
      );
      const requests = shared.issuer.requests.length - requested;
      return { status, names: names.slice(looked), requests, cause: lastCause(service) };
    };
    return attempt;
  }

  const REFUSED = /neither public nor in GATEHOUSE_WORKLOAD_ISSUER_NETWORKS/;

  const PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "fe80::1",
    "fd00:ec2::254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
  ];

  test("is refused if it is private, as a host and as the address of a name", {
    tags: ["long"],
  }, async () => {
    const port = new URL(shared.issuer.url).port;
    const hostOf = (index: number) => `id${index}.example.org`;
    const attempt = await labWith([], (hostname) => [
      PRIVATE.find((_, index) => hostname === hostOf(index)) ?? "8.8.8.8",
    ]);
    for (const [index, address] of PRIVATE.entries()) {
      const refused = { status: 503, requests: 0, cause: expect.stringMatching(REFUSED) };
      const host = address.includes(":") ? `[${address}]` : address;
      // The service accepts an issuer only in its normalized form.
      const { origin } = new URL(`https://${host}:${port}`);
      expect(await attempt(origin), address).toEqual({ ...refused, names: [] });
      const name = hostOf(index);
      expect(await attempt(`https://${name}:${port}`), address).toEqual({ ...refused, names: [name] });
    }
  });

  test("is refused if one of several addresses of its name is private", async () => {
    const url = shared.issuer.url.replace("127.0.0.1", "localhost");
    const attempt = await labWith([], () => ["8.8.8.8", "127.0.0.1"]);
    expect(await attempt(url)).toMatchObject({
      status: 503,
      requests: 0,
      cause: expect.stringMatching(REFUSED),
    });
  });

  test("is the address that was checked: a name is looked up once for a connection", async () => {
    const url = shared.issuer.url.replace("127.0.0.1", "localhost");
    shared.issuer.answer(DISCOVERY, (_, response) =>
      response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}${KEYS}` })),
    );
    onTestFinished(() => shared.issuer.answer(DISCOVERY, undefined));
    // The second connection, for the keys, gets another address.
    const rebinding = await labWith(LOCAL_NETWORKS, (_, before) => [before === 0 ? "127.0.0.1" : "10.0.0.1"]);
    expect(await rebinding(url)).toMatchObject({
      status: 503,
      names: ["localhost", "localhost"],
      requests: 1,
      cause: expect.stringMatching(REFUSED),
    });
    const steady = await labWith(LOCAL_NETWORKS, () => ["127.0.0.1"]);
    expect(await steady(url)).toMatchObject({ status: 200, names: ["localhost", "localhost"], requests: 2 });
  });

  test("is not found for a name without addresses", { tags: ["long"] }, async () => {
    const attempt = await labWith(LOCAL_NETWORKS, () => []);
    expect(await attempt("https://id.example.org")).toMatchObject({ status: 503, requests: 0 });
    // The look-up of the service itself.
    const service = await testApp({ workloadIssuerNetworks: LOCAL_NETWORKS });
    const user = await service.user("ana", "lab");
    const url = "https://id.invalid";
    await trust(user, url);
    const { status } = await exchange(service, user, await shared.issuer.github({ aud: AUDIENCE, iss: url }));
    expect([status, lastCause(service)]).toEqual([503, expect.stringMatching(/id\.invalid|timeout/i)]);
  });

  test("may be in a network of the setting", async () => {
    const attempt = await labWith(["127.0.0.0/8"], () => []);
    expect(await attempt(shared.issuer.url)).toMatchObject({ status: 200, names: [] });
  });

  describe("with an HTTP proxy", () => {
    /** Starts a proxy, and lets the issuer answer under a name that only the proxy resolves. */
    async function startProxy() {
      const url = proxied(shared.issuer.url);
      shared.issuer.answer(DISCOVERY, (_, response) =>
        response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}${KEYS}` })),
      );
      const proxy = await startForwardProxy();
      onTestFinished(async () => {
        shared.issuer.answer(DISCOVERY, undefined);
        await proxy.stop();
      });
      return { url, proxy };
    }

    test("is not looked up and not checked, except an address without a name", async () => {
      const { url, proxy } = await startProxy();
      const options = { workloadIssuerProxy: new HttpProxy(proxy.url) };
      const attempt = await labWith([], () => [], options);
      expect(await attempt(url)).toMatchObject({ status: 200, names: [], requests: 2 });
      expect(new Set(proxy.requests)).toEqual(new Set([`CONNECT ${new URL(url).host}`]));
      expect(await attempt(shared.issuer.url)).toMatchObject({
        status: 503,
        requests: 0,
        cause: expect.stringMatching(REFUSED),
      });
      proxy.refuse(403);
      const other = await labWith([], () => [], options);
      expect((await other(url)).cause).toContain(`the proxy ${proxy.url} refused the connection to ${url}`);
    });

    test("is looked up and checked if only the environment has a proxy", async () => {
      const { url, proxy } = await startProxy();
      for (const name of PROXY_VARIABLES) vi.stubEnv(name, /^no_/i.test(name) ? "" : proxy.url);
      onTestFinished(() => {
        vi.unstubAllEnvs();
      });
      const attempt = await labWith(LOCAL_NETWORKS, () => ["127.0.0.1"]);
      expect(await attempt(url)).toMatchObject({ status: 200, requests: 2 });
      expect(proxy.requests).toEqual([]);
    });
  });
});
