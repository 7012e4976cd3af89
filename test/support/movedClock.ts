// Moves the clock of a process. Load the file with NODE_OPTIONS=--import=<file>, and set MOVED_CLOCK to a file with the
// distance to the real time in milliseconds. A change of the file takes effect at once.
import { openSync, readSync } from "node:fs";

const RealDate = Date;
// The file stays open, since a service reads the time often.
const file = openSync(process.env.MOVED_CLOCK ?? "", "r");
const buffer = Buffer.alloc(32);
const now = () => RealDate.now() + Number(buffer.toString("latin1", 0, readSync(file, buffer, 0, 32, 0)));

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
});
