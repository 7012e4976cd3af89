import { Readable, Writable } from "node:stream";
import { main } from "../../server/main.ts";
import { type CommandOptions, type CommandResult, environmentWithout } from "./command.ts";

/** The settings of `gatehouse-server` in an environment. */
export const SETTINGS = "GATEHOUSE_";

/** A stream that keeps what is written. */
function collecting() {
  const chunks: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write: (chunk: string | Buffer, _encoding, done) => {
      chunks.push(String(chunk));
      done();
    },
  });
  return { stream, text: () => chunks.join("") };
}

/**
 * Runs `gatehouse-server` with the given arguments to its end in this process, which takes a hundredth of the time that
 * a process of its own takes. For commands that end by themselves, and for `serve` where it is refused before it logs.
 */
export async function callServerCommand(
  args: readonly string[],
  { env = {}, stdin = "" }: Pick<CommandOptions, "env" | "stdin"> = {},
): Promise<CommandResult> {
  const [stdout, stderr] = [collecting(), collecting()];
  // `serve` takes another one for its process.
  const umask = process.umask();
  try {
    const code = await main(args, {
      env: { ...environmentWithout(SETTINGS), ...env },
      stdin: Readable.from([stdin]),
      stdout: stdout.stream,
      stderr: stderr.stream,
    });
    return { code, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    process.umask(umask);
  }
}
