import { email } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { setting } from "./setting.ts";

/** Default ports of mail servers (RFC 8314, section 3.3). */
const SMTP_PORTS: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 };

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** A mail server with its login: a URL without any other part, so that it cannot set options of the library. */
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

/** Settings of the mail server. */
export const mailSettings = {
  smtpUrl: setting({
    variable: "GATEHOUSE_SMTP_URL",
    value: "url",
    about:
      "Mail server. Left out: mails are written into files in the folder `mail` of the data folder, for the operator " +
      "to hand on",
    allowed:
      "smtp://[user:password@]host[:port], which uses STARTTLS, or smtps://[user:password@]host[:port], special " +
      "characters of user and password in percent encoding",
    secret: true,
    schema: smtpUrl.optional(),
  }),
  smtpTls: setting({
    variable: "GATEHOUSE_SMTP_TLS",
    flag: "--smtp-tls",
    value: "when",
    about:
      "Whether mails may go to the mail server without TLS: required (never), or offered (when it offers none); to a " +
      "server on this machine they always may",
    allowed: "required or offered",
    fallback: "required",
    schema: z.enum(["required", "offered"]),
  }),
  mailFrom: setting({
    variable: "GATEHOUSE_MAIL_FROM",
    flag: "--mail-from",
    value: "address",
    about: "Address that mails come from; needed with a mail server",
    allowed: "an e-mail address",
    schema: email.optional(),
  }),
};
