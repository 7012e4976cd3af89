import { createTransport } from "nodemailer";
import { MailError, type Mailer, messageOf } from "./mail.ts";

/** A mail server, and the service's login there. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** True: TLS from the first byte; false: STARTTLS. */
  readonly secure: boolean;
  /** Undefined: without a login. */
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /**
   * `required`: TLS always, with a certificate for the server's name; `offered`: the same if the server offers TLS;
   * `unchecked`: TLS if offered, with any certificate.
   */
  readonly tls: "required" | "offered" | "unchecked";
}

/** Timeouts in milliseconds: of name resolution, connection, greeting and each response. */
const TIMEOUTS = {
  dnsTimeout: 10_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 20_000,
};

/**
 * Sends by SMTP, each mail over a connection of its own.
 * @param from address of the sender, with or without a name
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
        throw new MailError(`${host}:${port} did not take it: ${codesOf(error)}`);
      }
    },
  };
}

/** The codes of the library and the server; the server's text may repeat the address. */
function codesOf(error: unknown): string {
  const { code, command, responseCode } = error as Readonly<Record<string, unknown>>;
  const parts = [
    code ?? "unknown error",
    command && `at ${command}`,
    responseCode && `answer ${responseCode}`,
  ];
  return parts.filter(Boolean).join(", ");
}
