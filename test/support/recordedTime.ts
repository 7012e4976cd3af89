// Sets the clock of a process to the time of a recording, so that recorded invitations and keys have not expired. Load
// the file with NODE_OPTIONS=--import=<file>, and set RECORDED_TIME.
const RealDate = Date;
const offset = Date.parse(process.env.RECORDED_TIME ?? "") - RealDate.now();
const now = () => RealDate.now() + offset;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
});
