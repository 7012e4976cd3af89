import { appendFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Saves what a test typed and what the commands printed, if `GATEHOUSE_TRANSCRIPT` is set: to a file of its own in this
 * folder, or at the end of this file.
 */
export function saveTranscript(page: string, transcript: string): void {
  const { GATEHOUSE_TRANSCRIPT: place } = process.env;
  if (place === undefined) return;
  const isFolder = statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isFolder) writeFileSync(join(place, `${page.replaceAll("/", "-")}.txt`), transcript);
  else appendFileSync(place, `# ${page}\n\n${transcript}\n`);
}
