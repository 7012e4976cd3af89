// All child processes load this module before their own code. The parent holds the other end of descriptor 3. When that
// end closes, the parent has exited for any reason, and this process must exit too.
import { Socket } from "node:net";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const parent = new Socket({ fd: 3, readable: true, writable: false });
  const leave = (): void => process.exit(143);
  parent.on("error", leave);
  parent.on("close", leave);
  parent.resume();
  parent.unref();
}
