import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call } from "../../support/call.ts";
import { testFolder } from "../../support/folder.ts";
import { startService } from "../../support/service.ts";
import { shared } from "../../support/shared.ts";
import { expectFailure } from "./failure.ts";

const service = shared(() =>
  startService({ env: { GATEHOUSE_EDITION: "cloud", GATEHOUSE_PUBLIC_URL: "https://access.example.com" } }),
);

const command = (...args: string[]) => ["announcement", ...args];
const shown = async (): Promise<{ uuid: string; title: string }[]> =>
  (await call(service, "GET /api/announcements")).body;
const content = async (uuid: string) => (await call(service, `GET /api/announcements/${uuid}`)).body.content;

test("creates an announcement from stdin or a file, lists it, and deletes it", async () => {
  const first = await service.admin(command("create", "--title", "Window"), "# Plan\n\nShort outage.\n");
  const uuid = /^Published the announcement (\S+)\.\n$/.exec(first.stdout)?.[1] ?? "";
  expect(await content(uuid)).toBe("# Plan\n\nShort outage.\n");

  const file = join(testFolder(), "news.md");
  writeFileSync(file, "More *news*");
  const second = await service.admin(command("create", "--title", "More", "--file", file, "--json"));
  const created = JSON.parse(second.stdout) as { uuid: string };
  expect(await content(created.uuid)).toBe("More *news*");
  expect((await shown()).map(({ title }) => title)).toEqual(["More", "Window"]);

  const listed = await service.admin(command("list"));
  expect(listed.stdout).toMatch(
    new RegExp(`^DATE +TITLE +ID\\n\\S+ +More +${created.uuid}\\n\\S+ +Window +${uuid}\\n$`),
  );
  expect(await service.admin(command("delete", uuid.toUpperCase()))).toMatchObject({ code: 0, stderr: "" });
  expect((await shown()).map(({ title }) => title)).toEqual(["More"]);

  const trail = JSON.parse((await service.admin(["audit", "--json", "--limit", "3"])).stdout) as object[];
  expect(trail).toMatchObject([
    {
      operation: "announcement delete",
      object: { kind: "announcement", id: uuid },
      before: { title: "Window" },
    },
    { operation: "announcement create", after: { title: "More" } },
    { operation: "announcement create", actor: { kind: "operator" }, after: { title: "Window" } },
  ]);
});

test.each([
  ["a title that is too long", ["create", "--title", "x".repeat(91)], "text", "title must have"],
  ["no text", ["create", "--title", "x"], " \n", "The standard input has no text"],
  ["a missing file", ["create", "--title", "x", "--file", "/nonexistent"], "", "(--file)"],
  ["an unknown id", ["delete", "0d6a1f7e-53c8-4c0e-8a6b-19d1f0b7c3aa"], "", "no announcement has the id"],
  ["a malformed id", ["delete", "nonsense"], "", "uuid must be"],
])("rejects %s", async (_case, args, stdin, reason) => {
  expectFailure(await service.admin(command(...args), stdin), reason);
});
