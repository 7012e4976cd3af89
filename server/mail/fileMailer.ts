import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { writeDurably } from "../files/durableFile.ts";
import { type Mailer, messageOf } from "./mail.ts";

/** Maximum number of files: strangers can cause mails, and nobody may be reading them. */
const KEPT = 1000;

const SUFFIX = ".eml";

/**
 * Writes each mail into a file, for a service without a mail server: the operator can pass it on. New files replace the
 * oldest ones.
 * @param written called with the path of each new file
 * @param kept maximum number of files
 */
export function fileMailer(
  folder: string,
  from: string,
  written: (file: string) => void,
  kept = KEPT,
): Mailer {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: "windows" });
  let count = 0;
  return {
    async send(mail) {
      const { message } = await transport.sendMail(messageOf(from, mail));
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const time = new Date().toISOString().replaceAll(":", "-");
      count += 1;
      const name = `${time}-${String(count).padStart(9, "0")}-${randomBytes(4).toString("hex")}`;
      const file = join(folder, name + SUFFIX);
      writeDurably(file, message.toString());
      for (const old of oldFiles(folder, kept)) rmSync(join(folder, old), { force: true });
      written(file);
    },
  };
}

/** Files beyond the maximum, oldest first: their names begin with the time. */
function oldFiles(folder: string, kept: number): string[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(SUFFIX));
  return files.sort().slice(0, Math.max(0, files.length - kept));
}
