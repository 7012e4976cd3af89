import type { SAML } from "@node-saml/node-saml";
import type { SamlSettings, Services } from "../../services.ts";
import { type Assertion, readAssertion } from "./assertion.ts";
import { newRequestId } from "./requestIds.ts";
import { checkResponse } from "./response.ts";
import { SamlError } from "./SamlError.ts";

/** Where the service's own metadata are, which is its entity id too (SAML metadata, section 4.1). */
export const METADATA_PATH = "/api/user/saml/metadata";
/** Where a browser brings the identity provider's response. */
export const CONSUMER_PATH = "/api/user/saml/acs";

const entityId = ({ serviceUrl }: SamlSettings): string => serviceUrl + METADATA_PATH;
const consumer = ({ serviceUrl }: SamlSettings): string => serviceUrl + CONSUMER_PATH;

/**
 * The library makes the request and the metadata, and checks the signature. Times, request, recipient and issuer are
 * checked here on what is signed: the library takes the request's id from the part that is not, and knows no
 * recipient. It is loaded when it is needed, which few instances ever do: it takes a tenth of the start of the service.
 */
async function libraryFor(
  settings: SamlSettings,
  more: { generateUniqueId?: () => string } = {},
): Promise<SAML> {
  const { SAML, ValidateInResponseTo } = await import("@node-saml/node-saml");
  return new SAML({
    idpCert: [...settings.certificates],
    entryPoint: settings.ssoUrl,
    issuer: entityId(settings),
    audience: entityId(settings),
    callbackUrl: consumer(settings),
    wantAssertionsSigned: true,
    wantAuthnResponseSigned: false,
    validateInResponseTo: ValidateInResponseTo.never,
    // -1: times are not looked at there.
    acceptedClockSkewMs: -1,
    // The identity provider decides which name it gives, and how it makes sure of its users.
    identifierFormat: null,
    disableRequestedAuthnContext: true,
    ...more,
  });
}

/** Address of the identity provider with a new request. */
export async function loginUrl(services: Services, settings: SamlSettings): Promise<string> {
  const generateUniqueId = () => newRequestId(services);
  return (await libraryFor(settings, { generateUniqueId })).getAuthorizeUrlAsync("", undefined, {});
}

/** What an identity provider is told of this service, as XML. */
export async function serviceMetadata(settings: SamlSettings): Promise<string> {
  return (await libraryFor(settings)).generateServiceProviderMetadata(null);
}

/** An assertion that is the identity provider's, for this service and for now. */
export interface Answer extends Assertion {
  /** Id of the request that it answers: whether this service made it, and when, is not looked at. */
  readonly request: string;
}

/**
 * Reads a response of the identity provider.
 * @param encoded base64, as the form has it
 * @throws SamlError saying for the log why it is refused
 */
export async function readResponse(
  services: Services,
  settings: SamlSettings,
  encoded: string,
): Promise<Answer> {
  const xml = Buffer.from(encoded, "base64").toString("utf8");
  const request = checkResponse(xml, consumer(settings));
  const signed = await verified(await libraryFor(settings), encoded);
  const assertion = readAssertion(signed, {
    issuer: settings.idpEntityId,
    recipient: consumer(settings),
    audience: entityId(settings),
    request,
    now: services.now(),
  });
  return { ...assertion, request };
}

/** The assertion as it was signed. */
async function verified(library: SAML, encoded: string): Promise<string> {
  try {
    const { profile } = await library.validatePostResponseAsync({ SAMLResponse: encoded });
    const xml = profile?.getAssertionXml?.();
    if (xml) return xml;
  } catch (error) {
    throw new SamlError(error instanceof Error ? error.message : String(error));
  }
  throw new SamlError("no assertion");
}
