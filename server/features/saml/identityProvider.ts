import type { SAML } from "@node-saml/node-saml";
import { reasonOf } from "../../OperatorError.ts";
import type { Services } from "../../services.ts";
import type { SamlSettings } from "../../settings/readConfig.ts";
import { type Assertion, readAssertion } from "./assertion.ts";
import { newRequestId } from "./requestIds.ts";
import { checkResponse } from "./response.ts";
import { SamlError } from "./SamlError.ts";

/**
 * Path of the service's metadata. The URL of the metadata is also the entity id of the service (SAML metadata, section
 * 4.1).
 */
export const METADATA_PATH = "/api/user/saml/metadata";
/** Path to which browsers send the responses of the identity provider. */
export const CONSUMER_PATH = "/api/user/saml/acs";

const entityId = ({ serviceUrl }: SamlSettings): string => serviceUrl + METADATA_PATH;
const consumer = ({ serviceUrl }: SamlSettings): string => serviceUrl + CONSUMER_PATH;

/**
 * Loads the SAML library. The library creates requests and metadata, and verifies signatures. The service itself checks
 * the times, request id, recipient and issuer in the signed text. The reason is that the library reads the request id
 * from an unsigned part, and does not check the recipient. The library is loaded on demand, because it would add a
 * tenth to the start time and few instances use SAML.
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
    // -1 disables the time checks of the library.
    acceptedClockSkewMs: -1,
    // The identity provider can choose the format of the NameID, and how it authenticates its users.
    identifierFormat: null,
    disableRequestedAuthnContext: true,
    ...more,
  });
}

/** Returns the login URL of the identity provider. A parameter of the URL contains a new login request. */
export async function loginUrl(services: Services, settings: SamlSettings): Promise<string> {
  const generateUniqueId = () => newRequestId(services);
  return (await libraryFor(settings, { generateUniqueId })).getAuthorizeUrlAsync("", undefined, {});
}

/** Returns the service's metadata for identity providers, as XML. */
export async function serviceMetadata(settings: SamlSettings): Promise<string> {
  return (await libraryFor(settings)).generateServiceProviderMetadata(null);
}

/** A valid assertion that the identity provider issued for this service. */
export interface Answer extends Assertion {
  /**
   * Id of the login request to which the response belongs. `readResponse` does not check that this service created the
   * request, and does not check its age.
   */
  readonly request: string;
}

/**
 * Verifies a response of the identity provider, and returns the assertion in the response.
 * @param encoded base64, as sent in the form
 * @throws SamlError contains the reason for the rejection, for the log
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

/** Verifies the signature, and returns the XML text of the assertion exactly as it was signed. */
async function verified(library: SAML, encoded: string): Promise<string> {
  try {
    const { profile } = await library.validatePostResponseAsync({ SAMLResponse: encoded });
    const xml = profile?.getAssertionXml?.();
    if (xml) return xml;
  } catch (error) {
    throw new SamlError(reasonOf(error));
  }
  throw new SamlError("the response contains no assertion");
}
