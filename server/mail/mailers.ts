import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import { createTransport } from "nodemailer";
import { writeDurably } from "../files/durableFile.ts";
import { MailError, type Mailer, messageOf } from "./mail.ts";

/** Configuration of outgoing mails. */
export interface MailConfig {
  /** The configuration of the mail server. If undefined, the service writes mails to files in the data folder. */
  readonly server: SmtpServer | undefined;
  /** Address of the sender, with or without a name. */
  readonly from: string;
}

/**
 * Creates the mailer for a configuration.
 * @param log returns the logger. Called for each mail, because the logger may not exist when the mailer is created.
 */
export function mailerOf(config: MailConfig, dataDir: string, log: () => FastifyBaseLogger): Mailer {
  const { server, from } = config;
  if (server) return smtpMailer(server, from);
  return fileMailer(join(dataDir, "mail"), from, (file) => {
    log().warn(
      { file },
      "no mail server is configured: a mail was written to a file. Set GATEHOUSE_SMTP_URL",
    );
  });
}

/**
 * Maximum number of mail files. The limit is necessary because any client can make the service write mails, and an
 * operator may never read or delete them.
 */
const MAIL_FILES = 1000;

const MAIL_SUFFIX = ".eml";

/**
 * Creates a mailer for a service without a mail server. It writes each mail to a file, so that an operator can forward
 * the mail. If the maximum number of files is reached, a new file replaces the oldest file.
 * @param written called with the path of each new file
 * @param kept maximum number of files
 */
export function fileMailer(
  folder: string,
  from: string,
  written: (file: string) => void,
  kept = MAIL_FILES,
): Mailer {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: "windows" });
  let count = 0;
  return {
    async send(mail) {
      const { message } = await transport.sendMail(messageOf(from, mail));
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const time = new Date().toISOString().replaceAll(":", "-");
      count += 1;
      const name = `${time}-${String(count).padStart(9, "0")}-${randomBytes(4).toString("hex")}`;
      const file = join(folder, name + MAIL_SUFFIX);
      writeDurably(file, message.toString());
      for (const old of oldFiles(folder, kept)) rmSync(join(folder, old), { force: true });
      written(file);
    },
  };
}

/** Returns the names of the oldest files that exceed the maximum number of files. File names begin with the time. */
function oldFiles(folder: string, kept: number): string[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(MAIL_SUFFIX));
  return files.sort().slice(0, Math.max(0, files.length - kept));
}

/** A mail server, and the service's credentials for this server. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** True for TLS from the first byte, false for STARTTLS. */
  readonly secure: boolean;
  /** Credentials for the server. Undefined if the server needs no login. */
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /**
   * TLS policy. `required`: always TLS, with a valid certificate for the server's name. `offered`: TLS only if the
   * server offers TLS, with a valid certificate for the server's name. `unchecked`: TLS only if the server offers TLS,
   * with any certificate.
   */
  readonly tls: "required" | "offered" | "unchecked";
}

/** Timeouts, in milliseconds, for name resolution, connection, greeting and each response. */
const TIMEOUTS = {
  dnsTimeout: 10_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 20_000,
};

/**
 * Creates a mailer that sends mails by SMTP. Each mail uses a separate connection.
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
        throw new MailError(`cannot send the mail through ${host}:${port}: ${codesOf(error)}`);
      }
    },
  };
}

/**
 * Returns the error codes of the library and the server. Omits the server's error text, which may contain the
 * recipient's address.
 */
function codesOf(error: unknown): string {
  const { code, command, responseCode } = error as Readonly<Record<string, unknown>>;
  const parts = [
    code ?? "unknown error",
    command && `at ${command}`,
    responseCode && `response ${responseCode}`,
  ];
  return parts.filter(Boolean).join(", ");
}
