import { createTransport } from "nodemailer";
import { MailError, type Mailer, messageOf } from "./mail.ts";

/** A mail server, and who the service is there. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte, else STARTTLS. */
  readonly secure: boolean;
  /** Undefined: without a login. */
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /**
   * `required`: nothing is sent without it, and the certificate must be one of the server's name; `offered`: the same
   * where the server offers it; `unchecked`: where it offers it, whatever the certificate.
   */
  readonly tls: "required" | "offered" | "unchecked";
}

/** In milliseconds: for a connection, for the greeting, and for each answer. */
const TIMEOUTS = {
  dnsTimeout: 10_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 20_000,
};

/**
 * Sends by SMTP, each mail over a connection of its own.
 * @param from the address that mails come from, with a name or without
 */
export function smtpMailer(server: SmtpServer, from: string): Mailer {
  const { host, port, secure, login, tls } = server;
  const transport = createTransport({
    host,
    port,
    secure,
    requireTLS: tls === "required",
    tls: { minVersion: "TLSv1.2", rejectUnauthorized: tls !== "unchecked" },
    ...(login && { auth: { user: login.user, pass: login.password } }),
    ...TIMEOUTS,
  });
  return {
    async send(mail) {
      const message = messageOf(from, mail);
      try {
        await transport.sendMail(message);
      } catch (error) {
        throw new MailError(`${host}:${port} did not take it: ${reasonOf(error)}`);
      }
    },
  };
}

/** What the library and the server say by code; the server's own words may repeat the address. */
function reasonOf(error: unknown): string {
  const { code, command, responseCode } = error as Readonly<Record<string, unknown>>;
  const parts = [
    code ?? "unknown error",
    command && `at ${command}`,
    responseCode && `answer ${responseCode}`,
  ];
  return parts.filter(Boolean).join(", ");
}
