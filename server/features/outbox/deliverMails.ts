import type { FastifyBaseLogger } from "fastify";
import type { OutgoingMail } from "../../db/generated/sqlite/client.ts";
import type { Services } from "../../services.ts";
import { accountMails } from "../users/accountMails.ts";
import { contentOf } from "./outbox.ts";

const MINUTE = 60_000;

/** Mails that are looked at in one run. */
const BATCH = 50;
/**
 * Wait before the second attempt, in milliseconds; it doubles with each one. An attempt ends before it is over, so
 * that no other instance begins one meanwhile.
 */
const FIRST_WAIT = 5 * MINUTE;
const LONGEST_WAIT = 60 * MINUTE;
/** How long it is tried, in milliseconds: the tokens in mails live as long. */
const GIVEN_UP = 24 * 60 * MINUTE;

/**
 * Sends the mails that are due. Of several instances one sends each; only where a process ends between sending a mail
 * and noting that, it is sent again.
 */
export async function deliverMails(services: Services, log: FastifyBaseLogger): Promise<void> {
  const due = await services.db.outgoingMail.findMany({
    where: { dueAt: { lte: services.now() } },
    orderBy: { dueAt: "asc" },
    take: BATCH,
  });
  for (const row of due) {
    if (!(await claim(services, row))) continue;
    try {
      if (tooOld(services, row)) {
        log.error({ mail: row.id }, "a mail could not be sent for a day, and will not be tried again");
      } else {
        await deliver(services, row);
      }
      await forget(services, row);
    } catch (error) {
      const facts = { err: error, mail: row.id, attempts: row.attempts + 1 };
      log.warn(facts, "a mail could not be sent, and will be tried again");
    }
  }
}

/** False when another instance was faster. */
async function claim(services: Services, { id, attempts }: OutgoingMail): Promise<boolean> {
  const wait = Math.min(FIRST_WAIT * 2 ** attempts, LONGEST_WAIT);
  const { count } = await services.db.outgoingMail.updateMany({
    where: { id, attempts },
    data: { attempts: attempts + 1, dueAt: new Date(services.now().getTime() + wait) },
  });
  return count === 1;
}

/** Asked before the first attempt too: a backup that is restored may have mails of long ago. */
const tooOld = ({ now }: Services, { createdAt }: OutgoingMail): boolean =>
  now().getTime() - createdAt.getTime() >= GIVEN_UP;

async function deliver(services: Services, row: OutgoingMail): Promise<void> {
  const content = contentOf(services, row);
  const mails = "mail" in content ? [content.mail] : await accountMails(services, content.request);
  for (const mail of mails) await services.mailer.send(mail);
}

async function forget(services: Services, { id }: OutgoingMail): Promise<void> {
  await services.db.outgoingMail.deleteMany({ where: { id } });
}
