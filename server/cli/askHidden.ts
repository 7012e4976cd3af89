import type { Writable } from "node:stream";
import type { ReadStream } from "node:tty";
import { OperatorError } from "../OperatorError.ts";

const ENTER = ["\r", "\n"];
const END_OF_INPUT = "\u0004";
const INTERRUPT = "\u0003";
const ERASE = ["\u007f", "\b"];

/**
 * Asks at the terminal, on stderr, without showing what is typed.
 * @throws OperatorError when the person gives up (Ctrl-C, Ctrl-D)
 */
export function askHidden(stdin: ReadStream, stderr: Writable, question: string): Promise<string> {
  // First of all: what is typed from the moment that the question shows must not.
  stdin.setRawMode(true);
  stderr.write(question);
  stdin.setEncoding("utf8");
  stdin.resume();
  return new Promise((resolve, reject) => {
    let typed = "";
    const finish = (end: () => void) => {
      stdin.off("data", onData);
      stdin.setRawMode(false);
      stdin.pause();
      stderr.write("\n");
      end();
    };
    const onData = (chunk: string) => {
      for (const character of chunk) {
        if (ENTER.includes(character)) return finish(() => resolve(typed));
        if (character === INTERRUPT || character === END_OF_INPUT) {
          return finish(() => reject(new OperatorError("No password given")));
        }
        typed = ERASE.includes(character) ? [...typed].slice(0, -1).join("") : typed + character;
      }
    };
    stdin.on("data", onData);
  });
}
