import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

/** A mail that the test's server received. */
interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** The headers and the text, unchanged. */
  readonly raw: string;
  readonly encrypted: boolean;
  readonly user: unknown;
}

/** A mail server in this process. Clients do not trust its certificate. */
interface TestSmtpServer {
  readonly port: number;
  readonly received: readonly ReceivedMail[];
  stop(): Promise<void>;
}

export const SMTP_LOGIN = { user: "gate", password: "s3cret-of-mails" };

/** @param options options of the library, for example to disable STARTTLS or to change the response to a recipient */
export async function startSmtpServer(options: SMTPServerOptions = {}): Promise<TestSmtpServer> {
  const received: ReceivedMail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    onAuth: ({ username, password }, _session, done) => {
      const right = username === SMTP_LOGIN.user && password === SMTP_LOGIN.password;
      done(right ? null : new Error("wrong login"), right ? { user: username } : undefined);
    },
    onData: (stream, { envelope, secure, user }, done) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        received.push({
          from: envelope.mailFrom ? envelope.mailFrom.address : "",
          to: envelope.rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
          encrypted: secure,
          user,
        });
        done();
      });
    },
    ...options,
  });
  // A client that rejects the certificate closes the connection.
  server.on("error", () => {});
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
