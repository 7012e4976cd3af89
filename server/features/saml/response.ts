import { SamlError } from "./SamlError.ts";
import { ASSERTION, children, elementsOf, isNamed, PROTOCOL, parseXml, SIGNATURE } from "./xml.ts";

const SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success";
/** Accepted signature algorithms. SHA-1 is excluded, because collisions are known. */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  SignatureMethod: ["sha256", "sha384", "sha512"].map(
    (name) => `http://www.w3.org/2001/04/xmldsig-more#rsa-${name}`,
  ),
  DigestMethod: ["http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmlenc#sha512"],
};

/**
 * Checks the structure of a response before the service trusts any part of it. A response that passes has exactly one
 * assertion. This check prevents signature wrapping, because signature wrapping needs a second assertion.
 * @param destination address at which the service receives responses
 * @returns id of the login request to which the response belongs. The id is not signed, so compare it with the id in
 *   the signed part.
 * @throws SamlError describes why the response is invalid
 */
export function checkResponse(xml: string, destination: string): string {
  const response = parseXml(xml);
  if (!isNamed(response, PROTOCOL, "Response")) throw new SamlError("not a response");
  const elements = elementsOf(response);
  checkOneAssertion(response, elements);
  checkAlgorithms(elements);
  const [status] = children(response, PROTOCOL, "Status");
  const [code] = status ? children(status, PROTOCOL, "StatusCode") : [];
  if (code?.getAttribute("Value") !== SUCCESS)
    throw new SamlError("Status: the identity provider reported a failure");
  const given = response.getAttribute("Destination");
  if (given && given !== destination)
    throw new SamlError("Destination: the address is not the address of this service");
  const request = response.getAttribute("InResponseTo");
  if (!request)
    throw new SamlError(
      "InResponseTo: the attribute is missing, so the response answers no request of this service",
    );
  return request;
}

function checkOneAssertion(response: Element, elements: readonly Element[]): void {
  // Counts the assertions in all XML namespaces, so that an attacker cannot hide a second assertion in a different XML
  // namespace. Valid responses have no assertion in a different XML namespace.
  const assertions = elements.filter(({ localName }) => localName?.endsWith("Assertion"));
  const [assertion] = assertions;
  if (!assertion || assertions.length > 1)
    throw new SamlError("the response must contain exactly one assertion");
  if (!isNamed(assertion, ASSERTION, "Assertion"))
    throw new SamlError("encrypted assertions are not supported");
  if (assertion.parentNode !== response) throw new SamlError("the assertion is not a child of the response");
  const ids = elements.flatMap((element) => element.getAttribute("ID") || []);
  if (new Set(ids).size !== ids.length) throw new SamlError("two elements have the same ID");
}

function checkAlgorithms(elements: readonly Element[]): void {
  for (const [name, allowed] of Object.entries(ALGORITHMS)) {
    for (const element of elements.filter((other) => isNamed(other, SIGNATURE, name))) {
      if (!allowed.includes(element.getAttribute("Algorithm") ?? ""))
        throw new SamlError(`${name}: the service does not accept this algorithm`);
    }
  }
}
