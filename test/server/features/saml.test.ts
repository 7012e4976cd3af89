import { TOTP } from "otpauth";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { SamlSettings } from "../../../server/settings/readConfig.ts";
import {
  IDP_ENTITY_ID,
  identityProvider,
  newCertificate,
  type ResponseContent,
  responseOf,
  SSO_URL,
  type TestIdentityProvider,
} from "../../support/identityProvider.ts";
import { expectError, statusesOf } from "../http/answers.ts";
import { testApp } from "../http/appOfTest.ts";
import { PASSWORD, startApp, type TestApp } from "../http/testApp.ts";

const SERVICE = "https://gate.example.org";
const CONSUMER = "/api/user/saml/acs";
const METADATA = "/api/user/saml/metadata";
const ATTRIBUTES = { email: "Ana@example.org", name: "Ana Reis" };
const certificate = newCertificate();
const oldCertificate = newCertificate();

const SAML: SamlSettings = {
  idpEntityId: IDP_ENTITY_ID,
  ssoUrl: SSO_URL,
  certificates: [oldCertificate.cert, certificate.cert],
  emailAttribute: "email",
  nameAttribute: "name",
  linkUsers: false,
  serviceUrl: SERVICE,
};

let app: TestApp;
let metadata: string;
let idp: TestIdentityProvider;

async function start(settings: Partial<SamlSettings> = {}) {
  app = await startApp({ publicUrl: SERVICE, saml: { ...SAML, ...settings } });
  app.stopClock();
  metadata = (await app.send("GET", METADATA)).text;
  idp = identityProvider(metadata, certificate);
}
/** Starts a service for one test. */
async function startForTest(settings: Partial<SamlSettings> = {}) {
  await start(settings);
  onTestFinished(() => app.stop());
}

async function begin(): Promise<string> {
  const { body } = await app.call("getSamlAuthUrl");
  return (await idp.readRequest(body.url)).id;
}

/** Sends a SAML response as a browser does. */
const postResponse = (xml: string) =>
  app.send("POST", CONSUMER, {
    redirect: "manual",
    body: new URLSearchParams({ SAMLResponse: Buffer.from(xml).toString("base64") }),
  });

const contentOf = async (content: Partial<ResponseContent> = {}): Promise<ResponseContent> => ({
  inResponseTo: await begin(),
  now: app.services.now(),
  attributes: ATTRIBUTES,
  ...content,
});
const respond = async (content: Partial<ResponseContent> = {}) => idp.respond(await contentOf(content));
const logIn = async (content: Partial<ResponseContent> = {}) => postResponse(await respond(content));

function landing({ status, headers, text }: Awaited<ReturnType<typeof postResponse>>): URL {
  expect(status, text).toBe(303);
  const url = new URL(headers.get("location") ?? "");
  expect(url.origin).toBe(SERVICE);
  return url;
}

const tokenIn = (answer: Awaited<ReturnType<typeof postResponse>>): string => {
  const url = landing(answer);
  expect(url.pathname).toBe("/login");
  return url.searchParams.get("token") ?? "";
};

async function expectRefused(xml: string) {
  const { status, headers, body } = await postResponse(xml);
  expect(status).toBe(401);
  expect(headers.get("location")).toBeNull();
  expect(body.message).toContain("SAMLResponse");
  expect(await app.services.db.user.count()).toBe(0);
}

