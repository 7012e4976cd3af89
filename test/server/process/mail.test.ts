import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { MailError } from "../../../server/mail/mail.ts";
import { fileMailer, type SmtpServer, smtpMailer } from "../../../server/mail/mailers.ts";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { testService } from "../../support/service.ts";
import { SMTP_LOGIN, startSmtpServer } from "../../support/smtpServer.ts";

const FROM = "gate@example.org";
const mail = { to: "ana@example.org", subject: "Grüße", text: "https://gate.example.org/?token=t0ken\n" };

async function server(options: Parameters<typeof startSmtpServer>[0] = {}) {
  const smtp = await startSmtpServer(options);
  onTestFinished(() => smtp.stop());
  return smtp;
}

const mailer = (port: number, options: Partial<SmtpServer> = {}) =>
  smtpMailer(
    { host: "127.0.0.1", port, secure: false, login: undefined, tls: "unchecked", ...options },
    FROM,
  );

/**
 * Returns the error message of a failed mail delivery. Checks that the message contains neither the SMTP password nor
 * the mail's address and text.
 */
async function failureOf(sending: Promise<void>): Promise<string> {
  const error = await sending.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof MailError)) throw new Error(`no MailError: ${error}`);
  const shown = JSON.stringify(error, Object.getOwnPropertyNames(error));
  for (const secret of [SMTP_LOGIN.password, mail.to, "t0ken"]) expect(shown).not.toContain(secret);
  return error.message;
}

test("sends a mail with STARTTLS and a login", async () => {
  const smtp = await server();
  await mailer(smtp.port, { login: SMTP_LOGIN }).send(mail);
  expect(smtp.received).toMatchObject([
    { from: FROM, to: [mail.to], encrypted: true, user: SMTP_LOGIN.user },
  ]);
  const { raw } = smtp.received[0] ?? { raw: "" };
  expect(raw).toContain("Subject: =?UTF-8?");
  expect(raw).toContain("Auto-Submitted: auto-generated");
  expect(raw).toContain("token");
});

test("sends a mail with TLS from the first byte", async () => {
  const smtp = await server({ secure: true });
  await mailer(smtp.port, { secure: true }).send(mail);
  expect(smtp.received).toMatchObject([{ encrypted: true }]);
});

test.each([false, true])("with TLS required, rejects an untrusted certificate (%s)", async (secure) => {
  const smtp = await server({ secure });
  const failure = await failureOf(
    mailer(smtp.port, { secure, tls: "required", login: SMTP_LOGIN }).send(mail),
  );
  expect(failure).toMatch(/^cannot send the mail through 127\.0\.0\.1:\d+: E/);
  expect(smtp.received).toEqual([]);
});

test("with TLS required, sends neither a mail nor a login without TLS", async () => {
  let logins = 0;
  const smtp = await server({
    hideSTARTTLS: true,
    allowInsecureAuth: true,
    onAuth: (_auth, _session, done) => {
      logins += 1;
      done(null, { user: "user" });
    },
  });
  await failureOf(mailer(smtp.port, { tls: "required", login: SMTP_LOGIN }).send(mail));
  expect([logins, smtp.received]).toEqual([0, []]);
  await mailer(smtp.port, { tls: "offered", login: SMTP_LOGIN }).send(mail);
  expect([logins, smtp.received.length]).toEqual([1, 1]);
});

test("a wrong login, a rejected recipient and a server that is down are errors", async () => {
  const smtp = await server({
    onRcptTo: (_address, _session, done) =>
      done(Object.assign(new Error(`no ${mail.to} here`), { responseCode: 550 })),
  });
  const wrong = { ...SMTP_LOGIN, password: "wrong" };
  expect(await failureOf(mailer(smtp.port, { login: wrong }).send(mail))).toContain("EAUTH");
  expect(await failureOf(mailer(smtp.port).send(mail))).toContain("response 550");
  expect(smtp.received).toEqual([]);
  await smtp.stop();
  expect(await failureOf(mailer(smtp.port).send(mail))).toContain("cannot send the mail");
});

test.each([
  [{ to: "ana@example.org\r\nBcc: eve@example.org" }, "to must be one e-mail address"],
  [{ to: "ana@example.org, eve@example.org" }, "to must be one e-mail address"],
  [{ to: "Eve <eve@example.org>" }, "to must be one e-mail address"],
  [{ subject: "Hello\r\nBcc: eve@example.org" }, "subject must be one line"],
])("%j adds no header and no second recipient", async (more, message) => {
  const smtp = await server();
  await expect(mailer(smtp.port).send({ ...mail, ...more })).rejects.toThrow(message);
  expect(smtp.received).toEqual([]);
});

test("without a mail server, stores each mail in a file for its user only, and deletes old files", async () => {
  const folder = join(testFolder(), "mail");
  const files: string[] = [];
  const sender = fileMailer(folder, FROM, (file) => files.push(file), 3);
  await sender.send({ ...mail, text: "a line\n" });
  const [file = ""] = files;
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const text = readFileSync(file, "utf8");
  for (const part of ["To: ana@example.org", "From: gate@example.org", "a line"])
    expect(text).toContain(part);
  for (let count = 0; count < 3; count += 1) await sender.send(mail);
  expect(readdirSync(folder).map((name) => join(folder, name))).toEqual(files.slice(1));
});

describe("a cloud instance", () => {
  const cloud = { GATEHOUSE_EDITION: "cloud", GATEHOUSE_PUBLIC_URL: "https://gate.example.org" };
  const account = {
    name: "Ana",
    email: mail.to,
    username: "ana",
    password: "pw-of-ana",
    email_marketing: false,
  };

  async function start(env: Readonly<Record<string, string>>) {
    const service = await testService({ env: { ...cloud, ...env } });
    const headers = { host: "evil.example" };
    const answer = await call(service, "POST /api/register", { body: account, headers });
    expect(answer.status).toBe(200);
    return service;
  }
  const tokenIn = (text: string) =>
    /token=3D([0-9a-f-]{36})|token=([0-9a-f-]{36})/.exec(text.replaceAll("=\r\n", ""));

  test("mails the link that confirms an account, and logs neither token nor password", {
    tags: ["long"],
  }, async () => {
    const smtp = await server();
    const { user, password } = SMTP_LOGIN;
    const service = await start({
      GATEHOUSE_SMTP_URL: `smtp://${user}:${password}@127.0.0.1:${smtp.port}`,
      GATEHOUSE_MAIL_FROM: FROM,
    });
    await vi.waitFor(() => expect(smtp.received.length).toBe(1), { timeout: 20_000, interval: 100 });
    const token = tokenIn(smtp.received[0]?.raw ?? "");
    expect(smtp.received[0]).toMatchObject({ to: [mail.to], user });
    expect(smtp.received[0]?.raw).toContain("https://gate.example.org/validation-account");
    for (const secret of [password, account.password, token?.[1] ?? token?.[2] ?? "no token"]) {
      expect(service.output()).not.toContain(secret);
    }
  });

  test("without a mail server, logs the name of the mail's file", { tags: ["long"] }, async () => {
    const service = await start({});
    const line = () => service.logs().find(({ file }) => typeof file === "string");
    await vi.waitFor(() => expect(line()).toBeDefined(), { timeout: 20_000, interval: 100 });
    const file = String(line()?.file);
    expect(file.startsWith(join(service.dataDir, "mail"))).toBe(true);
    const token = tokenIn(readFileSync(file, "utf8"));
    expect(service.output()).not.toContain(token?.[1] ?? token?.[2] ?? "no token");
  });
});
