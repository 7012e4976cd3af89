import { beforeAll, expect, test } from "vitest";
import { withSharedApp } from "../http/appOfTest.ts";
import { valuesOf } from "../http/testApp.ts";

const app = withSharedApp({ edition: "cloud" });
beforeAll(async () => {
  const day = (n: number) => new Date(Date.UTC(2026, 0, n));
  await app.services.db.announcement.createMany({
    data: [1, 2, 3].map((n) => ({
      uuid: `0d6a1f7e-53c8-4c0e-8a6b-19d1f0b7c3a${n}`,
      title: `News ${n}`,
      content: `# Text ${n}`,
      date: day(n),
    })),
  });
});

const list = (query = {}) => app.call("listAnnouncements", { query });

test("lists announcements without a login, latest first, without their texts", async () => {
  const { body, headers } = await list();
  expect(headers.get("x-total-count")).toBe("3");
  expect(valuesOf(body, "title")).toEqual(["News 3", "News 2", "News 1"]);
  expect(body[0]).toEqual({
    uuid: "0d6a1f7e-53c8-4c0e-8a6b-19d1f0b7c3a3",
    title: "News 3",
    date: "2026-01-03T00:00:00.000Z",
  });
});

test("returns pages, and the oldest first on request", async () => {
  const { body, headers } = await list({ order_by: "asc", page: 2, per_page: 2 });
  expect(valuesOf(body, "title")).toEqual(["News 3"]);
  expect(headers.get("x-total-count")).toBe("3");
  expect((await list({ order_by: "sideways" })).status).toBe(400);
});

test("returns one announcement with its text", async () => {
  const [first] = (await list()).body;
  const { body } = await app.call("getAnnouncement", { params: { uuid: first.uuid } });
  expect(body).toEqual({ ...first, content: "# Text 3" });
  const unknown = { uuid: "00000000-0000-4000-8000-000000000000" };
  expect((await app.call("getAnnouncement", { params: unknown })).status).toBe(404);
  expect((await app.call("getAnnouncement", { params: { uuid: "nonsense" } })).status).toBe(404);
});