describe("a login", () => {
  beforeEach(() => start());
  afterEach(() => app.stop());

  test("starts with a request that the identity provider can read", async () => {
    const { body } = await app.call("getSamlAuthUrl");
    expect(body.url.startsWith(`${SSO_URL}?SAMLRequest=`)).toBe(true);
    const { id, issuer } = await idp.readRequest(body.url);
    expect(id).toMatch(/^_[\w-]{20,}$/);
    expect(issuer).toBe(SERVICE + METADATA);
    expect(idp.consumer).toBe(SERVICE + CONSUMER);
    expect(await begin()).not.toBe(await begin());
  });

  test("creates a confirmed user without a password, and returns a token", async () => {
    const token = tokenIn(await logIn());
    const { body } = await app.call("getUserInfo", { token });
    expect(body).toMatchObject({
      user: "ana@example.org",
      email: "ana@example.org",
      name: "Ana Reis",
      origin: "SAML",
      auth_methods: ["saml"],
      tenant: "",
    });
    const password = await app.call("login", { body: { username: "ana@example.org", password: PASSWORD } });
    expect(password.status).toBe(401);
    const [entry] = await app.services.db.auditEntry.findMany({ where: { operation: "samlLogin" } });
    expect(entry).toMatchObject({ objectId: body.id, actorId: body.id });
  });

  test("finds the same user again by the NameID", async () => {
    const first = await app.call("getUserInfo", { token: tokenIn(await logIn()) });
    const again = tokenIn(await logIn({ attributes: { email: "other@example.org" } }));
    expect((await app.call("getUserInfo", { token: again })).body.id).toBe(first.body.id);
    expect(await app.services.db.user.count()).toBe(1);
  });

  test("uses the NameID as the address if no attribute has it", async () => {
    const token = tokenIn(await logIn({ nameId: "eva@example.org", attributes: {} }));
    expect((await app.call("getUserInfo", { token })).body.email).toBe("eva@example.org");
  });

  test("generates a username if the address is no valid username, or is taken", async () => {
    await app.user("ana@example.org");
    const { services } = app;
    await services.db.user.updateMany({ data: { email: "moved@example.org" } });
    for (const [nameId, email] of [
      ["ana-1", "ana@example.org"],
      ["ben-1", "ben+gate@example.org"],
    ] as const) {
      const token = tokenIn(await logIn({ nameId, attributes: { email } }));
      expect((await app.call("getUserInfo", { token })).body.user).toMatch(/^saml-[0-9a-f]{12}$/);
    }
  });

  test("redirects to an error page without an address", async () => {
    const useless: Record<string, string>[] = [{}, { email: "not an address" }];
    for (const attributes of useless) {
      const url = landing(await logIn({ attributes }));
      expect([url.pathname, url.search]).toEqual(["/login", "?missing_assertions=true"]);
    }
    expect(await app.services.db.user.count()).toBe(0);
  });

  test("refuses access to another account with the same address", async () => {
    await app.user("ana");
    expectError(await logIn(), 403, /ana@example\.org/);
    expect(await app.services.db.samlIdentity.count()).toBe(0);
  });

  test("is refused for an unconfirmed or deleted user", async () => {
    tokenIn(await logIn());
    await app.services.db.user.updateMany({ data: { status: "not-confirmed" } });
    expect((await logIn()).status).toBe(403);
    await app.services.db.user.deleteMany();
    tokenIn(await logIn());
  });

  test("requires the second factor of this service from a user who has one", async () => {
    const token = tokenIn(await logIn());
    const { body } = await app.call("generateMfa", { token });
    const code = () =>
      new TOTP({ secret: body.secret }).generate({ timestamp: app.services.now().getTime() });
    await app.call("updateUser", { token, body: { recovery_email: "ana@recovery.org" } });
    const { secret, recovery_codes } = body;
    const enabled = await app.call("enableMfa", { token, body: { code: code(), secret, recovery_codes } });
    expect(enabled.status).toBe(200);
    const url = landing(await logIn());
    expect(url.pathname).toBe("/mfa-login");
    const challenge = url.searchParams.get("token") ?? "";
    expect((await app.call("getUserInfo", { token: challenge })).status).toBe(401);
    const second = await app.call("authMfa", { body: { token: challenge, code: code() } });
    expect(second.body).toMatchObject({ email: "ana@example.org", mfa: true });
  });

  test("accepts both certificates during their replacement", async () => {
    idp = identityProvider(metadata, oldCertificate);
    tokenIn(await logIn());
  });

  test("tolerates a minute between the clocks", async () => {
    tokenIn(await logIn({ notBefore: 59 }));
    tokenIn(await logIn({ notOnOrAfter: -59, confirmedUntil: -59 }));
  });
});

