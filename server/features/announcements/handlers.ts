import { announcements, type PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Announcement } from "../../db/generated/sqlite/client.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { readPage } from "../../lists/page.ts";
import { presenter } from "../fields.ts";

const { announcement, announcementItem } = announcements;
const presentAnnouncement = presenter<Announcement, typeof announcement>(announcement, {});
// The list does not read the content of the announcements, which can be long.
const ITEM = { uuid: true, title: true, date: true } as const;
const presentItem = presenter<Pick<Announcement, keyof typeof ITEM>, typeof announcementItem>(
  announcementItem,
  {},
);

export const listAnnouncements: Handler<PublicOperations["listAnnouncements"]> = async (context) => {
  const { services, query } = context;
  const order = query.order_by ?? "desc";
  const rows = await readPage(context, services.db.announcement, {
    select: ITEM,
    where: {},
    orderBy: [{ date: order }, { uuid: order }],
  });
  return rows.map((row) => presentItem(row));
};

export const getAnnouncement: Handler<PublicOperations["getAnnouncement"]> = async ({ services, params }) => {
  const row = await services.db.announcement.findUnique({ where: { uuid: params.uuid.toLowerCase() } });
  if (!row) throw new NotFoundError("no such announcement");
  return presentAnnouncement(row);
};
