import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { OperatorError } from "../OperatorError.ts";

/**
 * Maximum length, in bytes, of the path of a unix socket. All systems accept this length (macOS accepts 103 bytes,
 * Linux 107).
 */
const LONGEST_PATH = 103;

const fits = (path: string): boolean => Buffer.byteLength(path) <= LONGEST_PATH;

/**
 * Returns a path for a unix socket in the data folder. If that path would be too long, creates a private folder in the
 * temporary folder and returns a path in the private folder.
 * @param purpose name of the socket in error messages
 * @throws OperatorError the path in the temporary folder is too long as well
 */
export function placeSocket(folder: string, name: string, purpose: string): string {
  const path = join(folder, name);
  if (fits(path)) return path;
  const short = join(mkdtempSync(join(tmpdir(), "gatehouse-")), name);
  if (fits(short)) return short;
  rmdirSync(dirname(short));
  throw new OperatorError(
    `The paths of the data folder and of the temporary folder (TMPDIR) are too long for the ${purpose}. Shorten one of ` +
      `${path} and ${short} to at most ${LONGEST_PATH} bytes`,
  );
}
