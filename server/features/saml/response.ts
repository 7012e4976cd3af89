import { SamlError } from "./SamlError.ts";
import { ASSERTION, children, elementsOf, isNamed, PROTOCOL, parseXml, SIGNATURE } from "./xml.ts";

const SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success";
/** Accepted algorithms of signatures: none with SHA-1, of which collisions are known. */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  SignatureMethod: ["sha256", "sha384", "sha512"].map(
    (name) => `http://www.w3.org/2001/04/xmldsig-more#rsa-${name}`,
  ),
  DigestMethod: ["http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmlenc#sha512"],
};

/**
 * Checks the form of a response before any of it is trusted, so that every reader of any part finds the same single
 * assertion: signature wrapping needs a second one.
 * @param destination address at which the service receives responses
 * @returns id of the request that the response answers; not signed, so it must be compared with the signed part
 * @throws SamlError saying what is wrong
 */
export function checkResponse(xml: string, destination: string): string {
  const response = parseXml(xml);
  if (!isNamed(response, PROTOCOL, "Response")) throw new SamlError("not a response");
  const elements = elementsOf(response);
  checkOneAssertion(response, elements);
  checkAlgorithms(elements);
  const [status] = children(response, PROTOCOL, "Status");
  const [code] = status ? children(status, PROTOCOL, "StatusCode") : [];
  if (code?.getAttribute("Value") !== SUCCESS) throw new SamlError("Status: is not Success");
  const given = response.getAttribute("Destination");
  if (given && given !== destination) throw new SamlError("Destination: is another one");
  const request = response.getAttribute("InResponseTo");
  if (!request) throw new SamlError("InResponseTo: missing, nobody asked for the response");
  return request;
}

function checkOneAssertion(response: Element, elements: readonly Element[]): void {
  // By local name: nobody needs an assertion in another XML namespace.
  const assertions = elements.filter(({ localName }) => localName?.endsWith("Assertion"));
  const [assertion] = assertions;
  if (!assertion || assertions.length > 1) throw new SamlError("must have one assertion");
  if (!isNamed(assertion, ASSERTION, "Assertion")) throw new SamlError("an encrypted assertion");
  if (assertion.parentNode !== response) throw new SamlError("the assertion is not in its place");
  const ids = elements.flatMap((element) => element.getAttribute("ID") || []);
  if (new Set(ids).size !== ids.length) throw new SamlError("two elements have one ID");
}

function checkAlgorithms(elements: readonly Element[]): void {
  for (const [name, allowed] of Object.entries(ALGORITHMS)) {
    for (const element of elements.filter((other) => isNamed(other, SIGNATURE, name))) {
      if (!allowed.includes(element.getAttribute("Algorithm") ?? ""))
        throw new SamlError(`${name}: not an accepted one`);
    }
  }
}
