import { ConfigurationError } from "./errors.ts";

/**
 * Returns the address of a service without a trailing slash.
 * @param field the setting that contains the address, for errors
 * @throws ConfigurationError when the address is invalid. The error does not contain the address, which may contain a
 * password
 */
export function serviceAddress(text: string, field = "url"): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
    // Show the string only if it looks like a host and a path. Any other string may contain a password.
    const isHost = !/^https?[:/]/i.test(text) && /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(text);
    throw isHost
      ? new ConfigurationError("has no scheme", {
          field: [field],
          remedy: `set it to https://${text}, or to http://${text} for a service without TLS`,
        })
      : new ConfigurationError("is not the URL of a service", {
          field: [field],
          remedy: "set it to a URL such as https://access.example.org",
        });
  }
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") {
    throw new ConfigurationError("must not contain a user name or password", {
      field: [field],
      remedy: "pass them as a credential",
    });
  }
  if (url.search !== "" || url.hash !== "") {
    throw new ConfigurationError("must not have a query or fragment", {
      field: [field],
      remedy: "remove the part after the path",
    });
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}
