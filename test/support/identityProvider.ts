import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as samlify from "samlify";

// Turns off the library's validation: tests send invalid messages on purpose, and check the service's requests
// themselves.
samlify.setSchemaValidator({ validate: async () => "not validated" });

interface KeyAndCertificate {
  readonly key: string;
  readonly cert: string;
}

/** Creates a private key and a certificate for it. Returns both as PEM. */
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

/** The content of a SAML response. Omitted fields get valid values. */
export interface ResponseContent {
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
  /** Times in the response, in seconds after `now`. */
  readonly notBefore?: number;
  readonly notOnOrAfter?: number;
  readonly confirmedUntil?: number;
  readonly assertionId?: string;
  /** Changes the text of the response before it is signed. */
  readonly unsigned?: (xml: string) => string;
}

export const IDP_ENTITY_ID = "https://idp.example.org/metadata";
export const SSO_URL = "https://idp.example.org/sso";

type Options = {
  readonly signature?: string;
  /** Signs the whole response instead of the assertion in it. */
  readonly signsResponse?: true;
};

/**
 * An identity provider for one service, configured with the service's metadata. The library samlify signs the
 * responses.
 */
export function identityProvider(metadata: string, { key, cert }: KeyAndCertificate, options: Options = {}) {
  const provider = samlify.IdentityProvider({
    entityID: IDP_ENTITY_ID,
    privateKey: key,
    signingCert: cert,
    requestSignatureAlgorithm: options.signature ?? "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    // Has no effect, but the library prints a warning without it.
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
    /** Returns the SAML request that the address of a redirect contains. */
    async readRequest(url: string) {
      const query = Object.fromEntries(new URL(url).searchParams);
      const { extract } = await provider.parseLoginRequest(service, "redirect", { query });
      return { id: String(extract.request?.id), issuer: String(extract.issuer) };
    },
    /** Returns a signed response as XML. */
    async respond(content: ResponseContent): Promise<string> {
      const xml = responseOf({ recipient: consumer, destination: consumer, audience, ...content });
      const build = () => ({ id: "unused", context: content.unsigned?.(xml) ?? xml });
      const { context } = await provider.createLoginResponse(service, { extract: {} }, "post", {}, build);
      return Buffer.from(context, "base64").toString("utf8");
    },
  };
}

export type TestIdentityProvider = ReturnType<typeof identityProvider>;

const newId = () => `_${randomUUID()}`;

/** Returns a response without a signature. */
export function responseOf(
  content: ResponseContent & { recipient: string; destination: string; audience: string },
): string {
  const at = (seconds: number) => new Date(content.now.getTime() + seconds * 1000).toISOString();
  const { issuer = IDP_ENTITY_ID, attributes = {}, assertionId = newId() } = content;
  const format = content.nameIdFormat ?? "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent";
  const status = content.status ?? "urn:oasis:names:tc:SAML:2.0:status:Success";
  const values = Object.entries(attributes).map(
    ([name, value]) =>
      `<saml:Attribute Name="${name}"><saml:AttributeValue>${value}</saml:AttributeValue></saml:Attribute>`,
  );
  return [
    '<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"',
    ` ID="${newId()}" Version="2.0" IssueInstant="${at(0)}" Destination="${content.destination}"`,
    ` InResponseTo="${content.responseTo ?? content.inResponseTo}"><saml:Issuer>${issuer}</saml:Issuer>`,
    `<samlp:Status><samlp:StatusCode Value="${status}"/></samlp:Status>`,
    `<saml:Assertion ID="${assertionId}" Version="2.0" IssueInstant="${at(0)}"><saml:Issuer>${issuer}</saml:Issuer>`,
    `<saml:Subject><saml:NameID Format="${format}">${content.nameId ?? "ana-1"}</saml:NameID>`,
    '<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">',
    `<saml:SubjectConfirmationData NotOnOrAfter="${at(content.confirmedUntil ?? 300)}" Recipient="${content.recipient}"`,
    ` InResponseTo="${content.inResponseTo}"/></saml:SubjectConfirmation></saml:Subject>`,
    `<saml:Conditions NotBefore="${at(content.notBefore ?? 0)}" NotOnOrAfter="${at(content.notOnOrAfter ?? 300)}">`,
    `<saml:AudienceRestriction><saml:Audience>${content.audience}</saml:Audience></saml:AudienceRestriction>`,
    `</saml:Conditions><saml:AuthnStatement AuthnInstant="${at(0)}"><saml:AuthnContext>`,
    "<saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef>",
    "</saml:AuthnContext></saml:AuthnStatement>",
    values.length > 0 ? `<saml:AttributeStatement>${values.join("")}</saml:AttributeStatement>` : "",
    "</saml:Assertion></samlp:Response>",
  ].join("");
}
