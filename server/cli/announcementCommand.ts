import { readFileSync } from "node:fs";
import { text as readText } from "node:stream/consumers";
import { addHelpEnd, fileFailureText } from "@gatehouse-access/sdk/errors";
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

/** @throws OperatorError the file cannot be read, or the text is empty */
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
    "The standard input has no text. Pipe the Markdown text to the command, or use --file <path>.",
  );
}

async function create(io: CommandIo, flags: CreateFlags): Promise<void> {
  const request: CreateAnnouncementRequest = {
    title: flags.title,
    content: await readContent(io, flags.file),
  };
  const created = await callAdmin<{ uuid: string }>(folderOf(io, flags), "POST", "/announcements", request);
  print(io, flags.json ? JSON.stringify(created) : `Published the announcement ${created.uuid}.`);
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
  print(io, `Deleted the announcement ${uuid}.`);
}

/** `gatehouse-server admin announcement …` */
export function announcementCommand(io: CommandIo): Command {
  const announcement = new Command("announcement").description(
    "Manage announcements, which all users can read.",
  );
  announcement.addCommand(
    subcommand(
      "admin announcement create",
      "Publish an announcement. Reads the Markdown text from the standard input.",
      "--title 'Maintenance' --file news.md",
    )
      .requiredOption("--title <text>", "Title of at most 90 characters")
      .option("--file <path>", "Read the text from this file")
      .option("--json", "Print the result as JSON")
      .action((flags: CreateFlags) => create(io, flags)),
  );
  announcement.addCommand(
    subcommand("admin announcement list", "List the announcements, latest first.")
      .option("--json", "Print the result as JSON")
      .action((flags: Flags & { readonly json?: boolean }) => list(io, flags)),
  );
  announcement.addCommand(
    subcommand("admin announcement delete", "Delete an announcement.", "<id>")
      .argument("<id>", "Id of the announcement")
      .action((uuid: string, flags: Flags) => remove(io, uuid, flags)),
  );
  return addHelpEnd(announcement, {
    examples: ["gatehouse-server admin announcement list --data-dir /var/lib/gatehouse"],
    page: "docs/operate/accounts.md",
  });
}
