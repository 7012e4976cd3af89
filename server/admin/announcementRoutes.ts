import { randomUUID } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { recordChange } from "../features/audit/recordChange.ts";
import type { Declared } from "../features/objects/managedObject.ts";
import { inTransaction, within } from "../features/transaction.ts";
import { InvalidError, NotFoundError } from "../http/errors.ts";
import type { Services } from "../services.ts";
import { parseRequest } from "./parseRequest.ts";
import { announcementRequest, createAnnouncementRequest, type ListedAnnouncement } from "./requests.ts";

/** Most announcements that are listed; the latest ones. */
const LISTED = 1000;

interface AnnouncementChange {
  readonly operation: string;
  readonly uuid: string;
  readonly before: Declared | null;
  readonly after: Declared | null;
}

/** Routes of the administration server by which an operator writes and withdraws announcements. */
export function registerAnnouncements(app: FastifyInstance, services: Services): void {
  const record = (
    inside: Services,
    requestId: string,
    { operation, uuid, before, after }: AnnouncementChange,
  ) =>
    recordChange(inside, {
      tenantId: null,
      caller: { kind: "operator" },
      requestId,
      address: "",
      operation,
      object: { kind: "announcement", id: uuid },
      before,
      after,
    });

  app.post("/announcements", async (request, reply) => {
    if (services.settings.edition !== "cloud") {
      throw new InvalidError("Announcements are shown by the cloud edition only (GATEHOUSE_EDITION)");
    }
    const { title, content } = parseRequest(createAnnouncementRequest, request.body);
    const uuid = randomUUID();
    await inTransaction(services, async (tx) => {
      await tx.announcement.create({ data: { uuid, title, content, date: services.now() } });
      const change = { operation: "announcement create", uuid, before: null, after: { title } };
      await record(within(services, tx), request.id, change);
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
      const change = { operation: "announcement delete", uuid, before: { title: row.title }, after: null };
      await record(within(services, tx), request.id, change);
    });
    request.log.info({ uuid }, "announcement deleted by an administrator");
    return reply.code(200).send({ uuid });
  });
}
