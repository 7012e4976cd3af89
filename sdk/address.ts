import { ConfigurationError } from "./errors.ts";

/**
 * The address of a service without a trailing slash.
 * @throws ConfigurationError when it is none of a service. The text is not repeated: it may hold a password.
 */
export function serviceAddress(text: string): string {
  if (!URL.canParse(text)) {
    throw new ConfigurationError("is not a URL", {
      field: ["url"],
      remedy: "it looks like https://host",
    });
  }
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new ConfigurationError("must begin with https:// or http://", {
      field: ["url"],
    });
  }
  if (url.username !== "" || url.password !== "") {
    throw new ConfigurationError("must not hold a user name or password", {
      field: ["url"],
      remedy: "give them as a credential",
    });
  }
  if (url.search !== "" || url.hash !== "") {
    throw new ConfigurationError("must not have a query or fragment", {
      field: ["url"],
    });
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Scheme, host and port of an address, the port also where it is the scheme's own. */
export function placeOf(address: string): string {
  const { protocol, hostname, port } = new URL(address);
  return `${protocol}//${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

/**
 * An http address as https, and the other way round. A port that is written out stays; one that is the scheme's own
 * becomes that of the other scheme.
 */
export function otherScheme(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol === "https:" ? "http:" : "https:"}//${host}`;
}
