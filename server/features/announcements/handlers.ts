import { announcements, type PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Announcement } from "../../db/generated/sqlite/client.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import { presenter } from "../fields.ts";

const { announcement, announcementItem } = announcements;
const presentAnnouncement = presenter<Announcement, typeof announcement>(announcement, {});
const presentItem = presenter<Omit<Announcement, "content">, typeof announcementItem>(announcementItem, {});

export const listAnnouncements: Handler<PublicOperations["listAnnouncements"]> = async (context) => {
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
  return rows.map((row) => presentItem(row));
};

export const getAnnouncement: Handler<PublicOperations["getAnnouncement"]> = async ({ services, params }) => {
  const row = await services.db.announcement.findUnique({ where: { uuid: params.uuid.toLowerCase() } });
  if (!row) throw new NotFoundError("no such announcement");
  return presentAnnouncement(row);
};
