import { isIP } from "node:net";
import { z } from "zod";
import { normalRange } from "../addresses.ts";

// Schemas of settings, from text to the value that the service uses.

/** A whole number of at most nine digits. */
export const wholeNumber = z
  .string()
  .regex(/^-?\d{1,9}$/)
  .transform(Number);

/** A whole number, 0 for none. */
export const countOrNone = wholeNumber.refine((count) => count >= 0);

/** host:port, the port from 1 on. */
export const hostAndPort = z.string().refine((text) => {
  const match = /^(?<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):(?<port>\d{1,5})$/.exec(text);
  return match !== null && Number(match.groups?.port) >= 1 && Number(match.groups?.port) <= 65535;
});

/** Whether a text is a URL that names a PostgreSQL server and a database on it. */
export function isPostgresql(text: string): boolean {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname } = new URL(text);
  return hostname !== "" && pathname.length > 1;
}

/** A host name or an IP address. */
export const address = z
  .string()
  .refine((text) => isIP(text) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text));
/** A domain, short enough that DNS allows a name of 32 characters below it. */
export const domain = z
  .string()
  .max(220)
  .regex(/^[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/)
  .refine((text) => text.split(".").every((label) => !label.startsWith("-") && !label.endsWith("-")))
  .transform((text) => text.toLowerCase());

/** A reference of a container image: a repository, then a tag or a digest. */
export const imageReference = z
  .string()
  .max(512)
  .regex(/^[a-zA-Z0-9][a-zA-Z0-9._/-]*(:[0-9]+\/[a-zA-Z0-9._/-]+)?(:[a-zA-Z0-9._-]+|@sha256:[0-9a-f]{64})$/);

/** A port to listen on; 0: any free one. */
export const listeningPort = wholeNumber.refine((port) => port >= 0 && port <= 65535);

/** A URL with only scheme, host and port; the value ends without a slash. */
export const origin = z
  .string()
  .refine((text) => /^https?:\/\/[^/?#@\\\s]+\/?$/i.test(text) && URL.canParse(text))
  .transform((text) => new URL(text).origin);

/** Origins separated by commas. */
export const origins = z
  .string()
  .transform((text) => text.split(",").map((item) => item.trim()))
  .pipe(z.array(origin));

/** host:port to listen on. */
export const listenAddress = z
  .string()
  .regex(/^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}$/)
  .transform((text) => {
    const colon = text.lastIndexOf(":");
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= 65535);

/** IP addresses and ranges separated by commas, in their normal form. */
export const addressRanges = z.string().transform((text, context): readonly string[] => {
  const ranges = text.split(",").map((item) => normalRange(item.trim()));
  if (ranges.every((range) => range !== undefined)) return ranges;
  context.addIssue({ code: "custom" });
  return z.NEVER;
});
