import { DAY, HOUR, MINUTE } from "@gatehouse-access/sdk/times";
import type { FastifyBaseLogger } from "fastify";
import type { OutgoingMail } from "../../db/generated/sqlite/client.ts";
import type { Services } from "../../services.ts";
import { accountMails } from "../users/mails/accountMails.ts";
import { contentOf } from "./outbox.ts";

/** Maximum number of mails per run. */
const BATCH = 50;
/**
 * Delay before the second attempt, in milliseconds. The delay doubles with each attempt. An attempt takes less time
 * than the delay, so two instances never try to send the same mail at the same time.
 */
const FIRST_WAIT = 5 * MINUTE;
const LONGEST_WAIT = HOUR;
/** Age at which a mail is discarded, in milliseconds. The tokens in mails have the same lifetime. */
const GIVEN_UP = DAY;

/**
 * Sends the mails that are due. If several instances run, only one of them reserves and sends each mail. There is one
 * exception: a mail is sent again if a process stops after it sent the mail and before it deleted the row of the mail.
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
        log.error({ mail: row.id }, "a mail could not be sent for a day and was discarded");
      } else {
        await deliver(services, row);
      }
      await remove(services, row);
    } catch (error) {
      const facts = { err: error, mail: row.id, attempts: row.attempts + 1 };
      log.warn(facts, "a mail could not be sent and will be retried");
    }
  }
}

/** Reserves a mail for this instance. Returns false if a different instance has already reserved the mail. */
async function claim(services: Services, { id, attempts }: OutgoingMail): Promise<boolean> {
  const wait = Math.min(FIRST_WAIT * 2 ** attempts, LONGEST_WAIT);
  const { count } = await services.db.outgoingMail.updateMany({
    where: { id, attempts },
    data: { attempts: attempts + 1, dueAt: new Date(services.now().getTime() + wait) },
  });
  return count === 1;
}

/**
 * Returns true if a mail is too old to be sent. The service also checks the age before the first attempt, because a
 * restored backup can contain old mails.
 */
const tooOld = ({ now }: Services, { createdAt }: OutgoingMail): boolean =>
  now().getTime() - createdAt.getTime() >= GIVEN_UP;

async function deliver(services: Services, row: OutgoingMail): Promise<void> {
  const content = contentOf(services, row);
  const mails = "mail" in content ? [content.mail] : await accountMails(services, content.request);
  for (const mail of mails) await services.mailer.send(mail);
}

async function remove(services: Services, { id }: OutgoingMail): Promise<void> {
  await services.db.outgoingMail.deleteMany({ where: { id } });
}
