import { readFileSync } from "node:fs";
import { text as readText } from "node:stream/consumers";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { Command } from "commander";
import { callAdmin } from "../admin/adminClient.ts";
import type {
  AnnouncementRequest,
  CreateAnnouncementRequest,
  ListedAnnouncement,
} from "../admin/requests.ts";
import { OperatorError } from "../OperatorError.ts";
import type { Flags } from "../settings/readConfig.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { folderOf, subcommand } from "./subcommand.ts";
import { formatTable } from "./table.ts";

interface CreateFlags extends Flags {
  readonly title: string;
  readonly file?: string;
  readonly json?: boolean;
}

/** @throws OperatorError the file cannot be read, or nothing was given */
async function readContent(io: CommandIo, file: string | undefined): Promise<string> {
  if (file !== undefined) {
    try {
      return readFileSync(file, "utf8");
    } catch (error) {
      const text = fileFailureText("read", `the announcement ${file} (--file)`, error);
      throw new OperatorError(text, { cause: error });
    }
  }
  const content = io.stdin.isTTY ? "" : await readText(io.stdin);
  if (content.trim() !== "") return content;
  throw new OperatorError(
    "stdin holds no text: pipe the announcement in as Markdown, or name its file by --file",
  );
}

async function create(io: CommandIo, flags: CreateFlags): Promise<void> {
  const request: CreateAnnouncementRequest = {
    title: flags.title,
    content: await readContent(io, flags.file),
  };
  const made = await callAdmin<{ uuid: string }>(folderOf(io, flags), "POST", "/announcements", request);
  print(io, flags.json ? JSON.stringify(made) : `Announcement ${made.uuid} is shown from now on`);
}

async function list(io: CommandIo, flags: Flags & { readonly json?: boolean }): Promise<void> {
  const announcements = await callAdmin<ListedAnnouncement[]>(folderOf(io, flags), "GET", "/announcements");
  if (flags.json) return print(io, JSON.stringify(announcements));
  print(
    io,
    formatTable([
      ["DATE", "TITLE", "ID"],
      ...announcements.map(({ date, title, uuid }) => [date, title, uuid]),
    ]),
  );
}

async function remove(io: CommandIo, uuid: string, flags: Flags): Promise<void> {
  const request: AnnouncementRequest = { uuid };
  await callAdmin(folderOf(io, flags), "POST", "/delete-announcement", request);
  print(io, `Announcement ${uuid} is shown no more`);
}

/** `gatehouse-server admin announcement …` */
export function announcementCommand(io: CommandIo): Command {
  const announcement = new Command("announcement").description(
    "News of the service, which everybody may read",
  );
  announcement.addCommand(
    subcommand("create", "Write an announcement, its Markdown text from stdin")
      .requiredOption("--title <text>", "Title, at most 90 characters")
      .option("--file <path>", "Read the text from this file instead")
      .option("--json", "Print JSON")
      .action((flags: CreateFlags) => create(io, flags)),
  );
  announcement.addCommand(
    subcommand("list", "List the announcements, the latest first")
      .option("--json", "Print JSON")
      .action((flags: Flags & { readonly json?: boolean }) => list(io, flags)),
  );
  announcement.addCommand(
    subcommand("delete", "Withdraw an announcement")
      .argument("<id>", "Id of the announcement")
      .action((uuid: string, flags: Flags) => remove(io, uuid, flags)),
  );
  return announcement;
}
