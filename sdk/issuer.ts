/** Maximum length of the URL of an OpenID Connect provider. */
export const ISSUER_LENGTH = 255;

/**
 * Returns the normalized form of the URL of an OpenID Connect provider: scheme and host in lower case, host in ASCII
 * (punycode), no default port, no dot segments. A URL without a path gets no trailing slash, because an issuer is
 * compared with a token's `iss` claim as a string. Returns undefined if the string is not an `https` URL, or if the URL
 * has a user, query or fragment.
 */
export function normalizedIssuer(text: string): string | undefined {
  const url = URL.parse(text);
  if (url?.protocol !== "https:" || `${url.username}${url.password}` !== "" || /[?#]/.test(text))
    return undefined;
  // A host name with a trailing dot refers to the same host as the name without the dot.
  url.hostname = withoutDotsAtEnd(url.hostname);
  if (url.hostname.endsWith(".")) return undefined;
  return url.pathname === "/" && !text.endsWith("/") ? url.origin : url.href;
}

/**
 * Returns a host without trailing dots. A regular expression is not used, because its time would grow with the square
 * of the length.
 */
function withoutDotsAtEnd(host: string): string {
  let end = host.length;
  while (host[end - 1] === ".") end -= 1;
  return host.slice(0, end);
}

/**
 * Returns an issuer for output. An issuer that is not in its normalized form could look like a different issuer. For
 * such an issuer, the result is the normalized form followed by the original string, in which all non-ASCII characters
 * are escaped. If the string is too long for an issuer or has no normalized form, the result is only the escaped
 * string.
 */
export function printableIssuer(issuer: string): string {
  const normalized = issuer.length > ISSUER_LENGTH ? undefined : normalizedIssuer(issuer);
  if (normalized === issuer) return issuer;
  const escaped = JSON.stringify(issuer).replace(
    /[^\x20-\x7e]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
  return normalized === undefined ? escaped : `${normalized} (written as ${escaped})`;
}
