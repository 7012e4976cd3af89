import { email } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { smtpUrl } from "../mail/smtpUrl.ts";
import { setting } from "./setting.ts";

/** How mails leave the service. */
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