test("links users by address if the setting allows it", async () => {
  await startForTest({ linkUsers: true });
  const ana = await app.user("ana", "lab");
  const token = tokenIn(await logIn());
  expect((await app.call("getUserInfo", { token })).body).toMatchObject({ id: ana.id, tenant: ana.tenant });
  expect((await app.call("login", { body: { username: "ana", password: PASSWORD } })).status).toBe(200);
});

/** Shares one service between the tests of a `describe`. Each test starts without users. */
function shareService(): void {
  beforeAll(() => start());
  afterAll(() => app.stop());
  beforeEach(async () => {
    idp = identityProvider(metadata, certificate);
    await app.services.db.user.deleteMany();
  });
}

describe("rejects a response", () => {
  shareService();
  /** Changes the text of a SAML response before the response is signed. */
  const changed = (from: string | RegExp, to: string): Partial<ResponseContent> => ({
    unsigned: (xml) => xml.replace(from, to),
  });
  const cases: Readonly<Record<string, Partial<ResponseContent>>> = {
    "that has expired": { notOnOrAfter: -61 },
    "with an expired confirmation": { confirmedUntil: -61 },
    "that is not yet valid": { notBefore: 61 },
    "for another service": { audience: "https://other.example.org" },
    "for another address": { recipient: "https://other.example.org/acs" },
    "sent to another address": { destination: "https://other.example.org/acs" },
    "of another identity provider": { issuer: "https://other.example.org" },
    "with different requests in assertion and envelope": { responseTo: "_another" },
    "with a transient NameID": { nameIdFormat: "urn:oasis:names:tc:SAML:2.0:nameid-format:transient" },
    "without a NameID": { nameId: "" },
    "with a NameID that is too long": { nameId: "a".repeat(257) },
    "of a failed login": { status: "urn:oasis:names:tc:SAML:2.0:status:Responder" },
    "with a comment in the NameID": { nameId: "ana<!-- -->.evil" },
    "with CDATA in the NameID": { nameId: "<![CDATA[ana]]>" },
    "without conditions": changed(/<saml:Conditions.*<\/saml:Conditions>/, ""),
    "without an audience": changed(/<saml:AudienceRestriction.*<\/saml:AudienceRestriction>/, ""),
    "without an authentication": changed(/<saml:AuthnStatement.*<\/saml:AuthnStatement>/, ""),
    "without an expiry of its confirmation": changed(/(SubjectConfirmationData) NotOnOrAfter="[^"]*"/, "$1"),
    "without a request in its confirmation": changed(/(Recipient="[^"]*") InResponseTo="[^"]*"/, "$1"),
    "with a confirmation method other than bearer": changed("cm:bearer", "cm:other"),
    "with a time of another zone": changed(/(NotBefore="[^"]*)Z"/, '$1+00:00"'),
    "of another version": changed(/(<saml:Assertion [^>]*Version=)"2.0"/, '$1"1.1"'),
  };
  test.each(Object.entries(cases))("%s", async (_, content) => {
    await expectRefused(await respond(content));
  });

  test("without a request", async () => {
    await expectRefused(await respond({ inResponseTo: "_made-up" }));
    await expectRefused(await respond({ inResponseTo: "" }));
    const unsolicited = await respond();
    await expectRefused(unsolicited.replaceAll(/ InResponseTo="[^"]*"/g, ""));
  });

  test("to a request older than ten minutes", async () => {
    const request = await begin();
    app.pass(10 * 60 - 1);
    tokenIn(await logIn({ inResponseTo: request }));
    await app.services.db.user.deleteMany();
    const late = await begin();
    app.pass(10 * 60);
    await expectRefused(await respond({ inResponseTo: late }));
  });

  test("to another service's request", async () => {
    const { services } = app;
    const seal = services.sealer.seal(String(services.now().getTime() + 60_000), "another purpose");
    await expectRefused(await respond({ inResponseTo: `_${seal}` }));
  });

  test("that repeats an earlier response, even concurrently, and a second response to the same request", async () => {
    const content = await contentOf();
    const xml = await idp.respond(content);
    expect(await statusesOf([postResponse(xml), postResponse(xml), postResponse(xml)])).toEqual([
      303, 401, 401,
    ]);
    expect((await postResponse(xml)).status).toBe(401);
    expect((await postResponse(await idp.respond(content))).status).toBe(401);
    app.pass(11 * 60);
    expect((await postResponse(xml)).status).toBe(401);
  });

  test("with an assertion that was used before", async () => {
    tokenIn(await logIn({ assertionId: "_same" }));
    expect((await logIn({ assertionId: "_same" })).status).toBe(401);
  });

  test("with a signature of another key, even with the right certificate in it", async () => {
    idp = identityProvider(metadata, { key: newCertificate().key, cert: certificate.cert });
    await expectRefused(await respond());
    const forger = newCertificate();
    idp = identityProvider(metadata, forger);
    await expectRefused(await respond());
  });

  test("without a signature of the assertion", async () => {
    const content = await contentOf();
    const addresses = { recipient: idp.consumer, destination: idp.consumer, audience: SERVICE + METADATA };
    await expectRefused(responseOf({ ...content, ...addresses }));
    const signed = await respond();
    await expectRefused(signed.replace(/<ds:Signature.*<\/ds:Signature>/s, ""));
    idp = identityProvider(metadata, certificate, { signsResponse: true });
    await expectRefused(await respond());
  });

  test("with a SHA-1 signature", async () => {
    const signature = "http://www.w3.org/2000/09/xmldsig#rsa-sha1";
    idp = identityProvider(metadata, certificate, { signature });
    await expectRefused(await respond());
  });

  test("changed after signing", async () => {
    const xml = await respond();
    for (const [from, to] of [
      ["ana-1", "eva-1"],
      ["Ana@example.org", "eva@example.org"],
    ] as const) {
      expect(xml).toContain(from);
      await expectRefused(xml.replace(from, to));
    }
  });

  test("that is malformed", async () => {
    const texts = ["", "text", "<a/>", "<a><b></a>", `<a xmlns="urn:oasis:names:tc:SAML:2.0:protocol"/>`];
    for (const text of texts.slice(1)) await expectRefused(text);
    expect((await postResponse("")).status).toBe(400);
    expect((await app.send("POST", CONSUMER)).status).toBe(400);
    const json = { headers: { "content-type": "application/json" }, body: '{"SAMLResponse":"eA=="}' };
    expect((await app.send("POST", CONSUMER, json)).status).toBe(400);
    expect((await postResponse("x".repeat(128 * 1024))).status).toBe(413);
  });

  test("with a document type, which could define entities", async () => {
    const xml = await respond();
    const type = '<!DOCTYPE r [<!ENTITY name SYSTEM "file:///etc/passwd">]>';
    await expectRefused(type + xml);
    await expectRefused(type + xml.replace("ana-1", "&name;"));
    await expectRefused(xml.replace("ana-1", "&name;"));
  });

  test("with too many elements", async () => {
    const xml = await respond();
    const deep = `${"<x>".repeat(10_000)}${"</x>".repeat(10_000)}`;
    await expectRefused(xml.replace("</samlp:Response>", `${deep}</samlp:Response>`));
    const wide = "<x/>".repeat(15_000);
    await expectRefused(xml.replace("</samlp:Response>", `${wide}</samlp:Response>`));
  });
});

/** Each case moves the signed assertion to a place where its signature stays valid, and adds a forged assertion. */
describe("rejects signature wrapping:", () => {
  shareService();
  const assertionIn = (xml: string) => /<saml:Assertion.*<\/saml:Assertion>/s.exec(xml)?.[0] ?? "";
  const signatureIn = (xml: string) => /<ds:Signature.*<\/ds:Signature>/s.exec(xml)?.[0] ?? "";
  const NS = 'xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"';
  /** Returns an assertion of another user, with or without the signature of the valid assertion. */
  const evil = (xml: string, signature = "") =>
    assertionIn(xml)
      .replace(signatureIn(xml), signature)
      .replaceAll("ana-1", "eva-1")
      .replaceAll("Ana@", "eva@")
      .replace(/ ID="[^"]*"/, ' ID="_evil"');
  const replaced = (xml: string, text: string) => xml.replace(assertionIn(xml), () => text);

  const wrappings: Readonly<Record<string, (xml: string) => string>> = {
    "the forged one first": (xml) => replaced(xml, evil(xml) + assertionIn(xml)),
    "the forged one last": (xml) => replaced(xml, assertionIn(xml) + evil(xml)),
    "the forged one with the signature first": (xml) =>
      replaced(xml, evil(xml, signatureIn(xml)) + assertionIn(xml)),
    "the signed one in an extension": (xml) =>
      replaced(xml, evil(xml)).replace(
        "<samlp:Status>",
        () => `<samlp:Extensions>${assertionIn(xml)}</samlp:Extensions><samlp:Status>`,
      ),
    "the signed one in the forged one": (xml) =>
      replaced(
        xml,
        evil(xml).replace("</saml:Assertion>", () => `${assertionIn(xml)}</saml:Assertion>`),
      ),
    "the signed one in an object of its signature": (xml) => {
      const bare = assertionIn(xml).replace(signatureIn(xml), "");
      const signature = signatureIn(xml).replace(
        "</ds:Signature>",
        () => `<ds:Object>${bare}</ds:Object></ds:Signature>`,
      );
      return replaced(xml, evil(xml, signature));
    },
    "the forged one with the ID of the signed one": (xml) => {
      const id = / ID="([^"]*)"/.exec(assertionIn(xml))?.[0] ?? "";
      return replaced(xml, evil(xml).replace(' ID="_evil"', id) + assertionIn(xml));
    },
    "the ID of the signed one on another element": (xml) => {
      const id = / ID="([^"]*)"/.exec(assertionIn(xml))?.[0] ?? "";
      return replaced(xml, evil(xml, signatureIn(xml))).replace("<samlp:Status>", `<samlp:Status${id}>`);
    },
    "the forged one in another namespace": (xml) =>
      replaced(
        xml,
        evil(xml).replaceAll("saml:", "x:").replace("<x:Assertion", '<x:Assertion xmlns:x="urn:x"') +
          assertionIn(xml),
      ),
    "the response in another response": (xml) =>
      replaced(xml, evil(xml)).replace("</samlp:Response>", () => `${xml}</samlp:Response>`),
    "the forged one as the document": (xml) =>
      evil(xml)
        .replace("<saml:Assertion", `<saml:Assertion ${NS}`)
        .replace("</saml:Assertion>", () => `${xml}</saml:Assertion>`),
    "another name in the signed one": (xml) =>
      xml.replace("<saml:NameID", "<saml:NameID>eva-1</saml:NameID><saml:NameID"),
    "two signatures": (xml) => xml.replace(signatureIn(xml), () => signatureIn(xml) + signatureIn(xml)),
  };
  test.each(Object.entries(wrappings))("%s", async (_, wrap) => {
    const xml = await respond();
    const wrapped = wrap(xml);
    expect(wrapped).not.toBe(xml);
    await expectRefused(wrapped);
    // The original response, without the forged assertion, is valid.
    tokenIn(await postResponse(xml));
  });
});

test("stores digests of requests and assertions, until the request's end", async () => {
  await startForTest();
  const xml = await respond({ assertionId: "_known" });
  tokenIn(await postResponse(xml));
  const rows = await app.services.db.usedSamlMessage.findMany();
  expect(rows).toHaveLength(2);
  expect(JSON.stringify(rows)).not.toContain("_known");
  app.pass(10 * 60 + 1);
  tokenIn(await logIn());
  expect(await app.services.db.usedSamlMessage.count()).toBe(2);
});

test("reports SAML as on in the instance's information", async () => {
  await startForTest();
  expect((await app.call("getInfo")).body.authentication).toEqual({ local: true, saml: true });
});

test.each(["community", "enterprise", "cloud"] as const)(
  "reports SAML as off if it is not configured: %s",
  async (edition) => {
    const off = await testApp({ edition });
    expectError(await off.call("getSamlAuthUrl"), 501, "SAML is off on this instance");
    expect((await off.call("getInfo")).body.authentication.saml).toBe(false);
    expect((await off.send("GET", METADATA)).status).toBe(404);
    expect((await off.send("POST", CONSUMER)).status).toBe(404);
  },
);
