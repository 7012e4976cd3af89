// Moves the clock of a process. Load the file with NODE_OPTIONS=--import=<file>, and set MOVED_CLOCK to a file with the
// distance to the real time in milliseconds. A change of the file takes effect at once.
import { readFileSync } from "node:fs";

const RealDate = Date;
const file = process.env.MOVED_CLOCK ?? "";
const now = () => RealDate.now() + Number(readFileSync(file, "utf8"));

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
});
