import { EventEmitter, once } from "node:events";
import pty from "@lydell/node-pty";

/** A command that runs in a terminal. */
export interface Terminal {
  /** Everything that the terminal has shown so far. */
  shown(): string;
  /** Waits until the terminal shows the text. Throws an error if the command ends first. */
  untilShown(expected: string | RegExp): Promise<void>;
  /** Enters a line. */
  type(line: string): void;
  /** Enters characters, such as `\u0003` for Ctrl-C. */
  press(keys: string): void;
  resize(columns: number, lines: number): void;
  /** Resolves with the exit code when the command has ended. The code of a signal is 128 and its number, as in a shell. */
  readonly code: Promise<number>;
}

/** Runs a command in a terminal. */
export function openTerminal(
  command: string,
  args: readonly string[],
  { env, cols = 200, rows = 50 }: { env: NodeJS.ProcessEnv; cols?: number; rows?: number },
): Terminal {
  const terminal = pty.spawn(command, [...args], { name: "xterm-256color", cols, rows, env });
  const changed = new EventEmitter();
  let shown = "";
  let hasEnded = false;
  terminal.onData((output) => {
    shown += output;
    changed.emit("change");
  });
  const code = new Promise<number>((resolve) =>
    terminal.onExit(({ exitCode, signal }) => {
      hasEnded = true;
      changed.emit("change");
      resolve(signal ? 128 + signal : exitCode);
    }),
  );
  return {
    shown: () => shown,
    async untilShown(expected) {
      while (typeof expected === "string" ? !shown.includes(expected) : !expected.test(shown)) {
        if (hasEnded) throw new Error(`${command} ended before it printed ${expected}:\n${shown}`);
        await once(changed, "change");
      }
    },
    type: (line) => terminal.write(`${line}\r`),
    press: (keys) => terminal.write(keys),
    resize: (columns, lines) => terminal.resize(columns, lines),
    code,
  };
}
