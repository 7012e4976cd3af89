import { isIP } from "node:net";
import { resolve } from "node:path";
import { HttpProxy } from "@gatehouse-access/sdk/proxies";
import { z } from "zod";
import { normalRange } from "../addresses.ts";

// Schemas of settings. Each schema parses a string into the value that the service uses.

/** The path of a file or folder, converted to an absolute path. */
export const path = z
  .string()
  .min(1)
  .transform((text) => resolve(text));

/** An address in the form `host:port`, with a port of at least 1. */
export const hostAndPort = z.string().refine((text) => {
  const match = /^(?<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):(?<port>\d{1,5})$/.exec(text);
  return match !== null && Number(match.groups?.port) >= 1 && Number(match.groups?.port) <= 65535;
});

/** Returns true if a string is the URL of a PostgreSQL database. */
export function isPostgresql(text: string): boolean {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname } = new URL(text);
  return hostname !== "" && pathname.length > 1;
}

/** A host name or an IP address. */
export const address = z
  .string()
  .refine((text) => isIP(text) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text));
/** A domain name. It is short enough that a label of 32 characters fits in front of the domain. */
export const domain = z
  .string()
  .max(220)
  .regex(/^[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/)
  .refine((text) => text.split(".").every((label) => !label.startsWith("-") && !label.endsWith("-")))
  .transform((text) => text.toLowerCase());

/** A reference to a container image: a repository, then a tag or a digest. */
export const imageReference = z
  .string()
  .max(512)
  .regex(/^[a-zA-Z0-9][a-zA-Z0-9._/-]*(:[0-9]+\/[a-zA-Z0-9._/-]+)?(:[a-zA-Z0-9._-]+|@sha256:[0-9a-f]{64})$/);

/** A URL with only scheme, host and port. The value has no trailing slash. */
export const origin = z
  .string()
  .refine((text) => /^https?:\/\/[^/?#@\\\s]+\/?$/i.test(text) && URL.canParse(text))
  .transform((text) => new URL(text).origin);

/** Origins separated by commas. */
export const origins = z
  .string()
  .transform((text) => text.split(",").map((item) => item.trim()))
  .pipe(z.array(origin));

/** The URL of an HTTP proxy, with an optional user name and password. */
export const httpProxy = z.string().transform((text, context) => {
  try {
    return new HttpProxy(text);
  } catch {
    context.addIssue({ code: "custom" });
    return z.NEVER;
  }
});

/** `host:port` of a listener. */
export const listenAddress = z
  .string()
  .regex(/^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/)
  .transform((text) => {
    const colon = text.lastIndexOf(":");
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= 65535);

/** A list of IP addresses and ranges, separated by commas. The schema converts each of them to its normal form. */
export const addressRanges = z.string().transform((text, context): readonly string[] => {
  const ranges = text.split(",").map((item) => normalRange(item.trim()));
  if (ranges.every((range) => range !== undefined)) return ranges;
  context.addIssue({ code: "custom" });
  return z.NEVER;
});

/** Default ports of mail servers (RFC 8314, section 3.3). */
const SMTP_PORTS: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 };

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * The URL of a mail server, with optional credentials. The URL must not contain other parts, because they could set
 * options of the mail library.
 */
export const smtpUrl = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const port = SMTP_PORTS[url?.protocol ?? ""];
  const bare =
    url !== undefined && url.hostname !== "" && !url.search && !url.hash && /^\/?$/.test(url.pathname);
  const [user, password] = [decoded(url?.username ?? ""), decoded(url?.password ?? "")];
  if (!bare || port === undefined || user === undefined || password === undefined || !user !== !password) {
    context.addIssue({ code: "custom" });
    return z.NEVER;
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? port : Number(url.port),
    secure: url.protocol === "smtps:",
    login: user === "" ? undefined : { user, password },
  };
});
