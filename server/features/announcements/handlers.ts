import type { announcements, PublicOperations } from "@gatehouse-access/sdk/contract";
import { NotFoundError } from "../../errors.ts";
import type { Handler, Handlers } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import { wireDate } from "../wireDate.ts";

const listAnnouncements: Handler<PublicOperations["listAnnouncements"]> = async (context) => {
  const { services, query, header } = context;
  const order = query.order_by ?? "desc";
  const [total, rows] = await Promise.all([
    services.db.announcement.count(),
    services.db.announcement.findMany({
      select: { uuid: true, title: true, date: true },
      orderBy: [{ date: order }, { uuid: order }],
      ...pageOf(query),
    }),
  ]);
  header("X-Total-Count", total);
  return rows.map((row) => ({ uuid: row.uuid, title: row.title, date: wireDate(row.date) }));
};

const getAnnouncement: Handler<PublicOperations["getAnnouncement"]> = async ({ services, params }) => {
  const row = await services.db.announcement.findUnique({ where: { uuid: params.uuid.toLowerCase() } });
  if (!row) throw new NotFoundError("no such announcement");
  return { uuid: row.uuid, title: row.title, content: row.content, date: wireDate(row.date) };
};

export const announcementHandlers: Handlers<
  Pick<PublicOperations, keyof typeof announcements & keyof PublicOperations>
> = { listAnnouncements, getAnnouncement };
