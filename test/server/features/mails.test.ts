import type { FastifyBaseLogger } from "fastify";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { inTransaction, within } from "../../../server/db/sql/transaction.ts";
import { deliverMails } from "../../../server/features/outbox/deliverMails.ts";
import { queueMail } from "../../../server/features/outbox/outbox.ts";
import { smtpMailer } from "../../../server/mail/mailers.ts";
import { startSmtpServer } from "../../support/smtpServer.ts";
import { withApp } from "../http/appOfTest.ts";

const mail = { to: "ana@example.org", subject: "Hello", text: "https://gate.example.org/?token=t0ken\n" };
const HOUR = 3600;

let lines: string[];
const app = withApp({ edition: "cloud" });
beforeEach(async () => {
  app.stopClock();
  lines = [];
});

/** A fake logger for the two log levels that the mailer uses. */
const log = () => {
  const write = (level: string) => (facts: object, message: string) => {
    lines.push(JSON.stringify([level, message, facts, (facts as { err?: Error }).err?.message]));
  };
  return { warn: write("warn"), error: write("error") } as unknown as FastifyBaseLogger;
};
const waiting = () => app.services.db.outgoingMail.count();

/** Delivers mails by SMTP to the given port. */
const deliverTo = (port: number) => {
  const server = { host: "127.0.0.1", port, secure: false, login: undefined, tls: "unchecked" } as const;
  return deliverMails({ ...app.services, mailer: smtpMailer(server, "gate@example.org") }, log());
};

test("keeps a mail while the mail server is down, and sends it later", async () => {
  const down = await startSmtpServer();
  await down.stop();
  await queueMail(app.services, mail);
  await deliverTo(down.port);
  expect([await waiting(), lines.length]).toEqual([1, 1]);
  expect(lines[0]).toContain("cannot send the mail");
  for (const secret of [mail.to, "t0ken"]) expect(lines[0]).not.toContain(secret);

  const up = await startSmtpServer();
  onTestFinished(() => up.stop());
  await deliverTo(up.port);
  expect(up.received).toEqual([]);
  app.pass(5 * 60);
  await deliverTo(up.port);
  await deliverTo(up.port);
  expect(up.received).toMatchObject([{ to: [mail.to] }]);
  expect(await waiting()).toBe(0);
});

test("tries a mail for a day, at increasing intervals", async () => {
  await queueMail(app.services, mail);
  let attempts = 0;
  const mailer = {
    send: async () => {
      attempts += 1;
      throw new Error("no");
    },
  };
  const hours: number[] = [];
  for (let hour = 0; hour < 30; hour += 1) {
    await deliverMails({ ...app.services, mailer }, log());
    hours.push(attempts);
    app.pass(HOUR);
  }
  expect([hours[0], hours[23], hours[24], hours[29]]).toEqual([1, 24, 24, 24]);
  expect(await waiting()).toBe(0);
  expect(lines.at(-1)).toContain("was discarded");
});

test("does not send a mail of a backup that was restored days later", async () => {
  await queueMail(app.services, mail);
  app.pass(24 * HOUR);
  await app.deliverMails();
  expect([app.mails, await waiting()]).toEqual([[], 0]);
});

test("sends each mail from one of several instances", async () => {
  for (let count = 0; count < 10; count += 1) await queueMail(app.services, { ...mail, subject: `${count}` });
  await Promise.all([app.deliverMails(), app.deliverMails(), app.deliverMails()]);
  expect(app.mails.map(({ subject }) => Number(subject)).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("sends other mails if one mail cannot be sent", async () => {
  await queueMail(app.services, { ...mail, to: "no address at all" });
  await queueMail(app.services, mail);
  const smtp = await startSmtpServer();
  onTestFinished(() => smtp.stop());
  await deliverTo(smtp.port);
  expect(smtp.received.length).toBe(1);
  expect(await waiting()).toBe(1);
});

test("sends no mail of a transaction that was rolled back", async () => {
  const rolledBack = inTransaction(app.services, async (tx) => {
    await queueMail(within(app.services, tx), mail);
    throw new Error("undo");
  });
  await expect(rolledBack).rejects.toThrow("undo");
  await app.deliverMails();
  expect(app.mails).toEqual([]);
});

test("encrypts a waiting mail, and rejects another mail's content", async () => {
  await queueMail(app.services, mail);
  await queueMail(app.services, { ...mail, to: "eve@example.org" });
  const [one, two] = await app.services.db.outgoingMail.findMany();
  if (!one || !two) throw new Error("no mails");
  expect(JSON.stringify([one, two])).not.toContain("example.org");
  await app.services.db.outgoingMail.update({ where: { id: one.id }, data: { sealed: two.sealed } });
  await app.deliverMails();
  expect([app.mails.length, await waiting()]).toEqual([1, 1]);
});
