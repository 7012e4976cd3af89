import { DOMParser } from "@xmldom/xmldom";
import { SamlError } from "./SamlError.ts";

export const ASSERTION = "urn:oasis:names:tc:SAML:2.0:assertion";
export const PROTOCOL = "urn:oasis:names:tc:SAML:2.0:protocol";
export const SIGNATURE = "http://www.w3.org/2000/09/xmldsig#";

/** Maximum number of elements in a document. A response has far fewer elements. */
const MAXIMUM_ELEMENTS = 2000;

/**
 * Parses an XML document and returns its root element. Rejects documents that contain `<!`. In well-formed XML, only
 * three constructs contain it: document types, which can define entities; comments, at which some parsers end a text;
 * and CDATA, which responses do not need.
 * @throws SamlError the document is not well-formed XML, or contains `<!`
 */
export function parseXml(xml: string): Element {
  if (xml.includes("<!")) throw new SamlError("DOCTYPE declarations, comments and CDATA are not allowed");
  const fail = (message: string) => {
    throw new SamlError(message);
  };
  const errorHandler = { warning: fail, error: fail, fatalError: fail };
  const root = new DOMParser({ errorHandler }).parseFromString(xml, "text/xml").documentElement;
  if (!root) throw new SamlError("the document has no element");
  return root;
}

/**
 * Returns the element and all its descendants.
 * @throws SamlError the document has too many elements
 */
export function elementsOf(root: Element): Element[] {
  const found: Element[] = [];
  const waiting = [root];
  for (let element = waiting.pop(); element; element = waiting.pop()) {
    found.push(element);
    waiting.push(...childElements(element));
    if (found.length + waiting.length > MAXIMUM_ELEMENTS) throw new SamlError("too many elements");
  }
  return found;
}

/** Returns true if an element has this name and namespace. */
export const isNamed = (element: Element, namespace: string, name: string): boolean =>
  element.namespaceURI === namespace && element.localName === name;

export const children = (parent: Element, namespace: string, name: string): Element[] =>
  childElements(parent).filter((element) => isNamed(element, namespace, name));

/**
 * Returns the only child element that has this name in the XML namespace of assertions.
 * @throws SamlError no child element or several child elements have this name
 */
export function onlyChild(parent: Element, name: string): Element {
  const [child, ...more] = children(parent, ASSERTION, name);
  if (!child || more.length > 0) throw new SamlError(`${parent.localName} must contain exactly one ${name}`);
  return child;
}

/**
 * Returns the content of an element that contains only text.
 * @throws SamlError the element has child elements or is empty
 */
export function elementText(element: Element): string {
  const text = element.textContent?.trim();
  if (!text || childElements(element).length > 0)
    throw new SamlError(`${element.localName} must contain only text`);
  return text;
}

function childElements(parent: Element): Element[] {
  const found: Element[] = [];
  for (let node = parent.firstChild; node; node = node.nextSibling) {
    if (node.nodeType === node.ELEMENT_NODE) found.push(node as Element);
  }
  return found;
}
