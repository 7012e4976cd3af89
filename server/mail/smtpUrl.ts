import { z } from "zod";

/** Default ports of mail servers (RFC 8314, section 3.3). */
const SMTP_PORTS: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 };

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** A mail server with its login: a URL that has nothing else, so that no option of the library can come with it. */
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
