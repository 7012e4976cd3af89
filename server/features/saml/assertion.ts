import { MINUTE } from "@gatehouse-access/sdk/times";
import { SamlError } from "./SamlError.ts";
import { ASSERTION, children, elementText, isNamed, onlyChild, parseXml } from "./xml.ts";

const BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
const TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient";
/** Allowed difference between the clocks of two machines, in milliseconds. */
const SKEW = MINUTE;
/** Maximum length of a user's name at the identity provider, in characters (SAML core, section 8.3.7). */
const NAME_LENGTH = 256;

/** The values that an assertion must contain. */
interface Expected {
  readonly issuer: string;
  /** Address at which the service receives responses. */
  readonly recipient: string;
  readonly audience: string;
  /** Id of the login request to which the response belongs. */
  readonly request: string;
  readonly now: Date;
}

/** The content of an assertion. */
export interface Assertion {
  readonly id: string;
  /** The user's persistent name at the identity provider. */
  readonly nameId: string;
  /** First value of each attribute, by name. */
  readonly attributes: ReadonlyMap<string, string>;
}

/**
 * Parses and checks an assertion (SAML profiles, section 4.1.4.3).
 * @param xml the signed text, exactly as it was verified
 * @throws SamlError the assertion does not contain the expected values, or is not valid at this time
 */
export function readAssertion(xml: string, expected: Expected): Assertion {
  const assertion = parseXml(xml);
  if (!isNamed(assertion, ASSERTION, "Assertion"))
    throw new SamlError("the signed element is not an assertion");
  const id = assertion.getAttribute("ID");
  if (!id || assertion.getAttribute("Version") !== "2.0") throw new SamlError("ID or Version: invalid");
  if (elementText(onlyChild(assertion, "Issuer")) !== expected.issuer)
    throw new SamlError("Issuer: the issuer is not the configured identity provider");
  const subject = onlyChild(assertion, "Subject");
  if (!children(subject, ASSERTION, "SubjectConfirmation").some((item) => confirms(item, expected)))
    throw new SamlError(
      "SubjectConfirmation: no element matches this service, this request and the current time",
    );
  checkConditions(onlyChild(assertion, "Conditions"), expected);
  if (children(assertion, ASSERTION, "AuthnStatement").length === 0)
    throw new SamlError("AuthnStatement is missing");
  return { id, nameId: nameOf(subject), attributes: attributesOf(assertion) };
}

function confirms(confirmation: Element, { recipient, request, now }: Expected): boolean {
  if (confirmation.getAttribute("Method") !== BEARER) return false;
  const [data] = children(confirmation, ASSERTION, "SubjectConfirmationData");
  return (
    data !== undefined &&
    data.getAttribute("Recipient") === recipient &&
    data.getAttribute("InResponseTo") === request &&
    data.hasAttribute("NotOnOrAfter") &&
    isInPeriod(data, now)
  );
}

function checkConditions(conditions: Element, { audience, now }: Expected): void {
  if (!isInPeriod(conditions, now))
    throw new SamlError("Conditions: the assertion is not valid yet, or has expired");
  const restrictions = children(conditions, ASSERTION, "AudienceRestriction");
  const includes = (restriction: Element) =>
    children(restriction, ASSERTION, "Audience").some((item) => elementText(item) === audience);
  if (restrictions.length === 0 || !restrictions.every(includes))
    throw new SamlError("AudienceRestriction: the audiences do not include this service");
}

/** Returns true if the time is at or after `NotBefore`, and before `NotOnOrAfter`. Both attributes are optional. */
function isInPeriod(element: Element, now: Date): boolean {
  const from = timeOf(element, "NotBefore") ?? Number.NEGATIVE_INFINITY;
  const until = timeOf(element, "NotOnOrAfter") ?? Number.POSITIVE_INFINITY;
  return from <= now.getTime() + SKEW && now.getTime() - SKEW < until;
}

/**
 * Returns the time in an attribute, in Unix milliseconds. Returns undefined if the element does not have the attribute.
 */
function timeOf(element: Element, name: string): number | undefined {
  if (!element.hasAttribute(name)) return undefined;
  const text = element.getAttribute(name) ?? "";
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new SamlError(`${name} must be a time in UTC`);
  return time;
}

function nameOf(subject: Element): string {
  const name = onlyChild(subject, "NameID");
  // A transient NameID is different at each login, so the service could not recognize the user.
  if (name.getAttribute("Format") === TRANSIENT)
    throw new SamlError("NameID: the format must not be transient");
  const text = elementText(name);
  if (text.length > NAME_LENGTH) throw new SamlError(`NameID must have at most ${NAME_LENGTH} characters`);
  return text;
}

function attributesOf(assertion: Element): ReadonlyMap<string, string> {
  const attributes = new Map<string, string>();
  for (const statement of children(assertion, ASSERTION, "AttributeStatement")) {
    for (const attribute of children(statement, ASSERTION, "Attribute")) {
      const name = attribute.getAttribute("Name");
      const value = children(attribute, ASSERTION, "AttributeValue")[0]?.textContent?.trim();
      if (name && value && !attributes.has(name)) attributes.set(name, value);
    }
  }
  return attributes;
}
