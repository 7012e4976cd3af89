import { randomUUID } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { inTransaction, within } from "../db/sql/transaction.ts";
import { InvalidError, NotFoundError } from "../errors.ts";
import type { Services } from "../services.ts";
import { parseRequest } from "./parseRequest.ts";
import { recordOperator } from "./recordOperator.ts";
import { announcementRequest, createAnnouncementRequest, type ListedAnnouncement } from "./requests.ts";

/** Maximum number of listed announcements. Older announcements are omitted. */
const LISTED = 1000;

/** Adds the routes with which an operator writes and deletes announcements. */
export function registerAnnouncements(app: FastifyInstance, services: Services): void {
  app.post("/announcements", async (request, reply) => {
    if (services.settings.edition !== "cloud") {
      throw new InvalidError("Only the cloud edition shows announcements (GATEHOUSE_EDITION)");
    }
    const { title, content } = parseRequest(createAnnouncementRequest, request.body);
    const uuid = randomUUID();
    await inTransaction(services, async (tx) => {
      await tx.announcement.create({ data: { uuid, title, content, date: services.now() } });
      await recordOperator(within(services, tx), request, {
        operation: "announcement create",
        object: { kind: "announcement", id: uuid },
        after: { title },
      });
    });
    request.log.info({ uuid }, "announcement written by an administrator");
    return reply.code(201).send({ uuid });
  });

  app.get("/announcements", async (): Promise<ListedAnnouncement[]> => {
    const rows = await services.db.announcement.findMany({
      select: { uuid: true, title: true, date: true },
      orderBy: [{ date: "desc" }, { uuid: "desc" }],
      take: LISTED,
    });
    return rows.map(({ uuid, title, date }) => ({ uuid, title, date: date.toISOString() }));
  });

  app.post("/delete-announcement", async (request, reply) => {
    const { uuid } = parseRequest(announcementRequest, request.body);
    await inTransaction(services, async (tx) => {
      const row = await tx.announcement.findUnique({ where: { uuid }, select: { title: true } });
      if (!row) throw new NotFoundError(`no announcement has the id ${uuid}`);
      await tx.announcement.delete({ where: { uuid } });
      await recordOperator(within(services, tx), request, {
        operation: "announcement delete",
        object: { kind: "announcement", id: uuid },
        before: { title: row.title },
      });
    });
    request.log.info({ uuid }, "announcement deleted by an administrator");
    return reply.code(200).send({ uuid });
  });
}
