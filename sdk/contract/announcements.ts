import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { dateTime, model, paging, sorting, TOTAL_COUNT } from "./schemas.ts";

const common = { part: "Announcements", edition: "cloud", auth: ["none"], scope: "public" } as const;

/** Title of an announcement (models section 11). */
export const announcementTitle = z.string().min(1).max(90);

const item = { uuid: z.uuid(), title: z.string(), date: dateTime };

export const announcementItem = model("AnnouncementItem", "An announcement of the service", z.object(item));

export const announcement = model(
  "Announcement",
  "An announcement of the service, with its text",
  z.object({ ...item, content: z.string().describe("Markdown") }),
);

export const listAnnouncements = defineOperation({
  ...common,
  id: "listAnnouncements",
  summary: "List the announcements of the service, by date",
  method: "GET",
  path: "/api/announcements",
  query: { ...paging, order_by: sorting.order_by },
  success: { headers: [TOTAL_COUNT], body: z.array(announcementItem) },
});

export const getAnnouncement = defineOperation({
  ...common,
  id: "getAnnouncement",
  summary: "Get an announcement with its text",
  method: "GET",
  path: "/api/announcements/{uuid}",
  params: { uuid: z.uuid() },
  success: { body: announcement },
  errors: { 404: "no such announcement" },
});
