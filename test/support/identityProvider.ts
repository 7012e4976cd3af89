import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as samlify from "samlify";

// What the tests send is made to be wrong; the service's requests are checked by the tests themselves.
samlify.setSchemaValidator({ validate: async () => "not validated" });

export interface KeyAndCertificate {
  readonly key: string;
  readonly cert: string;
}

/** A fresh key with its certificate, both as PEM. */
export function newCertificate(bits = 2048): KeyAndCertificate {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const words = `req -x509 -newkey rsa:${bits} -nodes -days 2 -subj /CN=idp -keyout ${key} -out ${cert}`;
  try {
    execFileSync("openssl", words.split(" "), { stdio: "pipe" });
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What a response says; what is left out is right. */
export interface Said {
  readonly inResponseTo: string;
  readonly now: Date;
  readonly responseTo?: string;
  readonly nameId?: string;
  readonly nameIdFormat?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly issuer?: string;
  readonly audience?: string;
  readonly recipient?: string;
  readonly destination?: string;
  readonly status?: string;
  /** Seconds from `now`. */
  readonly notBefore?: number;
  readonly notOnOrAfter?: number;
  readonly confirmedUntil?: number;
  readonly assertionId?: string;
  /** Changes the text before it is signed. */
  readonly unsigned?: (xml: string) => string;
}

export const IDP_ENTITY_ID = "https://idp.example.org/metadata";
export const SSO_URL = "https://idp.example.org/sso";

type Options = {
  readonly signature?: string;
  /** Sign the response around the assertion, instead of the assertion. */
  readonly signsResponse?: true;
};

/** An identity provider that knows a service by its metadata: samlify, which signs. */
export function identityProvider(metadata: string, { key, cert }: KeyAndCertificate, options: Options = {}) {
  const provider = samlify.IdentityProvider({
    entityID: IDP_ENTITY_ID,
    privateKey: key,
    signingCert: cert,
    requestSignatureAlgorithm: options.signature ?? "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    // Not used; the library warns where it is missing.
    singleLogoutService: [
      { Binding: "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect", Location: SSO_URL },
    ],
    singleSignOnService: [
      { Binding: "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect", Location: SSO_URL },
      { Binding: "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST", Location: SSO_URL },
    ],
  });
  const service = samlify.ServiceProvider({
    metadata: options.signsResponse
      ? metadata.replace('WantAssertionsSigned="true"', 'WantAssertionsSigned="false"')
      : metadata,
  });
  const consumer = String(service.entityMeta.getAssertionConsumerService("post"));
  const audience = service.entityMeta.getEntityID();
  return {
    consumer,
    /** Reads the request in an address to which a browser is sent. */
    async readRequest(url: string) {
      const query = Object.fromEntries(new URL(url).searchParams);
      const { extract } = await provider.parseLoginRequest(service, "redirect", { query });
      return { id: String(extract.request?.id), issuer: String(extract.issuer) };
    },
    /** A signed response, as XML. */
    async respond(said: Said): Promise<string> {
      const xml = responseOf({ recipient: consumer, destination: consumer, audience, ...said });
      const build = () => ({ id: "unused", context: said.unsigned?.(xml) ?? xml });
      const { context } = await provider.createLoginResponse(service, { extract: {} }, "post", {}, build);
      return Buffer.from(context, "base64").toString("utf8");
    },
  };
}

export type TestIdentityProvider = ReturnType<typeof identityProvider>;

const newId = () => `_${randomUUID()}`;

/** A response without a signature. */
export function responseOf(
  said: Said & { recipient: string; destination: string; audience: string },
): string {
  const at = (seconds: number) => new Date(said.now.getTime() + seconds * 1000).toISOString();
  const { issuer = IDP_ENTITY_ID, attributes = {}, assertionId = newId() } = said;
  const format = said.nameIdFormat ?? "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent";
  const status = said.status ?? "urn:oasis:names:tc:SAML:2.0:status:Success";
  const values = Object.entries(attributes).map(
    ([name, value]) =>
      `<saml:Attribute Name="${name}"><saml:AttributeValue>${value}</saml:AttributeValue></saml:Attribute>`,
  );
  return [
    '<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"',
    ` ID="${newId()}" Version="2.0" IssueInstant="${at(0)}" Destination="${said.destination}"`,
    ` InResponseTo="${said.responseTo ?? said.inResponseTo}"><saml:Issuer>${issuer}</saml:Issuer>`,
    `<samlp:Status><samlp:StatusCode Value="${status}"/></samlp:Status>`,
    `<saml:Assertion ID="${assertionId}" Version="2.0" IssueInstant="${at(0)}"><saml:Issuer>${issuer}</saml:Issuer>`,
    `<saml:Subject><saml:NameID Format="${format}">${said.nameId ?? "ana-1"}</saml:NameID>`,
    '<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">',
    `<saml:SubjectConfirmationData NotOnOrAfter="${at(said.confirmedUntil ?? 300)}" Recipient="${said.recipient}"`,
    ` InResponseTo="${said.inResponseTo}"/></saml:SubjectConfirmation></saml:Subject>`,
    `<saml:Conditions NotBefore="${at(said.notBefore ?? 0)}" NotOnOrAfter="${at(said.notOnOrAfter ?? 300)}">`,
    `<saml:AudienceRestriction><saml:Audience>${said.audience}</saml:Audience></saml:AudienceRestriction>`,
    `</saml:Conditions><saml:AuthnStatement AuthnInstant="${at(0)}"><saml:AuthnContext>`,
    "<saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef>",
    "</saml:AuthnContext></saml:AuthnStatement>",
    values.length > 0 ? `<saml:AttributeStatement>${values.join("")}</saml:AttributeStatement>` : "",
    "</saml:Assertion></samlp:Response>",
  ].join("");
}
